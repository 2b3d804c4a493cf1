/*
** Groups and their accumulators; see group.h.
*/
#include "vm/cpu/group.h"
#include "base/mem.h"
#include "vm/digits.h"
#include "vm/hash.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIRECT_MOST = 1 << 20, MOVE_AFTER = 1 << 20 };

struct wl_groups {
  const wl_program *p;
  int n_keys, n_accs;
  wl_u32 *slots; /* hash: group + 1, or 0 */
  wl_u64 n_slots;
  wl_u64 *hashes; /* [size] */
  wl_val *keys;   /* [size][n_keys] */
  wl_i64 *first;  /* [size]: the first row seen */
  wl_u8 *accs;    /* [size] of width bytes: each accumulator's state at its place */
  size_t width;
  size_t *places; /* [n_accs] */
  wl_i64 n, size;
  wl_u32 *direct; /* by key - lo, NULL last: group + 1, or 0 */
  wl_i64 lo, n_direct;
  double *units; /* of each accumulator's digits */
  int *anchors;
  wl_arena text;
};

/* A short state, for counts and for sums that are proved to fit: most queries have no other. */
typedef struct short_acc {
  wl_i64 count, sum;
} short_acc;

static bool is_short(wl_u16 op) {
  return op == WL_OP__AggRows || op == WL_OP__AggCount || op == WL_OP__AggSumI;
}
static wl_gacc *long_state(const wl_groups *g, wl_i64 group, int k) {
  return (wl_gacc *)(void *)(g->accs + (size_t)group * g->width + g->places[k]);
}
static short_acc *short_state(const wl_groups *g, wl_i64 group, int k) {
  return (short_acc *)(void *)(g->accs + (size_t)group * g->width + g->places[k]);
}

bool wl_groups_direct(const wl_groups *g) {
  return g->direct != NULL;
}

wl_status wl_groups_open(const wl_program *p, wl_groups **out, wl_error *err) {
  wl_groups *g = *out = wl_mem_zalloc(sizeof *g);
  if (!g) return wl_nomem(err);
  g->p = p;
  g->n_keys = p->n_keys;
  g->n_accs = p->n_accs;
  wl_arena_init(&g->text);
  g->units = wl_mem_zalloc(((size_t)p->n_accs + 1) * sizeof *g->units);
  g->anchors = wl_mem_zalloc(((size_t)p->n_accs + 1) * sizeof *g->anchors);
  g->n_slots = 1024;
  g->slots = wl_mem_zalloc(g->n_slots * sizeof *g->slots);
  g->places = wl_mem_zalloc(((size_t)p->n_accs + 1) * sizeof *g->places);
  bool ok = g->units && g->anchors && g->slots && g->places;
  /* the long states first, which want the stricter alignment */
  for (int pass = 0; ok && pass < 2; pass++)
    for (int k = 0; k < p->n_accs; k++) {
      if (is_short(p->accs[k].op) != (pass == 1)) continue;
      g->places[k] = g->width;
      g->width += pass ? sizeof(short_acc) : sizeof(wl_gacc);
    }
  if (ok && p->n_keys == 1 && p->keys[0].reg.type == WL_R_INT && !WL_IS_CONST(p->keys[0].operand)) {
    __int128 span = (__int128)p->keys[0].domain.hi - p->keys[0].domain.lo;
    if (span >= 0 && span < DIRECT_MOST) {
      g->lo = p->keys[0].domain.lo;
      g->n_direct = (wl_i64)span + 2;
      g->direct = wl_mem_zalloc((size_t)g->n_direct * sizeof *g->direct);
      ok = g->direct != NULL;
    }
  }
  if (!ok) {
    wl_groups_close(g);
    *out = NULL;
    return wl_nomem(err);
  }
  for (int k = 0; k < p->n_accs; k++) {
    int a = wl_fsum_anchor_within(p->accs[k].bound);
    g->anchors[k] = a;
    g->units[k] = ldexp(1.0, a);
  }
  return WL_OK;
}

