/*
** Sorting row numbers by words, against a plain comparison, for many shapes of data and any number
** of threads. A sort can be stopped at any time.
*/
#include "base/mem.h"
#include "../tap.h"
#include "exec/sort.h"
#include "value/keys.h"
#include <string.h>

enum { DIGITS = 256 }; /* tasks of a sort, each of which asks once */

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
  default: return wl_word_of_real(((double)(rnd() >> 11) * 0x1p-53 - 0.5) * 40);
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

/* ---- stopping */

typedef struct asking {
  long n_asked, stop_at; /* stop_at < 0: never */
} asking;

static wl_status ask(void *arg, wl_error *err) {
  asking *a = arg;
  return ++a->n_asked == a->stop_at ? wl_fail(err, WL_INTERRUPT, "interrupted") : WL_OK;
}

/* One thread asks often enough, and stops when it is told to, wherever that is. */
static void test_stop(void) {
  enum { N = TEST_SANITIZED ? 1 << 18 : 1 << 20 };
  wl_u32 *order = wl_mem_alloc(N * sizeof *order);
  wl_u64 *words[4];
  for (int k = 0; k < 4; k++) words[k] = wl_mem_alloc(N * sizeof **words);
  tie_by = words[3];
  for (int kind = 0; kind < 8; kind++)
    for (int n_words = 1; n_words <= 2; n_words++) {
      char name[100];
      wl_error err = {0};
      asking a = {.stop_at = -1};
      wl_stop stop = {.check = ask, .arg = &a};
      wl_sort s = {.n = N, .n_words = n_words, .words = words, .threads = 1, .stop = &stop};
      if (kind % 2) s.tie = tie;
      for (int k = 0; k < 4; k++)
        for (wl_i64 i = 0; i < N; i++) words[k][i] = word(k ? (kind + k) % 8 : kind, i);
      snprintf(name, sizeof name, "sort: rows of kind %d by %d words can be stopped", kind,
               n_words);
      bool ok = wl_sort_rows(&s, order, &err) == WL_OK && sorted(&s, order);
      long n_asked = a.n_asked;
      bool equal = kind == 0 && n_words == 1; /* nothing has to be sorted */
      ok &= n_asked > (equal ? 2 : DIGITS);
      for (long at = 1; at <= n_asked && ok; at += n_asked / 7 + 1) {
        a = (asking){.stop_at = at};
        stop = (wl_stop){.check = ask, .arg = &a};
        ok = wl_sort_rows(&s, order, &err) == WL_INTERRUPT && a.n_asked == at;
      }
      if (ok)
        tap_ok(name);
      else
        tap_bad(name, "asked %ld times; then code %d after %ld", n_asked, err.code, a.n_asked);
    }
  for (int k = 0; k < 4; k++) wl_mem_free(words[k]);
  wl_mem_free(order);
}

int main(void) {
  test_sort();
  test_stop();
  return tap_done();
}
