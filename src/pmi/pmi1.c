/* pmi1.c - libpmi.so (slurm/pmi.h) */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmi/channel.h"
#include "slurm/pmi.h"

#define NAME_MAX_LEN 256
#define KEY_MAX_LEN 64
#define VALUE_MAX_LEN 1024

static struct channel ch = { .fd = -1 };
static size_t iter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* 0: asked, answered, rc 0. */
static int ask(const char *text, char *answer, size_t size)
{
	pthread_mutex_lock(&lock);
	bool ok = ch.open && ch.fd >= 0 && channel_line(&ch, text, answer, size);
	pthread_mutex_unlock(&lock);
	return ok && (strstr(answer, " rc=0") || strstr(answer, "info=ok")) ? PMI_SUCCESS : PMI_FAIL;
}

static int ask_text(const char *text, const char *key, char *ret, int length)
{
	char answer[CHANNEL_TEXT];
	int rc = ask(text, answer, sizeof answer);
	return rc ? rc : channel_word(answer, key, ' ', ret, (size_t)length) ? PMI_SUCCESS : PMI_ERR_INVALID_LENGTH;
}

static int ask_number(const char *text, const char *key, int *ret)
{
	char number[32];
	int rc = ask_text(text, key, number, sizeof number);
	if (!rc)
		*ret = (int)strtol(number, NULL, 10);
	return rc;
}

static int give_text(char *ret, int length, const char *text)
{
	if (!ret)
		return PMI_ERR_INVALID_ARG;
	return length > 0 && snprintf(ret, (size_t)length, "%s", text) < length ? PMI_SUCCESS : PMI_ERR_INVALID_LENGTH;
}

static int give(int *ret, int value)
{
	if (!ret)
		return PMI_ERR_INVALID_ARG;
	*ret = value;
	return PMI_SUCCESS;
}

int PMI_Init(int *spawned)
{
	if (!spawned)
		return PMI_ERR_INVALID_ARG;
	if (!ch.open && !channel_open(&ch, 1))
		return PMI_FAIL;
	*spawned = ch.spawned;
	return PMI_SUCCESS;
}

int PMI_Initialized(PMI_BOOL *initialized) { return give(initialized, ch.open); }

int PMI_Finalize(void)
{
	char answer[CHANNEL_TEXT];
	int rc = ch.fd >= 0 ? ask("cmd=finalize", answer, sizeof answer) : PMI_SUCCESS;
	channel_close(&ch);
	return rc;
}

int PMI_Get_size(int *size) { return ch.open ? give(size, ch.size) : PMI_ERR_INIT; }
int PMI_Get_rank(int *rank) { return ch.open ? give(rank, ch.rank) : PMI_ERR_INIT; }

int PMI_Get_universe_size(int *size)
{
	if (!ch.open || !size)
		return ch.open ? PMI_ERR_INVALID_ARG : PMI_ERR_INIT;
	return ch.fd < 0 ? give(size, 1) : ask_number("cmd=get_universe_size", "size", size);
}

int PMI_Get_appnum(int *appnum)
{
	if (!ch.open || !appnum)
		return ch.open ? PMI_ERR_INVALID_ARG : PMI_ERR_INIT;
	return ch.fd < 0 ? give(appnum, 0) : ask_number("cmd=get_appnum", "appnum", appnum);
}

int PMI_Barrier(void)
{
	char answer[CHANNEL_TEXT];
	if (!ch.open)
		return PMI_ERR_INIT;
	return ch.fd < 0 ? PMI_SUCCESS : ask("cmd=barrier_in", answer, sizeof answer);
}

int PMI_Abort(int exit_code, const char error_msg[])
{
	char text[64];
	if (error_msg)
		fprintf(stderr, "%s\n", error_msg);
	int n = snprintf(text, sizeof text, "cmd=abort exitcode=%d\n", exit_code);
	if (ch.fd >= 0 && write(ch.fd, text, (size_t)n) == n)
		pause();                       /* we are about to be ended */
	exit(exit_code);
}

/* The ranks on this node, from SLURM_GTIDS. */
int PMI_Get_clique_size(int *size)
{
	const char *list = getenv("SLURM_GTIDS");
	int n = 1;
	for (; ch.fd >= 0 && list && *list; list++)
		n += *list == ',';
	return ch.open ? give(size, n) : PMI_ERR_INIT;
}

