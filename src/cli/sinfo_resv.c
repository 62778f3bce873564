/* sinfo_resv.c - sinfo -T: reservations, one a line */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/showcmd.h"
#include "cli/sinfo.h"
#include "model/timespec.h"
#include "proto/reserve.pb-c.h"

static void resv_line(const Pb__ReservationRecord *r, int width)
{
	char start[64], end[64], length[32];
	const char *fmt = getenv("SLURM_TIME_FORMAT");
	timespec_print_when((time_t)r->start_time, fmt, time(NULL), start, sizeof(start));
	timespec_print_when((time_t)r->end_time, fmt, time(NULL), end, sizeof(end));
	timespec_format((uint32_t)(r->end_time - r->start_time), length, sizeof(length));
	printf("%-*s  %8s  %19s  %19s  %11s  %s\n", width, r->name, r->active ? "ACTIVE" : "INACTIVE", start, end, length, r->nodes ? r->nodes : "");
}

int sinfo_reservations(const struct sinfo *q, struct client *c)
{
	Pb__ResvListReq req = PB__RESV_LIST_REQ__INIT;
	struct error err = { 0 };
	ProtobufCMessage *msg;
	int rc = client_call(c, RPC_RESV_LIST, &req.base, 0, &msg, &err), width = (int)strlen("RESV_NAME");
	if (rc < 0) {
		fprintf(stderr, "slurm_load_reservations error: %s\n", error_text(rc));
		return 1;
	}
	const Pb__ResvListRsp *r = (const Pb__ResvListRsp *)msg;
	for (size_t i = 0; i < r->n_resv; i++)
		width = (int)strlen(r->resv[i]->name) > width ? (int)strlen(r->resv[i]->name) : width;
	if (!r->n_resv)
		printf("No reservations in the system\n");
	else if (!q->no_header)
		printf("%-*s  %8s  %19s  %19s  %11s  %s\n", width, "RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST");
	for (size_t i = 0; i < r->n_resv; i++)
		resv_line(r->resv[i], width);
	protobuf_c_message_free_unpacked(msg, NULL);
	return 0;
}
