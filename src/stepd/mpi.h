/* mpi.h - what a step's tasks need to find each other (srun --mpi)
 *
 * pmi2: slurmstepd itself speaks PMI-1 and PMI-2 with each task over a socket (pmi.c). pmix: a helper program that is the user speaks it by libpmix (pmix.c).
 * none: nothing is made, nothing costs. What nodes exchange travels by peers.h. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
struct envlist;
struct step;
struct task;

/* Before the first task is forked. 0; -1 and the step's note filled (unknown type, helper missing). */
int mpi_prepare(struct step *s);
/* Around the fork of each task: 0, or -1 and the note filled; then in the parent. */
int mpi_open(struct step *s, struct task *t);
void mpi_forked(struct step *s, struct task *t);
/* In the child: descriptors and environment. */
void mpi_child(const struct step *s, const struct task *t, struct envlist *e);
/* All tasks are forked. */
void mpi_launched(struct step *s);
/* Was pid the helper? */
bool mpi_reaped(struct step *s, pid_t pid);
/* All tasks have ended: true when the helper has too; else step_check_end is called again. */
bool mpi_finish(struct step *s);

/* From peers.c: all parts of a gathering, each as 4 bytes node, 4 bytes length, data; a message of one node. */
void mpi_gathered(struct step *s, uint64_t id, const uint8_t *parts, size_t n);
void mpi_message(struct step *s, uint32_t node, const uint8_t *data, size_t n);
/* From srun: a spawn it was asked for has been started, or not. */
void mpi_spawned(struct step *s, uint32_t ticket, bool ok);
/* A task ends its whole step: tell srun, which says so and ends it. */
void mpi_abort(struct step *s, uint32_t rank, int code);
/* The place of a step's rank among its nodes; UINT32_MAX: no such rank. */
uint32_t mpi_node_of(const struct step *s, uint32_t rank);