void wl_groups_close(wl_groups *g) {
  if (!g) return;
  for (int k = 0; g->accs && k < g->n_accs; k++)
    for (wl_i64 i = 0; i < g->n && !is_short(g->p->accs[k].op); i++)
      wl_mem_free(long_state(g, i, k)->reals);
  wl_mem_free(g->places);
  wl_arena_close(&g->text);
  wl_mem_free(g->slots);
  wl_mem_free(g->hashes);
  wl_mem_free(g->keys);
  wl_mem_free(g->first);
  wl_mem_free(g->accs);
  wl_mem_free(g->direct);
  wl_mem_free(g->units);
  wl_mem_free(g->anchors);
  wl_mem_free(g);
}

/* ---- finding */

static wl_status grow(wl_groups *g) {
  wl_i64 size = g->size ? g->size * 2 : 256;
  size_t old = (size_t)g->n, more = (size_t)size, nk = (size_t)g->n_keys;
  if (size > 0x7fffffff) return WL_NOMEM;
  wl_u64 *h = wl_mem_realloc(g->hashes, old * 8, more * 8);
  if (h) g->hashes = h;
  wl_val *k = h ? wl_mem_realloc(g->keys, old * nk * sizeof *k, more * nk * sizeof *k) : NULL;
  if (k) g->keys = k;
  wl_i64 *f = k ? wl_mem_realloc(g->first, old * 8, more * 8) : NULL;
  if (f) g->first = f;
  wl_u8 *a = f ? wl_mem_realloc(g->accs, old * g->width, more * g->width + 1) : NULL;
  if (!a) return WL_NOMEM;
  g->accs = a;
  g->size = size;
  return WL_OK;
}

static wl_status rehash(wl_groups *g) {
  wl_u64 n = g->n_slots * 4;
  wl_u32 *s = wl_mem_zalloc(n * sizeof *s);
  if (!s) return WL_NOMEM;
  for (wl_i64 i = 0; i < g->n; i++) {
    wl_u64 at = g->hashes[i] & (n - 1);
    while (s[at]) at = (at + 1) & (n - 1);
    s[at] = (wl_u32)i + 1;
  }
  wl_mem_free(g->slots);
  g->slots = s;
  g->n_slots = n;
  return WL_OK;
}

/* Copies text so that it outlives the vector it came from. */
static wl_status keep(wl_groups *g, wl_val *v) {
  if (v->t < WL_T_TEXT) return WL_OK;
  char *p = wl_arena_strndup(&g->text, (const char *)wl_bytes(*v), v->n);
  if (!p) return WL_NOMEM;
  v->v = (wl_u64)(size_t)p;
  return WL_OK;
}

static wl_status make(wl_groups *g, const wl_val *keys, wl_u64 hash, wl_i64 row, wl_u32 *out) {
  if (g->n == g->size && grow(g)) return WL_NOMEM;
  wl_i64 i = g->n;
  for (int k = 0; k < g->n_keys; k++) {
    wl_val *v = &g->keys[i * g->n_keys + k];
    *v = keys[k];
    if (keep(g, v)) return WL_NOMEM;
  }
  g->hashes[i] = hash;
  g->first[i] = row;
  memset(g->accs + (size_t)i * g->width, 0, g->width);
  g->n++;
  *out = (wl_u32)i;
  return WL_OK;
}

/* The values of the earliest row stand for the group. */
static wl_status earlier(wl_groups *g, wl_u32 i, const wl_val *keys, wl_i64 row) {
  if (row >= g->first[i]) return WL_OK;
  g->first[i] = row;
  for (int k = 0; k < g->n_keys; k++) {
    wl_val *v = &g->keys[(wl_i64)i * g->n_keys + k];
    if (v->t == keys[k].t && v->n == keys[k].n &&
        (v->t < WL_T_TEXT ? v->v == keys[k].v : memcmp(wl_bytes(*v), wl_bytes(keys[k]), v->n) == 0))
      continue;
    *v = keys[k];
    if (keep(g, v)) return WL_NOMEM;
  }
  return WL_OK;
}

