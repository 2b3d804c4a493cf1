/*
** INSERT, UPDATE and DELETE of a tablet table: the statement bound to its table, the texts that
** are made of it, and its run. docs/architecture.md follows one through these files.
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

#include "route/answer.h"
#include "base/authorizer.h"
#include "sql/dml.h"
#include "tablet/write/dmlrow.h"
#include "tablet/write/write.h"

enum { WL_KEY_ROWID = -1, WL_KEY_ANY = -2 };
enum { WL_COL_ROWID = -1, WL_COL_NONE = -2 };

/* SQLite's message; which clause it is, if there are several. */
#define WL_NO_TARGET "%sON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint"

/* SET: the columns, each once, and what they become. */
typedef struct wl_setting {
  int col;         /* of the table, or WL_COL_ROWID */
  wl_expr *value;  /* … */
  int part, parts; /* of a row value: which of its columns; parts 0: it is none */
} wl_setting;

typedef struct wl_clause {
  const wl_upsert *u;
  int key; /* WL_KEY_ROWID, WL_KEY_ANY */
  wl_setting *sets;
  int n_sets;
} wl_clause;

typedef struct wl_change {
  wl_conn *conn;
  wl_arena arena;
  const char *sql; /* the statement, without EXPLAIN; in the arena */
  wl_dml *d;
  wl_tablets *t;
  const wl_decl *decl;
  const char *schema;
  const char *rowid; /* a name of the rowid that no column hides, or NULL */
  /* INSERT */
  int n_source; /* columns of the source */
  int *from;    /* [n_cols]: column of the source, or WL_COL_NONE: its default */
  int rowid_from;
  wl_clause *clauses;
  int n_clauses;
  /* UPDATE */
  wl_setting *sets;
  int n_sets;
  bool live;     /* what SET computes may depend on rows changed before */
  wl_u64 serial; /* of t */
  /* what a run leaves for the next one: */
  char *source_sql;       /* sqlite3_free'd */
  sqlite3_stmt *source;   /* … where SQLite runs it */
  sqlite3_stmt **upserts; /* [n_clauses] DO UPDATE, prepared when first needed */
  struct wl_room {        /* see wl_running */
    wl_val *row, *raw, *news, *defaults;
    bool *known, *bound;
    sqlite3_value **params;
    wl_arena texts;
  } room;
  struct wl_change *next; /* in the connection's list of changes that are not running */
} wl_change;

/* ---- dml/bind.c */
/* Reads a statement. WL_NOT_TAKEN: it is no change of a tablet table, or it is one that SQLite's
** own way does (a command to the table). */
wl_status wl_change_open(wl_conn *c, const char *sql, size_t n, wl_change *out,
                         wl_error *err) WL_MUST;
/* Names to columns and keys. WL_ERROR: one is wrong, with SQLite's words. */
wl_status wl_change_bind(wl_change *m, wl_error *err) WL_MUST;
void wl_change_close(wl_change *m);
/* Whether a change that was bound before still means the same table as it is now. */
bool wl_change_holds(wl_change *m);

/* ---- dml/statement_cache.c */
/* The change of a text, opened and bound: one that the connection has kept, or a new one. */
wl_status wl_change_take(wl_conn *c, const char *sql, wl_change **out, wl_error *err) WL_MUST;
void wl_change_give(wl_change *m);   /* to be kept; NULL is fine */
void wl_change_forget(wl_change *m); /* the statements that its runs prepared */
void wl_change_flush(wl_conn *c);

/* ---- dml/bind.c again */
/* What wl_route() is asked of the rows that the change reads; sql: wl_change_source_sql() of it. */
wl_request wl_change_request(const wl_change *m, const char *sql);
bool wl_rowid_name(const char *name); /* rowid, _rowid_ or oid */
/* Whether a statement like this is done best by SQLite, through xUpdate: a row or two, and no more
** to it than xUpdate sees. */
bool wl_change_small(const wl_change *m);
/* Whether its WHERE gives the rowid, or a key, by constants: UPDATE or DELETE of a row at most. */
bool wl_change_single(const wl_change *m);

