/* conf_test.c - proves the grammar, the typed values, node and partition records, and that faults name file, line, column and the nearest key */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conf/conf.h"
#include "conf/rows.h"

#define BASE "ClusterName=c\nSlurmctldHost=head(10.0.0.1)\n"

static struct conf *load2(const char *slurm, const char *gres, struct error *err)
{
	struct conf_text t[2] = { { "slurm.conf", slurm, strlen(slurm) }, { "gres.conf", gres ? gres : "", gres ? strlen(gres) : 0 } };
	struct conf *c = NULL;
	*err = (struct error){ 0 };
	return conf_load_text(t, 2, &c, err) ? NULL : c;
}

static struct conf *good(const char *slurm, const char *gres)
{
	struct error err;
	struct conf *c = load2(slurm, gres, &err);
	if (!c)
		fail_msg("%s", err.line);
	return c;
}

static void bad(const char *slurm, const char *gres, const char *message)
{
	struct error err;
	struct conf *c = load2(slurm, gres, &err);
	assert_null(c);
	assert_string_equal(err.line, message);
}

static void grammar(void **state)
{
	(void)state;
	struct conf *c = good("# a comment\nclustername = Main # more\r\nSlurmctldHost=a(1.2.3.4)\nslurmctldhost=b\n"
			      "RebootProgram=\"/sbin/shutdown -r now # not a comment\"\nSchedulerParameters=bf_window=60,\\\nrequeue_delay=0,defer\n"
			      "SlurmctldPort=6820-6829 SlurmctldDebug=5\nProlog=/etc/p/*\nProlog=/etc/q\n", NULL);
	const char *host, *addr, *const *list;
	char buf[32];
	uint16_t port;
	assert_string_equal(conf_str(c, CONF_ClusterName), "Main");
	assert_string_equal(conf_str(c, CONF_RebootProgram), "/sbin/shutdown -r now # not a comment");
	assert_true(conf_has(c, CONF_SchedulerParameters, "defer"));
	assert_string_equal(conf_opt(c, CONF_SchedulerParameters, "requeue_delay", buf, sizeof buf), "0");
	assert_null(conf_opt(c, CONF_SchedulerParameters, "requeue", buf, sizeof buf));
	assert_true(conf_controller(c, 0, &host, &addr, &port));
	assert_string_equal(host, "a");
	assert_string_equal(addr, "1.2.3.4");
	assert_int_equal(port, 6820);
	assert_true(conf_controller(c, 1, &host, &addr, &port));
	assert_string_equal(addr, "b");
	assert_false(conf_controller(c, 2, &host, &addr, &port));
	assert_int_equal(conf_list(c, CONF_Prolog, &list), 2);
	assert_int_equal(conf_num(c, CONF_SlurmctldDebug), 5);
	conf_destroy(c);
}

static void values(void **state)
{
	(void)state;
	struct conf *c = good(BASE "SuspendTime=-1\nMaxMemPerNode=unlimited\nPriorityMaxAge=1-0\nDisableRootJobs=YES\nMailProg=none\n", NULL);
	assert_true(conf_num(c, CONF_SuspendTime) == UINT64_MAX);
	assert_int_equal(conf_num(c, CONF_KillWait), 30);
	assert_int_equal(conf_num(c, CONF_PriorityMaxAge), 86400);
	assert_int_equal(conf_num(c, CONF_PriorityDecayHalfLife), 7 * 86400);
	assert_true(conf_bool(c, CONF_DisableRootJobs));
	assert_false(conf_bool(c, CONF_TrackWCKey));
	assert_null(conf_str(c, CONF_MailProg));
	assert_null(conf_str(c, CONF_Epilog));
	conf_destroy(c);
}