wl_status wl_groups_find(wl_groups *g, const wl_val *keys, wl_i64 row, wl_u32 *out) {
  wl_u64 h = 0;
  for (int k = 0; k < g->n_keys; k++) h = wl_hash_mix(h, wl_hash_val(keys[k], g->p->keys[k].coll));
  wl_u64 at = h & (g->n_slots - 1);
  for (; g->slots[at]; at = (at + 1) & (g->n_slots - 1)) {
    wl_u32 i = g->slots[at] - 1;
    if (g->hashes[i] != h) continue;
    const wl_val *have = &g->keys[(wl_i64)i * g->n_keys];
    int k = 0;
    while (k < g->n_keys && wl_cmp_val(have[k], keys[k], g->p->keys[k].coll) == 0) k++;
    if (k < g->n_keys) continue;
    *out = i;
    return earlier(g, i, keys, row);
  }
  if (make(g, keys, h, row, out)) return WL_NOMEM;
  g->slots[at] = *out + 1;
  return (wl_u64)g->n * 2 > g->n_slots ? rehash(g) : WL_OK;
}

wl_status wl_groups_find_ints(wl_groups *g, const wl_i64 *keys, const wl_u8 *valid,
                              const wl_i64 *rows, int n, wl_u32 *out) {
  for (int i = 0; i < n; i++) {
    bool null = valid && !valid[i];
    wl_u32 *at = &g->direct[null ? g->n_direct - 1 : keys[i] - g->lo];
    if (!*at) {
      wl_val key = null ? wl_null() : wl_int(keys[i]);
      if (make(g, &key, 0, rows[i], out + i)) return WL_NOMEM;
      *at = out[i] + 1;
    }
    out[i] = *at - 1;
    if (rows[i] < g->first[out[i]]) g->first[out[i]] = rows[i];
  }
  return WL_OK;
}

/* ---- gathering */

static wl_status spill(wl_groups *g, int k, wl_gacc *s) {
  (void)g;
  if (!s->reals && !(s->reals = wl_mem_zalloc(sizeof *s->reals))) return WL_NOMEM;
  for (int j = 0; j < 3; j++)
    wl_fsum_add_scaled(s->reals, s->digits[j], g->anchors[k] - WL_FSUM_DIGIT * j);
  memset(s->digits, 0, sizeof s->digits);
  s->n_digits = 0;
  return WL_OK;
}

/* A real into the digits, or where they do not hold it, into the full accumulator. */
static wl_status add_real(wl_groups *g, int k, wl_gacc *s, double v) {
  wl_i64 digit[3];
  s->seen_real = true;
  if (wl_digits(v, g->units[k], digit)) {
    for (int j = 0; j < 3; j++) s->digits[j] += digit[j];
    return ++s->n_digits < MOVE_AFTER ? WL_OK : spill(g, k, s);
  }
  if (spill(g, k, s)) return WL_NOMEM;
  wl_fsum_add(s->reals, v);
  return WL_OK;
}

static void add_int(wl_gacc *s, wl_i64 v) {
  s->sum += v;
  s->magnitude += v < 0 ? 0 - (wl_u64)v : (wl_u64)v;
  if (s->seen_real) return;
  if (s->sum < s->low) s->low = s->sum;
  if (s->sum > s->high) s->high = s->sum;
}

static bool is_min(wl_u16 op) {
  return op == WL_OP__AggMinI || op == WL_OP__AggMinF || op == WL_OP__AggMinV;
}

static wl_status add_best(wl_groups *g, const wl_acc *acc, wl_gacc *s, wl_val v, wl_i64 row) {
  if (s->best.t != WL_T_NULL) {
    int c = wl_cmp_val(v, s->best, acc->coll);
    if (c == 0 ? row >= s->best_row : is_min(acc->op) ? c > 0 : c < 0) return WL_OK;
  }
  s->best = v;
  s->best_row = row;
  return keep(g, &s->best);
}

wl_status wl_groups_add(wl_groups *g, int k, wl_u32 group, wl_val v, wl_i64 row) {
  const wl_acc *acc = &g->p->accs[k];
  if (is_short(acc->op)) {
    short_acc *c = short_state(g, group, k);
    if (acc->op != WL_OP__AggRows && v.t == WL_T_NULL) return WL_OK;
    c->count++;
    if (acc->op == WL_OP__AggSumI) c->sum += (wl_i64)v.v;
    return WL_OK;
  }
  wl_gacc *s = long_state(g, group, k);
  if (v.t == WL_T_NULL) return WL_OK;
  s->count++;
  if (acc->op >= WL_OP__AggMinI) return add_best(g, acc, s, v, row);
  if (v.t == WL_T_REAL) return add_real(g, k, s, wl_as_f64(v.v));
  add_int(s, (wl_i64)v.v);
  return WL_OK;
}

