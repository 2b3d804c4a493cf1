/*
** The inside of wl_store, shared by schema.c (shapes), fresh.c (versions), source.c (tables as
** sources of columns) and load.c (reading ordinary tables).
*/
#ifndef WL_STORE_IMPL_H
#define WL_STORE_IMPL_H

#include "column/cache.h"
#include "store/store.h"
#include "store/wal.h"

/* One database of the connection, with a helper statement that opens a read transaction. */
typedef struct wl_dbfile {
  struct wl_dbfile *next;
  char *schema;
  sqlite3_stmt *pragma; /* PRAGMA schema.schema_version */
  /* What the pragma found, while its transaction stays open to the end of a scope. */
  bool open, has_version;
  wl_u32 cookie, version;
  void *file;
  int reprepares;
  bool shared;   /* its cache is, or may be, shared with another connection */
  int shared_at; /* re-prepare count when shared was set, plus one; 0: not set yet */
  sqlite3_stmt *journal, *locking; /* PRAGMA schema.journal_mode, locking_mode */
  wl_wal_pin pin;
} wl_dbfile;

/* A table with what is known about its contents. The shape comes first, so a wl_table of the store
** can be cast to this. */
typedef struct wl_stored {
  wl_table shape;
  struct wl_stored *next;
  wl_store *store;
  wl_source source;
  const struct wl_table_kind *kind; /* NULL: an ordinary table of SQLite's */
  wl_u32 key[2];                    /* cookie and re-prepare count of its schema when it was read */

  /* The set of columns, and the version under which it was obtained. */
  wl_cache_user user;
  bool current; /* version and file are set */
  wl_u32 version;
  int length_limit; /* SQLITE_LIMIT_LENGTH */
  void *file;
  wl_u64 kind_version;  /* version of its kind */
  wl_u64 seen_sets;     /* wl_cache_generation() when no set was found for this version */
  bool private_for_now; /* the set has no key because of an open write transaction */

  /* How it has been used. */
  wl_use *use; /* [n_cols + 1] */
  wl_i64 n_uses, n_loads;
  bool by_pages;    /* the last load decoded pages */
  char why_not[80]; /* why it did not, if SQLite stepped through the table */

  /* The estimated number of rows, and the data version of the estimate. */
  bool estimated;
  wl_i64 estimate;
  wl_u32 estimate_version;

  /* Time lost because columns were not in memory, at this data version (wl_source_history). */
  double lost_ns;
  wl_u32 lost_version;

  /* The data version and host_budget for which it did not fit. A budget of 0: it always did. */
  wl_u32 too_big_version;
  wl_i64 too_big_budget;
} wl_stored;

/* What a name in FROM means, until a schema that decides it changes. */
typedef struct wl_name {
  struct wl_name *next;
  char *schema, *name; /* as the query wrote it; schema may be NULL */
  /* cookies and re-prepare counts of temp and main; one value for all attached before it */
  wl_u32 key[5];
  wl_stored *table;
} wl_name;

/* The load in progress. The SQL function wl_load adds its rows. */
typedef struct wl_load {
  wl_builder **builders;
  int n;
  wl_i64 n_rows;
  const wl_stored *table;
  wl_status status;
  bool finished; /* the function's final call has happened */
  size_t limit;  /* in bytes; 0: no limit */
} wl_load;

struct wl_store {
  sqlite3 *db;
  wl_dbfile *files;
  wl_stored *tables; /* no two have the same schema and name */
  wl_name *names;
  wl_i64 n_shapes;
  sqlite3_stmt *probe;       /* prepared again when collations or the encoding change */
  bool tried, own_coll[3];   /* the collations were tested; which are SQLite's own */
  int tried_at;              /* re-prepare count of the probe at that test */
  const char *encoding;      /* as PRAGMA encoding reports it */
  wl_u32 n_text_changes;     /* how often own_coll has changed */
  sqlite3_stmt *uncommitted; /* PRAGMA read_uncommitted */
  sqlite3_stmt *reversed;    /* PRAGMA reverse_unordered_selects */
  sqlite3_stmt *databases;   /* PRAGMA database_list */
  sqlite3_stmt *active;      /* the helper whose read transaction is open, outside of a scope */
  int n_scopes;              /* calls of wl_store_enter() that have not been left */
  bool checked_pragmas;      /* in this scope: the two PRAGMAs are off */
  wl_u32 cookie, version;    /* set by wl_store_read_cookie() and wl_store_read_version() */
  void *file;
  int reprepares;
  wl_i64 host_budget; /* the setting */
  wl_i64 budget;      /* host_budget, but at most half of SQLite's hard heap limit */
  wl_cache_member member;
  wl_u64 last_id;
  bool loading; /* columns; what SQLite calls meanwhile must not change tables or sets */
  wl_load *load;
  int threads;                                  /* threads for a load */
  wl_status (*check)(void *arg, wl_error *err); /* called between waves of a load, or NULL */
  void *check_arg;
  wl_progress *progress; /* or NULL */
  void *progress_arg;
};