static void nodes(void **state)
{
	(void)state;
	struct conf *c = good(BASE "NodeName=DEFAULT RealMemory=64000 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 State=UNKNOWN\n"
			      "NodeName=n[1-3] NodeHostname=localhost NodeAddr=127.0.1.[1-3] Port=[7001-7003] Feature=fast\nNodeName=x CPUs=8 Sockets=1\n"
			      "NodeSet=quick Feature=fast\nPartitionName=DEFAULT MaxTime=1:00 State=up\nPartitionName=a Nodes=quick Default=yes\n"
			      "PartitionName=b Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=force:2 AllowGroups=ALL\nDownNodes=n2 Reason=\"no fan\"\n", NULL);
	Pb__NodeRecord *const *n;
	Pb__PartitionRecord *const *p;
	assert_int_equal(conf_nodes(c, &n), 4);
	assert_string_equal(n[1]->addr, "127.0.1.2");
	assert_string_equal(n[1]->hostname, "localhost");
	assert_int_equal(n[2]->port, 7003);
	assert_int_equal(n[0]->cpus, 16);
	assert_int_equal(n[3]->cpus, 8);
	assert_int_equal(n[3]->port, 6818);
	assert_string_equal(n[1]->conf_state, "DOWN");
	assert_string_equal(n[1]->conf_reason, "no fan");
	assert_int_equal(conf_parts(c, &p), 2);
	assert_string_equal(p[0]->nodes_full, "n[1-3]");
	assert_false(p[0]->is_default);
	assert_int_equal(p[0]->max_time_min, 1);
	assert_string_equal(p[0]->state, "UP");
	assert_int_equal(p[1]->max_time_min, UINT32_MAX);
	assert_string_equal(p[1]->oversubscribe, "FORCE:2");
	assert_null(p[1]->allow_groups);
	assert_int_equal(p[1]->total_cpus, 56);
	assert_ptr_equal(conf_node(c, "x"), n[3]);
	assert_null(conf_node(c, "y"));
	conf_destroy(c);
}

static const Pb__NodeGres *entry(const struct conf *c, const char *node, size_t i, size_t of)
{
	const Pb__NodeRecord *n = conf_node(c, node);
	assert_int_equal(n->n_gres_list, of);
	return n->gres_list[i];
}

static void gres(void **state)
{
	(void)state;
	struct conf *c = good(BASE "GresTypes=gpu,nic\nNodeName=a,b Sockets=2 CoresPerSocket=4 Gres=gpu:a100:2,gpu:h100:4,nic:2K\nNodeName=d Gres=gpu:3\n",
			      "AutoDetect=nvml\nNodeName=a Name=gpu Type=h100 File=/dev/nvidia[0-1] Cores=0-3\nNodeName=a Name=gpu Type=h100 File=/dev/nvidia[2-3] Cores=4-7\n"
			      "NodeName=a Name=gpu Type=a100 File=/dev/nvidia[4-6] Cores=0-7\nNodeName=b AutoDetect=off\n");
	const Pb__NodeGres *e = entry(c, "a", 0, 4);
	assert_string_equal(e->type, "a100");
	assert_int_equal(e->count, 2);
	assert_int_equal(e->first_index, 4);
	assert_string_equal(e->files, "/dev/nvidia[4-5]");
	assert_null(e->sockets);
	e = entry(c, "a", 2, 4);
	assert_string_equal(e->type, "h100");
	assert_string_equal(e->files, "/dev/nvidia[2-3]");
	assert_int_equal(e->first_index, 2);
	assert_string_equal(e->sockets, "1");
	e = entry(c, "a", 3, 4);
	assert_int_equal(e->count, 2048);
	assert_true(e->count_only);
	e = entry(c, "b", 1, 3);
	assert_int_equal(e->count, 4);
	assert_int_equal(e->first_index, 2);
	assert_null(e->files);
	assert_false(e->count_only);
	for (size_t i = 0; i < 3; i++) {           /* slurmd finds them out, one by one */
		e = entry(c, "d", i, 3);
		assert_true(e->detected && e->count == 1 && e->first_index == i);
	}
	assert_string_equal(conf_gres_autodetect(c, "a"), "nvml");
	assert_string_equal(conf_gres_autodetect(c, "b"), "off");
	conf_destroy(c);
}

