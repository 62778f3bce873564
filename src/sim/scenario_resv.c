/* scenario_resv.c - the scenario language about reservations and the wall clock */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/localzone.h"
#include "model/resvflag.h"
#include "sim/play.h"

#define TWO_YEARS (2 * 366 * 86400)

/* zone EST5EDT,M4.1.0,M10.5.0 - as TZ */
void do_zone(struct play *p)
{
	struct zone_change *change;
	setenv("TZ", word(p, 1), 1);
	int64_t now = (int64_t)(p->w.now_ms / 1000);
	free((void *)p->w.params.zone.change);
	p->w.params.zone.n = localzone_load(now - 86400, now + TWO_YEARS, &change);
	p->w.params.zone.change = change;
}

void zone_forget(struct play *p) { free((void *)p->w.params.zone.change); }

uint64_t wall_ms(const struct play *p, const char *text)
{
	struct tm tm = { .tm_isdst = -1 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M", &tm);
	if (!end || *end)
		fail(p, "\"%s\" is not a time such as 2001-10-20T09:00", text);
	return (uint64_t)mktime(&tm) * 1000;
}

static char *value_of(struct play *p, const char *key, const char *v)
{
	if (!strncmp(key, "StartTime", 9) && v[0] == '+')
		return xasprintf("+%llu", (unsigned long long)(duration_ms(p, v + 1) / 1000));
	if (!strncmp(key, "StartTime", 9) || !strncmp(key, "EndTime", 7))
		return xasprintf("%llu", (unsigned long long)((p->start_ms + duration_ms(p, v)) / 1000));
	if (!strncmp(key, "MaxStartDelay", 13))
		return xasprintf("%llu", (unsigned long long)(duration_ms(p, v) / 1000));
	if (!strncmp(key, "Duration", 8) && strcmp(v, "UNLIMITED"))
		return xasprintf("%llu", (unsigned long long)(duration_ms(p, v) / 60000));
	return xstrdup(!strcmp(v, "UNLIMITED") ? "4294967295" : v);
}

/* reserve NAME create|update|delete [Key=value] [Key+=value] [skip] [user=] [refused]; times as in `at` */
void do_reserve(struct play *p)
{
	struct core_event ev = world_event(&p->w, EV_RESV, opt(p, "user") ? uid_of(p) : 0);
	Pb__ResvUpdateReq q = PB__RESV_UPDATE_REQ__INIT;
	Pb__KeyValue kv[WORDS_MAX], *list[WORDS_MAX];
	const char *op = word(p, 2);
	q.op = !strcmp(op, "create") ? PB__RESV_UPDATE_REQ__OP__CREATE : !strcmp(op, "delete") ? PB__RESV_UPDATE_REQ__OP__DELETE : PB__RESV_UPDATE_REQ__OP__UPDATE;
	q.name = strcmp(word(p, 1), "-") ? (char *)word(p, 1) : NULL;
	q.set = list;
	for (size_t i = 3; i < p->words; i++) {
		char *w = p->word[i], *eq = strchr(w, '=');
		if (!strncmp(w, "user=", 5) || (!eq && strcmp(w, "skip")))
			continue;
		if (eq)
			*eq = 0;
		pb__key_value__init(&kv[q.n_set]);
		kv[q.n_set].key = w;
		kv[q.n_set].value = eq ? value_of(p, w, eq + 1) : xstrdup("");
		list[q.n_set] = &kv[q.n_set];
		q.n_set++;
	}
	ev.resv = &q;
	world_step(&p->w, &ev);
	for (size_t i = 0; i < q.n_set; i++)
		free(kv[i].value);
	const Pb__ResvUpdateRsp *r = (const Pb__ResvUpdateRsp *)world_answer(&p->w, ev.token);
	take_result(p, r->code, r->detail);
	if (r->code && !has(p, "refused"))
		fail(p, "refused: %u %s", r->code, r->detail ? r->detail : error_text((int)r->code));
	if (!r->code && has(p, "refused"))
		fail(p, "it was not refused");
}

static Pb__ReservationRecord *resv_named(struct play *p, const char *name)
{
	for (size_t i = 0; i < core_resv_count(p->w.core); i++) {
		Pb__ReservationRecord *r = core_resv_record(p->w.core, i);
		if (!strcmp(r->name, name))
			return r;
		pb__reservation_record__free_unpacked(r, NULL);
	}
	return NULL;
}

static void expect_when(struct play *p, const char *key, uint64_t got)
{
	if (!opt(p, key))
		return;
	uint64_t want = (p->start_ms + duration_ms(p, opt(p, key))) / 1000;
	if (want != got)
		fail(p, "%s: %s is %+llds off", word(p, 2), key, (long long)(got - want));
}

/* expect resv NAME ACTIVE|INACTIVE|gone nodes= start= end= flags= users= tres= cores= partition= */
void expect_resv(struct play *p)
{
	Pb__ReservationRecord *r = resv_named(p, word(p, 2));
	if (!strcmp(word(p, 3), "gone")) {
		if (r)
			fail(p, "reservation %s is still there", word(p, 2));
		return;
	}
	if (!r)
		fail(p, "there is no reservation %s", word(p, 2));
	if (strcmp(word(p, 3), r->active ? "ACTIVE" : "INACTIVE"))
		fail(p, "reservation %s is %s", word(p, 2), r->active ? "ACTIVE" : "INACTIVE");
	const struct { const char *key, *got; } text[] = { { "nodes", r->nodes }, { "users", r->users }, { "tres", r->tres }, { "partition", r->partition }, { "accounts", r->accounts } };
	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
		if (opt(p, text[i].key))
			expect_text(p, text[i].key, opt(p, text[i].key), text[i].got);
	expect_when(p, "start", r->start_time);
	expect_when(p, "end", r->end_time);
	char *flags = resvflag_format(r->flags, r->purge_comp_sec);
	if (opt(p, "flags"))
		expect_text(p, "flags", opt(p, "flags"), flags);
	free(flags);
	struct str cores = STR_INIT;
	for (size_t i = 0; i < r->n_part; i++)
		str_addf(&cores, "%s%s:%s", i ? ";" : "", r->part[i]->nodes, r->part[i]->core_ids);
	if (opt(p, "cores"))
		expect_text(p, "cores", opt(p, "cores"), cores.data);
	str_fini(&cores);
	pb__reservation_record__free_unpacked(r, NULL);
}
