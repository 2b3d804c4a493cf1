/*
** See marks.h.
*/
#include "exec/cpu/marks.h"
#include "base/mem.h"
#include "column/lookup.h"

typedef struct marks_of_join {
  wl_u64 *bits; /* NULL: it has no Mark */
  size_t n_bytes;
} marks_of_join;

struct wl_marks {
  int n;
  marks_of_join of[]; /* [n]: by join */
};

wl_status wl_marks_open(const wl_program *p, wl_budget *budget, wl_marks **out, wl_error *err) {
  size_t n = (size_t)p->n_joins;
  wl_marks *m = *out = wl_mem_zalloc(sizeof *m + n * sizeof *m->of);
  if (!m) return wl_nomem(err);
  m->n = p->n_joins;
  for (const wl_program *a = p->also; a; a = a->also) {
    size_t words = ((size_t)p->joins[a->unmatched].n_rows + 63) / 64 + 1;
    wl_i64 left = wl_budget_left(budget);
    wl_budget_hold(budget, (wl_i64)words * 8); /* as long as the run lives */
    if (wl_budget_full(budget))
      return wl_budget_fail("the marks of a RIGHT or FULL JOIN", left, err);
    m->of[a->unmatched] = (marks_of_join){wl_mem_zalloc(words * 8), words * 8};
    if (!m->of[a->unmatched].bits) return wl_nomem(err);
  }
  return WL_OK;
}

void wl_marks_close(wl_marks *m) {
  if (!m) return;
  for (int k = 0; k < m->n; k++) wl_mem_free(m->of[k].bits);
  wl_mem_free(m);
}

void wl_marks_set(wl_marks *m, int join, const wl_u32 *rows, int n) {
  wl_u64 *bits = m->of[join].bits;
  for (int i = 0; i < n; i++) {
    if (rows[i] == WL_NO_ROW) continue;
    wl_u64 *word = &bits[rows[i] >> 6], bit = 1ULL << (rows[i] & 63);
    /* Most rows of a join with many matches are marked already. Reading shares the cache line. */
    if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
      (void)__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
  }
}

int wl_marks_left(const wl_marks *m, int join, wl_u32 first, int n, wl_u32 *out) {
  const wl_u64 *bits = m->of[join].bits;
  int k = 0;
  for (int i = 0; i < n; i++) {
    wl_u32 row = first + (wl_u32)i;
    out[k] = row;
    k += !(bits[row >> 6] >> (row & 63) & 1);
  }
  return k;
}

wl_u64 *wl_marks_bits(wl_marks *m, int join, size_t *n_bytes) {
  *n_bytes = m->of[join].n_bytes;
  return m->of[join].bits;
}
