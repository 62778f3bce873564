/* channel.h - one socket to slurmstepd, or none (then the program is alone), under a lock: programs have threads */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#define CHANNEL_TEXT 4096
struct channel { int fd, rank, size, spawned; bool open; };
/* PMI_FD and its kin; begins version 1 or 2. false: PMI_FD is there and does not answer. */
bool channel_open(struct channel *c, int version);
void channel_close(struct channel *c);
/* Send a text, read one answer into buf (NUL-ended). false: nobody there any more. Not for two threads at once. */
bool channel_line(struct channel *c, const char *text, char *buf, size_t size);
bool channel_record(struct channel *c, const char *text, char *buf, size_t size);
/* The value of " key=" up to `end` (' ' or ';', doubled inside a PMI-2 value) in an answer; rest: up to the end of the text. false: not there, or too long. */
bool channel_word(const char *answer, const char *key, char end, char *ret, size_t size);
/* Pairs kept by a program that is alone. */
bool alone_put(const char *key, const char *value);
const char *alone_get(const char *key);
bool alone_at(size_t i, const char **ret_key, const char **ret_value);