bool wl_groups_add_vector(wl_groups *g, int k, const wl_u32 *groups, const wl_u64 *v,
                          const wl_u8 *valid, int n) {
  wl_u8 *base = g->accs + g->places[k];
  switch (g->p->accs[k].op) {
  case WL_OP__AggRows:
    for (int i = 0; i < n; i++) ((short_acc *)(void *)(base + groups[i] * g->width))->count++;
    return true;
  case WL_OP__AggSumI:
    for (int i = 0; i < n; i++) {
      if (valid && !valid[i]) continue;
      short_acc *s = (short_acc *)(void *)(base + groups[i] * g->width);
      s->count++;
      s->sum += (wl_i64)v[i];
    }
    return true;
  default: return false;
  }
}

/* ---- from a device */

static wl_status put_acc(wl_groups *g, int k, wl_u32 group, const wl_group_part *part) {
  if (is_short(g->p->accs[k].op)) {
    short_acc *c = short_state(g, group, k);
    c->count += part->count;
    c->sum += (wl_i64)part->sum;
    return WL_OK;
  }
  wl_gacc *s = long_state(g, group, k);
  s->count += part->count;
  s->sum += part->sum;
  s->magnitude += part->magnitude;
  s->best = part->best;
  if (g->p->accs[k].op != WL_OP__AggSumF || !part->count) return WL_OK;
  s->seen_real = true;
  bool few = part->count < MOVE_AFTER; /* then the whole digits stay below 2^60 */
  for (int j = 0; j < 3; j++)
    s->digits[j] += part->digits[j] + (few ? part->high[j] * ((wl_i64)1 << 32) : 0);
  s->n_digits += part->count;
  if (few) return WL_OK;
  if (spill(g, k, s)) return WL_NOMEM;
  for (int j = 0; j < 3; j++)
    wl_fsum_add_scaled(s->reals, part->high[j], g->anchors[k] - WL_FSUM_DIGIT * j + 32);
  return WL_OK;
}

wl_status wl_groups_put(wl_groups *g, const wl_val *keys, wl_i64 first_row,
                        const wl_group_part *parts, wl_u32 *out) {
  wl_i64 key = (wl_i64)keys[0].v;
  wl_u8 valid = keys[0].t != WL_T_NULL;
  wl_status rc = g->direct ? wl_groups_find_ints(g, &key, &valid, &first_row, 1, out)
                           : wl_groups_find(g, keys, first_row, out);
  for (int k = 0; k < g->n_accs && !rc; k++) rc = put_acc(g, k, *out, &parts[k]);
  return rc;
}

wl_status wl_groups_put_real(wl_groups *g, int acc, wl_u32 group, double v) {
  return add_real(g, acc, long_state(g, group, acc), v);
}

/* ---- joining and finishing */

static wl_status join_acc(wl_groups *g, int k, wl_i64 to, const wl_groups *other, wl_i64 i) {
  if (is_short(g->p->accs[k].op)) {
    short_acc *a = short_state(g, to, k), *b = short_state(other, i, k);
    a->count += b->count;
    a->sum += b->sum;
    return WL_OK;
  }
  wl_gacc *into = long_state(g, to, k);
  const wl_gacc *from = long_state(other, i, k);
  into->count += from->count;
  into->sum += from->sum;
  into->magnitude += from->magnitude;
  into->seen_real |= from->seen_real;
  for (int j = 0; j < 3; j++) into->digits[j] += from->digits[j];
  into->n_digits += from->n_digits;
  if (into->n_digits >= MOVE_AFTER && spill(g, k, into)) return WL_NOMEM;
  if (from->reals) {
    if (spill(g, k, into)) return WL_NOMEM;
    wl_fsum_merge(into->reals, from->reals);
  }
  return from->best.t ? add_best(g, &g->p->accs[k], into, from->best, from->best_row) : WL_OK;
}

wl_status wl_groups_join(wl_groups *into, wl_groups *from) {
  for (wl_i64 i = 0; i < from->n; i++) {
    const wl_val *keys = &from->keys[i * from->n_keys];
    wl_u32 to;
    wl_status rc;
    if (into->direct) {
      wl_i64 key = (wl_i64)keys[0].v;
      wl_u8 valid = keys[0].t != WL_T_NULL;
      rc = wl_groups_find_ints(into, &key, &valid, &from->first[i], 1, &to);
    } else {
      rc = wl_groups_find(into, keys, from->first[i], &to);
    }
    for (int k = 0; k < into->n_accs && !rc; k++) rc = join_acc(into, k, to, from, i);
    if (rc) return rc;
  }
  return WL_OK;
}

