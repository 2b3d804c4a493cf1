/*
** The inside of wl_store, shared by schema.c (shapes), fresh.c (versions), load.c (columns).
*/
#ifndef WL_STORE_IMPL_H
#define WL_STORE_IMPL_H

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

/* What a name in FROM means, as long as the schemas that decide it stay as they are. */
typedef struct wl_name {
  struct wl_name *next;
  char *schema, *name; /* as the query wrote it; schema may be NULL */
  wl_u32 key[5];       /* cookie and re-prepare count of temp and main; of the attached ones
                       ** that come before the table's, all in one */
  wl_table *table;
} wl_name;

/* The load in progress, fed by the SQL function wl_load. */
typedef struct wl_load {
  wl_builder **builders;
  int n;
  wl_i64 n_rows;
  const wl_table *table;
  wl_status status;
  bool finished;     /* the function's last call came */
  size_t base_bytes; /* of the cache, before this load */
} wl_load;

struct wl_store {
  sqlite3 *db;
  wl_dbfile *files;
  wl_table *tables; /* no two of one schema and name */
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
  wl_i64 clock;
  wl_u64 last_id;
  wl_load *load;
  int threads;                                  /* that a load may use */
  wl_status (*check)(void *arg, wl_error *err); /* between waves of a load; or NULL */
  void *check_arg;
  wl_progress *progress; /* or NULL */
  void *progress_arg;
};

/* Tells the client, if it wants to know, before the end: done stays below total. */
void wl_store_tell(const wl_store *s, const wl_table *t, wl_i64 done, wl_i64 total);

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
/* Makes the image of a tablet table, and what is loaded of it, that of the open transaction. */
wl_status wl_store_follow(wl_store *s, wl_table *t, wl_error *err) WL_MUST;
void wl_table_drop_data(wl_table *t);
void wl_table_free(wl_table *t);
void wl_name_free(wl_name *n);
/* Reads the encoding and tries the collations again, if they may have changed. */
wl_status wl_store_try_text(wl_store *s, wl_error *err) WL_MUST;
/* Registers the SQL function that loads. */
int wl_load_register(wl_store *s);

#endif
