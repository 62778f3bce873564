/* fault_node.c - the network and the nodes (see fault.h): launches, ends, registrations, reports that are repeated until they are taken */
#include "model/stepid.h"
#include "sim/fault.h"

const char *const node_name[NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7" };

static void post_once(struct sim *s, struct msg m)
{
	s->msg = xgrow(s->msg, &s->msg_cap, s->msgs + 1, sizeof *s->msg);
	m.at = s->now + 1 + (chance(s, 100) ? draw(s, LATE_MS) : draw(s, 5));
	m.seq = ++s->seq;
	m.epoch = s->epoch;
	m.alive = m.n_alive ? xmemdup(m.alive, m.n_alive * sizeof *m.alive) : NULL;
	s->msg[s->msgs++] = m;
}

static bool to_node(const struct msg *m) { return m->kind == M_LAUNCH || m->kind == M_TERMINATE || m->kind == M_ACK_REPORT || m->kind == M_REGISTERED; }

void post(struct sim *s, const struct msg *m)
{
	if (to_node(m) && !s->node[m->node].alive) /* nobody to connect to */
		return;
	if (!chance(s, 60))
		post_once(s, *m);
	if (chance(s, 40))
		post_once(s, *m);
}

/* --- what a node does ------------------------------------------------------------------------------ */

static bool had(const struct node *n, const struct msg *m)
{
	for (size_t i = 0; i < n->pasts; i++)
		if (n->past[i].job_id == m->job_id && n->past[i].restarts == m->restarts)
			return true;
	return false;
}

static void past_add(struct node *n, uint32_t job_id, uint32_t restarts)
{
	if (n->pasts == RUNS_MAX * 4) {
		memmove(n->past, n->past + 1, (n->pasts - 1) * sizeof *n->past);
		n->pasts--;
	}
	n->past[n->pasts++] = (struct alive){ job_id, restarts };
}

static void report_add(struct sim *s, struct node *n, uint32_t job_id, uint32_t restarts, uint32_t status)
{
	if (n->reports == RUNS_MAX * 2)
		wrong(s, "a node has too many reports", job_id, 0);
	n->report[n->reports++] = (struct report){ .id = ++s->report_id, .job_id = job_id, .restarts = restarts, .status = status, .clean = true, .again = s->now };
}

static void run_start(struct sim *s, struct node *n, const struct msg *m)
{
	uint32_t used = m->cpus;
	for (size_t i = 0; i < n->runs; i++)
		used += n->run[i].given_up ? 0 : n->run[i].cpus;
	audit_run(s, m->node, m, used);
	if (n->runs == RUNS_MAX)
		wrong(s, "a node has too many runs", m->job_id, 0);
	n->run[n->runs++] = (struct run){ m->job_id, m->restarts, m->cpus, s->now + 1000 + draw(s, 900000), false, audit_given_up(s, m->job_id, m->node) };
	past_add(n, m->job_id, m->restarts);
	s->launches++;
}

/* noded/launch.c: a launch from before a reboot is refused, one that comes again is answered alone. */
static void node_launch(struct sim *s, struct node *n, const struct msg *m)
{
	struct msg ack = { .kind = M_ACK_ORDER, .node = m->node, .order = m->order, .job_id = m->job_id, .restarts = m->restarts };
	ack.refused = n->after_reboot && m->meant_for != n->started / 1000;
	if (!ack.refused && !had(n, m))
		run_start(s, n, m);
	post(s, &ack);
}

static void node_terminate(struct sim *s, struct node *n, const struct msg *m)
{
	struct msg ack = { .kind = M_ACK_ORDER, .node = m->node, .order = m->order, .job_id = m->job_id, .restarts = m->restarts };
	bool here = false;
	for (size_t i = 0; i < n->runs; i++)
		if (n->run[i].job_id == m->job_id && n->run[i].restarts <= m->restarts) {
			n->run[i].ends = n->run[i].ending ? n->run[i].ends : s->now + draw(s, 2000);
			n->run[i].ending = here = true;
		}
	for (size_t i = 0; i < n->reports; i++)
		here = here || (n->report[i].job_id == m->job_id && n->report[i].restarts == m->restarts);
	if (!had(n, m))
		past_add(n, m->job_id, m->restarts); /* a launch that comes later is refused */
	ack.gone = !here;
	post(s, &ack);
}

/* Its answer brings the key by which launches are believed; those that came before it were kept (noded/handlers.c). */
static void node_registered(struct sim *s, struct node *n)
{
	size_t helds = n->helds;
	n->known = n->keys = true;
	n->rebooted = false;
	n->helds = 0;
	for (size_t i = 0; i < helds; i++)
		if (!s->down && n->held[i].epoch == s->epoch)
			node_launch(s, n, &n->held[i]);
}

static void node_order(struct sim *s, const struct msg *m)
{
	struct node *n = &s->node[m->node];
	if (m->kind == M_TERMINATE)
		node_terminate(s, n, m);
	else if (n->keys)
		node_launch(s, n, m);
	else if (n->helds < HELD_MAX)
		n->held[n->helds++] = *m;
}

static void node_register(struct sim *s, uint32_t at)
{
	struct node *n = &s->node[at];
	struct alive list[RUNS_MAX * 3];
	size_t count = 0;
	for (size_t i = 0; i < n->runs; i++)
		list[count++] = (struct alive){ n->run[i].job_id, n->run[i].restarts };
	for (size_t i = 0; i < n->reports; i++) /* alive until their end is taken */
		list[count++] = (struct alive){ n->report[i].job_id, n->report[i].restarts };
	struct msg m = { .kind = M_REGISTER, .node = at, .boot = n->boot, .rebooted = n->rebooted, .started = n->started, .alive = list, .n_alive = count };
	n->register_at = s->now + REPEAT_MS + LATE_MS;
	post(s, &m);
}

void node_lives(struct sim *s, uint32_t at)
{
	struct node *n = &s->node[at];
	for (size_t i = 0; i < n->runs;) {
		if (n->run[i].ends > s->now) {
			i++;
			continue;
		}
		story(s, n->run[i].job_id, "run %u is over on node %u", n->run[i].restarts, at);
		report_add(s, n, n->run[i].job_id, n->run[i].restarts, n->run[i].ending ? 15 : draw(s, 10) ? 0 : 256);
		n->run[i] = n->run[--n->runs];
	}
	for (size_t i = 0; n->keys && i < n->reports; i++) {
		struct report *r = &n->report[i];
		struct msg m = { .kind = M_REPORT, .node = at, .boot = n->boot, .job_id = r->job_id, .restarts = r->restarts, .status = r->status, .report = r->id, .clean = r->clean, .epilog = r->epilog };
		if (r->again > s->now)
			continue;
		r->again = s->now + REPEAT_MS;
		post(s, &m);
	}
	if (!n->known && n->register_at <= s->now)
		node_register(s, at);
}

void node_die(struct sim *s, uint32_t at)
{
	struct node *n = &s->node[at];
	story(s, 0, "node %u dies", at, 0);
	n->alive = n->known = n->keys = false;
	n->runs = n->reports = n->pasts = n->helds = 0;
	n->boot++;
	n->dead_until = s->now + 2000;
	audit_node_gone(s, at);
}

void node_boot(struct sim *s, uint32_t at)
{
	struct node *n = &s->node[at];
	if (n->dead_until > s->now)
		return;
	story(s, 0, "node %u boots", at, 0);
	n->alive = n->rebooted = n->after_reboot = true;
	n->started = s->now;
	n->register_at = s->now + draw(s, 2000);
}

/* Its jobs go on (slurmstepd holds them), what it has to report stays; connections break and keys are forgotten. */
void slurmd_restart(struct sim *s, uint32_t at)
{
	struct node *n = &s->node[at];
	story(s, 0, "slurmd of node %u is restarted", at, 0);
	n->known = n->keys = false;
	n->after_reboot = n->rebooted; /* that the node was booted stays to be told (by slurmd -b, or by its boot time) */
	n->helds = 0;
	n->boot++;
	n->started = s->now;
	n->register_at = s->now + draw(s, 1000);
}

/* --- what reaches the controller ------------------------------------------------------------------- */

static void on_report(struct sim *s, const struct msg *m)
{
	struct core_event ev = event(s, EV_NODE_EVENT, 0);
	Pb__NodeEvent e = PB__NODE_EVENT__INIT;
	story(s, m->job_id, "node %u reports the end of run %u", m->node, m->restarts);
	e.kind = m->epilog ? PB__NODE_EVENT__KIND__EPILOG_DONE : PB__NODE_EVENT__KIND__BATCH_DONE;
	e.has_job_id = e.has_restarts = e.has_status = e.has_clean = true;
	e.job_id = m->job_id;
	e.restarts = m->restarts;
	e.status = m->status;
	e.clean = m->clean;
	ev.node_event.node = node_name[m->node];
	ev.node_event.event = &e;
	audit_clean(s, m->job_id, m->restarts, m->node);
	step(s, &ev);
}

static void on_register(struct sim *s, const struct msg *m)
{
	struct core_event ev = event(s, EV_NODE_REGISTER, 0);
	Pb__NodeRegisterReq q = PB__NODE_REGISTER_REQ__INIT;
	Pb__NodeRecord rec = PB__NODE_RECORD__INIT;
	Pb__StepAlive step_of[RUNS_MAX * 3], *list[RUNS_MAX * 3];
	rec.name = (char *)node_name[m->node];
	rec.has_slurmd_start_time = true;
	rec.slurmd_start_time = m->started / 1000;
	q.node = &rec;
	q.has_rebooted = true;
	q.rebooted = m->rebooted;
	for (size_t i = 0; i < m->n_alive; i++) {
		pb__step_alive__init(&step_of[i]);
		step_of[i].job_id = m->alive[i].job_id;
		step_of[i].step_id = STEP_ID_BATCH;
		step_of[i].has_restarts = true;
		step_of[i].restarts = m->alive[i].restarts;
		list[i] = &step_of[i];
	}
	q.step = list;
	q.n_step = m->n_alive;
	ev.node_register = &q;
	story(s, 0, "node %u registers, rebooted %u", m->node, m->rebooted);
	if (m->rebooted)
		audit_node_gone(s, m->node);
	step(s, &ev);
	act_add(s, (struct act){ .kind = A_REGISTERED, .node = m->node, .boot = m->boot });
}

/* agent.c, order_done: what is refused at the second try had arrived before. */
static void on_launched(struct sim *s, const struct order *o, const struct msg *m)
{
	struct core_event ev = event(s, EV_LAUNCH_RESULT, 0);
	ev.launch.job_id = o->job_id;
	ev.launch.restarts = o->restarts;
	ev.launch.node = node_name[o->node];
	ev.launch.code = m->refused && o->tries < 2 ? -ESLURM_CRED : 0;
	if (!ev.launch.code || order_wanted(s, o))
		step(s, &ev);
}

static void on_ack_order(struct sim *s, const struct msg *m)
{
	for (size_t i = 0; i < s->orders; i++) {
		struct order o = s->order[i];
		if (o.id != m->order)
			continue;
		s->order[i] = s->order[--s->orders];
		if (o.launch)
			on_launched(s, &o, m);
		else if (m->gone)
			on_report(s, &(struct msg){ .node = o.node, .job_id = o.job_id, .restarts = o.restarts, .epilog = true });
		return;
	}
}

static void on_ack_report(struct sim *s, const struct msg *m)
{
	struct node *n = &s->node[m->node];
	for (size_t i = 0; i < n->reports; i++)
		if (n->report[i].id == m->report) {
			n->report[i] = n->report[--n->reports];
			return;
		}
}

static void deliver(struct sim *s, const struct msg *m)
{
	bool to_live = s->node[m->node].alive && s->node[m->node].boot == m->boot;
	bool dead_end = s->down || s->epoch != m->epoch || (m->kind == M_REGISTER && s->node[m->node].boot != m->boot);
	if (to_node(m) ? !to_live : dead_end) /* a connection dies with either end */
		return;
	switch (m->kind) {
	case M_LAUNCH:
	case M_TERMINATE: node_order(s, m); break;
	case M_ACK_REPORT: on_ack_report(s, m); break;
	case M_REGISTERED:
		if (s->epoch == m->epoch)
			node_registered(s, &s->node[m->node]);
		break;
	case M_REPORT:
		on_report(s, m);
		act_add(s, (struct act){ .kind = A_ACK, .node = m->node, .report = m->report, .boot = m->boot });
		break;
	case M_REGISTER:
		audit_registers(s, m);
		on_register(s, m);
		break;
	case M_ACK_ORDER: on_ack_order(s, m); break;
	}
}

void network(struct sim *s)
{
	for (size_t round = 0; round < 100000; round++) {
		size_t best = SIZE_MAX;
		for (size_t i = 0; i < s->msgs; i++)
			if (s->msg[i].at <= s->now && (best == SIZE_MAX || s->msg[i].at < s->msg[best].at || (s->msg[i].at == s->msg[best].at && s->msg[i].seq < s->msg[best].seq)))
				best = i;
		if (best == SIZE_MAX)
			return;
		struct msg m = s->msg[best];
		s->msg[best] = s->msg[--s->msgs];
		deliver(s, &m);
		free(m.alive);
		if (!s->down && chance(s, 2))
			controller_kill(s);
	}
}
