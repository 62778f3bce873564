/* scrontab.c - a user's crontab, kept by slurmctld: each entry is a batch job that runs again and again (scrontab(1))
 *
 * Here the text is read: comments, NAME=value (for $NAME in commands), #SCRON lines with sbatch's options for the next entry, entries. All entries go in one call, which is taken
 * whole or not. What is wrong is said with its line, all of it, before anything is sent. The user's environment is not looked at: jobs get that of a login. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/submit.h"
#include "model/batchscript.h"
#include "model/cron.h"

#define TEXT_MAX_BYTES (1u << 20)

static const char usage[] =
	"Usage: scrontab [-u USER] FILE\n"
	"       scrontab [-u USER] [-e | -l | -r]\n"
	"The crontab of a user: jobs that slurmctld runs at given times.\n\n"
	"  FILE      take this file as the crontab; - is standard input (also without FILE, where that is no terminal)\n"
	"  -e        edit it ($VISUAL, $EDITOR, else vi); so without arguments at a terminal\n"
	"  -l        print it\n"
	"  -r        remove it; jobs that run finish, jobs that wait are cancelled\n"
	"  -u USER   of this user (operators may list; root and SlurmUser may change)\n"
	"  -h, --help, -V, --version\n";

static const char template[] =
	"# min hour day-of-month month day-of-week command     (or @hourly @daily @weekly @monthly @yearly command)\n"
	"# Options of sbatch for the next entry stand before it:\n"
	"#SCRON --time=10 --partition=main\n"
	"# 30 6 * * mon-fri $HOME/bin/report\n";

struct variable { char *name, *value; };
struct parse {
	const char *what;                  /* the file, for messages */
	const struct passwd *pw;
	struct variable *var;
	size_t var_n;
	struct jobopt o;                   /* of the #SCRON lines before the next entry */
	unsigned first, line;              /* first of them (0: none); the one that is read */
	Pb__CrontabEntry **entry;
	size_t n, wrong;
};

/* --- reading the text ------------------------------------------------------------------------------ */
static void wrong(struct parse *p, const char *text)
{
	log_error("%s, line %u: %s", p->what, p->line, text);
	p->wrong++;
}

static const char *variable_get(const struct parse *p, const char *name, size_t n)
{
	for (size_t i = p->var_n; i-- > 0;)
		if (strlen(p->var[i].name) == n && !strncmp(p->var[i].name, name, n))
			return p->var[i].value;
	return NULL;
}

