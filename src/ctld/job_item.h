/* job_item.h - writes a JobListRsp by hand around encoded job records (see rpc_read.c); job_item_test.c compares with the generated codec */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/controller.pb-c.h"
#include "proto/job.pb-c.h"

struct item_buf { uint8_t *data; size_t len, cap; };
void item_add(struct item_buf *b, const uint8_t *record, size_t len, const Pb__JobVolatile *vol);
/* Only bytes that are a message already, as a field `number` (below 16) of the reply. */
void item_add_plain(struct item_buf *b, unsigned number, const uint8_t *record, size_t len);
/* The fields after the jobs. */
void item_end(struct item_buf *b, uint64_t now, uint32_t code);
