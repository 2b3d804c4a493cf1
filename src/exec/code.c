/*
** See code.h.
*/
#include "exec/code.h"
#include "base/mem.h"
#include "column/lookup.h"
#include <string.h>

/* Code that takes more memory is not kept. A connection keeps at most 128 texts. */
enum { MOST_BYTES = 128 << 10 };

wl_code *wl_code_new(void) {
  wl_code *c = wl_mem_zalloc(sizeof *c);
  if (c) c->refs = 1;
  return c;
}

wl_code *wl_code_hold(wl_code *c) {
  c->refs++;
  return c;
}

void wl_code_drop(wl_code *c) {
  if (!c || --c->refs) return;
  wl_arena_close(&c->arena);
  wl_mem_free(c);
}

static wl_u64 id_of(const wl_column *c) {
  return c ? c->id : 0;
}

static bool same_value(wl_val a, wl_val b) {
  if (a.t != b.t) return false;
  if (a.t == WL_T_NULL) return true;
  if (a.t < WL_T_TEXT) return a.v == b.v;
  return a.n == b.n && (a.n == 0 || memcmp(wl_bytes(a), wl_bytes(b), a.n) == 0);
}

bool wl_code_fits(const wl_code *c, const wl_query_env *env, const wl_compile_in *in,
                  int n_columns) {
  if (c->n_columns != n_columns || c->n_sources != in->query->n_sources ||
      c->n_params != in->n_params || c->max_text != in->max_text ||
      c->max_pattern != in->max_pattern || c->rowid_order != in->rowid_order ||
      c->unordered != in->unordered || c->wanted != env->device)
    return false;
  if (c->n_lookups && !env->set->keep) return false;
  for (int k = 0; k < n_columns; k++)
    if (c->columns[k] != id_of(in->cols[k])) return false;
  for (int k = 0; k < c->n_sources; k++)
    if (c->rows[k] != in->source_rows[k]) return false;
  for (int k = 0; k < c->n_params; k++)
    if (!same_value(c->params[k], in->params[k])) return false;
  return true;
}

bool wl_code_find_lookups(const wl_code *c, wl_lookup **out) {
  for (int k = 0; k < c->n_lookups; k++) {
    out[k] = wl_cache_find_lookup(c->lookups[k].key);
    if (out[k] && out[k] == c->lookups[k].lookup && out[k]->id == c->lookups[k].id) continue;
    for (; k >= 0; k--) {
      wl_lookup_drop(out[k]);
      out[k] = NULL;
    }
    return false;
  }
  return true;
}

bool wl_code_finish(wl_code *c, const wl_query_env *env, const wl_compile_in *in, int n_columns,
                    const wl_lookup_key *keys, int n_lookups) {
  wl_arena *a = &c->arena;
  if (n_lookups && !env->set->keep) return false;
  for (int k = 0; k < n_lookups; k++)
    if (!in->lookups[k] || (!keys[k].high && !keys[k].low)) return false;
  c->columns = WL_NEW_N(a, wl_u64, n_columns + 1);
  c->rows = WL_NEW_N(a, wl_i64, in->query->n_sources + 1);
  c->params = WL_NEW_N(a, wl_val, in->n_params + 1);
  c->lookups = WL_NEW_N(a, wl_code_lookup, n_lookups + 1);
  if (a->failed) return false;
  for (int k = 0; k < n_columns; k++) c->columns[k] = id_of(in->cols[k]);
  for (int k = 0; k < in->query->n_sources; k++) c->rows[k] = in->source_rows[k];
  for (int k = 0; k < in->n_params; k++) {
    c->params[k] = in->params[k];
    if (c->params[k].t >= WL_T_TEXT && c->params[k].n)
      c->params[k].v = (wl_u64)(size_t)wl_arena_strndup(a, (const char *)wl_bytes(in->params[k]),
                                                        in->params[k].n);
  }
  for (int k = 0; k < n_lookups; k++)
    c->lookups[k] = (wl_code_lookup){keys[k], in->lookups[k], in->lookups[k]->id};
  c->n_columns = n_columns;
  c->n_sources = in->query->n_sources;
  c->n_params = in->n_params;
  c->n_lookups = n_lookups;
  c->max_text = in->max_text;
  c->max_pattern = in->max_pattern;
  c->rowid_order = in->rowid_order;
  c->unordered = in->unordered;
  c->wanted = env->device;
  return !a->failed && a->n_bytes <= MOST_BYTES;
}