bool wl_groups_need_order(const wl_groups *g) {
  for (int a = 0; a < g->p->n_aggs; a++) {
    int k = g->p->aggs[a].acc;
    wl_u16 op = g->p->accs[k].op;
    if (g->p->aggs[a].final != WL_AGG_SUM || (op != WL_OP__AggSumX && op != WL_OP__AggSumV))
      continue;
    for (wl_i64 i = 0; i < g->n; i++)
      if (long_state(g, i, k)->magnitude > (unsigned __int128)WL_I64_MAX) return true;
  }
  return false;
}

typedef struct sorted {
  const wl_groups *g;
  wl_i64 i;
} sorted;

static int by_keys(const void *x, const void *y) {
  const sorted *a = x, *b = y;
  const wl_groups *g = a->g;
  for (int k = 0; k < g->n_keys; k++) {
    int c = wl_cmp_val(g->keys[a->i * g->n_keys + k], g->keys[b->i * g->n_keys + k],
                       g->p->keys[k].coll);
    if (c) return g->p->keys[k].desc ? -c : c;
  }
  return 0;
}

/* A group's state in the form that aggregates are finished from. */
static wl_status state_of(wl_groups *g, wl_i64 i, int k, bool ordered, wl_acc_state *out,
                          wl_error *err) {
  memset(out, 0, sizeof *out);
  if (is_short(g->p->accs[k].op)) {
    out->count = short_state(g, i, k)->count;
    out->sum = short_state(g, i, k)->sum;
    return WL_OK;
  }
  wl_gacc *s = long_state(g, i, k);
  if (s->seen_real && spill(g, k, s)) return wl_nomem(err);
  if (s->reals) out->reals = *s->reals;
  out->count = s->count;
  out->sum = s->sum;
  out->seen_real = s->seen_real;
  out->best = s->best;
  if (ordered) {
    out->low = s->low;
    out->high = s->high;
  }
  return WL_OK;
}

/* The groups in key order; where keys address the groups, that order is there already. */
static void put_in_order(const wl_groups *g, sorted *order) {
  wl_i64 n = 0;
  if (!g->direct) {
    for (; n < g->n; n++) order[n] = (sorted){g, n};
    qsort(order, (size_t)g->n, sizeof *order, by_keys);
    return;
  }
  bool desc = g->p->keys[0].desc;
  for (wl_i64 i = 0; i < g->n_direct; i++) {
    /* NULL, which is last in the table, is least */
    wl_i64 at = i == 0 ? g->n_direct - 1 : i - 1;
    if (desc) at = i == g->n_direct - 1 ? g->n_direct - 1 : g->n_direct - 2 - i;
    if (g->direct[at]) order[n++] = (sorted){g, g->direct[at] - 1};
  }
}

wl_status wl_groups_finish(wl_groups *g, bool ordered, wl_val **rows, wl_i64 *n, wl_error *err) {
  const wl_program *p = g->p;
  int width = p->n_keys + p->n_aggs;
  sorted *order = wl_mem_alloc((size_t)(g->n + 1) * sizeof *order);
  wl_val *out = *rows = wl_mem_alloc((size_t)g->n * (size_t)width * sizeof *out + 1);
  wl_status rc = order && out ? WL_OK : wl_nomem(err);
  if (!rc) put_in_order(g, order);
  *n = 0;
  for (wl_i64 r = 0; r < g->n && !rc; r++) {
    wl_i64 i = order[r].i;
    memcpy(out + r * width, &g->keys[i * g->n_keys], (size_t)g->n_keys * sizeof *out);
    for (int a = 0; a < p->n_aggs && !rc; a++) {
      wl_acc_state state;
      rc = state_of(g, i, p->aggs[a].acc, ordered, &state, err);
      if (!rc) rc = wl_acc_final(p, &p->aggs[a], &state, &out[r * width + g->n_keys + a], err);
    }
    if (!rc) *n = r + 1;
  }
  wl_mem_free(order);
  return rc;
}