/* Reports progress to the client before the end of a load, so done stays below total. */
void wl_store_tell(const wl_store *s, const wl_table *t, wl_i64 done, wl_i64 total);
/* Called between steps of a load: whether the client wants it to end. */
wl_status wl_store_check(wl_store *s, const wl_table *t, wl_error *err) WL_MUST;

/* WL_NOT_TAKEN in a statement that a function runs while columns are loaded: a generated column may
** call one. It might see another version, and forget the table that is being loaded. */
wl_status wl_store_not_loading(const wl_store *s, wl_error *err) WL_MUST;

/*
** Whether the write transaction on a database has not written yet. With a rollback journal that is
** deleted after each transaction, SQLite creates it before it changes the first page.
*/
bool wl_store_untouched(wl_store *s, const char *schema);

/* Whether a PRAGMA of a database has this value. Keeps the statement in *keep. False also if it
** gives no answer. */
bool wl_store_pragma_is(wl_store *s, sqlite3_stmt **keep, const char *schema, const char *pragma,
                        const char *word, bool *out);

wl_dbfile *wl_store_file_of(wl_store *s, const char *schema); /* NULL: out of memory */

/* Opens a read transaction on a database and reads its schema cookie into s. wl_store_end() closes
** the transaction, unless it belongs to a scope. */
wl_status wl_store_read_cookie(wl_store *s, const char *schema, wl_error *err) WL_MUST;
/* Ends the transaction that was just opened and begins another. Reads cookie and version. */
wl_status wl_store_reopen(wl_store *s, const char *schema, wl_error *err) WL_MUST;
/* The same, and reads the data version too. */
wl_status wl_store_read_version(wl_store *s, const char *schema, wl_error *err) WL_MUST;
wl_status wl_store_sqlite_error(wl_store *s, int rc, wl_error *err);
/* Updates the budget from host_budget and SQLite's hard heap limit. */
void wl_store_bound_budget(wl_store *s);
void wl_stored_open(wl_store *s, wl_stored *t); /* makes it a source, once its shape is known */
void wl_stored_forget(wl_stored *t);            /* stops using its set of columns */
void wl_stored_free(wl_stored *t);
/* The kind of a virtual table, or NULL. */
const struct wl_table_kind *wl_store_kind_of(wl_store *s, const char *schema, const char *name);

static inline wl_stored *wl_stored_of(const wl_table *t) {
  return (wl_stored *)t;
}
void wl_name_free(wl_name *n);
/* Reads the encoding and tests the collations again, if they may have changed. */
wl_status wl_store_try_text(wl_store *s, wl_error *err) WL_MUST;
/* Registers the SQL function wl_load. */
int wl_load_register(wl_store *s);
/* Reads columns of an ordinary table into out[0..n), one hold each. With n 0 it only counts the
** rows. WL_FULL: they take more than limit bytes (0: no limit). */
wl_status wl_load_columns(wl_store *s, wl_stored *t, const int *cols, int n, size_t limit,
                          wl_column **out, wl_i64 *n_rows, wl_error *err) WL_MUST;
/* Returns WL_NOT_TAKEN: the texts of a tablet are too long. */
wl_status wl_load_too_long(const wl_table *t, wl_error *err);
/* An estimate of the rows of an ordinary table. */
wl_i64 wl_load_estimate(wl_store *s, const wl_table *t);

#endif
