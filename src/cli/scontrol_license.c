/* scontrol_license.c - "scontrol show licenses [NAME]" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/scontrol.h"
#include "proto/queue.pb-c.h"

static void text_print(const struct scontrol *s, Pb__LicenseRecord *const *list, size_t n)
{
	struct str out = STR_INIT;
	for (size_t i = 0; i < n; i++) {
		const Pb__LicenseRecord *l = list[i];
		str_addf(&out, "LicenseName=%s%sTotal=%u Used=%u Free=%u Reserved=%u Remote=no\n", l->name, s->one_line ? " " : "\n    ", l->total, l->used,
			 l->total > l->used ? l->total - l->used : 0, l->reserved);
	}
	out_flush(&out);
	str_fini(&out);
}

static void json_print(const struct scontrol *s, Pb__LicenseRecord *const *list, size_t n, uint64_t now)
{
	struct str out = STR_INIT;
	struct json j;
	json_init(&j, &out, s->yaml != NULL);
	json_open(&j, NULL, '{');
	json_open(&j, "licenses", '[');
	for (size_t i = 0; i < n; i++) {
		const Pb__LicenseRecord *l = list[i];
		json_open(&j, NULL, '{');
		json_text(&j, "LicenseName", l->name);
		json_u64(&j, "Total", l->total);
		json_u64(&j, "Used", l->used);
		json_u64(&j, "Free", l->total > l->used ? l->total - l->used : 0);
		json_bool(&j, "Remote", false);
		json_u64(&j, "Reserved", l->reserved);
		json_u64(&j, "LastConsumed", 0);
		json_u64(&j, "LastDeficit", 0);
		json_u64(&j, "LastUpdate", 0);
		json_text(&j, "Nodes", "");
		json_close(&j);
	}
	json_close(&j);
	json_num(&j, "last_update", true, false, now);
	json_end(&j, s->argv, s->argc);
	out_flush(&out);
	str_fini(&out);
}

void scontrol_licenses(struct scontrol *s, const char *id)
{
	struct error err = { 0 };
	Pb__Empty req = PB__EMPTY__INIT;
	ProtobufCMessage *msg;
	int rc = client_call(scontrol_client(s), RPC_LICENSE_LIST, &req.base, 0, &msg, &err);
	if (rc < 0) {
		scontrol_fail(s, "slurm_load_licenses error: %s", error_text(rc));
		return;
	}
	Pb__LicenseListRsp *rsp = (Pb__LicenseListRsp *)msg;
	Pb__LicenseRecord **list = rsp->license, *one = NULL;
	size_t n = rsp->n_license;
	for (size_t i = 0; id && i < n; i++)
		one = strcmp(list[i]->name, id) ? one : list[i];
	if (id) {
		list = &one;
		n = one != NULL;
	}
	if (s->json || s->yaml)
		json_print(s, list, n, rsp->now);
	else if (id && !one && rsp->n_license)
		scontrol_fail(s, "scontrol: error: query \"%s\" matched zero licenses.", id);
	else if (!n)
		printf("No licenses configured in Slurm.\n");
	else
		text_print(s, list, n);
	protobuf_c_message_free_unpacked(msg, NULL);
}
