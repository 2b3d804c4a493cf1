/*
** The cache of columns. It belongs to the process: connections that read the same version of the
** same table share one set of columns. Sources (store/source.c) load columns into it, and queries
** run over them.
**
** A set holds the columns of one version of one table. Its key identifies that version: two
** connections that computed the same key see the same rows (store/identity.h has the proof). A set
** without a key is private to the connection that made it.
**
** Invariants:
** 1. One lock guards all sets, users, members and cached lookups. While it is held, no column is
**    freed, no statement is run and no other lock is taken.
** 2. The columns of a set come from one version of the table and have the set's number of rows.
** 3. A column may leave its set at any time. Whoever runs over it holds it.
** 4. A set is found by its key only while a user vouches for it: a connection that has the file
**    open as its main database, so that the file's inode cannot be given to another file.
** 5. One thread at a time loads columns into a set. Others wait for it. A thread that is itself
**    loading never waits, so no two threads wait for each other.
** 6. The bytes of all sets and cached lookups stay within the largest budget of the members. What a
**    load adds to the columns its statement already has must fit its own member's budget.
*/
#ifndef WL_CACHE_H
#define WL_CACHE_H

#include "base/sqlite.h"
#include "column/source.h"

enum { WL_SET_KEY_WORDS = 40, WL_SET_FAMILY_WORDS = 8 };

/* The key of a set. The words of the family come first: which table of which file. The others
** identify the version. */
typedef struct wl_set_key {
  wl_u64 words[WL_SET_KEY_WORDS];
} wl_set_key;

/* A column's slot in a set, with its use count for eviction. */
typedef struct wl_set_slot {
  wl_column *column; /* held, or NULL */
  wl_i64 uses, last_use;
} wl_set_slot;

/* What a kind of table keeps besides the columns, with a column that marks the rows that count. */
typedef struct wl_set_extra {
  void *data; /* NULL: there is nothing */
  void (*close)(void *data);
  /* Gives up columns that are not essential. Called under the cache's lock. */
  void (*shed)(void *data, void (*give)(void *arg, wl_column *c), void *arg);
  size_t (*bytes)(const void *data);
  wl_column *live; /* borrowed from data; NULL: every row counts */
  wl_i64 n_rows, n_live;
} wl_set_extra;

typedef struct wl_column_set {
  struct wl_column_set *next;
  bool keyed;
  wl_set_key key;
  struct wl_cache_user *users;
  int n_requests; /* for its columns, in progress; it stays for them, too */
  int n_cols;
  wl_set_slot *slots; /* [n_cols + 1], rowid last */
  bool counted;       /* n_rows is known */
  wl_i64 n_rows;
  wl_set_extra extra;
  size_t n_bytes, extra_bytes; /* bytes of columns and extra; bytes of extra alone */
  bool loading;
  wl_u64 n_beats; /* incremented by the loading thread to show that it is alive */
} wl_column_set;

/* A connection: its budget and its sources. */
typedef struct wl_cache_member {
  struct wl_cache_member *next;
  struct wl_cache_user *users;
  sqlite3 *db;
  wl_i64 budget; /* 0: no limit */
} wl_cache_member;

/* A source that uses a set. vouches is set before it is added, and never changes. */
typedef struct wl_cache_user {
  struct wl_cache_user *next;        /* next user of the same set */
  struct wl_cache_user *next_source; /* next source of the same member */
  wl_cache_member *member;
  wl_column_set *set; /* or NULL */
  bool vouches;
} wl_cache_user;

void wl_cache_join(wl_cache_member *m);
void wl_cache_leave(wl_cache_member *m);
void wl_cache_set_budget(wl_cache_member *m, wl_i64 n_bytes);
void wl_cache_add_user(wl_cache_member *m, wl_cache_user *u);
void wl_cache_remove_user(wl_cache_user *u); /* releases its set */

/* Bytes of everything in the cache, and of the sets that a member's users have. */
size_t wl_cache_bytes(void);
size_t wl_cache_bytes_of(const wl_cache_member *m);
/* A number that changes when a set with a key gets columns. Then a new search may find more. */
wl_u64 wl_cache_generation(void);

