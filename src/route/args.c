/*
** See args.h.
*/
#include "route/args.h"
#include "base/mem.h"
#include <stdbool.h>

static const char value_type[] = "wl_args"; /* for sqlite3_value_pointer() */

typedef struct values {
  int n;
  sqlite3_value *list[]; /* copies */
} values;

static void values_free(void *p) {
  values *v = p;
  for (int i = 0; i < v->n; i++) sqlite3_value_free(v->list[i]);
  wl_mem_free(v);
}

/* wl_args(?, …). An argument that is itself a result of wl_args() stands for all values in it. */
static void fn_args(sqlite3_context *ctx, int n_args, sqlite3_value **args) {
  int n = 0;
  for (int i = 0; i < n_args; i++) {
    const values *inner = sqlite3_value_pointer(args[i], value_type);
    n += inner ? inner->n : 1;
  }
  values *all = wl_mem_zalloc(sizeof *all + (size_t)n * sizeof *all->list);
  bool failed = !all;
  for (int i = 0; i < n_args && !failed; i++) {
    const values *inner = sqlite3_value_pointer(args[i], value_type);
    for (int k = 0; k < (inner ? inner->n : 1) && !failed; k++) {
      all->list[all->n] = sqlite3_value_dup(inner ? inner->list[k] : args[i]);
      failed = !all->list[all->n];
      all->n += !failed;
    }
  }
  if (!failed) {
    sqlite3_result_pointer(ctx, all, value_type, values_free);
    return;
  }
  if (all) values_free(all);
  sqlite3_result_error_nomem(ctx);
}

int wl_args_register(sqlite3 *db) {
  return sqlite3_create_function(db, "wl_args", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, fn_args,
                                 NULL, NULL);
}

void wl_args_append(sqlite3_str *s, const char *const *list, int n) {
  enum { MOST = 100 };
  int part = 1; /* parameters in one argument of this call */
  while ((n + part - 1) / part > MOST) part *= MOST;
  sqlite3_str_appendall(s, "wl_args(");
  for (int i = 0; i < n; i += part) {
    if (i) sqlite3_str_appendall(s, ",");
    if (part == 1)
      sqlite3_str_appendall(s, list[i]);
    else
      wl_args_append(s, list + i, n - i < part ? n - i : part);
  }
  sqlite3_str_appendall(s, ")");
}

int wl_args_values(sqlite3_value *v, sqlite3_value ***out) {
  values *all = v ? sqlite3_value_pointer(v, value_type) : NULL;
  *out = all ? all->list : NULL;
  return all ? all->n : 0;
}
