/* sacctmgr.c - accounts, users, associations and QOS: command line
 * One reading of all there is (DB_ACCT_GET), what is to be shown or changed worked out here, and one transaction (DB_ACCT_SET) that slurmdbd takes only
 * if nobody changed anything meanwhile. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/opt.h"
#include "cli/sacctmgr.h"

enum { O_IMMEDIATE, O_NOHEADER, O_PARSABLE, O_PARSABLE2, O_QUIET, O_ASSOC, O_VERBOSE, O_HELP, O_USAGE, O_VERSION, O_JSON, O_YAML, O_ONELINER, O_READONLY, O_AUTOCOMPLETE };
static const struct opt_row rows[] = {
	{ "associations", 's', OPT_NONE, NULL, "with accounts and users show their associations", O_ASSOC, false },
	{ "help", 'h', OPT_NONE, NULL, "this text", O_HELP, false },
	{ "immediate", 'i', OPT_NONE, NULL, "commit changes immediately", O_IMMEDIATE, false },
	{ "json", 0, OPT_OPTIONAL, "VERSION", "output as JSON", O_JSON, true },
	{ "noheader", 'n', OPT_NONE, NULL, "no header", O_NOHEADER, false },
	{ "oneliner", 'o', OPT_NONE, NULL, "leave the prompt after a command; there is none", O_ONELINER, false },
	{ "parsable", 'p', OPT_NONE, NULL, "fields separated by |, and one at the end", O_PARSABLE, false },
	{ "parsable2", 'P', OPT_NONE, NULL, "fields separated by |", O_PARSABLE2, false },
	{ "quiet", 'Q', OPT_NONE, NULL, "no messages but errors", O_QUIET, false },
	{ "readonly", 'r', OPT_NONE, NULL, "change nothing", O_READONLY, false },
	{ "usage", 0, OPT_NONE, NULL, "as --help", O_USAGE, false },
	{ "verbose", 'v', OPT_NONE, NULL, "more messages", O_VERBOSE, false },
	{ "version", 'V', OPT_NONE, NULL, "display tool version number", O_VERSION, false },
	{ "yaml", 0, OPT_OPTIONAL, "VERSION", "output as YAML", O_YAML, true },
};
#define ROWS (sizeof rows / sizeof *rows)

static struct sacctmgr the;
static bool readonly;

/* --- what all files use --------------------------------------------------------------------------------------- */

bool word_is(const char *text, const char *name, size_t least)
{
	size_t n = strlen(text);
	return n >= least && n <= strlen(name) && !strncasecmp(text, name, n);
}

bool list_has(const char *list, const char *word)
{
	for (const char *s = list ? list : ""; *s; s += strcspn(s, ","), s += *s == ',')
		if (strcspn(s, ",") == strlen(word) && !strncasecmp(s, word, strlen(word)))
			return true;
	return false;
}

const char *cluster_own(const struct sacctmgr *s) { return conf_str(client_conf(s->client), CONF_ClusterName); }

Pb__QosRecord *find_qos(const struct sacctmgr *s, const char *name)
{
	for (size_t i = 0; i < s->all->n_qos; i++)
		if (str_eq_nocase(s->all->qos[i]->name, name))
			return s->all->qos[i];
	return NULL;
}

Pb__AccountRecord *find_account(const struct sacctmgr *s, const char *name)
{
	for (size_t i = 0; i < s->all->n_account; i++)
		if (str_eq_nocase(s->all->account[i]->name, name))
			return s->all->account[i];
	return NULL;
}

Pb__UserRecord *find_user(const struct sacctmgr *s, const char *name)
{
	for (size_t i = 0; i < s->all->n_user; i++)
		if (!strcmp(s->all->user[i]->name, name))
			return s->all->user[i];
	return NULL;
}

Pb__AssocRecord *find_assoc(const struct sacctmgr *s, const char *cluster, const char *account, const char *user)
{
	for (size_t i = 0; i < s->all->n_assoc; i++) {
		Pb__AssocRecord *m = s->all->assoc[i];
		if (str_eq_nocase(m->cluster, cluster) && str_eq_nocase(m->account, account) && str_eq(m->user, user))
			return m;
	}
	return NULL;
}

Pb__AssocRecord *assoc_parent(const struct sacctmgr *s, const Pb__AssocRecord *m)
{
	if (m->user)
		return find_assoc(s, m->cluster, m->account, NULL);
	return m->parent ? find_assoc(s, m->cluster, m->parent, NULL) : NULL;
}

/* --- the words of the command ---------------------------------------------------------------------------------- */

static const struct { const char *name; size_t least; enum entity entity; } entities[] = {
	{ "accounts", 3, E_ACCOUNT }, { "acct", 4, E_ACCOUNT }, { "associations", 2, E_ASSOC }, { "clusters", 2, E_CLUSTER }, { "coordinators", 4, E_COORD }, { "qos", 1, E_QOS }, { "tres", 4, E_TRES }, { "users", 1, E_USER },
};
static const char *const not_yet[] = { "configuration", "events", "federations", "problems", "resources", "reservations", "runawayjobs", "stats", "transactions", "wckeys", "jobs" };

