/*
** xUpdate: a row that SQLite inserts, changes or deletes; a command; rows of warplite_append()
** (arrow_append.h); or a row that stands for a change already made (dmlrow.h).
*/
#include "base/mem.h"
#include "tablet/write/arrow_append.h"
#include "tablet/write/dmlrow.h"
#include "tablet/vtab/vtab_impl.h"

static int fail_violation(sqlite3_vtab *v, const wl_violation *x) {
  sqlite3_free(v->zErrMsg);
  v->zErrMsg = NULL;
  /* OR IGNORE: no message, because SQLite would report it with a later error */
  if (sqlite3_vtab_on_conflict(((wl_tablet_table *)v)->t->db) != SQLITE_IGNORE)
    v->zErrMsg = sqlite3_mprintf("%s", x->text);
  return x->code;
}

static int fail_mismatch(sqlite3_vtab *v) {
  wl_vtab_say(v, "datatype mismatch");
  return SQLITE_MISMATCH;
}

/* Converts a value to a rowid. *is is false if it is not one. */
static wl_i64 value_as_rowid(sqlite3_value *v, bool *is) {
  int type = sqlite3_value_numeric_type(v);
  double r = type == SQLITE_FLOAT ? sqlite3_value_double(v) : 0;
  *is = type == SQLITE_INTEGER || (type == SQLITE_FLOAT && r > -9223372036854775808.0 &&
                                   r < 9223372036854775808.0 && (double)(wl_i64)r == r);
  return type == SQLITE_FLOAT && *is ? (wl_i64)r : sqlite3_value_int64(v);
}

/* Runs a command, such as 'optimize', that was inserted into the hidden column. */
static int run_command(wl_tablet_table *v, sqlite3_value *arg, wl_error *err) {
  const char *text = (const char *)sqlite3_value_text(arg);
  wl_status rc;
  if (text && sqlite3_stricmp(text, "optimize") == 0)
    rc = wl_tablets_optimize(v->t, err);
  else if (text && sqlite3_stricmp(text, "fold") == 0)
    rc = wl_tablets_fold(v->t, err);
  else
    rc = wl_fail(err, WL_ERROR,
                 "table %.100s has no command '%.100s': the commands are 'optimize' and 'fold'",
                 v->t->name, text ? text : "");
  return rc ? wl_vtab_fail(&v->base, err) : SQLITE_OK;
}

/* Deletes every row that conflicts with the new one, for OR REPLACE. */
static wl_status delete_conflicts(wl_tablets *t, const wl_val *values, wl_i64 rowid,
                                  const wl_i64 *skip, wl_error *err) {
  for (;;) {
    wl_violation x;
    bool found;
    wl_status rc = wl_row_conflict(t, values, rowid, skip, &x, err);
    if (rc || !x.code) return rc;
    rc = wl_row_delete(t, x.rowid, &found, err);
    if (rc) return rc;
  }
}

/* Inserts a row, or changes the one at *old. */
static int write_row(wl_tablet_table *v, const wl_i64 *old, sqlite3_value *rowid_arg,
                     sqlite3_value **args, sqlite3_int64 *out) {
  wl_tablets *t = v->t;
  wl_error err = {0};
  wl_violation x = {0};
  int policy = sqlite3_vtab_on_conflict(t->db);
  int alias = t->decl->rowid_col;
  wl_i64 rowid = 0;
  bool given = false, is = true, found = true;
  wl_row_begin(t);
  wl_status rc = wl_tablets_refresh(t, &err);
  wl_val *values = wl_mem_alloc(((size_t)t->n_cols + 1) * sizeof *values);
  if (!rc && !values) rc = wl_nomem(&err);
  /* UPDATE OR REPLACE may have deleted the row already, in favour of an earlier one */
  if (!rc && old && policy == SQLITE_REPLACE) rc = wl_row_there(t, *old, &found, &err);
  if (rc || !found) goto done;
  /* An UPDATE that does not set the rowid passes the old one */
  if (rowid_arg && sqlite3_value_type(rowid_arg) != SQLITE_NULL) {
    rowid = value_as_rowid(rowid_arg, &is);
    given = !(old && is && rowid == *old && alias >= 0);
  } else if (old) {
    is = false;
  }
  if (is && !given && alias >= 0 && sqlite3_value_type(args[alias]) != SQLITE_NULL) {
    rowid = value_as_rowid(args[alias], &is);
    given = true;
  } else if (old && !given && alias >= 0) {
    is = false;
  }
  if (!is) {
    wl_mem_free(values);
    return fail_mismatch(&v->base);
  }
  if (!old && !given) rc = wl_row_new_rowid(t, &rowid, &err);
  for (int i = 0; i < t->n_cols; i++)
    values[i] = i == alias ? wl_int(rowid) : wl_sqlite_val(args[i]);
  if (!rc && (!old || policy == SQLITE_REPLACE)) rc = wl_row_defaults(t, values, &err);
  if (!rc) rc = wl_row_check(t, values, rowid, policy == SQLITE_REPLACE, &x, &err);
  if (!rc && !x.code) {
    if (policy == SQLITE_REPLACE)
      rc = delete_conflicts(t, values, rowid, old, &err);
    else
      rc = wl_row_conflict(t, values, rowid, old, &x, &err);
  }
  if (!rc && !x.code) {
    rc = old ? wl_row_change(t, *old, rowid, values, &err) : wl_row_put(t, rowid, values, &err);
    *out = rowid;
  }
done:
  wl_mem_free(values);
  if (rc) return wl_vtab_fail(&v->base, &err);
  return x.code ? fail_violation(&v->base, &x) : SQLITE_OK;
}