int PMI_Get_clique_ranks(int ranks[], int length)
{
	const char *list = getenv("SLURM_GTIDS");
	int size, rc = PMI_Get_clique_size(&size);
	if (rc || !ranks || length < size)
		return rc ? rc : ranks ? PMI_ERR_INVALID_SIZE : PMI_ERR_INVALID_ARG;
	ranks[0] = ch.rank;
	for (int i = 0; ch.fd >= 0 && list && i < size; i++) {
		ranks[i] = (int)strtol(list, (char **)&list, 10);
		list += *list == ',';
	}
	return PMI_SUCCESS;
}

int PMI_KVS_Get_my_name(char kvsname[], int length)
{
	if (!ch.open || !kvsname)
		return ch.open ? PMI_ERR_INVALID_ARG : PMI_ERR_INIT;
	return ch.fd < 0 ? give_text(kvsname, length, "alone") : ask_text("cmd=get_my_kvsname", "kvsname", kvsname, length);
}

int PMI_Get_id(char id_str[], int length) { return PMI_KVS_Get_my_name(id_str, length); }
int PMI_Get_kvs_domain_id(char id_str[], int length) { return PMI_KVS_Get_my_name(id_str, length); }
int PMI_Get_id_length_max(int *length) { return give(length, NAME_MAX_LEN); }
int PMI_KVS_Get_name_length_max(int *length) { return give(length, NAME_MAX_LEN); }
int PMI_KVS_Get_key_length_max(int *length) { return give(length, KEY_MAX_LEN); }
int PMI_KVS_Get_value_length_max(int *length) { return give(length, VALUE_MAX_LEN); }

int PMI_KVS_Put(const char kvsname[], const char key[], const char value[])
{
	char text[CHANNEL_TEXT], answer[CHANNEL_TEXT];
	if (!ch.open)
		return PMI_ERR_INIT;
	if (!kvsname || !key || !value)
		return PMI_ERR_INVALID_ARG;
	if (strlen(key) >= KEY_MAX_LEN || strpbrk(key, " =\n"))
		return PMI_ERR_INVALID_KEY_LENGTH;
	if (strlen(value) >= VALUE_MAX_LEN || strchr(value, '\n'))
		return PMI_ERR_INVALID_VAL_LENGTH;
	if (ch.fd < 0)
		return alone_put(key, value) ? PMI_SUCCESS : PMI_ERR_NOMEM;
	snprintf(text, sizeof text, "cmd=put kvsname=%.256s key=%s value=%s", kvsname, key, value);
	return ask(text, answer, sizeof answer);
}

int PMI_KVS_Commit(const char kvsname[]) { return !ch.open ? PMI_ERR_INIT : kvsname ? PMI_SUCCESS : PMI_ERR_INVALID_ARG; }

int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length)
{
	char text[512];
	if (!ch.open)
		return PMI_ERR_INIT;
	if (!kvsname || !key || !value)
		return PMI_ERR_INVALID_ARG;
	if (ch.fd < 0) {
		const char *have = alone_get(key);
		return have ? give_text(value, length, have) : PMI_ERR_INVALID_KEY;
	}
	snprintf(text, sizeof text, "cmd=get kvsname=%.256s key=%.64s", kvsname, key);
	int rc = ask_text(text, "value", value, length);
	return rc == PMI_FAIL ? PMI_ERR_INVALID_KEY : rc;
}

int PMI_KVS_Iter_next(const char kvsname[], char key[], int key_len, char val[], int val_len)
{
	char text[512], answer[CHANNEL_TEXT];
	const char *k, *v;
	(void)kvsname;
	if (!ch.open || !key || !val)
		return ch.open ? PMI_ERR_INVALID_ARG : PMI_ERR_INIT;
	key[0] = val[0] = 0;
	size_t at = iter++;
	if (ch.fd < 0)
		return !alone_at(at, &k, &v) ? PMI_SUCCESS : give_text(key, key_len, k) || give_text(val, val_len, v) ? PMI_ERR_INVALID_LENGTH : PMI_SUCCESS;
	snprintf(text, sizeof text, "cmd=getbyidx kvsname=x idx=%zu", at);
	if (ask(text, answer, sizeof answer))
		return PMI_SUCCESS;            /* an empty key is the end */
	return channel_word(answer, "key", ' ', key, (size_t)key_len) && channel_word(answer, "val", ' ', val, (size_t)val_len) ? PMI_SUCCESS : PMI_ERR_INVALID_LENGTH;
}

