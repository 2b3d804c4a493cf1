/*
** Brings the groups of a device to the host, as groups of the CPU; see group_device.h.
*/
#include "exec/gpu/sinks/group_device_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "value/aggregates.h"
#include <stdlib.h>
#include <string.h>

enum { IMPORT_TASK = 1 << 14 }; /* groups that a thread adds to the host's at a time */

static wl_val number_key(const wl_dgroups *g, int k, wl_u64 slot, const wl_u64 *record) {
  wl_u64 word = g->k.mode == WL_KG_HASH ? record[0] - 1 : slot + g->k.base;
  const wl_u64 *words = g->k.mode == WL_KG_WIDE ? record + 1 : &word;
  wl_val v = wl_key_layout_decode(&g->layout, k, words, false);
  if (v.t != WL_T_REAL || wl_as_f64(v.v) != 0.0) return v;
  int bit = 0; /* a zero has the sign that it has in the first row */
  for (int i = 0; g->parts[i].key != k; i++) bit += g->parts[i].kind == WL_PART_REAL;
  return wl_real(~record[g->k.first_word] >> bit & 1 ? -0.0 : 0.0);
}

static wl_val key_value(const wl_dgroups *g, int k, wl_u64 slot, const wl_u64 *record) {
  wl_val v = number_key(g, k, slot, record);
  int coder = g->coded.n ? g->coded.look_of_key[k] : -1;
  if (coder < 0 || v.t == WL_T_NULL) return v;
  if (g->coders[coder].word) v = wl_int((wl_i64)(record[g->coders[coder].word] & 0xffffffffULL));
  return wl_dgroups_of_code(g, coder, v);
}

static wl_val best_value(wl_u32 op, wl_u64 rank, wl_u64 extra) {
  bool min = op == WL_OP__AggMinI || op == WL_OP__AggMinF;
  bool real = op == WL_OP__AggMinF || op == WL_OP__AggMaxF;
  if (rank == 0 && extra == 0) return wl_null();
  wl_val v = wl_agg_unrank(min, real, rank);
  if (real && wl_as_f64(v.v) == 0.0 && ~extra & 1) v = wl_real(-0.0); /* the first zero's sign */
  return v;
}

/* The better of an integer and a real. *tied: they are equal, so the first row would decide. */
static wl_val best_number(wl_u32 op, const wl_u64 *w, bool *tied) {
  bool min = op == WL_OP__AggMinN;
  wl_val i = best_value(min ? WL_OP__AggMinI : WL_OP__AggMaxI, w[0], w[1]);
  wl_val r = best_value(min ? WL_OP__AggMinF : WL_OP__AggMaxF, w[2], w[3]);
  if (i.t == WL_T_NULL || r.t == WL_T_NULL) return i.t == WL_T_NULL ? r : i;
  int c = wl_cmp_if((wl_i64)i.v, wl_as_f64(r.v));
  *tied |= c == 0;
  return min == (c < 0) ? i : r;
}

static __int128 limbs(wl_u64 lo, wl_i64 hi) {
  return (__int128)hi * ((__int128)1 << 32) + lo;
}

/* Whether the sum of these distinct integers may leave 64 bits in some order. */
static bool may_overflow(const wl_group_part *part) {
  __int128 positive = ((__int128)part->magnitude + part->sum) / 2;
  return positive > WL_I64_MAX || part->sum - positive < WL_I64_MIN;
}

static void put_digits(const wl_u64 *w, wl_group_part *out) {
  for (int j = 0; j < 3; j++) {
    out->digits[j] = (wl_i64)w[j];
    out->high[j] = (wl_i64)w[3 + j];
  }
}

static void part_of(const wl_dgroups *g, int k, const wl_u64 *record, wl_group_part *out,
                    bool *tied) {
  const wl_kgacc *a = &g->k.accs[k];
  const wl_u64 *w = record + a->word;
  wl_u32 n_sums = 0;
  memset(out, 0, sizeof *out);
  switch (a->op) {
  case WL_OP__AggRows:
  case WL_OP__AggCount: break;
  case WL_OP__AggSumI:
    out->sum = (wl_i64)w[0]; /* which fits in every order */
    out->magnitude = (unsigned __int128)(out->sum < 0 ? -out->sum : out->sum);
    n_sums = 1;
    break;
  case WL_OP__AggSumX:
  case WL_OP__AggSumV:
    out->sum = limbs(w[0], (wl_i64)w[1]);
    out->magnitude = (unsigned __int128)limbs(w[2], (wl_i64)w[3]);
    n_sums = 4;
    if (a->op == WL_OP__AggSumX) break;
    put_digits(w + 4, out);
    out->n_reals = (wl_i64)w[10];
    n_sums = 11;
    break;
  case WL_OP__AggSumF:
    put_digits(w, out);
    n_sums = 6;
    break;
  case WL_OP__AggMinN:
  case WL_OP__AggMaxN: out->best = best_number(a->op, w, tied); break;
  case WL_OP__AggMinV:
  case WL_OP__AggMaxV: out->best = wl_dgroups_kept_value(g, (int)a->coder, w[0]); break;
  default: out->best = best_value(a->op, w[0], w[1]);
  }
  out->count = (wl_i64)(a->counted ? w[n_sums] : record[g->k.rows_word]);
  if (a->op == WL_OP__AggSumF) out->n_reals = out->count;
}

