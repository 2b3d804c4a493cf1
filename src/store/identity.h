/*
** Which version of which file a read transaction sees, as a key that is equal for two connections
** of this process only if both see the same rows. Where that cannot be proved there is no key, and
** the columns stay private to their connection.
**
** The file. Only SQLite's own "unix" VFS is known to keep one file behind one name. The key has the
** file's device and inode, and the name as SQLite resolved it, so that hard links, whose journals
** and WALs have different names, do not share. SQLITE_FCNTL_HAS_MOVED must be 0 before and after
** the name is looked up: then the name still leads to the file that SQLite has open. An inode is
** not used again for another file while someone has it open; the cache finds a set only while one
** of its users has the file as its main database, which cannot be detached.
**
** The lock. SQLITE_FCNTL_LOCKSTATE must be SHARED, which it is inside a read transaction:
** - With immutable=1 or nolock=1 the pager takes no lock, and nothing here would hold.
** - In exclusive locking mode a connection that has written keeps a higher lock. While it does, its
**   commits need not move the change counter, even after a return to the normal mode. SQLite resets
**   that each time it lowers the lock.
** - Inside a write transaction of this connection the lock is higher (rollback journal), or the
**   store does not get here (WAL).
**
** The version with a rollback journal. While a SHARED lock is held nobody writes to the file. Its
** header (100 bytes, read through SQLite's own handle) has the change counter, which each commit of
** whatever connection moves. A commit that was rolled back after a crash was never readable. The
** times of the last change of the file are in the key too: a file that was overwritten with an
** older copy has another time.
**
** The version in WAL mode is the header of the wal-index (48 bytes; both copies equal, checksum
** right). Its salts, frame count and checksum are those of one log up to one commit, and below that
** log lies one state of the file. That it is the header of the open transaction is proved as wal.h
** says: the header was pinned, or all its frames are copied. In the latter case the transaction may
** have begun under an older header, but then the rows are the same: a reader of the file alone
** keeps anything from being copied, so only a restart of the log, without a commit, lies between.
**
** A log without frames. The rows are those of the file. Before the first write since the WAL was
** opened the header has no salts. It comes back without salts only
** - when the journal mode was changed meanwhile, which needs that no other connection has the WAL
**   open, but the user of the set has; or
** - when a writer died while it wrote the header, after the log had been truncated, and the header
**   was recovered from the empty log. A checkpoint had written to the file then.
** So the file's header and the times of its last change are in the key as well.
**
** Private besides: memory and temporary databases; generated columns that are computed when they
** are read, for they may call functions of the application; any connection with an authorizer;
** whatever fails. The limit of a text's length is in the key: SQLite refuses longer ones.
*/
#ifndef WL_IDENTITY_H
#define WL_IDENTITY_H

#include "column/cache.h"
#include "sql/catalog.h"

struct wl_store;

/* The key of a table in the open read transaction of the store. state: of a kind with versions of
** its own, which say all about its rows; NULL for an ordinary table. False: it must be private. */
bool wl_identity_key(struct wl_store *s, const wl_table *t, const wl_u64 *state, wl_set_key *out);

#endif