int PMI_KVS_Iter_first(const char kvsname[], char key[], int key_len, char val[], int val_len)
{
	iter = 0;
	return PMI_KVS_Iter_next(kvsname, key, key_len, val, val_len);
}

int PMI_Publish_name(const char service_name[], const char port[])
{
	char text[CHANNEL_TEXT], answer[CHANNEL_TEXT];
	if (!service_name || !port)
		return PMI_ERR_INVALID_ARG;
	snprintf(text, sizeof text, "cmd=publish_name service=%.512s port=%.1024s", service_name, port);
	return ask(text, answer, sizeof answer);
}

int PMI_Unpublish_name(const char service_name[])
{
	char text[CHANNEL_TEXT], answer[CHANNEL_TEXT];
	if (!service_name)
		return PMI_ERR_INVALID_ARG;
	snprintf(text, sizeof text, "cmd=unpublish_name service=%.512s", service_name);
	return ask(text, answer, sizeof answer);
}

/* The API gives no length; MPICH's callers have VALUE_MAX_LEN. */
int PMI_Lookup_name(const char service_name[], char port[])
{
	char text[CHANNEL_TEXT];
	if (!service_name || !port)
		return PMI_ERR_INVALID_ARG;
	snprintf(text, sizeof text, "cmd=lookup_name service=%.512s", service_name);
	return ask_text(text, "port", port, VALUE_MAX_LEN);
}

static bool line(char *text, size_t size, size_t *at, const char *fmt, const char *value, int i)
{
	int n = snprintf(text + *at, size - *at, fmt, i, value);
	*at += n > 0 ? (size_t)n : 0;
	return *at < size;
}

int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[], const int maxprocs[], const int info_keyval_sizes[],
		       const PMI_keyval_t *info_keyval_vectors[], int preput_keyval_size, const PMI_keyval_t preput_keyval_vector[], int errors[])
{
	static char text[64 * 1024];
	char answer[CHANNEL_TEXT];
	size_t at = 0;
	bool ok = true;
	if (count < 1 || !cmds || !maxprocs)
		return PMI_ERR_INVALID_ARG;
	for (int c = 0; c < count; c++) {
		int args = 0, infos = info_keyval_sizes && info_keyval_vectors ? info_keyval_sizes[c] : 0;
		while (argvs && argvs[c] && argvs[c][args])
			args++;
		ok &= line(text, sizeof text, &at, "mcmd=spawn\nnprocs=%d\nexecname=%s\n", cmds[c], maxprocs[c]);
		ok &= line(text, sizeof text, &at, "totspawns=%d\n%s", "", count) && line(text, sizeof text, &at, "spawnssofar=%d\n%s", "", c + 1);
		ok &= line(text, sizeof text, &at, "argcnt=%d\n%s", "", args);
		for (int i = 0; ok && i < args; i++)
			ok = line(text, sizeof text, &at, "arg%d=%s\n", argvs[c][i], i + 1);
		ok &= line(text, sizeof text, &at, "preput_num=%d\n%s", "", preput_keyval_size);
		for (int i = 0; ok && i < preput_keyval_size; i++)
			ok = line(text, sizeof text, &at, "preput_key_%d=%s\n", preput_keyval_vector[i].key, i) &&
			     line(text, sizeof text, &at, "preput_val_%d=%s\n", preput_keyval_vector[i].val, i);
		ok &= line(text, sizeof text, &at, "info_num=%d\n%s", "", infos);
		for (int i = 0; ok && i < infos; i++)
			ok = line(text, sizeof text, &at, "info_key_%d=%s\n", info_keyval_vectors[c][i].key, i) &&
			     line(text, sizeof text, &at, "info_val_%d=%s\n", info_keyval_vectors[c][i].val, i);
		ok &= line(text, sizeof text, &at, c + 1 < count ? "endcmd\n%.0d%s" : "endcmd%.0d%s", "", 0);
	}
	int rc = ok ? ask(text, answer, sizeof answer) : PMI_ERR_INVALID_LENGTH;
	for (int i = 0, n = 0; errors && i < count; i++)
		for (int k = 0; k < maxprocs[i]; k++)
			errors[n++] = rc;
	return rc;
}