static size_t name_len(const char *at) { return *at >= '0' && *at <= '9' ? 0 : strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"); }

/* "$NAME" of those that are set here; all else stays for the shell. */
static char *expand(const struct parse *p, const char *command)
{
	struct str out = STR_INIT;
	while (*command) {
		size_t n = *command == '$' ? name_len(command + 1) : 0;
		const char *value = n ? variable_get(p, command + 1, n) : NULL;
		if (value)
			str_add(&out, value);
		else
			str_add_n(&out, command, n + 1);
		command += n + 1;
	}
	return out.data ? str_take(&out) : xstrdup("");
}

/* NAME=value, the value perhaps in quotes. False: it is none. */
static bool variable_read(struct parse *p, const char *line)
{
	size_t n = name_len(line);
	const char *at = line + n;
	at += strspn(at, " \t");
	if (!n || *at != '=')
		return false;
	at += 1 + strspn(at + 1, " \t");
	size_t len = strlen(at);
	while (len && strchr(" \t", at[len - 1]))
		len--;
	if (len > 1 && (*at == '"' || *at == '\'') && at[len - 1] == *at)
		at++, len -= 2;
	p->var = xrealloc(p->var, (p->var_n + 1) * sizeof *p->var);
	p->var[p->var_n++] = (struct variable){ xstrndup(line, n), xstrndup(at, len) };
	return true;
}

/* Options that make no sense for one job that comes again. */
static const char *option_unfit(const struct jobopt *o)
{
	return o->desc->array ? "--array" : o->wrap ? "--wrap" : o->test_only ? "--test-only" : o->wait_end ? "--wait" : o->parsable ? "--parsable" : o->has_as_uid ? "--uid" :
	       o->has_as_gid ? "--gid" : o->clusters ? "--clusters" : o->show != JOBOPT_SHOW_NOTHING ? "one that only shows something" : NULL;
}

static void scron_read(struct parse *p, const char *options)
{
	struct batchscript b;
	struct error err = { 0 };
	char *text = xasprintf("#!/bin/sh\n#SBATCH %s\n", options);
	p->first = p->first ? p->first : p->line;
	int rc = batchscript_parse(text, strlen(text), &b, &err);
	for (size_t i = 0; rc >= 0 && i < b.count; i++) {
		char **argv = xcalloc(b.dir[i].count + 2, sizeof *argv);
		argv[0] = "scrontab";
		memcpy(argv + 1, b.dir[i].word, b.dir[i].count * sizeof *argv);
		rc = jobopt_parse_words(&p->o, (int)b.dir[i].count + 1, argv, &err);
		free(argv);
	}
	if (rc < 0)
		wrong(p, err.line);
	else if (option_unfit(&p->o))
		wrong(p, xasprintf("#SCRON: %s cannot be used in a crontab", option_unfit(&p->o)));
	batchscript_fini(&b);
	free(text);
}

static char *first_word_name(const char *command)
{
	size_t n = strcspn(command, " \t");
	const char *from = command;
	for (size_t i = 0; i < n; i++)
		if (command[i] == '/' && i + 1 < n)
			from = command + i + 1;
	return xstrndup(from, n - (size_t)(from - command));
}

static int entry_fill(struct parse *p, const struct cron *cron, const char *line, const char *command, Pb__SubmitReq *req, struct error *err)
{
	Pb__JobDesc *d = p->o.desc;
	struct envlist env = ENVLIST_INIT;
	char when[CRON_TEXT_MAX];
	cron_text(cron, when);
	xstr_set(&d->cron_spec, when);
	if (!d->name)
		d->name = first_word_name(command);
	if (!d->work_dir)
		d->work_dir = xstrdup(p->pw->pw_dir);
	xstr_set(&d->export_env, "NONE");
	int rc = jobopt_check(&p->o, err);
	if (rc >= 0)
		rc = jobopt_to_desc(&p->o, NULL, 0, NULL, err);
	if (rc >= 0)
		rc = submit_env(&p->o, &env, err);
	if (rc < 0)
		return rc;
	xfree(d->submit_line);
	char *text = xasprintf("#!/bin/sh\n# an entry of a crontab (scrontab), due at: %.*s\n%s\n", (int)(command - line), line, command);
	req->desc = d;
	req->has_script = true;
	req->script.data = (uint8_t *)text;
	req->script.len = strlen(text);
	req->env = env.var;
	req->n_env = env.count;
	req->idem_key.data = xmalloc(16);
	req->idem_key.len = 16;
	return getrandom(req->idem_key.data, 16, 0) == 16 ? 0 : error_set(err, errno, "no random bytes: %s", strerror(errno));
}

static void entry_read(struct parse *p, const char *line)
{
	struct cron cron;
	struct error err = { 0 };
	const char *rest;
	if (cron_parse(line, &cron, &rest, &err) < 0) {
		wrong(p, err.line);
		return;
	}
	char *command = expand(p, rest);
	Pb__CrontabEntry *e = xmalloc(sizeof *e);
	pb__crontab_entry__init(e);
	e->submit = xmalloc(sizeof *e->submit);
	pb__submit_req__init(e->submit);
	e->first_line = p->first ? p->first : p->line;
	e->last_line = p->line;
	char *script = xasprintf("%.*s%s", (int)(rest - line), line, command);
	if (!*command)
		wrong(p, "no command behind the time");
	else if (entry_fill(p, &cron, script, script + (rest - line), e->submit, &err) < 0)
		wrong(p, err.line);
	p->entry = xrealloc(p->entry, (p->n + 1) * sizeof *p->entry);
	p->entry[p->n++] = e;
	jobopt_init(&p->o, JOBOPT_SBATCH); /* the description is the entry's now */
	p->first = 0;
}

static void text_read(struct parse *p, const char *text)
{
	jobopt_init(&p->o, JOBOPT_SBATCH);
	for (const char *at = text; *at;) {
		size_t n = strcspn(at, "\n");
		char *line = xstrndup(at, n);
		const char *begin = line + strspn(line, " \t");
		p->line++;
		if (!strncmp(begin, "#SCRON", 6) && (begin[6] == ' ' || begin[6] == '\t'))
			scron_read(p, begin + 6);
		else if (*begin && *begin != '#' && !variable_read(p, begin))
			entry_read(p, begin);
		free(line);
		at += n + (at[n] == '\n');
	}
}

/* --- the controller ---------------------------------------------------------------------------------- */
static struct client *connect_or_die(void)
{
	struct client *c = NULL;
	struct error err = { 0 };
	if (client_open(&c, &err) < 0) {
		log_fatal("%s", err.line);
		exit(1);
	}
	return c;
}

static void *call_or_die(struct client *c, enum rpc rpc, const ProtobufCMessage *req, const char *what)
{
	ProtobufCMessage *rsp = NULL;
	struct error err = { 0 };
	int rc = client_call(c, rpc, req, 0, &rsp, &err);
	if (rc < 0) {
		log_fatal("%s failed: %s", what, err.line);
		exit(1);
	}
	return rsp;
}

/* malloc'd; NULL: there is none. */
static char *tab_get(struct client *c, const struct passwd *pw, bool other)
{
	Pb__CrontabGetReq req = PB__CRONTAB_GET_REQ__INIT;
	req.has_uid = other;
	req.uid = pw->pw_uid;
	Pb__CrontabGetRsp *rsp = call_or_die(c, RPC_CRONTAB_GET, &req.base, "slurm_request_crontab");
	if (rsp->code) {
		log_fatal("%s%s", rsp->code == ESLURM_DISABLED ? "scrontab is disabled on this cluster: " : "slurm_request_crontab failed: ",
			  rsp->code == ESLURM_DISABLED ? "ScronParameters does not say enable" : error_text((int)rsp->code));
		exit(1);
	}
	char *text = xstrdup_null(rsp->text);
	pb__crontab_get_rsp__free_unpacked(rsp, NULL);
	return text;
}

/* 0, or what is wrong was said. text NULL: remove. */
static int tab_set(struct client *c, const struct passwd *pw, bool other, const char *what, const char *text)
{
	Pb__CrontabSetReq req = PB__CRONTAB_SET_REQ__INIT;
	struct parse p = { .what = what, .pw = pw };
	if (text)
		text_read(&p, text);
	if (p.wrong) {
		puts("There are errors in your crontab.");
		return 1;
	}
	req.has_uid = other;
	req.uid = pw->pw_uid;
	req.text = (char *)(uintptr_t)text;
	req.entry = p.entry;
	req.n_entry = p.n;
	Pb__CrontabSetRsp *rsp = call_or_die(c, RPC_CRONTAB_SET, &req.base, "slurm_update_crontab");
	int code = (int)rsp->code;
	if (code && rsp->has_first_line) {
		printf("There was an issue with the job submission on lines %u-%u\nThe error code return was: %s\n", rsp->first_line, rsp->last_line, error_text(code));
		if (rsp->detail)
			printf("The error message was: %s\n", rsp->detail);
	} else if (code) {
		log_fatal("slurm_update_crontab failed: %s", rsp->detail ? rsp->detail : error_text(code));
	}
	pb__crontab_set_rsp__free_unpacked(rsp, NULL);
	return code ? 1 : 0;
}

/* --- editing ---------------------------------------------------------------------------------------------- */
static char *fd_text(int fd, const char *name)
{
	struct str out = STR_INIT;
	char buf[65536];
	ssize_t n;
	while ((n = read(fd, buf, sizeof buf)) > 0 && out.len <= TEXT_MAX_BYTES)
		str_add_n(&out, buf, (size_t)n);
	if (n < 0 || out.len > TEXT_MAX_BYTES || (out.data && strlen(out.data) != out.len)) {
		log_fatal("cannot read %s: %s", name, n < 0 ? strerror(errno) : out.len > TEXT_MAX_BYTES ? "it is larger than 1 MiB" : "it holds a zero byte");
		exit(1);
	}
	return out.data ? str_take(&out) : xstrdup("");
}

static void editor_run(const char *path)
{
	const char *editor = getenv("VISUAL") ? getenv("VISUAL") : getenv("EDITOR") ? getenv("EDITOR") : "vi";
	int status = -1;
	pid_t pid = fork();
	if (!pid) {
		char *line = xasprintf("exec %s \"$1\"", editor); /* it may have arguments */
		execl("/bin/sh", "sh", "-c", line, "sh", path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status) {
		log_fatal("the editor \"%s\" failed; the crontab is as it was", editor);
		(void)unlink(path);
		exit(1);
	}
}

static bool again(void)
{
	char answer[16];
	printf("Edit it again? (y/n) ");
	fflush(stdout);
	return fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y');
}

static int edit(struct client *c, const struct passwd *pw, bool other)
{
	const char *dir = getenv("TMPDIR");
	char path[PATH_MAX], *old = tab_get(c, pw, other), *text = NULL;
	snprintf(path, sizeof path, "%s/scrontab.XXXXXX", dir && *dir ? dir : "/tmp");
	int fd = mkstemp(path), rc = 1;
	if (fd < 0 || write(fd, old ? old : template, strlen(old ? old : template)) < (ssize_t)strlen(old ? old : template)) {
		log_fatal("cannot write %s: %s", path, strerror(errno));
		return 1;
	}
	close(fd);
	do {
		editor_run(path);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		free(text);
		text = fd < 0 ? xstrdup("") : fd_text(fd, path);
		if (fd >= 0)
			close(fd);
		if (!strcmp(text, old ? old : template)) {
			puts("no change");
			rc = 0;
		} else {
			rc = tab_set(c, pw, other, "the crontab", text);
		}
	} while (rc && again());
	(void)unlink(path);
	free(old);
	free(text);
	return rc;
}

/* --- arguments ---------------------------------------------------------------------------------------------- */
struct options { bool edit, list, remove; const char *user; };

static int options_parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = { { "help", 0, NULL, 'h' }, { "version", 0, NULL, 'V' }, { "usage", 0, NULL, 'h' }, { 0 } };
	int k;
	while ((k = getopt_long(argc, argv, "ehlru:vV", longs, NULL)) != -1)
		switch (k) {
		case 'e': o->edit = true; break;
		case 'l': o->list = true; break;
		case 'r': o->remove = true; break;
		case 'u': o->user = optarg; break;
		case 'v': log_init("scrontab", LOG_L_VERBOSE); break;
		case 'h': fputs(usage, stdout); exit(0);
		case 'V': puts("slurm " BERTH_VERSION); exit(0);
		default: return -EINVAL;
		}
	int actions = o->edit + o->list + o->remove + (optind < argc);
	return actions > 1 || optind + 1 < argc ? -EINVAL : 0;
}

static int install(struct client *c, const struct passwd *pw, bool other, const char *file)
{
	bool standard = !file || !strcmp(file, "-");
	int fd = standard ? 0 : open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		log_fatal("failed to open %s: %s", file, strerror(errno));
		return 1;
	}
	char *text = fd_text(fd, standard ? "standard input" : file);
	int rc = tab_set(c, pw, other, standard ? "standard input" : file, text);
	free(text);
	return rc;
}