static void shards(void **state)
{
	(void)state;
	struct conf *c = good(BASE "GresTypes=gpu,shard\nNodeName=a Gres=gpu:h100:4,shard:10\nNodeName=b Gres=gpu:a100:1,gpu:h100:2,shard:9\n",
			      "NodeName=a Name=gpu Type=h100 File=/dev/nvidia[0-3]\nNodeName=b Name=gpu Type=a100 File=/dev/nvidia0\nNodeName=b Name=gpu Type=h100 File=/dev/nvidia[1-2]\n"
			      "NodeName=b Name=shard Count=8 File=/dev/nvidia0\nNodeName=b Name=shard Count=1 File=/dev/nvidia2\n");
	for (size_t i = 1; i < 5; i++) { /* evenly, what is over to the last ones */
		const Pb__NodeGres *e = entry(c, "a", i, 5);
		assert_string_equal(e->name, "shard");
		assert_string_equal(e->type, "h100");
		assert_int_equal(e->of_gpu, i - 1);
		assert_int_equal(e->count, i < 3 ? 2 : 3);
	}
	assert_string_equal(conf_node(c, "a")->gres, "gpu:h100:4,shard:h100:10");
	const Pb__NodeGres *e = entry(c, "b", 2, 4); /* GPU 1 is not shared */
	assert_string_equal(e->type, "a100");
	assert_int_equal(e->count, 8);
	e = entry(c, "b", 3, 4);
	assert_int_equal(e->of_gpu, 2);
	assert_int_equal(e->count, 1);
	conf_destroy(c);
	bad(BASE "GresTypes=gpu,shard\nNodeName=a Gres=shard:4\n", NULL, "slurm.conf: node a: Gres=shard:4: there are no GPUs to be shared");
	bad(BASE "GresTypes=gpu,shard\nNodeName=a Gres=gpu:1,shard:4\n", "Name=gpu File=/dev/x\nName=shard Count=8\n", "gres.conf: node a has 8 shards, slurm.conf says 4");
	bad(BASE "GresTypes=gpu,shard\nNodeName=a Gres=gpu:1,shard:4\n", "Name=gpu File=/dev/x\nName=shard Count=4 File=/dev/y\n", "gres.conf:2:25: File: /dev/y is not the device of a GPU of node a");
	bad(BASE "GresTypes=gpu,mps\nNodeName=a Gres=gpu:1,mps:100\n", "Name=mps Count=100\n", "gres.conf:1:6: Name=mps does not work yet: GPUs are given whole or by shards");
}

