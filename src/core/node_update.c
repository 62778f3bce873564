/* node_update.c - scontrol update node: states as words, and the few facts that may be changed by hand
 * Keys and values are checked before anything changes. A node that cannot go to the wanted state from its own is left as it is and makes the
 * answer an error; the others change, so that "nodename=ALL state=resume" resumes those that are down or drained. */
#include <stdlib.h>

#include "core/change.h"

struct node_change { const char *state, *reason, *features, *active, *comment, *extra, *next, *instance_id, *instance_type; bool has_weight, has_after; uint32_t weight, after_sec; const struct core_caller *by; };

typedef int (*state_fn)(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err);

static void reason_put(struct core *c, struct core_node *n, const struct node_change *ch, const char *reason)
{
	xstr_set(&n->rec->reason, reason);
	xstr_set(&n->rec->reason_user, reason ? (ch->by->user ? ch->by->user : "root") : NULL);
	n->rec->has_reason_time = n->rec->has_reason_uid = reason != NULL;
	n->rec->reason_time = now_sec(c);
	n->rec->reason_uid = ch->by->uid;
}

static int need_reason(const struct core_node *n, const struct node_change *ch, struct error *err)
{
	if ((ch->reason && ch->reason[0]) || n->rec->reason)
		return 0;
	return error_set(err, ESLURM_REASON_MISSING, "node %s: a reason is needed (Reason=...)", n->name);
}

static int to_down(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	if (check)
		return need_reason(n, ch, err);
	char *reason = xstrdup(ch->reason && ch->reason[0] ? ch->reason : n->rec->reason);
	n->down_by_admin = true;
	node_set_down(c, n, reason);
	reason_put(c, n, ch, reason);
	free(reason);
	return 0;
}

static int to_drain(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	if (check)
		return need_reason(n, ch, err);
	n->flags |= NODEF_DRAIN;
	if (ch->reason && ch->reason[0])
		reason_put(c, n, ch, ch->reason);
	return 0;
}

static int to_fail(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	if (check)
		return need_reason(n, ch, err);
	n->flags |= NODEF_FAIL;
	if (ch->reason && ch->reason[0])
		reason_put(c, n, ch, ch->reason);
	return 0;
}

static int to_resume(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	if (check)
		return n->base == NODE_DOWN || (n->flags & (NODEF_DRAIN | NODEF_FAIL)) ? 0 :
			error_set(err, ESLURM_NODE_STATE_TRANSITION, "node %s is neither down nor drained", n->name);
	n->flags &= ~(uint32_t)(NODEF_DRAIN | NODEF_FAIL | NODEF_INVALID_REG);
	n->down_by_admin = false;
	if (n->base == NODE_DOWN)
		n->base = n->registered ? NODE_IDLE : NODE_UNKNOWN;
	reason_put(c, n, ch, NULL);
	if (n->flags & NODEF_NOT_RESPONDING) { /* it has SlurmdTimeout to answer */
		n->lost_ms = c->now_ms;
		timer_add(c, c->now_ms + c->params.slurmd_timeout_sec * 1000ull, TIMER_NODE, n->index, 0);
	}
	return 0;
}

/* As RESUME, but a node that is neither down nor drained is no error. */
static int to_idle(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	if (check || to_resume(c, n, ch, true, NULL) < 0)
		return 0;
	return to_resume(c, n, ch, false, err);
}

/* A node that is not drained is no error. */
static int to_undrain(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	(void)err;
	if (check || !(n->flags & NODEF_DRAIN))
		return 0;
	n->flags &= ~(uint32_t)NODEF_DRAIN;
	if (n->base != NODE_DOWN)
		reason_put(c, n, ch, NULL);
	return 0;
}

static int to_noresp(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	(void)ch;
	(void)err;
	if (check)
		return 0;
	n->flags |= NODEF_NOT_RESPONDING;
	n->lost_ms = c->now_ms;
	timer_add(c, c->now_ms + c->params.slurmd_timeout_sec * 1000ull, TIMER_NODE, n->index, 0);
	return 0;
}

