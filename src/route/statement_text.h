/*
** Statement texts that have been parsed and bound, kept for their next run. A prepared statement
** refers to one only by its text, so it has nothing to free.
**
** Invariants:
** 1. A text is used again only while every table and view that it reads is the same: the schema
**    cookie of their databases, and how often SQLite prepared a helper statement again. The latter
**    goes up after ATTACH, DETACH, sqlite3_db_config(), PRAGMAs, a replaced function or collation,
**    and a new authorizer. Names are looked up again as SQLite would, so TEMP tables count.
** 2. SQLite's prepare of a text that was seen before would give the same statement if, in addition,
**    its limits (sqlite3_limit) are the same. So it is left out, unless an authorizer wants to be
**    asked each time, or may exist without our knowledge (wl_authorizer_blind).
** 3. Added functions do not count for 1. They are checked each time (overrides.h).
*/
#ifndef WL_STATEMENT_TEXT_H
#define WL_STATEMENT_TEXT_H

#include "route/conn.h"
#include "sql/bind.h"

/* What SQLite's plan costs, and how far estimates were off in earlier runs. */
typedef struct wl_text_price {
  bool read; /* sqlite is set */
  wl_priced sqlite;
  bool known; /* last is set: the price without values of parameters, at a version of the tables */
  wl_u64 version;
  wl_sqlite_price last;
  /* By machine, the measured time of native runs, divided by the estimate; 0: no run yet. */
  double native_factor[WL_N_MACHINES];
  double left_ns;       /* estimated for SQLite when the text was last left to it; 0: never */
  double sqlite_factor; /* the least time that SQLite's runs took, divided by the estimate; 0: as
                        ** estimated */
  double last_factor;   /* the same of the last run alone */
} wl_text_price;

/* A decision for SQLite that holds for some more runs, because SQLite is faster by far. */
typedef struct wl_text_decided {
  int n_runs;       /* so many */
  wl_settings set;  /* with these settings */
  double until_ns;  /* until this time */
  wl_i64 n_changes; /* while the connection has changed so few rows */
  char reason[256];
} wl_text_decided;

/* The limits of sqlite3_limit() that a prepare may hit. */
enum { WL_N_LIMITS = SQLITE_LIMIT_WORKER_THREADS + 1 };

/* A result column as SQLite describes it. */
typedef struct wl_text_column {
  const char *name;
  const char *type; /* declared type, or NULL */
} wl_text_column;

typedef struct wl_statement_text {
  struct wl_statement_text *next;
  wl_u64 hash;
  char *sql;
  size_t n_sql;
  int refs;
  wl_arena arena;
  wl_stmt *stmt;
  wl_query *query;
  wl_plan_facts facts;   /* facts about SQLite's plan */
  wl_u64 shape;          /* a hash of the text without its literals */
  wl_text_price price;   /* used by place_query.c only */
  wl_text_decided decided;
  bool settled;          /* wl_statement_text_settle() has run */
  const char *unsettled; /* why it returned WL_NOT_TAKEN, or NULL */
  int *arg_params;       /* parameter index of each argument of the rewritten text */
  int n_args;
  wl_u32 n_text_changes; /* for a text without tables: from wl_store_text_like_ours() */
  wl_u64 labels;         /* hash of its column names; 0: not computed yet */
  bool asks_time;        /* it calls date functions, which depend on the time zone */
  bool is_native;        /* the native engine was chosen when it was last prepared */
  /* What SQLite said when it prepared the text; columns is NULL before that. */
  wl_text_column *columns;
  int limits[WL_N_LIMITS];
  struct wl_code *code; /* of its latest run, or NULL (exec/code.h) */
  const char *stand_in; /* the text that is prepared in its place (api/vtab.c), or NULL */
} wl_statement_text;

/* Parses and binds a text, or finds it in the list. The caller drops it. WL_NOT_TAKEN: err has the
** reason. */
wl_status wl_statement_text_get(wl_conn *c, const char *sql, size_t n, wl_statement_text **out,
                                wl_error *err) WL_MUST;
/* Finds a text in the list, without asking whether its tables have changed. NULL: it is not there.
** The list owns it. */
wl_statement_text *wl_statement_text_peek(wl_conn *c, const char *sql, size_t n);
/* If an earlier decision still holds for this text, returns its reason, else NULL. Nothing is read:
** the tables may have changed, but SQLite runs it in any case. */
const char *wl_statement_text_decided(wl_conn *c, const char *sql, size_t n);
/* Lets a decision for SQLite hold for the next runs. The more SQLite is faster, the longer. */
void wl_statement_text_decide(const wl_conn *c, wl_statement_text *t, const wl_placement *where);
/* Finds the order in which equal rows must come, before the text is compiled. Takes about 30 us, so
** it is done once, and only for texts that may run natively. WL_NOT_TAKEN if it cannot. */
wl_status wl_statement_text_settle(wl_conn *c, wl_statement_text *t, wl_error *err) WL_MUST;
/* A hash of a statement's column names, never 0. It detects that the names have changed since a
** statement was prepared, because a prepared statement cannot change them. */
wl_u64 wl_stmt_labels(sqlite3_stmt *s);
/* Keeps what SQLite says about the text. original: the text, prepared by SQLite. */
wl_status wl_statement_text_describe(wl_conn *c, wl_statement_text *t, sqlite3_stmt *original,
                                     wl_error *err) WL_MUST;
/* Finds a text that SQLite need not prepare again, if wl_route() returns this same text. The caller
** drops it. NULL: there is none. */
wl_statement_text *wl_statement_text_seen(wl_conn *c, const char *sql, size_t n);
void wl_statement_text_drop(wl_statement_text *t); /* accepts NULL */
void wl_statement_text_flush(wl_conn *c);

#endif
