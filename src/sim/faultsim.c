/* faultsim.c - the controller among faults: core, store, a turn, a network and nodes in one thread on virtual time, all from one seed
 * What is played and what is real: fault.h. Here: a seed from beginning to end. The command is in berth_faultsim.c. */
#include <stdio.h>

#include "sim/fault.h"

uint32_t draw(struct sim *s, uint32_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (uint32_t)(s->random >> 20) % below;
}

bool chance(struct sim *s, uint32_t permille) { return s->faults && draw(s, 1000) < permille; }

void wrong(const struct sim *s, const char *what, uint32_t job, uint32_t x)
{
	printf("seed %llu, step %llu, %llu s: %s (job %u, %u)\n", (unsigned long long)s->seed, (unsigned long long)s->steps, (unsigned long long)(s->now / 1000), what, job, x);
	fflush(stdout);
	abort();
}

/* --watch JOB: its story on standard output. */
uint32_t faults_watched;
void story(const struct sim *s, uint32_t job, const char *fmt, uint32_t a, uint32_t b)
{
	if (!faults_watched || (job && job != faults_watched))
		return;
	printf("%8.3f s step %llu: ", (double)(s->now - 1000000000000ull) / 1000, (unsigned long long)s->steps);
	printf(fmt, a, b);
	printf("\n");
}

static void contact(struct sim *s, uint32_t at, bool responding)
{
	struct core_event ev = event(s, EV_NODE_CONTACT, 0);
	ev.contact.node = node_name[at];
	ev.contact.responding = responding;
	step(s, &ev);
}

/* Pings: a dead node is noticed; orders to it are given up when the core gives it up. */
static void pings(struct sim *s)
{
	for (uint32_t i = 0; i < NODES; i++) {
		struct node *n = &s->node[i];
		if (!n->alive && !n->silent_since) {
			n->silent_since = s->now;
			contact(s, i, false);
		} else if (n->alive && n->known && n->silent_since) {
			n->silent_since = 0;
			contact(s, i, true);
		}
		for (size_t k = 0; !core_node_is_up(s->core, i) && k < s->orders;)
			if (s->order[k].node == i)
				s->order[k] = s->order[--s->orders];
			else
				k++;
	}
}

static void misfortunes(struct sim *s)
{
	uint32_t n = draw(s, NODES);
	if (chance(s, 6))
		s->full = !s->full;
	else if (s->full && chance(s, 200))
		s->full = false;
	if (chance(s, 6) && s->node[n].alive)
		node_die(s, n);
	else if (!s->node[n].alive && draw(s, 10) == 0)
		node_boot(s, n);
	else if (s->node[n].alive && chance(s, 6))
		slurmd_restart(s, n);
	if (s->clock <= s->now && chance(s, 4))
		s->clock += draw(s, 20000);  /* the controller's clock runs ahead; time catches up with it */
	if (chance(s, 10) && !s->down)
		controller_kill(s);
	if (s->down && draw(s, 4) == 0)
		controller_start(s);
}

static void tick(struct sim *s, uint64_t ms)
{
	for (size_t i = 0; i < s->msgs; i++) /* not past what is on its way: late is a few seconds, not more */
		ms = s->msg[i].at < s->now + ms ? (s->msg[i].at > s->now ? s->msg[i].at - s->now : 1) : ms;
	s->now += ms;
	for (uint32_t i = 0; i < NODES; i++)
		if (s->node[i].alive)
			node_lives(s, i);
	network(s);
	if (s->down)
		return;
	pings(s);
	if (s->timer_ms && s->timer_ms <= s->now) {
		struct core_event ev = event(s, EV_TIMER, 0);
		s->timer_ms = 0;
		step(s, &ev);
	}
	if (s->plan_more) {
		struct core_event ev = event(s, EV_PLAN, 0);
		s->plan_more = false;
		ev.plan.budget = 50;
		step(s, &ev);
	}
	audit_queue(s);
	turn_close(s);
	for (uint32_t i = 0; i < 8 && !s->down; i++)
		disk(s);
	if (!s->down)
		agent(s);
}

