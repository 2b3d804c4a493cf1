/*
** The inside of wl_store, shared by schema.c (shapes), fresh.c (versions), source.c (tables as
** sources of columns), load.c (reading ordinary tables).
*/
#ifndef WL_STORE_IMPL_H
#define WL_STORE_IMPL_H

#include "column/cache.h"
#include "store/store.h"
#include "store/wal.h"

/* One database of the connection: a helper statement that opens a read transaction. */
typedef struct wl_dbfile {
  struct wl_dbfile *next;
  char *schema;
  sqlite3_stmt *pragma; /* PRAGMA schema.schema_version */
  sqlite3_stmt *hold;   /* the same, stepped while a statement gets ready */
  bool held;
  bool shared;   /* its cache is, or can be, another connection's too … */
  int shared_at; /* … as was seen at this re-prepare count plus one; 0: not asked yet */
  sqlite3_stmt *journal, *locking; /* PRAGMA schema.journal_mode, locking_mode */
  wl_wal_pin pin;
} wl_dbfile;

/* A table with what is known of its contents. The shape comes first, so that a wl_table of the
** store is one of these. */
typedef struct wl_stored {
  wl_table shape;
  struct wl_stored *next;
  wl_store *store;
  wl_source source;
  const struct wl_table_kind *kind; /* NULL: an ordinary table of SQLite's */
  wl_u32 key[2];                    /* cookie and re-prepare count of its schema when it was read */

  /* The set of columns, and the version that it was got under. */
  wl_cache_user user;
  bool current; /* version and file are set */
  wl_u32 version;
  int length_limit; /* SQLITE_LIMIT_LENGTH */
  void *file;
  wl_u64 kind_version;  /* of a kind's own */
  wl_u64 seen_sets;     /* wl_cache_generation() when no set was found for this version */
  bool private_for_now; /* the set has no key because of an open write transaction */

  /* What it has been used for. */
  wl_use *use; /* [n_cols + 1] */
  wl_i64 n_uses, n_loads;
  bool by_pages;    /* the last load decoded pages */
  char why_not[80]; /* or SQLite stepped it, for this reason */

  /* The estimate of rows, and the data version that it is for. */
  bool estimated;
  wl_i64 estimate;
  wl_u32 estimate_version;

  /* The data version and the host_budget that it did not fit; a budget of 0: it always did. */
  wl_u32 too_big_version;
  wl_i64 too_big_budget;
} wl_stored;

/* What a name in FROM means, as long as the schemas that decide it stay as they are. */
typedef struct wl_name {
  struct wl_name *next;
  char *schema, *name; /* as the query wrote it; schema may be NULL */
  wl_u32 key[5];       /* cookie and re-prepare count of temp and main; of the attached ones
                       ** that come before the table's, all in one */
  wl_stored *table;
} wl_name;

/* The load in progress, fed by the SQL function wl_load. */
typedef struct wl_load {
  wl_builder **builders;
  int n;
  wl_i64 n_rows;
  const wl_stored *table;
  wl_status status;
  bool finished; /* the function's last call came */
  size_t limit;  /* of bytes; 0: any */
} wl_load;

struct wl_store {
  sqlite3 *db;
  wl_dbfile *files;
  wl_stored *tables; /* no two of one schema and name */
  wl_name *names;
  wl_i64 n_shapes;
  sqlite3_stmt *probe;       /* prepared again when collations or the encoding change */
  bool tried, own_coll[3];   /* collations: tried, and found to be SQLite's own … */
  int tried_at;              /* … when the probe had been prepared this often */
  const char *encoding;      /* as PRAGMA encoding would say it */
  wl_u32 n_text_changes;     /* how often own_coll has changed */
  sqlite3_stmt *uncommitted; /* PRAGMA read_uncommitted */
  sqlite3_stmt *reversed;    /* PRAGMA reverse_unordered_selects */
  sqlite3_stmt *active;      /* the helper whose read transaction is open */
  wl_u32 cookie, version;    /* read by wl_store_begin */
  void *file;
  int reprepares;
  wl_i64 host_budget; /* the setting */
  wl_i64 budget;      /* the same, and at most half of SQLite's hard heap limit */
  wl_cache_member member;
  wl_u64 last_id;
  bool loading; /* columns; what SQLite calls meanwhile must not change tables or sets */
  wl_load *load;
  int threads;                                  /* that a load may use */
  wl_status (*check)(void *arg, wl_error *err); /* between waves of a load; or NULL */
  void *check_arg;
  wl_progress *progress; /* or NULL */
  void *progress_arg;
};

/* Tells the client, if it wants to know, before the end: done stays below total. */
void wl_store_tell(const wl_store *s, const wl_table *t, wl_i64 done, wl_i64 total);
/* Between steps of a load: whether the client wants it to end. */
wl_status wl_store_check(wl_store *s, const wl_table *t, wl_error *err) WL_MUST;

/* WL_NOT_TAKEN in a statement that a function runs while columns are loaded: a generated column may
** call one. It might see another version, and forget the table that is being loaded. */
wl_status wl_store_not_loading(const wl_store *s, wl_error *err) WL_MUST;

/*
** Whether the write transaction on a database has written nothing yet: with a rollback journal
** that is deleted after each transaction, SQLite opens it before it changes the first page.
*/
bool wl_store_untouched(wl_store *s, const char *schema);

/* What a PRAGMA of a database says, through a statement that is kept; false: it does not say. */
bool wl_store_pragma_is(wl_store *s, sqlite3_stmt **keep, const char *schema, const char *pragma,
                        const char *word, bool *out);

wl_dbfile *wl_store_file_of(wl_store *s, const char *schema); /* NULL: out of memory */

/* Opens a read transaction on a database and reads its schema cookie into s … */
wl_status wl_store_read_cookie(wl_store *s, const char *schema, wl_error *err) WL_MUST;
/* … and its data version too. wl_store_end closes the transaction. */
wl_status wl_store_read_version(wl_store *s, const char *schema, wl_error *err) WL_MUST;
wl_status wl_store_sqlite_error(wl_store *s, int rc, wl_error *err);
/* Brings what SQLite's hard heap limit leaves of host_budget up to date. */
void wl_store_bound_budget(wl_store *s);
void wl_stored_open(wl_store *s, wl_stored *t); /* its shape is known: makes it a source */
void wl_stored_forget(wl_stored *t);            /* stops using its set of columns */
void wl_stored_free(wl_stored *t);
/* The kind of a virtual table, or NULL. */
const struct wl_table_kind *wl_store_kind_of(wl_store *s, const char *schema, const char *name);

static inline wl_stored *wl_stored_of(const wl_table *t) {
  return (wl_stored *)t;
}
void wl_name_free(wl_name *n);
/* Reads the encoding and tries the collations again, if they may have changed. */
wl_status wl_store_try_text(wl_store *s, wl_error *err) WL_MUST;
/* Registers the SQL function that loads. */
int wl_load_register(wl_store *s);
/* Reads columns of an ordinary table into out[0..n), one hold each; n 0: only counts the rows.
** WL_FULL: they take more than limit bytes, if that is not 0. */
wl_status wl_load_columns(wl_store *s, wl_stored *t, const int *cols, int n, size_t limit,
                          wl_column **out, wl_i64 *n_rows, wl_error *err) WL_MUST;
/* WL_NOT_TAKEN: a tablet's texts do not fit. */
wl_status wl_load_too_long(const wl_table *t, wl_error *err);
/* Rows of an ordinary table, roughly. */
wl_i64 wl_load_estimate(wl_store *s, const wl_table *t);

#endif
