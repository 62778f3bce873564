/* options.c - slurmd's command line (see options.h) */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "noded/hardware.h"
#include "noded/options.h"

/* Options of the reference that do not work yet are refused by name. */
static const struct { char letter; const char *name, *arg, *help; bool todo; } table[] = {
	{ 'b', NULL, NULL, "tell slurmctld that the node was rebooted", false },
	{ 'c', NULL, NULL, "end every step left from before and forget its result", false },
	{ 'C', NULL, NULL, "print this machine's hardware as a NodeName line", false },
	{ 'd', NULL, "STEPD", "path of the slurmstepd program", false },
	{ 'D', NULL, NULL, "stay in the foreground and log to stderr too", false },
	{ 'f', NULL, "FILE", "read this slurm.conf", false },
	{ 'h', "help", NULL, "print this help", false },
	{ 'L', NULL, "FILE", "write the log there instead of SlurmdLogFile", false },
	{ 'n', NULL, "VALUE", "run at this nice value", false },
	{ 'N', NULL, "NODE", "be this node (several on one machine)", false },
	{ 's', NULL, NULL, "change to the log's folder (where cores would go)", false },
	{ 'v', NULL, NULL, "log more; may be repeated", false },
	{ 'V', "version", NULL, "print the version", false },
	{ 0, "conf-server", "HOST[:PORT]", "fetch the configuration from slurmctld", false },
	{ 0, "emulate", "N", "play N nodes for measurements: -N and those after it in slurm.conf", false },
	{ 0, "systemd", NULL, "started from a systemd unit: stay in the foreground", false },
	{ 'F', NULL, NULL, "dynamic future node", true },
	{ 'G', NULL, NULL, "print the node's generic resources", false },
	{ 'M', NULL, NULL, "keep slurmd itself in memory, where the machine swaps", false },
	{ 'Z', NULL, NULL, "dynamic normal node", true },
	{ 0, "authinfo", "TEXT", "authentication of a configless start", true },
	{ 0, "ca-cert-file", "FILE", "certificate of slurmctld", true },
	{ 0, "conf", "TEXT", "configuration of a dynamic node", true },
	{ 0, "extra", "TEXT", "descriptive text", true },
	{ 0, "instance-id", "ID", "cloud instance", true },
	{ 0, "instance-type", "TYPE", "cloud instance type", true },
	{ 0, "parameters", "TEXT", "more SlurmdParameters", true },
};
#define ROWS (sizeof table / sizeof *table)
#define LONG_BASE 1000
#define EMULATE_MAX 1000000u

static void help_print(void)
{
	printf("Usage: slurmd [OPTIONS]\n");
	for (size_t i = 0; i < ROWS; i++) {
		char left[48];
		if (table[i].todo)
			continue;
		snprintf(left, sizeof left, "%s%c%s%s%s%s%s", table[i].letter ? "-" : "", table[i].letter ? table[i].letter : ' ',
			 table[i].letter && table[i].name ? ", " : "", table[i].name ? "--" : "", table[i].name ? table[i].name : "",
			 table[i].arg ? " " : "", table[i].arg ? table[i].arg : "");
		printf("   %-28s %s\n", left, table[i].help);
	}
}

static void letters_make(char *letters, struct option *longs)
{
	size_t n = 0;
	for (size_t i = 0; i < ROWS; i++) {
		if (table[i].letter) {
			*letters++ = table[i].letter;
			if (table[i].arg)
				*letters++ = ':';
		}
		if (table[i].name)
			longs[n++] = (struct option){ table[i].name, table[i].arg ? required_argument : no_argument, NULL, table[i].letter ? table[i].letter : LONG_BASE + (int)i };
	}
	*letters = 0;
	longs[n] = (struct option){ 0 };
}

static const char *row_name(int value)
{
	static char text[40];
	for (size_t i = 0; i < ROWS; i++)
		if (table[i].todo && (table[i].letter == value || LONG_BASE + (int)i == value)) {
			if (table[i].name)
				snprintf(text, sizeof text, "--%s", table[i].name);
			else
				snprintf(text, sizeof text, "-%c", table[i].letter);
			return text;
		}
	return NULL;
}

static int hardware_option(void)
{
	struct hardware hw;
	hardware_find(&hw, NULL);
	hardware_print(&hw);
	return 0;
}

static int take(struct noded_options *o, int value, const char *arg)
{
	unsigned long long n;
	switch (value) {
	case 'b': o->rebooted = true; break;
	case 'c': o->clean = true; break;
	case 'C': return hardware_option();
	case 'd': o->stepd_path = arg; break;
	case 'D': o->foreground = true; break;
	case 'f': o->conf_path = arg; break;
	case 'G': o->print_gres = true; break;
	case 'h': help_print(); return 0;
	case 'L': o->log_file = arg; break;
	case 'M': o->lock_memory = true; break;
	case 'N': o->node_name = arg; break;
	case 's': o->change_dir = true; break;
	case 'v': o->verbose++; break;
	case 'V': printf("slurm %s\n", BERTH_VERSION); return 0;
	case 'n': {
		const char *digits = *arg == '-' ? arg + 1 : arg;
		if (str_to_u64(digits, 0, 20, &n) < 0) {
			fprintf(stderr, "slurmd: error: option -n needs a nice value from -20 to 20, not \"%s\"\n", arg);
			return 1;
		}
		o->has_nice = true;
		o->nice = *arg == '-' ? -(int)n : (int)n;
		break;
	}
	default:
		fprintf(stderr, "slurmd: error: option %s does not work yet\n", row_name(value));
		return 1;
	}
	return -1;
}

static int emulate_option(struct noded_options *o, const char *arg)
{
	unsigned long long n;
	if (str_to_u64(arg, 1, EMULATE_MAX, &n) < 0) {
		fprintf(stderr, "slurmd: error: option --emulate needs a number of nodes from 1 to %u, not \"%s\"\n", EMULATE_MAX, arg);
		return 1;
	}
	o->emulate = (unsigned)n;
	return -1;
}

int options_parse(struct noded *n, int argc, char **argv)
{
	char letters[ROWS * 2 + 1];
	struct option longs[ROWS + 1];
	int value;
	letters_make(letters, longs);
	while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (value == '?') {
			fprintf(stderr, "Try \"slurmd -h\" for more information\n");
			return 1;
		}
		const char *name = value >= LONG_BASE ? table[value - LONG_BASE].name : "";
		int rc = -1;
		if (!strcmp(name, "conf-server"))
			n->opt.conf_server = optarg;
		else if (!strcmp(name, "systemd"))
			n->opt.foreground = true;
		else if (!strcmp(name, "emulate"))
			rc = emulate_option(&n->opt, optarg);
		else
			rc = take(&n->opt, value, optarg);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc) {
		fprintf(stderr, "slurmd: error: \"%s\" is not an option\nTry \"slurmd -h\" for more information\n", argv[optind]);
		return 1;
	}
	return -1;
}
