/*
** The declaration of a tablet table: the arguments of CREATE VIRTUAL TABLE … USING tablet(…),
** which are column definitions and table constraints as CREATE TABLE has them.
**
** Invariants:
** 1. What is accepted here means what it means in CREATE TABLE. What a tablet table cannot keep
**    (REFERENCES, GENERATED, AUTOINCREMENT, ON CONFLICT in a constraint, collations of the
**    application's own) is refused when the table is made, with the reason.
** 2. keys are in the order in which SQLite would check them; the rowid is none of them. A
**    constraint that is declared twice is one key.
** 3. wl_declare looks at syntax and names; what the expressions say is wl_declare_verify's, which
**    asks SQLite. A table that was made once needs no second look.
*/
#ifndef WL_DECLARE_H
#define WL_DECLARE_H

#include "base/arena.h"
#include "base/status.h"
#include "value/types.h"

typedef struct wl_decl_column {
  const char *name; /* without quotes */
  const char *type; /* as PRAGMA table_info gives it; "" if there is none */
  const char *dflt; /* the text of its DEFAULT, an expression; NULL: none */
  char affinity;    /* as in store.h: 'A' blob … 'E' real */
  wl_u8 coll;
  bool not_null;
  bool constant;     /* dflt is a literal: the same for every row */
  bool dflt_checked; /* dflt may be evaluated (default_safe.c) */
} wl_decl_column;

/* PRIMARY KEY (that is not the rowid) or UNIQUE. */
typedef struct wl_decl_key {
  int n;
  int *cols;
  wl_u8 *colls;
  bool primary;
} wl_decl_key;

typedef struct wl_decl_check {
  const char *text; /* the expression */
  const char *name; /* what SQLite's message calls it: its name, or its text */
} wl_decl_check;

typedef struct wl_decl {
  int n_cols;
  wl_decl_column *cols;
  int rowid_col; /* the INTEGER PRIMARY KEY, or -1 */
  int n_keys;
  wl_decl_key *keys;
  int n_checks;
  wl_decl_check *checks;
  const char *source; /* the arguments as written, by commas */
} wl_decl;

/* Parses the arguments (each is the text between two commas, as SQLite gives them to xCreate).
** Everything lives in the arena. An error is worded for the user. */
wl_status wl_declare(wl_arena *arena, const char *const *args, int n_args, wl_decl **out,
                     wl_error *err) WL_MUST;

/* When the table is made: SQLite makes the ordinary table in memory, with its own messages for
** what is wrong in CHECK, DEFAULT and keys, and must agree on all columns and keys. Refuses
** a column that is named like the table. */
wl_status wl_declare_verify(const wl_decl *d, const char *table, wl_error *err) WL_MUST;

/* A name without the quotes it may stand in; NULL: no memory. */
char *wl_decl_unquoted(wl_arena *a, const char *s, size_t n);
/* How SQL names the rowid of the table, or of its delta, without quotes: the INTEGER PRIMARY KEY,
** or the one of rowid, _rowid_ and oid that no column is called. */
const char *wl_decl_rowid_name(const wl_decl *d);

/* For sqlite3_declare_vtab: names, types, NOT NULL, collations, the rowid's PRIMARY KEY, and the
** hidden column of commands, named as the table. These three give NULL when memory is short. */
char *wl_decl_vtab_sql(wl_arena *arena, const wl_decl *d, const char *table);
/* The columns of the delta: names, types, collations, the rowid's PRIMARY KEY; no constraints. */
char *wl_decl_delta_sql(wl_arena *arena, const wl_decl *d);
/* The same table as an ordinary one: what stands between the parentheses of its CREATE TABLE. */
char *wl_decl_ordinary_sql(wl_arena *arena, const wl_decl *d);

#endif
