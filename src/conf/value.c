/* value.c - reading a loaded configuration: values by key (see conf.h) */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/internal.h"

const char *conf_path(const struct conf *c) { return c->path; }
uint64_t conf_hash(const struct conf *c) { return c->hash; }

const char *conf_str(const struct conf *c, enum conf_key k)
{
	const char *v = c->value[k].set && *c->value[k].text && strcasecmp(c->value[k].text, "(null)") ? c->value[k].text : conf_row(k)->def;
	if (!*v)
		return NULL;
	/* "none" and ".../none" unset a program or plugin that has no default, as in the reference */
	size_t n = strlen(v);
	bool none = n >= 4 && !strcasecmp(v + n - 4, "none") && (n == 4 || v[n - 5] == '/');
	enum conf_type t = conf_row(k)->type;
	return none && (t == CT_STR || ((t == CT_ONE || t == CT_WORDS) && !*conf_row(k)->def)) ? NULL : v;
}

uint64_t conf_num(const struct conf *c, enum conf_key k)
{
	enum conf_type t = conf_row(k)->type;
	assert(t == CT_NUM || t == CT_SECS || t == CT_MINS || t == CT_MAXT || t == CT_HMS || t == CT_MB || t == CT_LEVEL || t == CT_PORT || t == CT_BOOL);
	if (c->value[k].set && *c->value[k].text)
		return c->value[k].num;
	return *conf_row(k)->def ? conf_value_num(k, conf_row(k)->def) : UINT64_MAX;
}

bool conf_bool(const struct conf *c, enum conf_key k)
{
	uint64_t v = conf_num(c, k);
	return v && v != UINT64_MAX;
}

bool conf_is_set(const struct conf *c, enum conf_key k) { return c->value[k].set; }

/* The part after `word` in a comma list: at '=' , ',' or the end; NULL when it is not there. */
static const char *word_find(const char *list, const char *word)
{
	size_t n = strlen(word);
	while (list && *list) {
		if (!strncasecmp(list, word, n) && (!list[n] || list[n] == ',' || list[n] == '='))
			return list + n;
		list = strchr(list, ',');
		list += list ? 1 : 0;
	}
	return NULL;
}

bool conf_has(const struct conf *c, enum conf_key k, const char *word)
{
	assert(conf_row(k)->type == CT_WORDS || conf_row(k)->type == CT_STR);
	return word_find(conf_str(c, k), word) != NULL;
}

const char *conf_opt(const struct conf *c, enum conf_key k, const char *word, char *buf, size_t size)
{
	const char *at = word_find(conf_str(c, k), word);
	if (!at || *at != '=')
		return NULL;
	snprintf(buf, size, "%.*s", (int)strcspn(at + 1, ","), at + 1);
	return conf_word_value_ok(k, word, buf) ? buf : NULL;
}

size_t conf_list(const struct conf *c, enum conf_key k, const char *const **ret)
{
	assert(conf_row(k)->type == CT_LIST);
	*ret = (const char *const *)c->value[k].list;
	return c->value[k].list_n;
}

char *conf_expand(const struct conf *c, const char *path, const char *node_name)
{
	struct str s = STR_INIT;
	char host[256];
	const Pb__NodeRecord *node = node_name ? conf_node(c, node_name) : NULL;
	if (gethostname(host, sizeof host))
		host[0] = 0;
	host[strcspn(host, ".")] = 0;
	for (; *path; path++) {
		if (*path != '%' || !path[1]) {
			str_add_c(&s, *path);
			continue;
		}
		switch (*++path) {
		case 'n': str_add(&s, node_name ? node_name : ""); break;
		case 'h': str_add(&s, node && node->hostname ? node->hostname : host); break;
		case '%': str_add_c(&s, '%'); break;
		default: str_add_c(&s, '%'); str_add_c(&s, *path);
		}
	}
	return str_take(&s);
}

size_t conf_nodes(const struct conf *c, Pb__NodeRecord *const **ret)
{
	*ret = c->node;
	return c->node_n;
}

size_t conf_parts(const struct conf *c, Pb__PartitionRecord *const **ret)
{
	*ret = c->part;
	return c->part_n;
}

const Pb__NodeRecord *conf_node(const struct conf *c, const char *name) { return conf_node_find(c, name); }

bool conf_controller(const struct conf *c, size_t i, const char **ret_host, const char **ret_addr, uint16_t *ret_port)
{
	if (i >= c->controller_n)
		return false;
	*ret_host = c->controller[i].host;
	*ret_addr = c->controller[i].addr;
	*ret_port = (uint16_t)conf_num(c, CONF_SlurmctldPort);
	return true;
}

size_t conf_files(const struct conf *c, const struct conf_text **ret)
{
	*ret = c->file;
	return c->file_n;
}

bool conf_plugstack(const struct conf *c, char *buf, size_t size)
{
	const char *set = conf_str(c, CONF_PlugStackConfig), *path = conf_path(c), *slash = path ? strrchr(path, '/') : NULL;
	if (set && *set)
		snprintf(buf, size, "%s", set);
	else
		snprintf(buf, size, "%.*s/plugstack.conf", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return access(buf, R_OK) == 0;
}