/* Appends the rows of warplite_append(). */
static int append_rows(wl_tablet_table *v, wl_append *a, sqlite3_int64 *rowid) {
  wl_error err = {0};
  wl_i64 last = 0;
  a->status = wl_append_rows(v->t, a->schema, a->rows, a->n_threads, &last, &err);
  *rowid = last;
  if (a->status == WL_NOT_TAKEN) err.code = (wl_status)SQLITE_CONSTRAINT;
  return a->status ? wl_vtab_fail(&v->base, &err) : SQLITE_OK;
}

static int apply_update(sqlite3_vtab *p, int argc, sqlite3_value **argv, sqlite3_int64 *rowid) {
  wl_tablet_table *v = (wl_tablet_table *)p;
  wl_error err = {0};
  bool found;
  if (argc == 1) {
    wl_row_begin(v->t);
    return wl_row_delete(v->t, sqlite3_value_int64(argv[0]), &found, &err) ? wl_vtab_fail(p, &err)
                                                                           : SQLITE_OK;
  }
  bool insert = sqlite3_value_type(argv[0]) == SQLITE_NULL;
  sqlite3_value *hidden = argv[2 + v->t->n_cols];
  wl_append *rows = insert ? sqlite3_value_pointer(hidden, WL_APPEND_TYPE) : NULL;
  if (rows) return append_rows(v, rows, rowid);
  if (insert && sqlite3_value_type(hidden) != SQLITE_NULL) return run_command(v, hidden, &err);
  wl_i64 old = insert ? 0 : sqlite3_value_int64(argv[0]);
  return write_row(v, insert ? NULL : &old, argv[1], argv + 2, rowid);
}

/* Restores last_insert_rowid(), which must not show rowids of shadow tables. If a row was inserted,
** SQLite sets it after us. */
int wl_tablet_update(sqlite3_vtab *p, int argc, sqlite3_value **argv, sqlite3_int64 *rowid) {
  wl_tablets *t = ((wl_tablet_table *)p)->t;
  wl_dmlrun *run = t->run;
  /* There may be millions of rows that are only counted, so this does as little as possible. */
  if (run && argc > 1 && run->at_once && run->kind != WL_DMLROW_FAILS &&
      sqlite3_value_int64(argv[2 + t->n_cols]) == run->token) {
    if (run->kind == WL_DMLROW_NEW) run->last_rowid = run->rowid;
    *rowid = run->last_rowid;
    return SQLITE_OK;
  }
  sqlite3 *db = ((wl_tablet_table *)p)->t->db;
  const char *text = NULL;
  int code;
  /* A row of a change that has been made comes first, because there may be millions of them. */
  if (argc > 1 && sqlite3_value_type(argv[0]) == SQLITE_NULL &&
      wl_dmlrow_read(db, argv, argv[2 + ((wl_tablet_table *)p)->t->n_cols], &code, rowid, &text)) {
    if (code) {
      wl_vtab_say(p, text);
    }
    return code;
  }
  wl_error err = {0};
  if (wl_tablets_inside_step(t)) {
    (void)wl_tablets_reentered(t, &err);
    return wl_vtab_fail(p, &err);
  }
  sqlite3_int64 last = sqlite3_last_insert_rowid(db);
  int rc = apply_update(p, argc, argv, rowid);
  sqlite3_set_last_insert_rowid(db, last);
  return rc;
}
