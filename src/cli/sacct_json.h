/* sacct_json.h - records of sacct --json and --yaml */
#pragma once
#include "cli/json.h"
#include "cli/sacct.h"

/* A job is head, middle, the list "steps" (written by the caller, each item with sacct_json_step), tail. r->step is NULL but for a step. */
void sacct_json_head(struct json *j, const struct sacct_row *r);
void sacct_json_middle(struct json *j, const struct sacct_row *r);
void sacct_json_step(struct json *j, const struct sacct_row *r);
void sacct_json_tail(struct json *j, const struct sacct_row *r);
