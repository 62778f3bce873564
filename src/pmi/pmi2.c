/* pmi2.c - libpmi2.so (slurm/pmi2.h) */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmi/channel.h"
#include "slurm/pmi2.h"

static struct channel ch = { .fd = -1 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ";" in a value is doubled. */
static void field(char *text, size_t size, const char *key, const char *value)
{
	size_t n = strlen(text);
	n += (size_t)snprintf(text + n, size - n, "%s=", key);
	for (; *value && n + 4 < size; value++) {
		text[n++] = *value;
		if (*value == ';')
			text[n++] = ';';
	}
	text[n++] = ';';
	text[n] = 0;
}

static int ask(const char *text, char *answer, size_t size)
{
	pthread_mutex_lock(&lock);
	bool ok = ch.open && ch.fd >= 0 && channel_record(&ch, text, answer, size);
	pthread_mutex_unlock(&lock);
	return ok && strstr(answer, ";rc=0;") ? PMI2_SUCCESS : PMI2_FAIL;
}

/* One or two fields (NULL: none). */
static int ask_fields(const char *cmd, const char *k1, const char *v1, const char *k2, const char *v2, char *answer, size_t size)
{
	char text[3 * CHANNEL_TEXT];
	if (!ch.open)
		return PMI2_ERR_INIT;
	snprintf(text, sizeof text, "cmd=%s;", cmd);
	if (k1)
		field(text, sizeof text, k1, v1);
	if (k2)
		field(text, sizeof text, k2, v2);
	return ask(text, answer, size);
}

int PMI2_Init(int *spawned, int *size, int *rank, int *appnum)
{
	char answer[CHANNEL_TEXT], number[32], text[64];
	if (!ch.open && !channel_open(&ch, 2))
		return PMI2_FAIL;
	if (spawned)
		*spawned = ch.spawned;
	if (appnum)
		*appnum = -1;
	snprintf(text, sizeof text, "%d", ch.rank);
	if (ch.fd >= 0) {
		int rc = ask_fields("fullinit", "pmirank", text, "threaded", "FALSE", answer, sizeof answer);
		if (rc)
			return rc;
		if (channel_word(answer, "size", ';', number, sizeof number))
			ch.size = (int)strtol(number, NULL, 10);
	}
	if (size)
		*size = ch.size;
	if (rank)
		*rank = ch.rank;
	return PMI2_SUCCESS;
}

int PMI2_Finalize(void)
{
	char answer[CHANNEL_TEXT];
	int rc = ch.fd >= 0 ? ask_fields("finalize", NULL, NULL, NULL, NULL, answer, sizeof answer) : PMI2_SUCCESS;
	channel_close(&ch);
	return rc;
}

int PMI2_Initialized(void) { return ch.open; }

int PMI2_Abort(int flag, const char msg[])
{
	char text[CHANNEL_TEXT], record[CHANNEL_TEXT + 16];
	if (msg)
		fprintf(stderr, "%s\n", msg);
	snprintf(text, sizeof text, "cmd=abort;");
	field(text, sizeof text, "isworld", flag ? "TRUE" : "FALSE");
	int n = snprintf(record, sizeof record, "%6zu%s", strlen(text), text);
	if (ch.fd >= 0 && write(ch.fd, record, (size_t)n) == n)
		pause();
	exit(1);
}

int PMI2_Job_GetId(char jobid[], int jobid_size)
{
	char answer[CHANNEL_TEXT];
	if (ch.open && ch.fd < 0)
		return snprintf(jobid, (size_t)jobid_size, "alone") < jobid_size ? PMI2_SUCCESS : PMI2_ERR_INVALID_LENGTH;
	int rc = ask_fields("job-getid", NULL, NULL, NULL, NULL, answer, sizeof answer);
	return rc ? rc : channel_word(answer, "jobid", ';', jobid, (size_t)jobid_size) ? PMI2_SUCCESS : PMI2_ERR_INVALID_LENGTH;
}

int PMI2_Job_GetRank(int *rank)
{
	*rank = ch.rank;
	return ch.open ? PMI2_SUCCESS : PMI2_ERR_INIT;
}

int PMI2_Info_GetSize(int *size)
{
	const char *list = getenv("SLURM_GTIDS");
	for (*size = 1; ch.fd >= 0 && list && *list; list++)
		*size += *list == ',';
	return ch.open ? PMI2_SUCCESS : PMI2_ERR_INIT;
}

int PMI2_KVS_Put(const char key[], const char value[])
{
	char answer[CHANNEL_TEXT];
	if (!key || !value || strlen(key) > PMI2_MAX_KEYLEN || strlen(value) > PMI2_MAX_VALLEN)
		return key && value ? PMI2_ERR_INVALID_LENGTH : PMI2_ERR_INVALID_ARG;
	if (ch.open && ch.fd < 0)
		return alone_put(key, value) ? PMI2_SUCCESS : PMI2_ERR_NOMEM;
	return ask_fields("kvs-put", "key", key, "value", value, answer, sizeof answer);
}

int PMI2_KVS_Fence(void)
{
	char answer[CHANNEL_TEXT];
	return ch.open && ch.fd < 0 ? PMI2_SUCCESS : ask_fields("kvs-fence", NULL, NULL, NULL, NULL, answer, sizeof answer);
}

/* `found` of an answer, and its value. */
static int value_take(int rc, const char *answer, char value[], int size, int *found)
{
	if (rc)
		return rc;
	*found = strstr(answer, ";found=TRUE;") != NULL;
	return !*found || channel_word(answer, "value", ';', value, (size_t)size) ? PMI2_SUCCESS : PMI2_ERR_INVALID_LENGTH;
}

int PMI2_KVS_Get(const char *jobid, int src_pmi_id, const char key[], char value[], int maxvalue, int *vallen)
{
	char answer[CHANNEL_TEXT];
	int found = 0, rc;
	(void)src_pmi_id;
	if (ch.open && ch.fd < 0) {
		const char *have = alone_get(key);
		found = have != NULL;
		rc = have && snprintf(value, (size_t)maxvalue, "%s", have) >= maxvalue ? PMI2_ERR_INVALID_LENGTH : PMI2_SUCCESS;
	} else {
		rc = value_take(ask_fields("kvs-get", "jobid", jobid ? jobid : "", "key", key, answer, sizeof answer), answer, value, maxvalue, &found);
	}
	if (vallen)
		*vallen = !rc && found ? (int)strlen(value) : 0;
	return rc ? rc : found ? PMI2_SUCCESS : PMI2_FAIL;
}

int PMI2_Info_GetNodeAttr(const char name[], char value[], int valuelen, int *found, int waitfor)
{
	char answer[CHANNEL_TEXT];
	return value_take(ask_fields("info-getnodeattr", "key", name, "wait", waitfor ? "TRUE" : "FALSE", answer, sizeof answer), answer, value, valuelen, found);
}

int PMI2_Info_PutNodeAttr(const char name[], const char value[])
{
	char answer[CHANNEL_TEXT];
	return ask_fields("info-putnodeattr", "key", name, "value", value, answer, sizeof answer);
}

int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen, int *found)
{
	char answer[CHANNEL_TEXT];
	return value_take(ask_fields("info-getjobattr", "key", name, NULL, NULL, answer, sizeof answer), answer, value, valuelen, found);
}