enum verb { V_NONE, V_ADD, V_DELETE, V_LIST, V_MODIFY, V_PING, V_VERSION };
static const struct { const char *name; size_t least; enum verb verb; } verbs[] = {
	{ "add", 3, V_ADD }, { "create", 2, V_ADD }, { "delete", 3, V_DELETE }, { "remove", 3, V_DELETE }, { "list", 3, V_LIST }, { "show", 2, V_LIST }, { "modify", 1, V_MODIFY }, { "update", 1, V_MODIFY },
	{ "ping", 4, V_PING }, { "version", 4, V_VERSION },
};
static const char *const verbs_not_yet[] = { "archive", "clear", "dump", "load", "reconfigure", "roll", "shutdown" };

static void pair_add(struct sacctmgr *s, char *word, bool where)
{
	char *eq = strchr(word, '=');
	s->pair = xgrow(s->pair, &s->cap, s->pairs + 1, sizeof *s->pair);
	struct pair *p = &s->pair[s->pairs++];
	*p = (struct pair){ .value = word, .where = where };
	if (!eq)
		return;
	*eq = 0;
	p->key = word;
	p->value = eq + 1;
	if (eq > word && (eq[-1] == '+' || eq[-1] == '-')) {
		p->op = eq[-1] == '+' ? OP_ADD : OP_REMOVE;
		eq[-1] = 0;
	}
	size_t n = strlen(p->value); /* quotes of a script that quotes twice */
	if (n > 1 && (p->value[0] == '"' || p->value[0] == '\'') && p->value[n - 1] == p->value[0]) {
		p->value[n - 1] = 0;
		p->value++;
	}
}

static bool flag_word(struct sacctmgr *s, const char *w)
{
	static const struct { const char *name; size_t least; size_t at; } flag[] = {
		{ "WithAssoc", 5, offsetof(struct sacctmgr, with_assoc) }, { "WithCoordinators", 5, offsetof(struct sacctmgr, with_coord) }, { "Tree", 4, offsetof(struct sacctmgr, tree) },
		{ "OnlyDefaults", 5, offsetof(struct sacctmgr, only_defaults) }, { "WOPLimits", 4, offsetof(struct sacctmgr, plain) }, { "WOPInfo", 4, offsetof(struct sacctmgr, plain) },
	};
	for (size_t i = 0; i < sizeof flag / sizeof *flag; i++)
		if (word_is(w, flag[i].name, flag[i].least)) {
			*(bool *)((char *)s + flag[i].at) = true;
			return true;
		}
	return false;
}

/* In an add, names and where they go are conditions; the rest is set. */
static bool names_something(const struct sacctmgr *s, const char *w)
{
	char key[32];
	size_t n = strcspn(w, "=");
	snprintf(key, sizeof key, "%.*s", (int)n, w);
	if (!w[n] || word_is(key, "Names", 1) || word_is(key, "Clusters", 1))
		return true;
	return s->entity == E_USER || s->entity == E_COORD ? word_is(key, "Accounts", 2) || word_is(key, "Users", 1) : s->entity == E_ACCOUNT && word_is(key, "Accounts", 2);
}

static int take_words(struct sacctmgr *s, enum verb verb, int argc, char **argv)
{
	bool where = true;
	for (int i = 0; i < argc; i++) {
		char *w = argv[i];
		if (str_eq_nocase(w, "where"))
			where = true;
		else if (str_eq_nocase(w, "set"))
			where = false;
		else if (verb == V_LIST && !strncasecmp(w, "format=", 7))
			s->format = w + 7;
		else if (verb == V_LIST && word_is(w, "WithDeleted", 5)) {
			log_error("withdeleted is not supported yet");
			return 1;
		} else if (verb == V_LIST && flag_word(s, w))
			;
		else
			pair_add(s, w, verb == V_ADD ? names_something(s, w) : where);
	}
	return 0;
}

static enum entity entity_of(const char *w)
{
	for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
		if (word_is(w, entities[i].name, entities[i].least))
			return entities[i].entity;
	return E_NONE;
}

static int no_entity(enum verb verb, const char *w)
{
	for (size_t i = 0; w && i < sizeof not_yet / sizeof *not_yet; i++)
		if (word_is(w, not_yet[i], 3)) {
			log_error("%s is not supported yet", not_yet[i]);
			return 1;
		}
	if (verb == V_LIST)
		fputs("No valid entity in list command\nInput line must include \"Account\", \"Association\", \"Cluster\", \"Configuration\",\n\"Event\", \"Federation\", \"Problem\", \"QOS\", \"Resource\", \"Reservation\",\n"
		      "\"RunAwayJobs\", \"Stats\", \"Transaction\", \"TRES\", \"User\", or \"WCKey\"\n", stderr);
	else if (verb == V_MODIFY)
		fputs("No valid entity in modify command\nInput line must include \"Account\", \"Cluster\", \"Federation\", \"Job\", \"QOS\", \"Resource\" or \"User\"\n", stderr);
	else
		fprintf(stderr, "No valid entity in %s command\nInput line must include \"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\"\n", verb == V_ADD ? "add" : "delete");
	return 1;
}

