/* whyview.c - see whyview.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/showcmd.h"
#include "cli/whyview.h"
#include "model/timespec.h"

int why_call(struct client *c, char **selector, size_t n, const uint32_t *uid, bool brief, Pb__WhyRsp **ret, struct error *err)
{
	Pb__WhyReq req = PB__WHY_REQ__INIT;
	ProtobufCMessage *msg;
	req.selector = selector;
	req.n_selector = n;
	req.has_uid = uid != NULL;
	req.uid = uid ? *uid : 0;
	req.has_brief = req.brief = brief;
	int rc = client_call(c, RPC_WHY, &req.base, 0, &msg, err);
	if (rc < 0)
		return rc;
	*ret = (Pb__WhyRsp *)msg;
	if (!(*ret)->code)
		return 0;
	rc = error_set(err, (int)(*ret)->code, "%s", (*ret)->detail ? (*ret)->detail : error_text((int)(*ret)->code));
	protobuf_c_message_free_unpacked(msg, NULL);
	return rc;
}

static void put_time(struct str *out, uint64_t sec)
{
	char buf[64];
	timespec_print_when((time_t)sec, getenv("SLURM_TIME_FORMAT"), time(NULL), buf, sizeof(buf));
	str_add(out, buf);
}

/* A sentence, with local time for each "{@SECONDS}". */
static void put_sentence(struct str *out, const char *text)
{
	for (const char *at = text; at && *at;) {
		char *end;
		unsigned long long sec = at[0] == '{' && at[1] == '@' ? strtoull(at + 2, &end, 10) : 0;
		if (sec && *end == '}') {
			put_time(out, sec);
			at = end + 1;
		} else
			str_add_c(out, *at++);
	}
}

static char *sentence(const char *text)
{
	struct str s = STR_INIT;
	put_sentence(&s, text);
	return str_take(&s);
}

static void put_table(struct str *out, const Pb__WhyItem *i)
{
	if (!i->n_filter)
		return;
	size_t width = strlen("part of the request");
	for (size_t k = 0; k < i->n_filter; k++)
		width = strlen(i->filter[k]->want) > width ? strlen(i->filter[k]->want) : width;
	str_addf(out, "      %-*s  %8s  %16s  %9s\n", (int)width, "part of the request", "nodes", "excludes alone", "free now");
	for (size_t k = 0; k < i->n_filter; k++) {
		const Pb__WhyFilter *f = i->filter[k];
		str_addf(out, "      %-*s  %8u  %16u  ", (int)width, f->want, f->fit, f->alone);
		if (f->has_free)
			str_addf(out, "%9u\n", f->free);
		else
			str_addf(out, "%9s\n", "");
	}
}

static int64_t number_of(const Pb__WhyItem *i, const char *key, int64_t absent)
{
	for (size_t k = 0; k < i->n_fact; k++)
		if (!strcmp(i->fact[k]->key, key) && i->fact[k]->has_number)
			return i->fact[k]->number;
	return absent;
}

static void put_holders(struct str *out, const Pb__WhyItem *i)
{
	int64_t shown = 0, all = number_of(i, "holders", 0);
	for (size_t k = 0; k < i->n_holder; k++) {
		const Pb__WhyHolder *h = i->holder[k];
		bool planned = !strcmp(h->what, "planned");
		shown += !planned;
		str_addf(out, "      %-10s ", h->what);
		if (h->id)
			str_addf(out, "job %s (%s)", h->id, h->user ? h->user : "?");
		else
			str_add(out, "a job of another user");
		str_addf(out, ", %u node%s", h->nodes, h->nodes == 1 ? "" : "s");
		if (h->has_from) {
			str_add(out, ", from ");
			put_time(out, h->from);
		}
		str_add(out, h->has_until ? ", until " : ", without a time limit");
		if (h->has_until)
			put_time(out, h->until);
		str_add_c(out, '\n');
	}
	if (all > shown)
		str_addf(out, "      and %lld more\n", (long long)(all - shown));
}

static void put_item(struct str *out, const Pb__WhyItem *i, bool full)
{
	str_addf(out, "   %s: ", i->code);
	put_sentence(out, i->text);
	str_add_c(out, '\n');
	if (full) {
		put_table(out, i);
		put_holders(out, i);
	}
	if (i->clears && full) {
		str_add(out, "      clears when: ");
		put_sentence(out, i->clears);
		str_add_c(out, '\n');
	}
}

static void put_priority(struct str *out, const Pb__WhyPriority *p)
{
	str_addf(out, "Priority %u", p->total);
	if (p->by_hand)
		str_add(out, ", set by hand");
	for (size_t i = 0; i < p->n_term; i++) {
		const Pb__WhyTerm *t = p->term[i];
		str_addf(out, "%s%s %.0f", i ? (t->points < 0 ? " - " : " + ") : " = ", t->name, t->points < 0 ? -t->points : t->points);
		if (t->weight && t->factor)
			str_addf(out, " (%.4g x %.0f)", t->factor, t->weight);
	}
	str_add_c(out, '\n');
}

static void put_plan(struct str *out, const Pb__WhyPlan *p)
{
	str_add(out, "Plan: ");
	put_sentence(out, p->text);
	str_addf(out, "\n   %u of %u in the queue", p->position, p->queued);
	if (p->ahead)
		str_addf(out, ", %u before it want%s some of its nodes", p->ahead, p->ahead == 1 ? "s" : "");
	str_add_c(out, '\n');
}