/* ---- dml/text.c: all are sqlite3_free'd by the caller; NULL: out of memory */
char *wl_change_source_sql(const wl_change *m); /* what it reads: see dml/run.c */
/* UPDATE, live: the same, for rows whose rowids wl_rowids(?n) gives. */
char *wl_change_live_sql(const wl_change *m, int n);
char *wl_change_upsert_sql(const wl_change *m, const wl_clause *c); /* new values of the old row */
int wl_change_excluded(const wl_change *m, int col); /* the parameter that is excluded.col … */
int wl_change_at(const wl_change *m);                /* … and the one that is the row's rowid */
/* What the caller runs. mask: NULL, or the authorizer's answers as a text. */
char *wl_change_outer_sql(const wl_change *m, const char *mask);
/* For SQLite to check: without RETURNING and ON CONFLICT; a clause's columns; and DO UPDATE. */
char *wl_change_checked_sql(const wl_change *m);
char *wl_change_target_sql(const wl_change *m, const wl_clause *c);
char *wl_change_clause_sql(const wl_change *m, const wl_clause *c);

/* ---- dml/found.c: the rows that a statement changes, all of them before the first change, or, of
** an INSERT with very many, a piece of them at a time */
typedef struct wl_found {
  int n_cols;
  wl_i64 n;
  wl_arena arena; /* few: cells, row by row … */
  wl_val *cells;
  wl_i64 size_cells;
  wl_column **cols; /* … many: columns */
  wl_i64 *order;    /* row k is order[k]; NULL: they are in order */
  bool native;
  char reason[400]; /* the engine that made them, and why */
  /* where the next piece comes from: */
  bool more;            /* there is one */
  wl_i64 limit;         /* bytes of a piece; 0: it is all one … */
  wl_i64 row_bytes;     /* … with so many for each row besides its columns */
  wl_answer answer;     /* native, or SQLite's … */
  wl_batch *batches[2]; /* … and those of a native one that come next; … */
  bool ended;           /* … there are no others; or … */
  sqlite3_stmt *rest;   /* … this statement, which stands on its next row … */
  bool own;             /* … and is to be finalized */
  bool keeps_late;      /* an error behind these rows is raised when they are done … */
  wl_error late;        /* … and this is it: the next piece is no more than that */
} wl_found;

/* What is read. */
typedef struct wl_reading {
  const wl_request *request; /* at WL_AT_PREPARE */
  sqlite3_value **params;    /* params[i]: of parameter i + 1, or NULL */
  int n_params;
  const wl_mask *mask; /* NULL, or the authorizer's answers; then the request is refused */
  sqlite3_stmt **kept; /* its statement where SQLite runs it; *kept NULL: made, for the next time */
  wl_i64 limit, row_bytes; /* of a piece: see wl_found */
  wl_tablets *target;      /* what is written between pieces */
  bool keeps_late;         /* one of the rows before an error may fail first: see wl_found */
} wl_reading;

wl_val wl_found_value(const wl_found *r, wl_i64 row, int col);
void wl_found_close(wl_found *r);
/* Runs a SELECT to its end, or to that of the first piece. */
wl_status wl_found_read(wl_conn *c, const wl_reading *x, wl_found *out, wl_error *err) WL_MUST;
/* The next piece takes the rows' place; there is one (more). */
wl_status wl_found_more(wl_conn *c, wl_found *r, wl_error *err) WL_MUST;
/* Puts rows in order of their first column, an integer; of equal ones the last stays. *twice:
** there were equal ones. */
wl_status wl_found_sort(wl_found *r, bool *twice, wl_error *err) WL_MUST;
/* Columns, in order, whatever they were. */
wl_status wl_found_columns(wl_found *r, wl_error *err) WL_MUST;

/* ---- dml/run.c */
typedef struct wl_running {
  wl_change *m;  /* NULL: not open */
  wl_dmlrun run; /* the row at hand is told here */
  wl_found rows;
  wl_mask *mask;          /* NULL, or the authorizer's answers: SQLite finds the rows then */
  sqlite3_value **params; /* [n_params], or NULL each */
  int n_params;
  wl_i64 at;       /* rows of the source, or of its piece, that are done … */
  wl_i64 n_before; /* … and of pieces before it */
  bool counting;   /* all changes are made: the rows from at on are only counted */
  wl_i64 *rowids;  /* of a change in bulk, or of a live one; or they begin at … */
  wl_i64 first;    /* … this */
  /* Of a statement that undoes all of its rows when one fails: the first that does, if that is
  ** known before any is written. Those before it are not written then. */
  wl_refusal refusal;
  wl_val *row;      /* the row at hand: as inserted or updated, or as it was deleted */
  wl_val *raw;      /* the row to insert as ON CONFLICT knows it by the name excluded */
  wl_val *news;     /* what SET makes of it */
  wl_val *defaults; /* [n_cols]: constant ones, … */
  bool *known;      /* … once they are evaluated */
  bool *bound;      /* [n_clauses]: its statement has this run's parameters */
  wl_arena *texts;  /* of defaults and news */
  sqlite3_stmt *live;
  struct wl_rowlist *list; /* of the live statement */
  bool ended;
  bool in_bulk;  /* some of the changes were made at once */
  wl_i64 newest; /* rowid of the row inserted last, or last_insert_rowid */
  wl_i64 n_changes;
  double started;
  char reason[512];
} wl_running;

