/*
** Sorting row numbers by words, and keys as words: against a plain comparison, for many shapes
** of data and any number of threads.
*/
#include "base/mem.h"
#include "../tap.h"
#include "exec/cpu/words.h"
#include "exec/sort.h"
#include <math.h>
#include <string.h>

static wl_u64 seed = 88172645463325252ULL;
static wl_u64 rnd(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

/* from all equal to all different, with bits high, low and in the middle */
static wl_u64 word(int kind, wl_i64 i) {
  switch (kind) {
  case 0: return 7;
  case 1: return rnd();
  case 2: return rnd() & 0xff000;
  case 3: return rnd() << 40;
  case 4: return (wl_u64)i;
  case 5: return ~(wl_u64)i;
  case 6: return rnd() % 3 ? 5 : rnd();
  default: return wl_sort_real(((double)(rnd() >> 11) * 0x1p-53 - 0.5) * 40);
  }
}

static const wl_u64 *tie_by;
static int tie(const void *arg, wl_u32 a, wl_u32 b) {
  (void)arg;
  return tie_by[a] < tie_by[b] ? -1 : tie_by[a] > tie_by[b];
}

/* In order, each once, ties by number. */
static bool sorted(const wl_sort *s, const wl_u32 *order) {
  wl_u8 *met = wl_mem_zalloc((size_t)s->n + 1);
  bool ok = met != NULL;
  for (wl_i64 i = 0; i < s->n && ok; i++) {
    ok = order[i] < s->n && !met[order[i]];
    if (!ok) break;
    met[order[i]] = 1;
    if (i == 0) continue;
    wl_u32 a = order[i - 1], b = order[i];
    int k = 0;
    while (k < s->n_words && s->words[k][a] == s->words[k][b]) k++;
    int c = k < s->n_words ? (s->words[k][a] < s->words[k][b] ? -1 : 1) : s->tie ? tie(0, a, b) : 0;
    ok = c < 0 || (c == 0 && a < b);
  }
  wl_mem_free(met);
  return ok;
}

static void test_sort(void) {
  static const wl_i64 sizes[] = {0, 1, 2, 25, 1000, 70000, 300000};
  for (int z = 0; z < 7; z++)
    for (int kind = 0; kind < 8; kind++)
      for (int n_words = 1; n_words <= 3; n_words++) {
        wl_i64 n = TEST_SANITIZED && sizes[z] > 70000 ? 70000 : sizes[z];
        wl_u64 *words[4];
        wl_u32 *order = wl_mem_alloc((size_t)n * 4 + 4);
        for (int k = 0; k < 4; k++) {
          words[k] = wl_mem_alloc((size_t)n * 8 + 8);
          for (wl_i64 i = 0; i < n; i++) words[k][i] = word(k ? (kind + k) % 8 : kind, i);
        }
        tie_by = words[3];
        for (int threads = 1; threads <= 4; threads += 3) {
          wl_error err = {0};
          wl_sort s = {.n = n, .n_words = n_words, .words = words, .threads = threads};
          if (kind % 2) s.tie = tie;
          char name[100];
          snprintf(name, sizeof name, "sort: %lld rows of kind %d by %d words on %d threads", n,
                   kind, n_words, threads);
          bool ok = wl_sort_rows(&s, order, &err) == WL_OK && sorted(&s, order);
          if (!ok) tap_bad(name, "out of order");
          if (ok && threads == 4 && n_words == 3) tap_ok(name);
        }
        for (int k = 0; k < 4; k++) wl_mem_free(words[k]);
        wl_mem_free(order);
      }
}

/* Words compare as the values do, and give them back. */
static void test_words(void) {
  static const struct {
    wl_i64 lo, hi;
  } ranges[] = {{0, 0}, {-99, 99}, {0, 1LL << 40}, {WL_I64_MIN, WL_I64_MAX}, {WL_I64_MIN, -5}};
  bool ok = true;
  for (int r = 0; r < 6; r++)
    for (int flags = 0; flags < 8; flags++) {
      bool desc = flags & 1, last = (flags & 2) != 0, null = (flags & 4) != 0, real = r == 5;
      wl_word_part parts[8];
      wl_words w = {.parts = parts};
      wl_domain d = {.mask = WL_M(WL_T_INT), .flo = -INFINITY, .fhi = INFINITY};
      if (!real) {
        d.lo = ranges[r].lo;
        d.hi = ranges[r].hi;
      }
      wl_domain small = {.mask = WL_M(WL_T_INT), .lo = -3, .hi = 3};
      ok &= wl_words_key(&w, 0, (wl_reg){real ? WL_R_REAL : WL_R_INT, null}, &d, desc, last, false);
      ok &= wl_words_key(&w, 1, (wl_reg){WL_R_INT, false}, &small, false, false, false);
      wl_u64 v[2][WL_VECTOR], out[4 * WL_VECTOR];
      wl_u8 t[WL_VECTOR];
      for (int i = 0; i < WL_VECTOR; i++) {
        wl_u64 span = (wl_u64)d.hi - (wl_u64)d.lo + 1, x = rnd();
        v[0][i] =
            real ? wl_f64_bits((double)(wl_i64)x * 0.5) : (wl_u64)d.lo + (span ? x % span : x);
        if (i % 16 == 1 && !real) v[0][i] = (wl_u64)d.hi;
        if (i % 16 == 2 && !real) v[0][i] = (wl_u64)d.lo;
        v[1][i] = (wl_u64)((wl_i64)(rnd() % 7) - 3);
        t[i] = !null || rnd() % 5;
        if (!t[i]) v[0][i] = 0;
      }
      wl_vec keys[2] = {
          {.type = real ? WL_R_REAL : WL_R_INT, .stride = 1, .v = v[0], .t = null ? t : NULL},
          {.type = WL_R_INT, .stride = 1, .v = v[1]}};
      wl_words_encode(&w, keys, WL_VECTOR, out);
      for (int i = 1; i < WL_VECTOR; i++) {
        wl_u64 words[4];
        for (int k = 0; k < w.n_words; k++) words[k] = out[(size_t)k * WL_VECTOR + (size_t)i];
        wl_val a = wl_vec_get(&keys[0], i - 1), b = wl_vec_get(&keys[0], i);
        wl_val back = wl_words_decode(&w, 0, words, false),
               two = wl_words_decode(&w, 1, words, false);
        ok &= back.t == b.t && (b.t == WL_T_NULL || back.v == b.v) && two.v == v[1][i];
        int c = wl_cmp_val(a, b, 0), k = 0;
        if (a.t != b.t)
          c = (a.t == WL_T_NULL) == last ? 1 : -1;
        else if (desc)
          c = -c;
        if (c == 0) c = (wl_i64)v[1][i - 1] < (wl_i64)v[1][i] ? -1 : v[1][i - 1] != v[1][i];
        while (k < w.n_words && out[k * WL_VECTOR + i - 1] == out[k * WL_VECTOR + i]) k++;
        int have = k == w.n_words                                        ? 0
                   : out[k * WL_VECTOR + i - 1] < out[k * WL_VECTOR + i] ? -1
                                                                         : 1;
        ok &= c == have;
      }
      char name[100];
      snprintf(name, sizeof name, "words: range %d, flags %d", r, flags);
      if (ok)
        tap_ok(name);
      else
        tap_bad(name, "words and values disagree");
    }
}

int main(void) {
  test_sort();
  test_words();
  return tap_done();
}