/* Lets u use the set of that key, if there is one for which a user vouches. */
bool wl_cache_find(wl_cache_user *u, const wl_set_key *key);
/* Gives u a new set. key: NULL for a private one. If another thread has added a set of the same key
** meanwhile, u gets that one. Takes extra, even if it fails. Sets of other versions of the same
** table lose their columns, except those that a connection inside an explicit transaction uses. */
wl_status wl_cache_add(wl_cache_user *u, const wl_set_key *key, int n_cols,
                       const wl_set_extra *extra, wl_error *err) WL_MUST;
/* Shares a private set: u's set gets the key, or u changes to the set that has it. */
void wl_cache_publish(wl_cache_user *u, const wl_set_key *key);
/* u stops using its set. The last user frees it. */
void wl_cache_release(wl_cache_user *u);
/* Drops the columns of u's set. */
void wl_cache_clear(wl_cache_user *u);

/* How to load columns into a set. */
typedef struct wl_cache_load {
  /* Loads columns cols[0..n) (-1 is the rowid) into out[0..n), one hold each. n may be 0, to count
  ** the rows only. WL_FULL: they take more than limit bytes (0: no limit). */
  wl_status (*load)(void *arg, const int *cols, int n, size_t limit, wl_column **out,
                    wl_i64 *n_rows, wl_error *err);
  wl_status (*check)(void *arg, wl_error *err); /* called while waiting; or NULL */
  const char *name;                             /* table name for messages */
  void *arg;
  void *check_arg;
} wl_cache_load;

/* Holds the columns cols[0..n) of u's set, and loads those that are missing. hits, if not NULL:
** which were in memory. *full: it failed because they do not fit. */
wl_status wl_cache_acquire(wl_cache_user *u, const int *cols, int n, const wl_cache_load *how,
                           bool *hits, bool *full, wl_snapshot *out, wl_error *err) WL_MUST;
/* The loading thread calls this to show that it is alive. Without it, others stop waiting after
** some seconds. */
void wl_cache_beat(wl_cache_user *u);

/* Finds which of the columns are in memory. held[0..n), if held is not NULL, gets each of them,
** held, or NULL. Returns how many there are. */
int wl_cache_peek(const wl_cache_user *u, const int *cols, int n, wl_column **held);
/* Whether the number of rows is known. Sets *n_rows. live: without rows that do not count. */
bool wl_cache_rows(const wl_cache_user *u, bool live, wl_i64 *n_rows);
bool wl_cache_is_shared(const wl_cache_user *u); /* its set has a key */
/* Calls fn with u's set under the lock and returns true, unless a thread is loading into the
** set. */
bool wl_cache_look(const wl_cache_user *u, void (*fn)(void *arg, const wl_column_set *set),
                   void *arg);

/* ---- lookups of joins (column/lookup.h) that are kept for later statements */

typedef struct wl_lookup_key {
  wl_u64 high, low;
} wl_lookup_key;

struct wl_lookup;

/* Finds the lookup with that key and holds it for the caller. NULL: there is none. */
struct wl_lookup *wl_cache_find_lookup(wl_lookup_key key);
/* Keeps a lookup that was made from the columns with these ids. It is dropped with the first of
** them, or if it is the least recently used when lookups take more than a quarter of the budget. */
void wl_cache_add_lookup(wl_lookup_key key, struct wl_lookup *l, const char *name,
                         const wl_u64 *columns, int n_columns);
size_t wl_cache_lookup_bytes(void);
/* Drops the lookups over columns that a member's users have. */
void wl_cache_drop_lookups_of(const wl_cache_member *m);

typedef struct wl_lookup_entry {
  char name[64];
  struct wl_lookup *lookup; /* held for the caller */
  wl_i64 uses;
} wl_lookup_entry;
/* Entry i of the lookups over columns that a member's users have. False: i is past the last. */
bool wl_cache_lookup_entry(const wl_cache_member *m, int i, wl_lookup_entry *out);

#endif