void put_why(struct str *out, const Pb__WhyJob *j, bool full)
{
	str_addf(out, "Job %s (%s, user %s, partition %s) is %s", j->id, j->name ? j->name : "", j->user ? j->user : "?", j->partition ? j->partition : "?", j->state);
	if (j->reason && strcmp(j->reason, "None"))
		str_addf(out, ", reason %s", j->reason);
	str_add_c(out, '\n');
	for (size_t i = 0; i < j->n_condition; i++)
		put_item(out, j->condition[i], full);
	if (!full)
		return;
	if (j->plan)
		put_plan(out, j->plan);
	if (j->priority)
		put_priority(out, j->priority);
	if (j->n_hint)
		str_add(out, "It could start now with one of these changes\n");
	for (size_t i = 0; i < j->n_hint; i++) {
		str_add(out, "   ");
		put_sentence(out, j->hint[i]->text);
		str_add_c(out, '\n');
	}
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void json_sentence(struct json *o, const char *key, const char *text)
{
	char *s = sentence(text);
	json_text(o, key, s);
	free(s);
}

static void json_filters(struct json *o, const Pb__WhyItem *i)
{
	json_open(o, "parts", '[');
	for (size_t k = 0; k < i->n_filter; k++) {
		const Pb__WhyFilter *f = i->filter[k];
		json_open(o, NULL, '{');
		json_text(o, "part", f->part);
		json_text(o, "want", f->want);
		json_u64(o, "nodes", f->fit);
		json_u64(o, "excludes_alone", f->alone);
		json_num(o, "free_now", f->has_free, false, f->free);
		json_close(o);
	}
	json_close(o);
}

static void json_holders(struct json *o, const Pb__WhyItem *i)
{
	json_open(o, "holders", '[');
	for (size_t k = 0; k < i->n_holder; k++) {
		const Pb__WhyHolder *h = i->holder[k];
		json_open(o, NULL, '{');
		json_num(o, "job_id", h->has_job_id, false, h->job_id);
		json_text(o, "id", h->id);
		json_text(o, "user", h->user);
		json_text(o, "what", h->what);
		json_u64(o, "nodes", h->nodes);
		json_num(o, "from", h->has_from, false, h->from);
		json_num(o, "until", h->has_until, !h->has_until, h->until);
		json_close(o);
	}
	json_close(o);
}

static void json_items(struct json *o, const char *key, Pb__WhyItem **list, size_t n, bool whole)
{
	json_open(o, key, '[');
	for (size_t i = 0; i < n; i++) {
		const Pb__WhyItem *it = list[i];
		json_open(o, NULL, '{');
		json_text(o, "code", it->code);
		json_sentence(o, "text", it->text);
		if (whole) {
			json_sentence(o, "clears", it->clears ? it->clears : "");
			json_num(o, "clears_at", it->has_clears_at, false, it->clears_at);
		}
		json_open(o, "facts", '{');
		for (size_t k = 0; k < it->n_fact; k++) {
			if (it->fact[k]->has_number)
				json_i64(o, it->fact[k]->key, it->fact[k]->number);
			else
				json_text(o, it->fact[k]->key, it->fact[k]->text);
		}
		json_close(o);
		if (whole) {
			json_filters(o, it);
			json_holders(o, it);
		}
		json_close(o);
	}
	json_close(o);
}

static void json_plan(struct json *o, const Pb__WhyPlan *p)
{
	if (!p) {
		json_null(o, "plan");
		return;
	}
	json_open(o, "plan", '{');
	json_sentence(o, "text", p->text);
	json_num(o, "start", p->has_start, false, p->start);
	json_text(o, "nodes", p->nodes);
	json_text(o, "partition", p->partition);
	json_u64(o, "position", p->position);
	json_u64(o, "queued", p->queued);
	json_u64(o, "ahead", p->ahead);
	json_close(o);
}

static void json_priority(struct json *o, const Pb__WhyPriority *p)
{
	if (!p) {
		json_null(o, "priority");
		return;
	}
	json_open(o, "priority", '{');
	json_u64(o, "total", p->total);
	json_bool(o, "by_hand", p->by_hand);
	json_open(o, "terms", '[');
	for (size_t i = 0; i < p->n_term; i++) {
		json_open(o, NULL, '{');
		json_text(o, "name", p->term[i]->name);
		json_float(o, "factor", p->term[i]->factor);
		json_float(o, "weight", p->term[i]->weight);
		json_float(o, "points", p->term[i]->points);
		json_close(o);
	}
	json_close(o);
	json_close(o);
}

void why_json(const Pb__WhyRsp *rsp, bool yaml, const char *const *argv, int argc)
{
	struct str out = STR_INIT;
	struct json o;
	json_init(&o, &out, yaml);
	json_open(&o, NULL, '{');
	json_open(&o, "jobs", '[');
	for (size_t i = 0; i < rsp->n_job; i++) {
		const Pb__WhyJob *j = rsp->job[i];
		json_open(&o, NULL, '{');
		json_u64(&o, "job_id", j->job_id);
		json_text(&o, "id", j->id);
		json_text(&o, "name", j->name);
		json_text(&o, "user", j->user);
		json_text(&o, "partition", j->partition);
		json_text(&o, "state", j->state);
		json_text(&o, "reason", j->reason);
		json_items(&o, "conditions", j->condition, j->n_condition, true);
		json_plan(&o, j->plan);
		json_priority(&o, j->priority);
		json_items(&o, "hints", j->hint, j->n_hint, false);
		json_close(&o);
	}
	json_close(&o);
	json_num(&o, "time", true, false, rsp->now);
	json_end(&o, argv, argc);
	out_flush(&out);
	str_fini(&out);
}
