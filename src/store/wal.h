/* wal.h - room for the write-ahead log of a SQLite file */
#pragma once
#include <stddef.h>
#include <sqlite3.h>

/* Brings the log of `db` (in WAL mode, already written or read) to `bytes` on disk, written with zeros, and lets it stay when the
 * file is closed. Commits then overwrite instead of growing the log, so that a sync changes nothing of the file system's own: half
 * its time on ext4. SQLite ends a log at the first frame whose checksum is wrong, so zeros are an end. Best effort: where there is
 * no room, what was added is taken back. */
void wal_reserve(sqlite3 *db, size_t bytes);
