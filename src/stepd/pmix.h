/* pmix.h - the helper that serves PMIx to the tasks of this node; each as its namesake in mpi.h
 *
 * libpmix parses what tasks send; so it runs in a process of its own, slurmstepd-pmix beside slurmstepd, that is the job's user and in the step's cgroup. A step without
 * --mpi=pmix has none of it. What the two say to each other: pmix_wire.h. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
struct envlist;
struct step;
struct task;
int pmix_prepare(struct step *s);
void pmix_child(const struct step *s, const struct task *t, struct envlist *e);
bool pmix_reaped(struct step *s, pid_t pid);
bool pmix_finish(struct step *s);
void pmix_gathered(struct step *s, uint64_t id, const uint8_t *parts, size_t n);
void pmix_message(struct step *s, uint32_t node, const uint8_t *data, size_t n);
