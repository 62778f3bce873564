/* rpc.h - the bounded unpacker (inside of wire/) */
#pragma once
#include "wire/wire.h"

/* Unpack, taking at most `max` bytes of memory; NULL: malformed or more than that. Freed as wire_unpack's. */
ProtobufCMessage *unpack_capped(const ProtobufCMessageDescriptor *d, const uint8_t *data, size_t len, size_t max);
/* Answers of a server that proved itself may be wide: many sparse records, each a large struct. */
#define UNPACK_REPLY_MAX(len) (128 * (size_t)(len) + (1u << 20))
