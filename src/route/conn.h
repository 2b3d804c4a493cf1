/*
** The state that warplite keeps for one SQLite connection.
**
** Invariants:
** 1. Each sqlite3* has at most one wl_conn, found through a process-wide table. It is freed when
**    SQLite destroys the module that owns it, which happens when the connection closes.
** 2. All calls follow the connection's own threading rules: SQLite's mutex is held inside
**    callbacks, and the public calls take it.
** 3. reason always begins with "cpu", "gpu" or "sqlite", then ": ".
*/
#ifndef WL_CONN_H
#define WL_CONN_H

#include "base/authorizer.h"
#include "plan/place.h"
#include "route/watch.h"
#include "store/store.h"

enum { WL_LOG_SIZE = 256, WL_REASON_SIZE = 512, WL_MODULE_NAME = 32 };

/* Why SQLite runs a statement: its authorizer answered IGNORE to some question. */
#define WL_IGNORED "the authorizer answers IGNORE"

typedef struct wl_log_entry {
  wl_i64 id;
  char *sql;
  char engine[8];
  char reason[420];
  wl_i64 n_rows;
  double ms;
} wl_log_entry;

struct wl_change;
struct wl_statement_text;

/* While streams of warplite_query() are open, one helper statement is in progress. Without it SQLite
** would forget an interrupt between batches. */
typedef struct wl_open_streams {
  sqlite3_stmt *in_progress; /* reset while n is 0 */
  int n;
} wl_open_streams;

/* The names of functions that are not SQLite's own (overrides.h), one after the other, each with a
** NUL. */
typedef struct wl_function_list {
  char *names;
  size_t n_bytes, size;
} wl_function_list;

/* How fast the machines were for texts that differ in literals only (place_query.c). The place of
** an entry is its hash modulo the size; a newer text takes an entry from an older one. */
enum { WL_SHAPES = 128 };
typedef struct wl_shape_entry {
  wl_u64 shape;
  wl_measured measured;
} wl_shape_entry;

typedef struct wl_conn {
  struct wl_conn *next;
  sqlite3 *db;
  wl_store *store;
  wl_settings set;
  char reason[WL_REASON_SIZE];
  char errmsg[512];
  wl_log_entry log[WL_LOG_SIZE];
  wl_i64 n_logged;
  struct wl_statement_text *texts; /* the latest first */
  int n_texts;
  wl_shape_entry shapes[WL_SHAPES];
  struct wl_change *changes; /* changes that have run and may run again; the latest first */
  void (*drop_changes)(struct wl_conn *c); /* set by dml, which owns them */
  bool ready;                              /* everything is registered */
  bool has_keeper; /* the keeper is connected; it finalizes helper statements on close */
  int n_nested;    /* scans of warplite tables inside each other (api/select_table.c) */
  bool preparing;  /* inside warplite_prepare(): virtual tables are planned for the first time */
  char (*modules)[WL_MODULE_NAME]; /* names of the modules registered so far */
  int n_modules, size_modules;
  sqlite3_stmt *tick;      /* stepped so that interrupts and progress handlers act */
  double last_tick;
  wl_function_list functions;
  wl_watch watch;
  wl_open_streams streams;
  bool no_functions;            /* the application has defined none: the preload library knows */
  struct wl_readers *readers;   /* helper statements of runs under preload (api/native.c) */
  void (*drop_readers)(struct wl_conn *c, bool closing); /* set by api, which owns them */
} wl_conn;

wl_conn *wl_conn_find(sqlite3 *db);
/* Creates the state of a connection that has none, with the settings of the environment. SQLite
** then owns it. NULL: it failed, and err says why. */
wl_conn *wl_conn_open(sqlite3 *db, wl_error *err);

/* Both set the connection's reason. The second takes the whole text. */
void wl_conn_reason(wl_conn *c, const char *engine, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void wl_conn_set_reason(wl_conn *c, const char *reason);
/* reason: as wl_conn_reason() builds it. n_rows < 0: the number of rows is not known. */
void wl_conn_log(wl_conn *c, const char *reason, const char *sql, size_t n, wl_i64 n_rows,
                 double ms);

/* Makes sure that helper statements can be kept. WL_NOT_TAKEN: the database cannot be read now. */
wl_status wl_conn_keep_helpers(wl_conn *c, wl_error *err) WL_MUST;
void wl_conn_quiet(wl_conn *c); /* finalizes every helper statement */
/* Steps the helper statement from time to time. WL_INTERRUPT: the user wants to stop. */
wl_status wl_conn_check(void *conn, wl_error *err);

/* Whether a module of that name has been registered. WL_NOT_TAKEN: it has not, and there is room
** for it at the end of c->modules. */
wl_status wl_conn_module(wl_conn *c, const char *name, wl_error *err) WL_MUST;

#endif
