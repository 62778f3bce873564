/* step.h - steps of a job: step.c, layout.c, drain.c (a part of state.h) */
#pragma once

void step_node_done(struct core *c, struct core_job *j, struct step *s, uint32_t node, const Pb__NodeEvent *e);
void step_alive(struct core *c, struct core_job *j, uint32_t node, uint32_t step_id);
void step_create(struct core *c, const struct core_event *ev);
void step_give_up(struct core *c, const struct core_event *ev);
int step_make(struct core *c, struct core_job *j, const Pb__StepDesc *d, const struct core_caller *by, Pb__StepCreateRsp *rsp, struct error *err);
void step_done_event(struct core *c, const struct core_event *ev);
void step_end(struct core *c, struct core_job *j, struct step *s, uint32_t status);
void step_truth(struct core *c, struct core_job *j, struct step *s, uint32_t status); /* how one that ended with its job really did */
void step_finish_all(struct core *c, struct core_job *j);
void step_free(struct step *s);
void step_waits_retry(struct core *c, struct core_job *j);
void step_waits_timer(struct core *c);
struct step *step_find(const struct core_job *j, uint32_t id);
struct step *step_special(struct core *c, struct core_job *j, uint32_t id);
Pb__StepLayout *step_extern(struct core *c, struct core_job *j); /* made, to be started by slurmctld's order for the prologs; in the turn's arena */
Pb__StepRecord *step_record(const struct core *c, const struct core_job *j, const struct step *s);
void step_timer(struct core *c, struct core_job *j, uint32_t step_id);
void steps_leave_node(struct core *c, struct core_job *j, uint32_t at);
void steps_after_leave(struct core_job *j, uint32_t at);
void step_cancel(struct core *c, struct core_job *j, struct step *s, uint32_t uid, uint32_t signal);
int layout_make(struct core *c, const struct core_job *j, struct step *s, const Pb__StepDesc *d, struct error *err);
Pb__StepLayout *layout_message(const struct core *c, const struct core_job *j, const struct step *s, struct arena *a);

/* drain.c */
void drain_ask(struct core *c, const struct core_event *ev);
void drains_answer(struct core *c, const struct core_job *j); /* if the job has no step left */
bool drain_give_up(struct core *c, uint64_t token);           /* was it one of these? */
void drains_free(struct core *c);