static bool entity_fits(enum verb verb, enum entity e)
{
	if (verb == V_LIST)
		return e != E_NONE && e != E_COORD;
	if (verb == V_MODIFY)
		return e == E_ACCOUNT || e == E_QOS || e == E_USER;
	return e != E_NONE && e != E_TRES && e != E_ASSOC;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

static int fetch(struct sacctmgr *s)
{
	Pb__AcctGetReq req = PB__ACCT_GET_REQ__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	int rc = client_call_dbd(s->client, RPC_DB_ACCT_GET, &req.base, 0, &msg, &err);
	if (rc) {
		log_error("%s", err.line);
		return 1;
	}
	Pb__AcctGetRsp *rsp = (Pb__AcctGetRsp *)msg;
	s->all = (Pb__AcctSnapshot *)rsp->snapshot; /* kept until the end */
	if (!s->all) {
		log_error("slurmdbd sent no accounts");
		return 1;
	}
	return 0;
}

static int ping(struct sacctmgr *s)
{
	Pb__Empty none = PB__EMPTY__INIT;
	ProtobufCMessage *msg = NULL;
	struct error err = { 0 };
	int rc = client_call_dbd(s->client, RPC_DB_PING, &none.base, 0, &msg, &err);
	printf("slurmdbd(primary) at %s is %s\n", conf_str(client_conf(s->client), CONF_AccountingStorageHost), rc ? "DOWN" : "UP");
	return rc != 0;
}

static int run(struct sacctmgr *s, int argc, char **argv)
{
	enum verb verb = V_NONE;
	for (size_t i = 0; argc && i < sizeof verbs / sizeof *verbs && !verb; i++)
		if (word_is(argv[0], verbs[i].name, verbs[i].least))
			verb = verbs[i].verb;
	for (size_t i = 0; argc && i < sizeof verbs_not_yet / sizeof *verbs_not_yet && !verb; i++)
		if (word_is(argv[0], verbs_not_yet[i], 3)) {
			log_error("%s is not supported yet", verbs_not_yet[i]);
			return 1;
		}
	if (!argc) {
		log_error("the prompt is not supported yet; give a command: sacctmgr show qos");
		return 1;
	}
	if (!verb) {
		fprintf(stderr, "invalid keyword: %s\n", argv[0]);
		return 1;
	}
	if (verb == V_VERSION) {
		puts("slurm-wlm " BERTH_VERSION);
		return 0;
	}
	if (verb == V_PING)
		return ping(s);
	s->entity = argc > 1 ? entity_of(argv[1]) : E_NONE;
	if (!entity_fits(verb, s->entity))
		return no_entity(verb, argc > 1 ? argv[1] : NULL);
	if (readonly && verb != V_LIST) {
		log_error("Can't run this command in readonly mode.");
		return 1;
	}
	if (take_words(s, verb, argc - 2, argv + 2) || fetch(s))
		return 1;
	return verb == V_LIST ? sacctmgr_show(s) : verb == V_ADD ? sacctmgr_add(s) : verb == V_MODIFY ? sacctmgr_modify(s) : sacctmgr_delete(s);
}

static int on_option(const struct opt_row *row, const char *v, void *arg, struct error *err)
{
	struct sacctmgr *s = arg;
	(void)v, (void)err;
	switch (row->id) {
	case O_ASSOC: s->with_assoc = true; break;
	case O_IMMEDIATE: s->now = true; break;
	case O_NOHEADER: s->no_header = true; break;
	case O_PARSABLE: s->cells.parsable = 1; break;
	case O_PARSABLE2: s->cells.parsable = 2; break;
	case O_QUIET: s->quiet = true; break;
	case O_READONLY: readonly = true; break;
	case O_VERBOSE: case O_ONELINER: break;
	case O_VERSION: puts("slurm-wlm " BERTH_VERSION); exit(0);
	default:
		opt_print_help("sacctmgr [<OPTION>] [<COMMAND>]\n  add|modify|delete|list <ENTITY> [<SPECS>]; ping; version\n  <ENTITY> may be account, association, cluster, coordinator, qos, tres or user", rows, ROWS);
		exit(0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct error err = { 0 };
	log_init("sacctmgr", LOG_L_INFO);
	int first = opt_parse(rows, ROWS, argc, argv, false, on_option, &the, &err);
	if (first < 0) {
		fprintf(stderr, "sacctmgr: %s\n", err.line);
		return 1;
	}
	if (client_open(&the.client, &err) < 0) {
		log_error("%s", err.line);
		return 1;
	}
	return run(&the, argc - first, argv + first);
}
