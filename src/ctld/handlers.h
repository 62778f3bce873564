/* handlers.h - one handler for each call slurmctld answers: rpc_change.c (events for the core), rpc_read.c (lists), rpc_resv.c (reservations), rpc_admin.c (the rest) */
#pragma once
#include "ctld/ctld.h"

typedef void (*rpc_fn)(struct ctld *d, struct wire_req *req);
void rpc_submit(struct ctld *d, struct wire_req *req);
void rpc_kill(struct ctld *d, struct wire_req *req);
void rpc_job_op(struct ctld *d, struct wire_req *req);
void rpc_job_update(struct ctld *d, struct wire_req *req);
void rpc_node_update(struct ctld *d, struct wire_req *req);
void rpc_part_update(struct ctld *d, struct wire_req *req);
void rpc_resv_list(struct ctld *d, struct wire_req *req);
void rpc_resv_update(struct ctld *d, struct wire_req *req);
void rpc_step_create(struct ctld *d, struct wire_req *req);
void rpc_steps_drain(struct ctld *d, struct wire_req *req);
void rpc_step_done(struct ctld *d, struct wire_req *req);
void rpc_job_done(struct ctld *d, struct wire_req *req);
void rpc_node_register(struct ctld *d, struct wire_req *req);
void rpc_node_event(struct ctld *d, struct wire_req *req);
void rpc_wait(struct ctld *d, struct wire_req *req);
void rpc_alloc_info(struct ctld *d, struct wire_req *req);

void rpc_job_list(struct ctld *d, struct wire_req *req);
void rpc_bcast_cred(struct ctld *d, struct wire_req *req);
void rpc_step_layout(struct ctld *d, struct wire_req *req);
void rpc_step_list(struct ctld *d, struct wire_req *req);
void rpc_node_list(struct ctld *d, struct wire_req *req);
void rpc_part_list(struct ctld *d, struct wire_req *req);
void rpc_config_show(struct ctld *d, struct wire_req *req);
void rpc_script(struct ctld *d, struct wire_req *req);

void rpc_ping(struct ctld *d, struct wire_req *req);
void rpc_reconfigure(struct ctld *d, struct wire_req *req);
void rpc_crontab_get(struct ctld *d, struct wire_req *req);
void rpc_crontab_set(struct ctld *d, struct wire_req *req);
void rpc_log_set(struct ctld *d, struct wire_req *req);
void rpc_shutdown(struct ctld *d, struct wire_req *req);
void rpc_license_list(struct ctld *d, struct wire_req *req);
void rpc_topology_list(struct ctld *d, struct wire_req *req);
void rpc_acct_state(struct ctld *d, struct wire_req *req);
void rpc_prio_list(struct ctld *d, struct wire_req *req);
void rpc_why(struct ctld *d, struct wire_req *req);
void rpc_diag(struct ctld *d, struct wire_req *req);
void rpc_conf_fetch(struct ctld *d, struct wire_req *req);
