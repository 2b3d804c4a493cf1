/*
** The declaration of a tablet table: the arguments of CREATE VIRTUAL TABLE … USING tablet(…),
** which are column definitions and table constraints as CREATE TABLE has them.
**
** Invariants:
** 1. Everything that is accepted means the same as in CREATE TABLE. What a tablet table does not
**    support (REFERENCES, GENERATED, AUTOINCREMENT, ON CONFLICT in a constraint, the application's
**    own collations) is refused with a reason when the table is created.
** 2. keys are in the order in which SQLite would check them. They do not include the rowid. A
**    constraint that is declared twice is one key.
** 3. wl_declare checks syntax and names. wl_declare_verify checks expressions by asking SQLite. It
**    runs only when the table is created.
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
  char affinity;    /* as in store.h, from 'A' (blob) to 'E' (real) */
  wl_u8 coll;
  bool not_null;
  bool constant;     /* dflt is a literal, so it is the same for every row */
  bool dflt_checked; /* default_safe.c has found that dflt may be evaluated */
} wl_decl_column;

/* A UNIQUE constraint, or a PRIMARY KEY that is not the rowid. */
typedef struct wl_decl_key {
  int n;
  int *cols;
  wl_u8 *colls;
  bool primary;
} wl_decl_key;

typedef struct wl_decl_check {
  const char *text; /* the expression */
  const char *name; /* how SQLite's message names it: by its name, or by its text */
} wl_decl_check;

typedef struct wl_decl {
  int n_cols;
  wl_decl_column *cols;
  int rowid_col; /* the INTEGER PRIMARY KEY, or -1 */
  int n_keys;
  wl_decl_key *keys;
  int n_checks;
  wl_decl_check *checks;
  const char *source; /* the arguments as written, separated by commas */
} wl_decl;

/* Parses the arguments of xCreate: each is the text between two commas. The result lives in the
** arena. An error has a message for the user. */
wl_status wl_declare(wl_arena *arena, const char *const *args, int n_args, wl_decl **out,
                     wl_error *err) WL_MUST;

/* Checks the declaration when the table is created. SQLite creates the ordinary table in a database
** in memory, with its own messages for errors in CHECK, DEFAULT and keys. Its columns and keys must
** be those of the declaration. A column must not have the name of the table. */
wl_status wl_declare_verify(const wl_decl *d, const char *table, wl_error *err) WL_MUST;

/* A name without its quotes, if it has any; NULL: no memory. */
char *wl_decl_unquoted(wl_arena *a, const char *s, size_t n);
/* The name of the table's rowid in SQL, not quoted: the INTEGER PRIMARY KEY, or the first of rowid,
** _rowid_ and oid that is not the name of a column. */
const char *wl_decl_rowid_name(const wl_decl *d);

/* These three return NULL if there is no memory. */

/* The text for sqlite3_declare_vtab: names, types, NOT NULL, collations, the rowid's PRIMARY KEY,
** and the hidden column for commands, which has the table's name. */
char *wl_decl_vtab_sql(wl_arena *arena, const wl_decl *d, const char *table);
/* The columns of the delta: names, types, collations, the rowid's PRIMARY KEY; no constraints. */
char *wl_decl_delta_sql(wl_arena *arena, const wl_decl *d);
/* The text between the parentheses of the CREATE TABLE of the same table as an ordinary one. */
char *wl_decl_ordinary_sql(wl_arena *arena, const wl_decl *d);

#endif
