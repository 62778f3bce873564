/* pmi.h - PMI-1 and PMI-2 served to the tasks of this node (see pmi.c); each as its namesake in mpi.h */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
struct envlist;
struct step;
struct task;
int pmi_prepare(struct step *s);
int pmi_open(struct step *s, struct task *t);
void pmi_forked(struct step *s, struct task *t);
void pmi_child(const struct step *s, const struct task *t, struct envlist *e);
void pmi_gathered(struct step *s, const uint8_t *parts, size_t n);
void pmi_message(struct step *s, uint32_t node, const uint8_t *data, size_t n);
void pmi_spawned(struct step *s, uint32_t ticket, bool ok);
