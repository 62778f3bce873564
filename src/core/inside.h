/* inside.h - inside one node: which CPUs and devices, and shards of GPUs (part of state.h) */
#pragma once

struct core;
struct core_node;
struct core_part;
struct core_job;
struct shape;
struct avail;
struct fit;
struct want;
struct node_gres;

/* inside.c: which CPUs and devices of one node */
static inline bool bit_of(const uint64_t *w, uint32_t i) { return w[i / 64] >> (i % 64) & 1; }
uint32_t inside_free(const struct core *c, const struct core_node *n, const uint64_t *used); /* CPUs of whole free units */
uint32_t inside_cap(const struct shape *s, const struct core_node *n);      /* CPUs that the job may have when it has the node alone */
uint32_t inside_own_spec(const struct shape *s, const struct core_node *n); /* of it --core-spec and --thread-spec leave so many to the system */
uint32_t inside_charged(const struct core *c, const struct core_job *j);    /* of its allocation, with those it keeps for the system */
uint32_t inside_unit(const struct core *c, const struct core_node *n);      /* CPUs that are handed out together */
bool part_shares(const struct shape *s, const struct core_part *p);         /* such a job shares its CPUs with others of the partition */
uint32_t inside_limit(const struct core *c, const struct core_node *n, const struct core_part *p, const struct avail *a); /* CPUs the partition's limits leave of those free */
uint32_t inside_shared(const struct core_node *n, const struct core_part *p);  /* CPUs a job that shares could have */
uint32_t inside_socket_tasks(const struct core *c, const struct shape *s, const struct core_node *n, const struct avail *a);
uint32_t inside_sockets_with(const struct core_node *n, const struct avail *a, const struct want *w);
uint32_t inside_near(const struct core *c, const struct core_node *n, const struct avail *a, const struct fit *f);
void inside_gres(const struct core *c, const struct core_node *n, const struct avail *a, struct fit *f, const struct want *w, uint64_t count, uint32_t sockets);
void inside_take(const struct core *c, const struct shape *s, const struct core_part *p, const struct core_node *n, const struct fit *f, const uint64_t *used, uint64_t *words);

/* shard.c */
void shards_link(const struct core *c, struct core_node *n);   /* after its entries, or what is near them, changed */
bool shard_whole(const struct core_node *n, uint32_t g, const uint64_t *words);     /* is the GPU of these shards among the devices in words (CPUs, then devices)? */
void shards_busy(const struct core_node *n, const uint64_t *counts, uint64_t *words); /* adds to words the GPUs of which shards are used (NULL: by anybody now) */
/* left: of each entry what nobody uses; whole: the GPU of these shards is held by a job that has all of it. Afterwards what is really free. */
void shards_settle(const struct core_node *n, const bool *whole, uint32_t *left);
void shards_now(const struct core_node *n, struct avail *a);
bool shard_wanted(const struct core_node *n, const struct want *w);
void shards_take(const struct core *c, const struct core_node *n, const struct avail *a, struct fit *f, const struct want *w, uint64_t count);
/* "1/4,0/4" for each GPU (of the same type), of a job's counts; NULL: of all jobs, "-/4" where one has it whole. Malloc'd. */
char *shards_text(const struct core_node *n, const struct node_gres *like, bool typed, const uint64_t *counts);
bool shards_read(const struct core_node *n, uint32_t name, const char *text, uint64_t *counts);
bool shards_clash(const struct core_node *n, const uint64_t *words); /* may a job not hold these, beside those that hold something now? */
void shards_check(const struct core_node *n);
