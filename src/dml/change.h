/*
** A change of a tablet table: INSERT, UPDATE or DELETE, parsed and bound to its table.
** docs/architecture.md follows one through the files of this folder.
**
** Invariants:
** 1. The statement that the caller gets is an INSERT into the table, of tokens that stand for
**    changes (tablet/write/dmlrow.h), from the table-valued function wl_dml, whose argument is the
**    original text. wl_dml makes the changes as its rows are asked for.
** 2. All reading that the statement does (its source) is finished before the first change, but
**    where SQLite itself would see changes of the same statement (live).
** 3. Parameters keep their numbers in every text made here: each is written as ?N.
*/
#ifndef WL_DML_CHANGE_H
#define WL_DML_CHANGE_H

#include "route/route.h"
#include "sql/dml.h"
#include "tablet/write/write.h"

enum { WL_KEY_ROWID = -1, WL_KEY_ANY = -2 };
enum { WL_COL_ROWID = -1, WL_COL_NONE = -2 };

/* SQLite's message; which clause it is, if there are several. */
#define WL_NO_TARGET "%sON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint"

/* SET: one column, and what it becomes. */
typedef struct wl_setting {
  int col;         /* of the table, or WL_COL_ROWID */
  wl_expr *value;  /* of a row value: all of it */
  int part, parts; /* of a row value: which of its columns; parts 0: it is none */
} wl_setting;

/* ON CONFLICT */
typedef struct wl_clause {
  const wl_upsert *u;
  int key; /* WL_KEY_ROWID, WL_KEY_ANY, or a key of the table */
  wl_setting *sets;
  int n_sets;
} wl_clause;

/* Memory that every run of a change uses; what it is for says wl_running. */
typedef struct wl_room {
  wl_val *row, *raw, *news, *defaults;
  bool *known, *bound;
  sqlite3_value **params;
  wl_arena texts;
} wl_room;

typedef struct wl_change {
  wl_conn *conn;
  wl_arena arena;
  const char *sql; /* the statement, without EXPLAIN; in the arena */
  wl_dml *d;
  wl_tablets *t;
  const wl_decl *decl;
  const char *schema;
  const char *rowid; /* a name of the rowid that no column hides, or NULL */
  wl_u64 serial;     /* of t */
  /* INSERT */
  int n_source; /* columns of the source */
  int *from;    /* [n_cols]: column of the source, or WL_COL_NONE: its default */
  int rowid_from;
  wl_clause *clauses;
  int n_clauses;
  /* UPDATE */
  wl_setting *sets;
  int n_sets;
  bool live; /* what SET computes may depend on rows changed before */
  /* What a run leaves for the next one. */
  char *source_sql;       /* sqlite3_free'd */
  sqlite3_stmt *source;   /* of source_sql, where SQLite runs it; or NULL */
  sqlite3_stmt **upserts; /* [n_clauses] DO UPDATE, prepared when first needed */
  wl_room room;
  struct wl_change *next; /* in the connection's list of changes that are not running */
} wl_change;

/* Reads a statement. WL_NOT_TAKEN: it is no change of a tablet table, or it is one that SQLite's
** own way does (a command to the table). */
wl_status wl_change_open(wl_conn *c, const char *sql, size_t n, wl_change *out,
                         wl_error *err) WL_MUST;
/* Names to columns and keys. WL_ERROR: one is wrong, with SQLite's words. */
wl_status wl_change_bind(wl_change *m, wl_error *err) WL_MUST;
void wl_change_close(wl_change *m);
/* Whether a change that was bound before still means the same table as it is now. */
bool wl_change_is_current(wl_change *m);

/* What wl_route() is asked of the rows that the change reads; sql: wl_change_source_sql() of it. */
wl_request wl_change_request(const wl_change *m, const char *sql);
bool wl_rowid_name(const char *name); /* rowid, _rowid_ or oid */
/* Whether a statement like this is done best by SQLite, through xUpdate: a row or two, and no more
** to it than xUpdate sees. */
bool wl_change_small(const wl_change *m);
/* Whether its WHERE gives the rowid, or a key, by constants: UPDATE or DELETE of a row at most. */
bool wl_change_single(const wl_change *m);

/* ---- statement_cache.c */
/* The change of a text, opened and bound: one that has run before, or a new one. */
wl_status wl_change_acquire(wl_conn *c, const char *sql, wl_change **out, wl_error *err) WL_MUST;
void wl_change_release(wl_change *m);         /* for its next run; NULL is fine */
void wl_change_drop_statements(wl_change *m); /* those that its runs prepared */
void wl_change_drop_all(wl_conn *c);

#endif
