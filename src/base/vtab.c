/*
** See vtab.h.
*/
#include "base/vtab.h"
#include <string.h>

void wl_vtab_say(sqlite3_vtab *v, const char *text) {
  sqlite3_free(v->zErrMsg);
  v->zErrMsg = sqlite3_mprintf("%s", text);
}

int wl_vtab_fail(sqlite3_vtab *v, const wl_error *err) {
  wl_vtab_say(v, err->text);
  /* SQLite must get only its own codes: it would take WL_NOT_TAKEN, 10001, for SQLITE_SCHEMA. */
  return err->code && err->code != WL_NOT_TAKEN ? (int)err->code : SQLITE_ERROR;
}

int wl_vtab_new(sqlite3 *db, const char *declaration, bool direct_only, size_t n_bytes,
                sqlite3_vtab **out) {
  *out = NULL;
  int rc = declaration ? sqlite3_declare_vtab(db, declaration) : SQLITE_NOMEM;
  if (!rc && direct_only) rc = sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
  if (rc) return rc;
  *out = sqlite3_malloc64(n_bytes);
  if (!*out) return SQLITE_NOMEM;
  memset(*out, 0, n_bytes);
  return SQLITE_OK;
}

int wl_vtab_arguments(sqlite3_index_info *info, int first, int *n_given, int *text) {
  *n_given = 0;
  *text = -1;
  for (int i = 0; i < info->nConstraint; i++) {
    int arg = info->aConstraint[i].iColumn - first;
    if (arg < 0 || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    if (!info->aConstraint[i].usable) return SQLITE_CONSTRAINT;
    info->aConstraintUsage[i].argvIndex = arg + 1;
    info->aConstraintUsage[i].omit = 1;
    if (arg == 0) *text = i;
    ++*n_given;
  }
  return SQLITE_OK;
}

int wl_vtab_free(sqlite3_vtab *v) {
  sqlite3_free(v->zErrMsg); /* SQLite does not take over the message of every callback */
  sqlite3_free(v);
  return SQLITE_OK;
}

int wl_vtab_free_cursor(sqlite3_vtab_cursor *c) {
  sqlite3_free(c);
  return SQLITE_OK;
}

int wl_vtab_new_cursor(size_t n_bytes, sqlite3_vtab_cursor **out) {
  *out = sqlite3_malloc64(n_bytes);
  if (!*out) return SQLITE_NOMEM;
  memset(*out, 0, n_bytes);
  return SQLITE_OK;
}
