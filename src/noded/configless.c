/* configless.c - configuration from slurmctld (see configless.h) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "client/client.h"
#include "noded/configless.h"

#define KEY_PATH "/etc/slurm/slurm.key"    /* nothing is configured yet: this is where the key must be */
#define DEFAULT_PORT 6817
#define FETCH_MS 10000

static int fetch(struct noded *n, Pb__ConfFetchRsp **ret, struct error *err)
{
	char host[256];
	unsigned long long port = DEFAULT_PORT;
	struct wire_auth *auth;
	struct wire_client *client;
	const char *colon = strrchr(n->opt.conf_server, ':');
	snprintf(host, sizeof host, "%.*s", (int)(colon ? colon - n->opt.conf_server : 255), n->opt.conf_server);
	if (colon && str_to_u64(colon + 1, 1, 65535, &port) < 0)
		return error_set(err, EINVAL, "--conf-server %s: \"%s\" is no port", n->opt.conf_server, colon + 1);
	const char *key = getenv("SLURM_SACK_KEY");
	int rc = client_auth_create_keyed(key && *key ? key : KEY_PATH, &auth, err);
	if (rc < 0)
		return rc;
	rc = wire_client_open(auth, host, (uint16_t)port, FETCH_MS, NULL, &client, err);
	if (!rc) {
		Pb__ConfFetchReq req = PB__CONF_FETCH_REQ__INIT;
		rc = wire_call(client, RPC_CONF_FETCH, &req.base, FETCH_MS, (ProtobufCMessage **)ret, err);
		wire_client_close(client);
	}
	wire_auth_destroy(auth);
	return rc;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* The file with the paths of other files that came along cut to their names: all of them lie in one folder here. */
static void data_localise(const Pb__ConfFetchRsp *rsp, const Pb__ConfFile *f, struct str *out)
{
	const char *at = (const char *)f->data.data, *end = at + f->data.len;
	while (at < end) {
		const Pb__ConfFile *named = NULL;
		for (size_t i = 0; i < rsp->n_file && !named && *at == '/'; i++) {
			size_t len = strlen(rsp->file[i]->name);
			if (*rsp->file[i]->name == '/' && (size_t)(end - at) >= len && !memcmp(at, rsp->file[i]->name, len))
				named = rsp->file[i];
		}
		if (named)
			str_add(out, base_name(named->name));
		else
			str_add_c(out, *at);
		at += named ? strlen(named->name) : 1;
	}
}

static int file_write(const char *dir, const Pb__ConfFetchRsp *rsp, const Pb__ConfFile *f, struct error *err)
{
	char path[4096], part[4200];
	struct str text = STR_INIT;
	const char *name = base_name(f->name);
	int rc = 0;
	if (!*name || *name == '.')
		return error_set(err, EINVAL, "slurmctld sent a configuration file with the name \"%s\"", f->name);
	snprintf(path, sizeof path, "%s/%s", dir, name);
	snprintf(part, sizeof part, "%s.part", path);
	data_localise(rsp, f, &text);
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, f->exec ? 0755 : 0644);
	if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len || rename(part, path) < 0)
		rc = error_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	str_fini(&text);
	return rc;
}

/* SlurmdSpoolDir as the fetched configuration names it. */
static int spool_of(struct noded *n, const Pb__ConfFetchRsp *rsp, char **ret, struct error *err)
{
	struct conf *conf;
	struct conf_text *text = xcalloc(rsp->n_file + 1, sizeof *text);
	char host[256] = "localhost";
	gethostname(host, sizeof host - 1);
	host[strcspn(host, ".")] = 0;
	for (size_t i = 0; i < rsp->n_file; i++)
		text[i] = (struct conf_text){ rsp->file[i]->name, (char *)rsp->file[i]->data.data, rsp->file[i]->data.len };
	int rc = conf_load_text(text, rsp->n_file, &conf, err);
	if (!rc) {
		*ret = conf_expand(conf, conf_str(conf, CONF_SlurmdSpoolDir), n->opt.node_name ? n->opt.node_name : host);
		conf_destroy(conf);
	}
	free(text);
	return rc;
}

int configless_load(struct noded *n, struct conf **ret, struct error *err)
{
	Pb__ConfFetchRsp *rsp = NULL;
	char *spool = NULL, *dir, *path;
	int rc = fetch(n, &rsp, err);
	if (rc < 0 || !rsp->n_file)
		return rc < 0 ? rc : error_set(err, ENOENT, "slurmctld at %s has no configuration to give", n->opt.conf_server);
	rc = spool_of(n, rsp, &spool, err);
	if (!rc) {
		dir = xasprintf("%s/conf-cache", spool);
		if ((mkdir(spool, 0755) < 0 && errno != EEXIST) || (mkdir(dir, 0755) < 0 && errno != EEXIST))
			rc = error_set(err, errno, "cannot make the folder %s: %s", dir, strerror(errno));
		for (size_t i = 0; i < rsp->n_file && !rc; i++)
			rc = file_write(dir, rsp, rsp->file[i], err);
		path = xasprintf("%s/%s", dir, rsp->file[0]->name);
		rc = rc ? rc : conf_load(path, ret, err);
		free(path);
		free(dir);
		free(spool);
	}
	pb__conf_fetch_rsp__free_unpacked(rsp, NULL);
	return rc;
}
