/* ident.c - see ident.h
 * An answer is kept KEEP_MS; a name service that is slow then costs one thread, not the loop. Entries are replaced only on the loop. */
#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "base/alloc.h"
#include "base/str.h"
#include "ctld/ident.h"

#define KEEP_MS 60000
#define GIDS_MAX 65536

struct waiting { ident_fn fn; void *arg; struct waiting *next; };
struct entry {
	struct ident id;
	bool filled, asked;
	struct waiting *waiting;
	UT_hash_handle hh;
};
struct idents { struct ctld *d; struct entry *table; };
struct look_up { uv_work_t work; struct idents *i; struct ident id; };

char *ident_group(uint32_t gid)
{
	char buf[16384];
	struct group g, *found = NULL;
	if (getgrgid_r(gid, &g, buf, sizeof buf, &found) || !found)
		return xasprintf("%u", gid);
	return xstrdup(g.gr_name);
}

static void ident_fill(struct ident *id)
{
	char buf[16384];
	struct passwd pw, *found = NULL;
	int n = 64;
	if (getpwuid_r(id->uid, &pw, buf, sizeof buf, &found) || !found) {
		id->user = xasprintf("%u", id->uid);
		return;
	}
	id->known = true;
	id->gid = pw.pw_gid;
	id->user = xstrdup(pw.pw_name);
	id->home = xstrdup(pw.pw_dir);
	id->shell = xstrdup(pw.pw_shell);
	id->group = ident_group(pw.pw_gid);
	gid_t *gids = xmalloc((size_t)n * sizeof *gids);
	while (getgrouplist(pw.pw_name, pw.pw_gid, gids, &n) < 0 && n < GIDS_MAX)
		gids = xrealloc(gids, (size_t)n * sizeof *gids);
	static_assert(sizeof(gid_t) == sizeof(uint32_t), "gids travel as they are");
	id->gids = (uint32_t *)gids;
	id->gid_count = (size_t)n;
	struct str names = STR_INIT;
	for (int i = 0; i < n; i++) {
		char *name = ident_group(gids[i]);
		str_add_sep(&names, ",", name);
		free(name);
	}
	id->groups = str_take(&names);
}

static void ident_fini(struct ident *id)
{
	free(id->user);
	free(id->group);
	free(id->groups);
	free(id->home);
	free(id->shell);
	free(id->gids);
}

static struct entry *entry_of(struct idents *i, uint32_t uid)
{
	struct entry *e;
	HASH_FIND(hh, i->table, &uid, sizeof uid, e);
	if (!e) {
		e = xcalloc(1, sizeof *e);
		e->id.uid = uid;
		HASH_ADD(hh, i->table, id.uid, sizeof uid, e);
	}
	return e;
}

static void entry_set(struct entry *e, struct ident *id)
{
	ident_fini(&e->id);
	e->id = *id;
	e->id.fetched_ms = ctld_now_ms();
	e->filled = true;
}

static void work_do(uv_work_t *w) { ident_fill(&((struct look_up *)w->data)->id); }

static void work_done(uv_work_t *w, int status)
{
	struct look_up *l = w->data;
	struct entry *e = entry_of(l->i, l->id.uid);
	if (status != UV_ECANCELED)
		entry_set(e, &l->id);
	e->asked = false;
	struct waiting *list = e->waiting;
	e->waiting = NULL;
	while (list) {
		struct waiting *next = list->next;
		list->fn(l->i->d, &e->id, list->arg);
		free(list);
		list = next;
	}
	free(l);
}

static void ask(struct idents *i, struct entry *e)
{
	if (e->asked)
		return;
	struct look_up *l = xcalloc(1, sizeof *l);
	l->i = i;
	l->id.uid = e->id.uid;
	l->work.data = l;
	e->asked = true;
	uv_queue_work(i->d->loop, &l->work, work_do, work_done);
}

void ident_get(struct ctld *d, uint32_t uid, ident_fn fn, void *arg)
{
	struct entry *e = entry_of(d->idents, uid);
	bool old = !e->filled || ctld_now_ms() - e->id.fetched_ms > KEEP_MS;
	if (old)
		ask(d->idents, e);
	if (e->filled) { /* a slightly old answer is as good while the new one comes */
		fn(d, &e->id, arg);
		return;
	}
	struct waiting *w = xmalloc(sizeof *w), **tail = &e->waiting;
	*w = (struct waiting){ fn, arg, NULL };
	while (*tail)
		tail = &(*tail)->next;
	*tail = w;
}

const struct ident *ident_now(struct ctld *d, uint32_t uid)
{
	struct entry *e = entry_of(d->idents, uid);
	if (!e->filled) {
		struct ident id = { .uid = uid };
		ident_fill(&id);
		entry_set(e, &id);
	}
	return &e->id;
}

struct idents *idents_create(struct ctld *d)
{
	struct idents *i = xcalloc(1, sizeof *i);
	i->d = d;
	return i;
}

void idents_destroy(struct idents *i)
{
	struct entry *e, *tmp;
	if (!i)
		return;
	HASH_ITER(hh, i->table, e, tmp) {
		HASH_DEL(i->table, e);
		ident_fini(&e->id);
		free(e);
	}
	free(i);
}