/* What sbatch takes from the environment is not for entries of a crontab. */
static void environment_forget(void)
{
	static const char *const kept[] = { "SLURM_CONF", "VISUAL", "EDITOR", "TMPDIR", "TERM", "PATH", "HOME", "LANG", "TZ", "SLURM_SACK_SOCKET", "SLURM_SACK_KEY", "XDG_RUNTIME_DIR" };
	char *value[sizeof kept / sizeof *kept];
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		value[i] = xstrdup_null(getenv(kept[i]));
	clearenv();
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		if (value[i])
			setenv(kept[i], value[i], 1);
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	log_init("scrontab", LOG_L_INFO);
	if (options_parse(argc, argv, &o) < 0) {
		fputs(usage, stderr);
		return 1;
	}
	const struct passwd *pw = o.user ? getpwnam(o.user) : getpwuid(getuid());
	if (!pw) {
		log_fatal("there is no user %s on this host", o.user ? o.user : "of this process's number");
		return 1;
	}
	bool other = pw->pw_uid != getuid();
	environment_forget();
	struct client *c = connect_or_die();
	int rc = 0;
	if (o.list) {
		char *text = tab_get(c, pw, other);
		if (text)
			fputs(text, stdout);
		else
			rc = 1, printf("no crontab for %s\n", pw->pw_name);
		free(text);
	} else if (o.remove) {
		rc = tab_set(c, pw, other, NULL, NULL);
	} else if (o.edit || (optind == argc && isatty(0))) {
		rc = edit(c, pw, other);
	} else {
		rc = install(c, pw, other, argv[optind]);
	}
	client_close(c);
	return rc;
}
