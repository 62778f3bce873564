/* contain_device.c - the device filter of a step (see contain_limit.h)
 *
 * An eBPF program of a few instructions for each device of the node's gres.conf that the step was not given: access to it is refused, to all else
 * allowed. It is attached to the step's cgroup, which no process of the step can leave. The kernel's part: BPF_PROG_TYPE_CGROUP_DEVICE, whose
 * context is three 32-bit words: access << 16 | type, major, minor. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bitset.h"
#include "base/log.h"
#include "model/hostlist.h"
#include "model/idset.h"
#include "stepd/contain_limit.h"
#include "stepd/gpus.h"
#include "stepd/step.h"

#define DEVICES_MAX 4096

struct program { struct bpf_insn *insn; size_t n, cap; };

static void add(struct program *p, uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	p->insn = xgrow(p->insn, &p->cap, p->n + 1, sizeof *p->insn);
	p->insn[p->n++] = (struct bpf_insn){ .code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm };
}

static void give_back(struct program *p, int32_t value)
{
	add(p, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, value);
	add(p, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void begin(struct program *p)
{
	add(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, 0, 0);     /* access and type */
	add(p, BPF_ALU | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 0xffff);        /* type */
	add(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_3, BPF_REG_1, 4, 0);     /* major */
	add(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_4, BPF_REG_1, 8, 0);     /* minor */
}

static void refuse(struct program *p, const struct stat *st)
{
	add(p, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 4, S_ISBLK(st->st_mode) ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
	add(p, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_3, 0, 3, (int32_t)major(st->st_rdev));
	add(p, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_4, 0, 2, (int32_t)minor(st->st_rdev));
	give_back(p, 0);
}

static long bpf(int cmd, union bpf_attr *attr, size_t size) { return syscall(SYS_bpf, cmd, attr, size); }

/* 0 or -errno. */
static int attach(const struct program *p, int cgroup)
{
	char log[1024] = "";
	union bpf_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (uint64_t)(uintptr_t)p->insn;
	attr.insn_cnt = (uint32_t)p->n;
	attr.license = (uint64_t)(uintptr_t)"Apache-2.0";
	long fd = bpf(BPF_PROG_LOAD, &attr, sizeof attr);
	if (fd < 0) {
		int rc = -errno;
		attr.log_buf = (uint64_t)(uintptr_t)log;
		attr.log_size = sizeof log;
		attr.log_level = 1;
		(void)bpf(BPF_PROG_LOAD, &attr, sizeof attr);
		log_debug("device filter: %s", log);
		return rc;
	}
	memset(&attr, 0, sizeof attr);
	attr.target_fd = (uint32_t)cgroup;
	attr.attach_bpf_fd = (uint32_t)fd;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = BPF_F_ALLOW_MULTI;
	int rc = bpf(BPF_PROG_ATTACH, &attr, sizeof attr) < 0 ? -errno : 0;
	close((int)fd);
	return rc;
}

/* Was device `index` of resource `name` given to the step? */
static bool given(Pb__GresAlloc **list, size_t n, const char *name, uint32_t index)
{
	for (size_t i = 0; i < n; i++) {
		struct bitset *set;
		bool shared = list[i]->shares && !strcmp(name, "gpu"); /* its index names GPUs */
		if ((!shared && strcmp(list[i]->name, name)) || !list[i]->index || idset_parse(list[i]->index, DEVICES_MAX, &set, NULL) < 0)
			continue;
		bool has = index < set->size && bitset_has(set, index);
		bitset_destroy(set);
		if (has)
			return true;
	}
	return false;
}

/* Devices of one resource are numbered through all its lines. Returns how many are refused. */
static size_t refuse_others(const struct step *s, struct program *p)
{
	Pb__GresAlloc **list;
	size_t n = gpus_devices(s, &list), refused = 0;
	for (size_t i = 0; i < s->start->n_gres; i++) {
		const Pb__NodeGres *g = s->start->gres[i];
		struct hostlist files = HOSTLIST_INIT;
		struct stat st;
		uint32_t first = 0;
		for (size_t k = 0; k < i; k++)
			first += strcmp(s->start->gres[k]->name, g->name) ? 0 : (uint32_t)s->start->gres[k]->count;
		if (!g->files || hostlist_add(&files, g->files, NULL) < 0)
			continue;
		for (size_t k = 0; k < files.count; k++) {
			if (given(list, n, g->name, first + (uint32_t)k) || stat(files.name[k], &st) < 0 || !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
				continue;
			refuse(p, &st);
			refused++;
		}
		hostlist_fini(&files);
	}
	return refused;
}

void contain_devices(struct step *s)
{
	struct program p = { 0 };
	const char *plugin = step_conf(s, "TaskPlugin");
	if (!step_conf(s, "ConstrainDevices") || !plugin || !strstr(plugin, "cgroup") || s->cgroup_dir < 0)
		return;
	begin(&p);
	size_t refused = refuse_others(s, &p);
	give_back(&p, 1);
	int rc = refused ? attach(&p, s->cgroup_dir) : 0;
	free(p.insn);
	if (rc < 0)
		log_error("ConstrainDevices: the kernel does not take the device filter (%s); the step sees all devices of the node", strerror(-rc));
	s->hides_devices = rc == 0;
}

bool contain_hides_devices(const struct step *s) { return s->hides_devices; }
