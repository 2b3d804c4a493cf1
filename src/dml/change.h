/*
** A change of a tablet table: INSERT, UPDATE or DELETE, parsed and bound to its table.
** docs/architecture.md follows one through the files of this folder.
**
** Invariants:
** 1. The caller's statement becomes an INSERT into the table. It inserts tokens that represent
**    changes (tablet/write/dmlrow.h) from the table-valued function wl_dml, whose argument is the
**    original text. wl_dml makes the changes as its rows are read.
** 2. The statement's source is read completely before the first change, except where SQLite itself
**    would see changes of the same statement (live).
** 3. Parameters keep their numbers in every text made here: each is written as ?N.
*/
#ifndef WL_DML_CHANGE_H
#define WL_DML_CHANGE_H

#include "route/route.h"
#include "sql/dml.h"
#include "tablet/write/write.h"

enum { WL_KEY_ROWID = -1, WL_KEY_ANY = -2 };
enum { WL_COL_ROWID = -1, WL_COL_NONE = -2 };

/* SQLite's message. %s says which clause, if there are several. */
#define WL_NO_TARGET "%sON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint"

/* One assignment of SET. */
typedef struct wl_setting {
  int col;         /* column of the table, or WL_COL_ROWID */
  wl_expr *value;  /* the whole row value if it is part of one */
  int part, parts; /* which column of a row value of that many; parts is 0 for a single value */
} wl_setting;

/* One ON CONFLICT clause. */
typedef struct wl_clause {
  const wl_upsert *u;
  int key; /* WL_KEY_ROWID, WL_KEY_ANY, or a key of the table */
  wl_setting *sets;
  int n_sets;
} wl_clause;

/* Memory that every run of a change uses. wl_running says what it is for. */
typedef struct wl_room {
  wl_val *row, *raw, *news, *defaults;
  bool *known, *bound;
  sqlite3_value **params;
  wl_arena texts;
} wl_room;

typedef struct wl_change {
  wl_conn *conn;
  wl_arena arena;
  const char *sql; /* the statement without EXPLAIN, in the arena */
  wl_dml *d;
  wl_tablets *t;
  const wl_decl *decl;
  const char *schema;
  const char *rowid; /* a name of the rowid that no column hides, or NULL */
  wl_u64 serial;     /* serial number of t */
  /* Set for INSERT. */
  int n_source; /* columns of the source */
  int *from;    /* [n_cols] column of the source, or WL_COL_NONE for the default */
  int rowid_from;
  wl_clause *clauses;
  int n_clauses;
  /* Set for UPDATE. */
  wl_setting *sets;
  int n_sets;
  bool live; /* new values may depend on rows changed earlier */
  /* Kept from one run to the next. */
  char *source_sql;       /* freed with sqlite3_free() */
  sqlite3_stmt *source;   /* the statement of source_sql if SQLite runs it, or NULL */
  sqlite3_stmt **upserts; /* [n_clauses] DO UPDATE, prepared when first needed */
  wl_room room;
  struct wl_change *next; /* next in the connection's list of changes that are not running */
} wl_change;

/* Parses a statement and finds its table. WL_NOT_TAKEN: it does not change a tablet table, or
** SQLite must run it (a command to the table). */
wl_status wl_change_open(wl_conn *c, const char *sql, size_t n, wl_change *out,
                         wl_error *err) WL_MUST;
/* Resolves names to columns and keys. WL_ERROR: a name is wrong; err has SQLite's message. */
wl_status wl_change_bind(wl_change *m, wl_error *err) WL_MUST;
void wl_change_close(wl_change *m);
/* Whether a bound change still refers to the same table in its current form. */
bool wl_change_is_current(wl_change *m);

/* The request to wl_route() for the rows that the change reads. sql: from
** wl_change_source_sql(). */
wl_request wl_change_request(const wl_change *m, const char *sql);
bool wl_rowid_name(const char *name); /* rowid, _rowid_ or oid */
/* Whether SQLite runs the statement best, through xUpdate: one or two rows, and nothing that
** xUpdate does not see. */
bool wl_change_small(const wl_change *m);
/* Whether its WHERE compares the rowid or a key with constants: UPDATE or DELETE of at most one
** row. */
bool wl_change_single(const wl_change *m);

/* ---- statement_cache.c */
/* Returns the change of a text, opened and bound. It may be one that has run before. */
wl_status wl_change_acquire(wl_conn *c, const char *sql, wl_change **out, wl_error *err) WL_MUST;
void wl_change_release(wl_change *m);         /* keeps it for its next run; accepts NULL */
void wl_change_drop_statements(wl_change *m); /* finalizes the statements that its runs prepared */
void wl_change_drop_all(wl_conn *c);

#endif
