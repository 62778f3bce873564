/* replay_main.c - runs a fuzz target over files: each argument is a file, or a folder whose files are all taken
 * With clang, link the target with -fsanitize=fuzzer instead of this file for a real run (README.md). */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file_replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t len = 0, got;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	do {
		data = realloc(data, len + 65536);
		if (!data)
			abort();
		got = fread(data + len, 1, 65536, f);
		len += got;
	} while (got > 0);
	fclose(f);
	/* An exact copy, so that a sanitizer sees one byte too far. */
	uint8_t *exact = malloc(len ? len : 1);
	if (!exact)
		abort();
	memcpy(exact, data, len);
	free(data);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	return 1;
}

static int path_replay(const char *path)
{
	struct stat st;
	struct dirent *ent;
	int total = 0;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return file_replay(path);
	DIR *dir = opendir(path);
	if (!dir)
		return -1;
	while ((ent = readdir(dir)) != NULL) {
		char child[4096];
		int n;
		if (ent->d_name[0] == '.')
			continue;
		snprintf(child, sizeof(child), "%s/%s", path, ent->d_name);
		n = file_replay(child);
		if (n < 0) {
			total = -1;
			break;
		}
		total += n;
	}
	closedir(dir);
	return total;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int n = path_replay(argv[i]);
		if (n < 0)
			return 1;
		total += n;
	}
	printf("%d inputs replayed\n", total);
	return total == 0;
}