static void faults(void **state)
{
	(void)state;
	bad(BASE "SlurmctldPrt=1\n", NULL, "slurm.conf:3:1: \"SlurmctldPrt\" is not a key of slurm.conf; did you mean \"SlurmctldPort\"?");
	bad(BASE "NodeName=a Sockts=1\n", NULL, "slurm.conf:3:12: \"Sockts\" is not a key of NodeName lines; did you mean \"Sockets\"?");
	bad(BASE "KillWait=\\\n  soon\n", NULL, "slurm.conf:4:3: KillWait: \"soon\" is not a number");
	bad(BASE "KillWait=70000\n", NULL, "slurm.conf:3:10: KillWait: 70000 is outside 0-65533");
	bad(BASE "MCSPlugin=mcs/group\nMCSParameters=enforced,privatedata:red|blue\n", NULL, "slurm.conf:4:15: MCSParameters: \"privatedata:red|blue\" does not work yet");
	bad(BASE "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND\n", NULL, "slurm.conf: PreemptMode=SUSPEND requires GANG too: PreemptMode=SUSPEND,GANG");
	bad(BASE "PreemptType=preempt/partition_prio\n", NULL, "slurm.conf: PreemptType=preempt/partition_prio needs a PreemptMode of CANCEL, REQUEUE or SUSPEND,GANG");
	bad(BASE "PreemptMode=REQUEUE\n", NULL, "slurm.conf: PreemptMode=REQUEUE needs PreemptType=preempt/partition_prio");
	bad(BASE "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL,REQUEUE\n", NULL, "slurm.conf: PreemptMode=CANCEL,REQUEUE: only one of OFF, CANCEL, REQUEUE and SUSPEND can be");
	bad(BASE "\n\nlonely word\n", NULL, "slurm.conf:5:1: expected Key=Value at \"lonely\"");
	bad(BASE "MailProg=\"/bin\n", NULL, "slurm.conf:3:10: quote is not closed at \"\"/bin\"");
	bad(BASE "SelectType=select/linear\n", NULL, "slurm.conf:3:12: SelectType: \"select/linear\" does not work yet");
	bad(BASE "SchedulerType=sched/foo\n", NULL, "slurm.conf:3:15: SchedulerType: \"sched/foo\" is none of sched/backfill, sched/builtin");
	bad(BASE "UsePAM=1\n", NULL, "slurm.conf:3:1: UsePam does not work yet (open a PAM session for each job): leave it out");
	bad("SlurmctldHost=h\n", NULL, "slurm.conf: ClusterName is missing");
	bad("ClusterName=c\n", NULL, "slurm.conf: SlurmctldHost is missing");
	bad(BASE "NodeName=a\nPartitionName=p Nodes=a,b\n", NULL, "slurm.conf:4:23: partition p names node b, which is not defined");
	bad(BASE "NodeName=a\nNodeName=a\n", NULL, "slurm.conf:4:10: node a is defined twice");
	bad(BASE "Include other\n", NULL, "slurm.conf:3:1: included file other is not there");
	bad(BASE "Include gres.conf\n", "Include gres.conf\n", "gres.conf:1:1: Include of gres.conf is nested more than 16 deep");
	bad(BASE "NodeName=a Gres=gpu:1\n", NULL, "slurm.conf: node a: Gres=gpu:1: \"gpu\" is not in GresTypes");
	bad(BASE, "Name=gpu File=/dev/nvidia[0-7] Count=4\n", "gres.conf:1:38: Count=4, but File names 8 devices");
	bad(BASE, "NodeName=a Type=x\n", "gres.conf:1:10: Name is missing");
	bad(BASE "GresTypes=gpu\nNodeName=a Gres=gpu:1\n", "Name=gpu File=/dev/x Cores=4\n", "gres.conf:1:28: Cores=4: node a has cores 0-0: id list \"4\": a number that is too large at position 1");
	bad(BASE, "AutoDetect=amdgpu\n", "gres.conf:1:12: AutoDetect: \"amdgpu\" is none of nvml, nvidia, off, full"); /* case 83 */
}

static void old_names(void **state)
{
	(void)state;
	struct conf *c = good(BASE "JobContainerType=job_container/tmpfs\n", NULL);
	assert_true(conf_namespace_on(c));
	conf_destroy(c);
	c = good(BASE "JobContainerType=job_container/none\n", NULL);
	assert_false(conf_namespace_on(c));
	conf_destroy(c);
}

static void exit_codes(void **state)
{
	(void)state;
	struct conf *c = good(BASE "RequeueExit=0,1-9,18\n", NULL);
	assert_string_equal(conf_str(c, CONF_RequeueExit), "0,1-9,18");
	conf_destroy(c);
	static const char *const wrong[] = { "x", "1-", "9-1", "256", "-1", "1,,2", "1;2", "0001", "1," };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char text[200], message[200];
		snprintf(text, sizeof text, BASE "RequeueExitHold=%s\n", wrong[i]);
		struct error err = { 0 };
		assert_null(load2(text, NULL, &err));
		snprintf(message, sizeof message, "RequeueExitHold: \"%s\" is not a list of exit codes (0-255) and ranges of them, as 1-3,9", wrong[i]);
		assert_non_null(strstr(err.line, message));
	}
}

static void doubted(const char *word, size_t len, enum word_doubt doubt, const char *values, void *arg)
{
	(void)word;
	(void)len;
	if (doubt == WORD_BAD_VALUE)
		snprintf(arg, 80, "%s", values);
}