static uint32_t heal(struct sim *s)
{
	uint32_t left = 1;
	s->faults = s->full = false;
	if (s->down)
		controller_start(s);
	for (uint32_t i = 0; i < 30; i++) {
		for (uint32_t k = 0; k < NODES; k++)
			if (!s->node[k].alive)
				node_boot(s, k);
		tick(s, 1000);
	}
	all_is_well(s);
	for (uint32_t i = 0; i < 60000 && left; i++) {
		tick(s, 1000);
		if (i % 50 == 0 && (left = left_over(s, false)) && i % 500 == 0)
			all_is_well(s);
	}
	if (left)
		(void)left_over(s, true);
	return left;
}

static void sim_free(struct sim *s)
{
	if (!s->down)
		controller_kill(s);
	for (size_t i = 0; i < s->msgs; i++)
		free(s->msg[i].alive);
	for (uint32_t i = 0; i < JOBS_MAX; i++)
		free(s->told[i].claim);
	free(s->msg);
	free(s->order);
	free(s->told);
	free(s->planned);
	effects_destroy(s->fx);
	store_close(s->store);
	free(s);
}

static struct sim *sim_make(uint64_t seed)
{
	struct sim *s = xcalloc(1, sizeof *s);
	s->seed = seed;
	s->random = seed * 0x9e3779b97f4a7c15ull + 1;
	s->now = s->clock = 1000000000ull * 1000;
	s->fx = effects_create();
	s->store = store_open_memory();
	s->last = &s->first;
	s->told = xcalloc(JOBS_MAX, sizeof *s->told);
	s->faults = true;
	s->params = (struct core_params){ .cluster = "faults", .first_job_id = 1, .max_job_id = 67043328, .max_job_count = 10000, .max_array_size = 1001, .min_job_age_sec = 60,
		.kill_wait_sec = 30, .slurmd_timeout_sec = 30, .max_step_count = 40000, .return_to_service = 2, .job_requeue = true, .select_cores = true, .select_memory = true,
		.backfill = seed % 4 != 3, .bf_window_min = 1440, .bf_resolution_sec = 60, .bf_reserve = seed % 3, .bf_order = (uint32_t)(seed / 3 % 3), .node_steps_clean = true,
		.gres_types = "gpu", .licenses = "lic:3,soft:2", .preempt = seed % 5 == 4, .preempt_mode = seed % 3 == 2 ? PREEMPT_SUSPEND : seed % 2 ? PREEMPT_REQUEUE : PREEMPT_CANCEL, .gang = seed % 3 == 2, .enforce_part_limits = 1,
		.enforce = ENFORCE_LIMITS, .priority_multifactor = seed % 7 < 3, .weight_fair = 1000, .calc_period_sec = 60, .decay_half_sec = 120 };
	for (uint32_t i = 0; i < NODES; i++)
		s->node[i].alive = true;
	return s;
}

uint64_t faults_seed(uint64_t seed, uint64_t events, bool loud)
{
	struct sim *s = sim_make(seed);
	controller_start(s);
	while (s->steps < events) {
		tick(s, 1 + draw(s, draw(s, 4) ? 300 : 30000));
		if (!s->down)
			users(s);
		misfortunes(s);
	}
	uint32_t left = heal(s);
	uint64_t steps = s->steps;
	if (loud || left)
		printf("seed %llu: %llu events, %llu jobs accepted, %llu runs started, controller killed %llu times, %u left over\n", (unsigned long long)seed,
			(unsigned long long)s->steps, (unsigned long long)s->accepted, (unsigned long long)s->launches, (unsigned long long)s->kills, left);
	sim_free(s);
	if (left)
		exit(1);
	return steps;
}