/* args: values of the parameters that occur, in the order of their numbers. mask: NULL, or the
** authorizer's answers, of which one is IGNORE; the run's from here on. */
wl_status wl_running_open(wl_conn *c, const char *sql, wl_i64 token, sqlite3_value **args,
                          int n_args, wl_mask *mask, wl_running *out, wl_error *err) WL_MUST;
/* Makes the next change, which run and row then tell; *end: there is none. */
wl_status wl_running_next(wl_running *r, bool *end, wl_error *err) WL_MUST;
/* The same where all changes are made and rows are only counted: fast. False: they are not. */
bool wl_running_count(wl_running *r, bool *end);
void wl_running_close(wl_running *r); /* one that was never opened, all zero, is fine */

/* ---- dml/bulk.c */
/* Makes all changes at once; WL_NOT_TAKEN, with nothing written: one by one then. */
wl_status wl_running_bulk(wl_running *r, wl_error *err) WL_MUST;
/* The default of a column. */
wl_status wl_running_default(wl_running *r, int col, wl_val *out, wl_error *err) WL_MUST;

/* ---- upsert.c */
/* What stands in the way of a new row, in the order of the ON CONFLICT clauses; v->code 0: nothing.
** *clause: the one that speaks of it, or NULL. given: the rowid is not one that was found free. */
wl_status wl_upsert_conflict(wl_running *r, const wl_val *values, wl_i64 rowid, bool given,
                             wl_violation *v, const wl_clause **clause, wl_error *err) WL_MUST;
/* What SET of a clause makes of the row at old, into r->news; *updates false: its WHERE does not
** hold. values and rowid are excluded. */
wl_status wl_upsert_values(wl_running *r, const wl_clause *clause, const wl_val *values,
                           wl_i64 rowid, wl_i64 old, bool *updates, wl_error *err) WL_MUST;
/* A statement of the run's, its parameters bound. */
wl_status wl_running_prepare(wl_running *r, char *sql, sqlite3_stmt **out, wl_error *err) WL_MUST;
void wl_params_bind(sqlite3_stmt *s, sqlite3_value **params, int n_params);
/* Columns of the row that a statement stands on, from `first` on, kept in r->texts. */
wl_status wl_running_read(wl_running *r, sqlite3_stmt *s, int first, int n, wl_val *out,
                          wl_error *err) WL_MUST;

/* ---- dml/vtab.c */
int wl_dml_register(wl_conn *c);
wl_status wl_dml_module(wl_conn *c, int n_cols, wl_error *err) WL_MUST;

/* ---- dml/rewrite.c: for prepare.c */
/* Whether SQLite's message may come of what it does not do with virtual tables alone. */
bool wl_dml_refused(const char *message, const char *sql, size_t n);
/* The statement that takes the original's place. original: SQLite's, or NULL where it refused it.
** WL_NOT_TAKEN: it stays, as it does where *out is NULL, and the reason is told then. WL_ERROR: *rc
** is what prepare gives, and the connection has the message. */
wl_status wl_dml_prepare(wl_conn *c, const char *sql, size_t n, sqlite3_stmt *original,
                         sqlite3_stmt **out, int *rc, wl_error *err) WL_MUST;

/* Asks the authorizer about a change that SQLite prepares again. *rc: SQLITE_AUTH, if it denies. */
wl_status wl_dml_ask(wl_conn *c, const char *sql, wl_mask **mask, int *rc, wl_error *err) WL_MUST;

/* A list of rowids as a table, wl_rowids(pointer). */
typedef struct wl_rowlist {
  const wl_i64 *rowids;
  wl_i64 n;
} wl_rowlist;
#define WL_ROWLIST_TYPE "warplite_rowids"

#endif
