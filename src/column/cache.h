/*
** The cache of columns. It belongs to the process: connections that read the same version of the
** same table share one set of columns. Stands between the sources (store/source.c), which load
** columns, and whoever runs over them.
**
** A set holds the columns of one version of one table. Its key says which version that is, and two
** connections that computed the same key see the same rows (store/identity.c has the proof). A set
** without a key is private to the connection that made it.
**
** Invariants:
** 1. One lock guards all sets, users, members and cached lookups. No column is freed, no statement
**    is run and no other lock but the allocators' is taken while it is held.
** 2. The columns of a set come from one version of the table, so their rows line up. Their number
**    of rows is the set's.
** 3. A column may leave its set at any time. Who runs over it holds it.
** 4. A set is found by its key only while a user vouches for it: a connection that has the file
**    open as its main database, and so keeps the file's inode from being given to another file.
** 5. One thread at a time loads columns into a set. Others wait for it. A thread that is itself
**    loading never waits, so no two threads wait for each other.
** 6. The bytes of all sets and cached lookups stay within the largest budget of the members, and
**    within half of SQLite's hard heap limit. What a single load adds to what its statement has
**    already must fit its own member's budget.
*/
#ifndef WL_CACHE_H
#define WL_CACHE_H

#include "base/sqlite.h"
#include "column/source.h"

enum { WL_SET_KEY_WORDS = 40, WL_SET_FAMILY_WORDS = 8 };

/* The words of the family come first: which table of which file. The others say which version. */
typedef struct wl_set_key {
  wl_u64 words[WL_SET_KEY_WORDS];
} wl_set_key;

/* A column's place in a set, and how often it was used, for eviction. */
typedef struct wl_set_slot {
  wl_column *column; /* held, or NULL */
  wl_i64 uses, last_use;
} wl_set_slot;

/* What a kind of table keeps beside the columns, with a column that tells which rows count. */
typedef struct wl_set_extra {
  void *data; /* or NULL: there is nothing */
  void (*close)(void *data);
  /* Gives up columns that it could do without, under the cache's lock. */
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
  size_t n_bytes, extra_bytes; /* of all columns and extra; of extra alone */
  bool loading;
  wl_u64 n_beats; /* how often the thread that loads gave a sign of life */
} wl_column_set;

/* A connection: its budget and its sources. */
typedef struct wl_cache_member {
  struct wl_cache_member *next;
  struct wl_cache_user *users;
  sqlite3 *db;
  wl_i64 budget; /* 0: no limit */
} wl_cache_member;

/* A source that uses a set. vouches is set before it is added, and stays. */
typedef struct wl_cache_user {
  struct wl_cache_user *next;        /* of the same set */
  struct wl_cache_user *next_source; /* of the same member */
  wl_cache_member *member;
  wl_column_set *set; /* or NULL */
  bool vouches;
} wl_cache_user;

void wl_cache_join(wl_cache_member *m);
void wl_cache_leave(wl_cache_member *m);
void wl_cache_set_budget(wl_cache_member *m, wl_i64 n_bytes);
void wl_cache_add_user(wl_cache_member *m, wl_cache_user *u);
void wl_cache_remove_user(wl_cache_user *u); /* releases its set */

/* Bytes of everything cached, and of the sets that a member's users have. */
size_t wl_cache_bytes(void);
size_t wl_cache_bytes_of(const wl_cache_member *m);
/* A number that moves when a keyed set gets columns: there may be more to find now. */
wl_u64 wl_cache_generation(void);

/* Lets u use the set of that key, if there is one that someone vouches for. */
bool wl_cache_find(wl_cache_user *u, const wl_set_key *key);
/* Gives u a new set. key: NULL for a private one. Where another thread has added a set of the same
** key meanwhile, u gets that one. extra is taken, also when this fails. Sets of the same table with
** other versions lose their columns, except those that a connection inside an explicit transaction
** uses. */
wl_status wl_cache_add(wl_cache_user *u, const wl_set_key *key, int n_cols,
                       const wl_set_extra *extra, wl_error *err) WL_MUST;
/* A private set that can be shared now: u's set gets the key, or u gets the set that has it. */
void wl_cache_publish(wl_cache_user *u, const wl_set_key *key);
/* u stops using its set, which goes with its last user. */
void wl_cache_release(wl_cache_user *u);
/* Drops the columns of u's set. */
void wl_cache_clear(wl_cache_user *u);

/* How columns get into a set. */
typedef struct wl_cache_load {
  /* Loads columns cols[0..n) (-1 is the rowid) into out[0..n), one hold each. n may be 0: then only
  ** the rows are counted. limit: the bytes it may take, 0 for any; more is WL_FULL. */
  wl_status (*load)(void *arg, const int *cols, int n, size_t limit, wl_column **out,
                    wl_i64 *n_rows, wl_error *err);
  wl_status (*check)(void *arg, wl_error *err); /* called while waiting; or NULL */
  const char *name;                             /* of the table, for messages */
  void *arg;
  void *check_arg;
} wl_cache_load;

/* The columns cols[0..n) of u's set, held; those that are missing are loaded. hits, if not NULL:
** which were there. *full: it failed because they do not fit. */
wl_status wl_cache_acquire(wl_cache_user *u, const int *cols, int n, const wl_cache_load *how,
                           bool *hits, bool *full, wl_snapshot *out, wl_error *err) WL_MUST;
/* The thread that loads says that it is alive; else others stop waiting after some seconds. */
void wl_cache_beat(wl_cache_user *u);

/* Which of the columns are in memory: held[0..n) gets them, held, or NULL where they are not. held
** may be NULL. Returns how many. */
int wl_cache_peek(const wl_cache_user *u, const int *cols, int n, wl_column **held);
/* Whether the number of rows is known, and it. live: without rows that do not count. */
bool wl_cache_rows(const wl_cache_user *u, bool live, wl_i64 *n_rows);
bool wl_cache_is_shared(const wl_cache_user *u); /* its set has a key */
/* Runs fn on u's set while no one loads into it, and true; else false. Under the lock. */
bool wl_cache_look(const wl_cache_user *u, void (*fn)(void *arg, const wl_column_set *set),
                   void *arg);

/* ---- lookups of joins (column/lookup.h) that are kept for later statements */

typedef struct wl_lookup_key {
  wl_u64 high, low;
} wl_lookup_key;

struct wl_lookup;

/* The lookup of that key, held for the caller, or NULL. */
struct wl_lookup *wl_cache_find_lookup(wl_lookup_key key);
/* Keeps one, made from the columns with these ids. It goes with the first of them, or when the
** lookups take more than a quarter of the budget and it is the least recently used. */
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
/* Entry i of the lookups over columns that a member's users have; false past the last. */
bool wl_cache_lookup_entry(const wl_cache_member *m, int i, wl_lookup_entry *out);

#endif
