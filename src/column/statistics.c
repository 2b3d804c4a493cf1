/*
** Estimates about columns; see statistics.h.
*/
#include "column/statistics.h"
#include "column/dict.h"
#include "value/hash.h"
#include <math.h>

enum { SAMPLE = 4096, SLOTS = 2 * SAMPLE };

/* The rows of a sample: one at a random place of each of SAMPLE equal parts. A fixed distance would
** meet the period of values that repeat. */
static wl_i64 sample_row(wl_i64 n_rows, wl_i64 i) {
  wl_i64 part = n_rows / SAMPLE;
  return part * i + (wl_i64)(((wl_u64)i * 0x9e3779b97f4a7c15ULL >> 20) % (wl_u64)part);
}

/* How many values there are if n values that are drawn at random have `found` different ones. */
static double drawn_from(double n, double found) {
  double lo = found, hi = 1e12;
  if (found >= n) return hi;
  for (int k = 0; k < 60; k++) {
    double mid = sqrt(lo * hi);
    if (mid * -expm1(-n / mid) < found)
      lo = mid;
    else
      hi = mid;
  }
  return hi;
}

/* Adds a value to the set of those seen. Returns whether it is new. Different values have different
** hashes, or nearly always. */
static bool add(wl_u64 *seen, wl_val v) {
  wl_u64 h = wl_hash_val(v, WL_COLL_BINARY) | 1, at = (h * 0x9e3779b97f4a7c15ULL) % SLOTS;
  while (seen[at] && seen[at] != h) at = (at + 1) % SLOTS;
  if (seen[at]) return false;
  seen[at] = h;
  return true;
}

/* The smallest of three limits: as many as a random sample suggests; as many as there are changes
** from one row to the next, for values that are stored together; the range of integers. */
static double estimate(const wl_column *c) {
  wl_u64 seen[SLOTS] = {0};
  wl_i64 n = c->n_rows < SAMPLE ? c->n_rows : SAMPLE, n_valid = 0, n_changes = 0, n_pairs = 0;
  double found = 0;
  for (wl_i64 i = 0; i < n; i++) {
    wl_i64 row = c->n_rows <= SAMPLE ? i : sample_row(c->n_rows, i);
    wl_val v = wl_column_stored(c, row);
    if (v.t == WL_T_NULL) continue;
    n_valid++;
    found += add(seen, v);
    if (row == 0) continue;
    wl_val before = wl_column_stored(c, row - 1);
    n_pairs++;
    n_changes +=
        before.t != v.t || wl_hash_val(before, WL_COLL_BINARY) != wl_hash_val(v, WL_COLL_BINARY);
  }
  if (c->n_rows <= SAMPLE || n_valid == 0) return found;
  double valid = (double)c->n_rows * (double)n_valid / (double)n, most = valid;
  if (n_pairs) most *= (double)(n_changes ? n_changes : 1) / (double)n_pairs;
  double drawn = drawn_from((double)n_valid, found);
  if (drawn < most) most = drawn;
  double span = (double)c->domain.hi - (double)c->domain.lo + 1;
  if ((c->domain.mask & ~WL_M(WL_T_NULL)) == WL_M(WL_T_INT) && span < most) most = span;
  return most < found ? found : most;
}

double wl_column_distinct(wl_column *c) {
  double n = atomic_load_explicit(&c->n_distinct, memory_order_relaxed);
  if (n > 0) return n;
  n = c->dict ? (double)c->dict->n : estimate(c);
  if (n < 1) n = 1;
  atomic_store_explicit(&c->n_distinct, n, memory_order_relaxed);
  return n;
}
