/* wal.c - room for the write-ahead log, through SQLite's own file layer */
#include <stdint.h>
#include "store/wal.h"

void wal_reserve(sqlite3 *db, size_t bytes)
{
	static const uint8_t zeros[65536];
	sqlite3_file *log = NULL;
	sqlite3_int64 had = 0, size;
	int keep = 1, rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (rc != SQLITE_OK || !log || !log->pMethods || log->pMethods->xFileSize(log, &had) != SQLITE_OK)
		return;
	(void)sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
	for (size = had; rc == SQLITE_OK && size < (sqlite3_int64)bytes; size += (sqlite3_int64)sizeof zeros)
		rc = log->pMethods->xWrite(log, zeros, sizeof zeros, size);
	if (rc == SQLITE_OK && size > had)
		rc = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
	if (rc != SQLITE_OK)
		(void)log->pMethods->xTruncate(log, had);
}
