/*
** The SQL functions: warplite_version, warplite_set, warplite_reason, warplite_sql; warplite_load
** and warplite_unload (load.c), warplite_convert (convert.c) and warplite_check (check.c).
*/
#include "api/functions.h"
#include "base/mem.h"
#include "column/cache.h"
#include "warplite.h"
#include <string.h>

static void fn_version(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  (void)args;
  sqlite3_result_text(ctx, WARPLITE_VERSION, -1, SQLITE_STATIC);
}

static void fn_reason(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  (void)args;
  wl_conn *c = sqlite3_user_data(ctx);
  sqlite3_result_text(ctx, c->reason, -1, SQLITE_TRANSIENT);
}

void wl_result_error(sqlite3_context *ctx, const wl_error *err) {
  sqlite3_result_error(ctx, err->text, -1);
  if (err->code != WL_ERROR && err->code != WL_NOT_TAKEN)
    sqlite3_result_error_code(ctx, (int)err->code);
}

static void fn_set(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  wl_conn *c = sqlite3_user_data(ctx);
  wl_error err = {0};
  const char *name = (const char *)sqlite3_value_text(args[0]);
  const char *value = (const char *)sqlite3_value_text(args[1]);
  if (wl_settings_set(&c->set, name, value, &err)) {
    wl_result_error(ctx, &err);
    return;
  }
  wl_store_set_budget(c->store, c->set.host_budget);
  wl_store_set_threads(c->store, c->set.threads);
  /* Statements in progress keep the lookups that they use. */
  if (!c->set.keep) wl_cache_drop_lookups_of(wl_store_member(c->store));
  sqlite3_result_text(ctx, value, -1, SQLITE_TRANSIENT);
}

/* warplite_sql(text): the text to prepare instead. */
static void fn_sql(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  wl_conn *c = sqlite3_user_data(ctx);
  const char *text = (const char *)sqlite3_value_text(args[0]), *tail = NULL;
  sqlite3_stmt *original = NULL, *s = NULL;
  if (!text) return; /* NULL */
  /* A change is left as it is: its rewritten text is for one run only. */
  int rc = sqlite3_prepare_v2(c->db, text, -1, &original, &tail);
  bool reads = !rc && original && !*tail && sqlite3_stmt_readonly(original) &&
               sqlite3_column_count(original) > 0 && !sqlite3_stmt_isexplain(original);
  sqlite3_finalize(original);
  if (!rc && !reads) {
    sqlite3_result_value(ctx, args[0]);
    return;
  }
  rc = warplite_prepare(c->db, text, -1, &s, &tail);
  if (rc == SQLITE_NOMEM) {
    sqlite3_result_error_nomem(ctx);
  } else if (rc) {
    sqlite3_result_error(ctx, sqlite3_errmsg(c->db), -1);
    sqlite3_result_error_code(ctx, rc);
  } else {
    sqlite3_result_text(ctx, sqlite3_sql(s), -1, SQLITE_TRANSIENT);
  }
  sqlite3_finalize(s);
}

int wl_functions_register(wl_conn *c) {
  static const struct {
    const char *name;
    int n_args;
    void (*fn)(sqlite3_context *, int, sqlite3_value **);
  } list[] = {{"warplite_version", 0, fn_version},  {"warplite_reason", 0, fn_reason},
              {"warplite_set", 2, fn_set},          {"warplite_load", 1, wl_load},
              {"warplite_load", 2, wl_load_select}, {"warplite_unload", 1, wl_unload},
              {"warplite_convert", 1, wl_convert},  {"warplite_convert", 2, wl_convert},
              {"warplite_check", 1, wl_check},      {"warplite_sql", 1, fn_sql}};
  int rc = SQLITE_OK;
  for (size_t i = 0; i < sizeof list / sizeof *list && !rc; i++)
    rc = sqlite3_create_function(c->db, list[i].name, list[i].n_args,
                                 SQLITE_UTF8 | SQLITE_DIRECTONLY, c, list[i].fn, NULL, NULL);
  return rc;
}