static int reboot_words(struct core *c, struct core_node *n, const struct node_change *ch, bool asap, bool check, struct error *err)
{
	if (check && ch->next && strcasecmp(ch->next, "DOWN") && strcasecmp(ch->next, "RESUME"))
		return error_set(err, ESLURM_INVALID_NODE_STATE, "\"%s\" cannot be the state after a reboot; possible are DOWN, RESUME", ch->next);
	if (check)
		return n->flags & NODEF_REBOOT_ISSUED ? error_set(err, ESLURM_NODE_STATE_TRANSITION, "node %s reboots already", n->name) : 0;
	reboot_ask(c, n, asap, ch->next, ch->reason, ch->by);
	return 0;
}

static int to_reboot(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	return reboot_words(c, n, ch, false, check, err);
}

static int to_reboot_asap(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	return reboot_words(c, n, ch, true, check, err);
}

static int to_cancel_reboot(struct core *c, struct core_node *n, const struct node_change *ch, bool check, struct error *err)
{
	(void)ch;
	return reboot_cancel(c, n, check, err);
}

static const struct { const char *word; state_fn fn; } state_words[] = {
	{ "DOWN", to_down }, { "DRAIN", to_drain }, { "FAIL", to_fail }, { "RESUME", to_resume }, { "IDLE", to_idle },
	{ "UNDRAIN", to_undrain }, { "NORESP", to_noresp }, { "NO_RESPOND", to_noresp },
	{ "REBOOT", to_reboot }, { "REBOOT_ASAP", to_reboot_asap }, { "CANCEL_REBOOT", to_cancel_reboot },
};
static const char *const later_words[] = { "POWER_UP", "POWER_DOWN", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE", "FUTURE", "CLOUD" };

static int state_find(const char *word, state_fn *ret, struct error *err)
{
	for (size_t i = 0; i < sizeof state_words / sizeof state_words[0]; i++)
		if (!strcasecmp(state_words[i].word, word)) {
			*ret = state_words[i].fn;
			return 0;
		}
	for (size_t i = 0; i < sizeof later_words / sizeof later_words[0]; i++)
		if (!strcasecmp(later_words[i], word))
			return error_set(err, ESLURM_NOT_SUPPORTED, "node state %s is not supported yet", word);
	return error_set(err, ESLURM_INVALID_NODE_STATE, "\"%s\" is not a node state; possible are DOWN, DRAIN, FAIL, IDLE, NORESP, RESUME, UNDRAIN", word);
}

static int change_read(const Pb__NodeUpdateReq *q, struct node_change *ch, struct error *err)
{
	for (size_t i = 0; i < q->n_set; i++) {
		const char *k = q->set[i]->key, *v = q->set[i]->value ? q->set[i]->value : "";
		unsigned long long n;
		if (!strcasecmp(k, "State"))
			ch->state = v;
		else if (!strcasecmp(k, "Reason"))
			ch->reason = v;
		else if (!strcasecmp(k, "Features") || !strcasecmp(k, "AvailableFeatures"))
			ch->features = v;
		else if (!strcasecmp(k, "ActiveFeatures"))
			ch->active = v;
		else if (!strcasecmp(k, "ResumeAfter") && (!strcasecmp(v, "infinite") || !strcmp(v, "-1")))
			ch->has_after = true;
		else if (!strcasecmp(k, "ResumeAfter") && str_to_u64(v, 0, UINT32_MAX, &n) == 0) {
			ch->has_after = true;
			ch->after_sec = (uint32_t)n;
		}
		else if (!strcasecmp(k, "NextState"))
			ch->next = v;
		else if (!strcasecmp(k, "Comment"))
			ch->comment = v;
		else if (!strcasecmp(k, "Extra"))
			ch->extra = v;
		else if (!strcasecmp(k, "InstanceId"))
			ch->instance_id = v;
		else if (!strcasecmp(k, "InstanceType"))
			ch->instance_type = v;
		else if (!strcasecmp(k, "Weight") && str_to_u64(v, 0, UINT32_MAX, &n) == 0) {
			ch->has_weight = true;
			ch->weight = (uint32_t)n;
		} else
			return error_set(err, ESLURM_INVALID_UPDATE, "node key %s=%s is not known, has a wrong value, or cannot be changed yet", k, v);
	}
	return 0;
}

/* Is the word one of a comma-separated list? */
static bool list_word(const char *list, const char *word)
{
	size_t len = strlen(word);
	for (const char *s = list; s && *s;) {
		size_t k = strcspn(s, ",");
		if (k == len && !strncmp(s, word, len))
			return true;
		s += k + (s[k] == ',');
	}
	return false;
}

static size_t words_count(const char *list)
{
	size_t n = *list != 0;
	for (const char *p = list; *p; p++)
		n += *p == ',';
	return n;
}

/* One value for all nodes, or a list with one for each, in the order of the configuration. */
static int values_check(const char *key, const char *list, uint32_t nodes, struct error *err)
{
	size_t n = list ? words_count(list) : 0;
	if (n <= 1 || n == nodes)
		return 0;
	return error_set(err, ESLURM_INVALID_UPDATE, "%s=%s: %zu values for %u nodes; one for all, or one for each is needed", key, list, n, nodes);
}

static void value_apply(char **to, const char *list, uint32_t at)
{
	for (bool many = strchr(list, ',') != NULL; many && at; at--)
		list += strcspn(list, ",") + 1;
	char *one = xstrndup(list, strcspn(list, ","));
	xstr_set(to, *one ? one : NULL);
	free(one);
}

/* The active ones follow the available ones, unless they are named: then they are some of those. Malloc'd. */
static char *active_next(const struct core_node *n, const struct node_change *ch)
{
	const char *old = n->rec->features_act, *all = n->rec->features;
	bool follows = ch->features && (!old || str_eq(old, all));
	return xstrdup(ch->active ? ch->active : follows ? ch->features : old ? old : all ? all : "");
}

static int features_check(const struct core_node *n, const struct node_change *ch, struct error *err)
{
	const char *all = ch->features ? ch->features : n->rec->features;
	char *now = active_next(n, ch), *at = now, *one;
	int rc = 0;
	while (rc >= 0 && (one = str_next(&at, ",")))
		if (one[0] && !list_word(all, one))
			rc = error_set(err, ESLURM_ACTIVE_FEATURES, "node %s: feature \"%s\" would be active and not available (%s)", n->name, one, all ? all : "none");
	free(now);
	return rc;
}

/* after_sec 0: not at all. */
static void resume_later(struct core *c, struct core_node *n, uint32_t after_sec)
{
	n->rec->has_resume_after = after_sec > 0;
	n->rec->resume_after = after_sec ? now_sec(c) + after_sec : 0;
	if (after_sec)
		timer_add(c, n->rec->resume_after * 1000, TIMER_NODE, n->index, 0);
}

void node_resume_due(struct core *c, struct core_node *n)
{
	static const struct core_caller nobody = { .user = "root" };
	struct node_change ch = { .by = &nobody };
	if (!n->rec->has_resume_after || n->rec->resume_after > now_sec(c))
		return;
	n->rec->has_resume_after = false;
	if (to_resume(c, n, &ch, true, NULL) < 0)
		return;
	(void)to_resume(c, n, &ch, false, NULL);
	fx_log(c, LOG_L_INFO, "node %s is resumed: its time (ResumeAfter) has come", n->name);
	node_refresh(c, n);
	if (bitset_has(c->up, n->index))
		sched_gained(c, n->index);
	fx_node(c, n);
}

static void change_apply(struct core *c, struct core_node *n, const struct node_change *ch, state_fn fn, uint32_t at)
{
	if (ch->instance_id)
		value_apply(&n->rec->instance_id, ch->instance_id, at);
	if (ch->instance_type)
		value_apply(&n->rec->instance_type, ch->instance_type, at);
	if (fn)
		(void)fn(c, n, ch, false, NULL);
	else if (ch->reason)
		reason_put(c, n, ch, ch->reason[0] ? ch->reason : NULL);
	if (ch->features || ch->active) {
		char *now = active_next(n, ch);
		if (ch->features)
			xstr_set(&n->rec->features, ch->features[0] ? ch->features : NULL);
		xstr_set(&n->rec->features_act, now[0] || n->rec->features ? now : NULL);
		free(now);
		c->config_gen++;
	}
	if (ch->has_after || ch->state)
		resume_later(c, n, ch->after_sec);
	if (ch->comment)
		xstr_set(&n->rec->comment, ch->comment[0] ? ch->comment : NULL);
	if (ch->extra)
		xstr_set(&n->rec->extra, ch->extra[0] ? ch->extra : NULL);
	if (ch->has_weight) {
		n->weight = n->rec->weight = ch->weight;
		n->rec->has_weight = true;
	}
	if (n->base != NODE_DOWN && (n->flags & (NODEF_DRAIN | NODEF_FAIL)))
		while (n->plan_n) {
			struct core_job *j = n->plan[0].p->job;
			promise_drop(c, j);
			sched_shape(c, j->shape);
		}
	node_refresh(c, n);
	fx_node(c, n);
}

/* Takes the nodes that cannot change so out of the set; false when none may change. The error is that of the first. */
static bool states_check(struct core *c, struct bitset *nodes, state_fn fn, const struct node_change *ch, struct error *err)
{
	bitset_for(nodes, i) {
		struct error one = { 0 };
		if (!fn || fn(c, c->node[i], ch, true, &one) >= 0)
			continue;
		if (!err->code)
			*err = one;
		if (one.code != -ESLURM_NODE_STATE_TRANSITION)
			return false;
		bitset_clear(nodes, i);
	}
	return bitset_count(nodes) > 0;
}

void node_update(struct core *c, const struct core_event *ev)
{
	const Pb__NodeUpdateReq *q = ev->node_update;
	struct error err = { 0 };
	struct node_change ch = { .by = &ev->by };
	struct bitset *nodes = NULL;
	state_fn fn = NULL;
	if (!ev->by.oper)
		error_set(&err, ESLURM_INVALID_USER_ID, "only operators may change nodes");
	else if (!q->nodes[0])
		error_set(&err, ESLURM_INVALID_NODE_NAME, "no node is named");
	else if (nodes_bitset(c, q->nodes, &nodes, &err) >= 0 && change_read(q, &ch, &err) >= 0 && values_check("InstanceId", ch.instance_id, bitset_count(nodes), &err) >= 0 &&
		 values_check("InstanceType", ch.instance_type, bitset_count(nodes), &err) >= 0 && (!ch.state || state_find(ch.state, &fn, &err) >= 0)) {
		struct bitset *named = bitset_copy(nodes);
		bool some = states_check(c, nodes, fn, &ch, &err);
		bitset_for(nodes, i)
			some = some && (!(ch.features || ch.active) || features_check(c->node[i], &ch, &err) >= 0);
		if (some && ch.after_sec && fn != to_down && fn != to_drain)
			some = error_set(&err, ESLURM_RESUME_AFTER, "ResumeAfter needs State=DOWN or State=DRAIN") >= 0;
		uint32_t at = 0;
		bitset_for(named, i) {
			if (some && bitset_has(nodes, i))
				change_apply(c, c->node[i], &ch, fn, at);
			at++;
		}
		bitset_destroy(named);
		if (some && ch.has_weight)
			weight_order(c);
		if (some && (ch.features || ch.active))
			for (uint64_t cur = 0;;) {
				struct core_job *j = (struct core_job *)core_job_next(c, &cur);
				if (!j)
					break;
				if (j->state == PB__JOB_STATE__PENDING)
					queue_update(c, j);
			}
	}
	bitset_destroy(nodes);
	fx_result(c, ev->token, &err, 0);
}