static void numbers(const char *text, int array[], int arraylen, int *outlen)
{
	for (*outlen = 0; *text && *outlen < arraylen; text += *text == ',')
		array[(*outlen)++] = (int)strtol(text, (char **)&text, 10);
}

int PMI2_Info_GetNodeAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found)
{
	char value[CHANNEL_TEXT] = "";
	int rc = PMI2_Info_GetNodeAttr(name, value, sizeof value, found, 0);
	if (!rc && *found)
		numbers(value, array, arraylen, outlen);
	return rc;
}

int PMI2_Info_GetJobAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found)
{
	char value[CHANNEL_TEXT] = "";
	int rc = PMI2_Info_GetJobAttr(name, value, sizeof value, found);
	if (!rc && *found)
		numbers(value, array, arraylen, outlen);
	return rc;
}

int PMI2_Nameserv_publish(const char service_name[], const PMI2U_Info *info_ptr, const char port[])
{
	char answer[CHANNEL_TEXT];
	(void)info_ptr;
	return ask_fields("name-publish", "name", service_name, "port", port, answer, sizeof answer);
}

int PMI2_Nameserv_lookup(const char service_name[], const PMI2U_Info *info_ptr, char port[], int portLen)
{
	char answer[CHANNEL_TEXT];
	(void)info_ptr;
	int rc = ask_fields("name-lookup", "name", service_name, NULL, NULL, answer, sizeof answer);
	return rc ? rc : channel_word(answer, "value", ';', port, (size_t)portLen) ? PMI2_SUCCESS : PMI2_FAIL;
}

int PMI2_Nameserv_unpublish(const char service_name[], const PMI2U_Info *info_ptr)
{
	char answer[CHANNEL_TEXT];
	(void)info_ptr;
	return ask_fields("name-unpublish", "name", service_name, NULL, NULL, answer, sizeof answer);
}