/* A word with a value that it cannot have is as if it were not there, and told of with what it can have. */
static void word_values(void **state)
{
	(void)state;
	static const struct { const char *word, *value, *values; } row[] = { /* values NULL: a good one */
		{ "bf_interval", "abc", "-1/1-10800" }, { "bf_interval", "0", "-1/1-10800" }, { "bf_interval", "10801", "-1/1-10800" }, { "bf_interval", "", "-1/1-10800" },
		{ "bf_interval", "-2", "-1/1-10800" }, { "bf_interval", "-1", NULL }, { "bf_interval", "10800", NULL }, { "bf_window", "0", "1-" }, { "bf_window", "100000", NULL },
		{ "bf_window", "12x", "1-" }, { "bf_window", "99999999999999999999999", "1-" }, { "bf_order", "long", "queue/shortest/predicted" }, { "bf_order", "predict", "queue/shortest/predicted" }, { "bf_order", "Predicted", NULL },
		{ "bf_order", "", "queue/shortest/predicted" }, { "bf_plan", "some", "all" }, { "bf_plan", "all", NULL }, { "max_rpc_cnt", "1001", "0-1000" }, { "bf_hetjob_prio", "avg", NULL },
		{ "bf_hetjob_prio", "middle", "min/avg/max" }, { "bf_max_job_test", "0", "1-1000000" }, { "bf_max_job_test", "1000000", NULL } };
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char text[300], told[80] = "", buf[64];
		snprintf(text, sizeof text, BASE "SchedulerParameters=%s=%s,defer\n", row[i].word, row[i].value);
		struct conf *c = good(text, NULL);
		conf_words_doubt(CONF_SchedulerParameters, conf_str(c, CONF_SchedulerParameters), doubted, told);
		assert_string_equal(told, row[i].values ? row[i].values : "");
		assert_int_equal(conf_opt(c, CONF_SchedulerParameters, row[i].word, buf, sizeof buf) == NULL, row[i].values != NULL);
		conf_destroy(c);
	}
}

/* Rows that do not work yet: these numbers only fall. */
static void ratchet(void **state)
{
	(void)state;
	int todo = 0, unread = 0, warn = 0, words = 0, idle = 0;
	for (int k = 0; k < CONF_KEYS; k++) {
		const struct conf_row *r = conf_row((enum conf_key)k);
		uint64_t num;
		struct error err = { 0 };
		*(r->section >= SEC_TOPO ? &unread : &todo) += r->status == STATUS_TODO;
		warn += r->status == STATUS_WARN;
		for (const char *p = r->range; *p; p++)
			if (p == r->range || p[-1] == '|')
				words += *p == '!', idle += *p == '?';
		assert_true(*r->doc);
		assert_int_equal(conf_row_find(r->section, r->name, strlen(r->name)), k);
		if (*r->def && conf_value_check((enum conf_key)k, r->def, &num, &err))
			fail_msg("default of %s: %s", r->name, err.line);
	}
	printf("config.def: %d rows; todo %d, of files not read yet %d, warn %d, words todo %d, words that are told of %d\n", CONF_KEYS, todo, unread, warn, words, idle);
	assert_true(todo <= 32); /* PropagatePrioProcess was taken and did nothing */
	assert_true(idle <= 93); /* most of them were taken in silence */
	assert_true(unread <= 48);
	assert_true(warn <= 12); /* VSizeFactor too */
	assert_true(words <= 99); /* WITHIN, which was taken and did nothing; cli_filter/user_defaults, preempt/qos, which only warned before; words of TopologyParam that were taken and did nothing, ring, torus3d */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(grammar), cmocka_unit_test(values), cmocka_unit_test(nodes), cmocka_unit_test(gres), cmocka_unit_test(shards), cmocka_unit_test(faults), cmocka_unit_test(old_names), cmocka_unit_test(exit_codes), cmocka_unit_test(word_values), cmocka_unit_test(ratchet) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