/* Whether a sum() of the group is of distinct integers and may overflow. */
static bool is_unsure(const wl_dgroups *g, const wl_group_part *parts) {
  const wl_program *p = g->p;
  for (int k = 0; k < p->n_aggs; k++)
    if (p->aggs[k].final == WL_AGG_SUM && g->k.accs[p->aggs[k].acc].set &&
        may_overflow(&parts[p->aggs[k].acc]))
      return true;
  return false;
}

/* Orders the side list, triples (accumulator, slot, bits), by slot. */
static int by_slot(const void *a, const void *b) {
  const wl_u64 *x = a, *y = b;
  return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* Adds the side list's reals of a slot to its group. */
static wl_status put_side(const wl_dgroups *g, wl_u64 slot, wl_groups *into, wl_u32 group) {
  wl_u64 lo = 0, hi = g->n_side;
  while (lo < hi) {
    wl_u64 mid = lo + (hi - lo) / 2;
    if (g->side[3 * mid + 1] < slot)
      lo = mid + 1;
    else
      hi = mid;
  }
  wl_status rc = WL_OK;
  for (; lo < g->n_side && g->side[3 * lo + 1] == slot && !rc; lo++)
    rc = wl_groups_import_real(into, (int)g->side[3 * lo], group, wl_as_f64(g->side[3 * lo + 2]));
  return rc;
}

/* Adds n packed records, at most WL_IMPORT_MOST, to the host's groups. */
static wl_status put_some(wl_dgroups *g, const wl_u64 *dense, int n, wl_val *keys,
                          wl_group_part *parts, wl_groups *into, wl_error *err) {
  wl_u64 words = 1 + g->k.words;
  bool tied = false;
  wl_u32 groups[WL_IMPORT_MOST];
  wl_i64 rows[WL_IMPORT_MOST] = {0};
  for (int i = 0; i < n; i++) {
    const wl_u64 *record = dense + (wl_u64)i * words + 1;
    for (int k = 0; k < g->p->n_keys; k++)
      keys[k * WL_IMPORT_MOST + i] = key_value(g, k, record[-1], record);
    for (int k = 0; k < g->p->n_accs; k++)
      part_of(g, k, record, &parts[i * g->p->n_accs + k], &tied);
  }
  if (tied)
    return wl_not_taken(err, "min() or max() has ties of integers and reals, and needs row order");
  for (int i = 0; i < n; i++) {
    const wl_u64 *record = dense + (wl_u64)i * words + 1;
    rows[i] = g->p->n_before;
    if (g->k.row_word) rows[i] += 0xffffffffLL - (wl_i64)record[g->k.row_word]; /* see kg_rank() */
  }
  wl_status rc = wl_groups_import(into, n, keys, rows, parts, groups);
  for (int i = 0; i < n && !rc && g->n_side; i++)
    rc = put_side(g, dense[(wl_u64)i * words], into, groups[i]);
  if (rc == WL_NOMEM) return wl_nomem(err);
  if (rc == WL_NOT_TAKEN) return wl_not_taken(err, "the groups need more memory than there is");
  return rc;
}

typedef struct importing {
  wl_dgroups *g;
  const wl_groups_to *to;
  const wl_u64 *dense; /* [n] packed records */
  wl_u64 n;
} importing;

/* Adds a stretch of the packed records to the groups of a worker. Every record is another group, so
** it does not matter who adds it. */
static wl_status import_task(void *arg, int worker, long task, wl_error *err) {
  const importing *m = arg;
  wl_dgroups *g = m->g;
  wl_u64 at = (wl_u64)task * IMPORT_TASK, end = m->n - at < IMPORT_TASK ? m->n : at + IMPORT_TASK;
  size_t most = WL_IMPORT_MOST;
  wl_val *keys = wl_mem_alloc(((size_t)g->p->n_keys + 1) * most * sizeof *keys);
  wl_group_part *parts = wl_mem_alloc(((size_t)g->p->n_accs + 1) * most * sizeof *parts);
  wl_groups **into = &m->to->workers[worker];
  wl_status rc = keys && parts ? WL_OK : wl_nomem(err);
  if (!rc && !*into) rc = wl_groups_open(m->to->plan, into, err);
  for (; at < end && !rc; at += most) {
    int some = end - at < most ? (int)(end - at) : (int)most;
    rc = put_some(g, m->dense + at * (1 + g->k.words), some, keys, parts, *into, err);
    for (int i = 0; i < some && !rc && g->p->n_sets; i++)
      if (is_unsure(g, &parts[i * g->p->n_accs]))
        rc = wl_not_taken(err, "a sum() of DISTINCT values may overflow");
  }
  wl_mem_free(keys);
  wl_mem_free(parts);
  return rc;
}

/* Adds n packed records to the host's groups. */
static wl_status put_records(wl_dgroups *g, const wl_u64 *dense, wl_u64 n, const wl_groups_to *to,
                             wl_stop *stop, wl_error *err) {
  importing m = {g, to, dense, n};
  bool begun = false;
  for (int k = 0; k < to->n_workers; k++) begun |= to->workers[k] != NULL;
  if (!begun && g->k.n_slots <= g->n_pack_slots) wl_grouping_expect(to->plan, (wl_i64)n);
  wl_tasks tasks = {to->n_workers, (long)((n + IMPORT_TASK - 1) / IMPORT_TASK), import_task, &m,
                    stop};
  return wl_tasks_run(&tasks, NULL, err);
}

static wl_status fetch_slots(wl_dgroups *g, wl_u64 first, wl_u64 end, wl_u64 *dense,
                             const wl_groups_to *to, wl_stop *stop, wl_error *err) {
  wl_u64 *n_packed = g->counters + C_PACKED, n = 0;
  wl_kgpack args = {g->k.table, first, end, g->pack, n_packed, g->k.words, g->k.rows_word};
  wl_status rc = g->d->fill(g->d, n_packed, 0, 8, err);
  if (!rc) rc = wl_device_each(g->d, WL_K_GROUP_PACK, &args, sizeof args, end - first, err);
  if (!rc) rc = g->d->copy_out(g->d, &n, n_packed, 8, err);
  if (!rc && n) rc = g->d->copy_out(g->d, dense, g->pack, n * (1 + g->k.words) * 8, err);
  return rc ? rc : put_records(g, dense, n, to, stop, err);
}

/* Moves to the next range of keys or part of the hashes. Returns false after the last one. */
static bool next_pass(wl_dgroups *g) {
  if (g->k.mode == WL_KG_DIRECT && g->total - g->k.base > g->k.n_slots) {
    g->k.base += g->k.n_slots;
    return true;
  }
  return g->k.mode >= WL_KG_HASH && ++g->k.part < g->k.n_parts;
}

bool wl_dgroups_one_pass(const wl_dgroups *g) {
  return g->k.mode == WL_KG_DIRECT ? g->k.base == 0 && g->total <= g->k.n_slots
                                   : g->k.mode < WL_KG_HASH || g->k.n_parts <= 1;
}

wl_status wl_dgroups_fetch(wl_dgroups *g, const wl_groups_to *to, wl_stop *stop, bool *again,
                           wl_error *err) {
  wl_u64 *dense = NULL;
  *again = false;
  if (g->n_side) qsort(g->side, g->n_side, 3 * sizeof *g->side, by_slot);
  if (g->k.mode == WL_KG_ONE) return put_records(g, g->one, 1, to, stop, err);
  wl_status rc = wl_dgroups_codes_fetch(g, err);
  if (!rc) rc = g->d->host_alloc(g->d, wl_dgroups_pack_bytes(g), (void **)&dense, err);
  for (wl_u64 at = 0; at < g->k.n_slots && !rc; at += g->n_pack_slots) {
    wl_u64 end = g->k.n_slots - at < g->n_pack_slots ? g->k.n_slots : at + g->n_pack_slots;
    rc = fetch_slots(g, at, end, dense, to, stop, err);
  }
  if (dense) g->d->host_free(g->d, dense);
  if (!rc && next_pass(g)) {
    *again = true;
    rc = wl_dgroups_clear(g, err);
  }
  return rc;
}
