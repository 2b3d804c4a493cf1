/*
** Sorting row numbers by words and texts, against a plain comparison, for many shapes of data and
** any number of threads. A sort can be stopped at any time.
*/
#include "base/mem.h"
#include "../tap.h"
#include "column/column.h"
#include "exec/sort/sort.h"
#include "value/keys.h"
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

/* ---- gaps between the rows */

static void test_gaps(void) {
  enum { TABLETS = 5, ALL = TABLETS * WL_TABLET_ROWS };
  wl_u64 *words = wl_mem_alloc(ALL * sizeof *words);
  wl_u32 *order = wl_mem_alloc(ALL * sizeof *order), *numbers = wl_mem_alloc(ALL * sizeof *numbers);
  for (int kind = 0; kind < 8; kind++)
    for (int threads = 1; threads <= 16; threads += 5) {
      wl_i32 counts[TABLETS];
      wl_error err = {0};
      wl_i64 n = 0;
      for (int t = 0; t < TABLETS; t++) {
        int share = (int)(rnd() % 4);
        counts[t] = share == 0 ? 0 : share == 1 ? WL_TABLET_ROWS : (wl_i32)(rnd() % WL_TABLET_ROWS);
        if (t == TABLETS - 1 && !n) counts[t] = 1;
        n += counts[t];
      }
      for (wl_i64 i = 0; i < ALL; i++) words[i] = word(kind, i), numbers[i] = (wl_u32)(2 * i + 1);
      wl_sort s = {.n = n,
                   .n_words = 1,
                   .words = &words,
                   .counts = counts,
                   .n_tablets = TABLETS,
                   .numbers = numbers,
                   .threads = threads};
      bool ok = wl_sort_rows(&s, order, &err) == WL_OK;
      for (wl_i64 i = 0; i < n && ok; i++) {
        wl_u32 row = order[i] / 2, last = i ? order[i - 1] / 2 : 0;
        ok = order[i] % 2 && (wl_i32)(row & (WL_TABLET_ROWS - 1)) < counts[row >> WL_TABLET_SHIFT];
        if (i && ok) ok = words[last] < words[row] || (words[last] == words[row] && last < row);
      }
      char name[100];
      snprintf(name, sizeof name, "sort: rows of kind %d with gaps on %d threads", kind, threads);
      ok ? tap_ok(name) : tap_bad(name, "out of order");
    }
  wl_mem_free(words);
  wl_mem_free(order);
  wl_mem_free(numbers);
}

/* ---- texts */

enum { TEXT_KEYS = 3, TEXT_MOST = 64 };

typedef struct texts {
  wl_u8 *bytes; /* [TEXT_KEYS][n][TEXT_MOST] */
  wl_val *v;    /* [TEXT_KEYS][n] */
  wl_i64 n;
  wl_key_part parts[2 * TEXT_KEYS];
  wl_key_layout layout;
} texts;

static void text_values(const void *arg, int key, const wl_u32 *rows, int n, wl_val *out) {
  const texts *t = arg;
  for (int i = 0; i < n; i++) out[i] = t->v[key * t->n + rows[i]];
}

static const char *const text_kinds[] = {
    "random",        "of two letters",      "with NULs",       "all equal",
    "of two values", "ascending",           "descending",      "mostly NULL",
    "each longer",   "with a shared start", "ending in spaces"};
enum { TEXT_KINDS = sizeof text_kinds / sizeof *text_kinds };

/* A text of the kind. start: bytes that all share. */
static wl_val text(int kind, int start, wl_i64 i, wl_i64 n, wl_u8 *p) {
  static const wl_u8 letters[] = {'a', 'B', 'A', 'b', ' ', 0, 0xff, '_', 'z', '['};
  wl_u32 len = 0;
  if (rnd() % (kind == 7 ? 2 : 11) == 0 && kind != 3 && kind != 5 && kind != 6) return wl_null();
  while ((int)len < start) p[len] = "Shared Start "[len % 13], len++;
  if (kind == 5 || kind == 6) {
    len += (wl_u32)snprintf((char *)p + len, 12, "%010lld", kind == 5 ? i : n - i);
  } else if (kind == 4) {
    p[len++] = rnd() % 2 ? 'x' : 'y';
  } else if (kind == 8) {
    for (wl_i64 k = i % 21; k > 0; k--) p[len++] = 'a';
  } else if (kind != 3) {
    int more = (int)(rnd() % 21);
    for (int k = 0; k < more; k++)
      p[len++] = letters[rnd() % (kind == 1 || kind == 9 ? 2 : kind == 2 ? 6 : sizeof letters)];
    if (kind == 10) p[len++] = ' ';
  }
  return wl_text(p, len);
}

static int compare_texts(const texts *t, wl_u32 a, wl_u32 b) {
  for (int k = 0; k < t->layout.n_parts; k++) {
    const wl_key_part *p = &t->parts[k];
    wl_val x = t->v[p->key * t->n + a], y = t->v[p->key * t->n + b];
    int c;
    if (x.t == WL_T_NULL || y.t == WL_T_NULL)
      c = x.t == y.t ? 0 : ((x.t == WL_T_NULL) == p->null_last ? 1 : -1);
    else
      c = wl_cmp_val(x, y, p->coll) * (p->desc ? -1 : 1);
    if (c) return c;
  }
  return 0;
}

static bool texts_sorted(const texts *t, const wl_u32 *order) {
  for (wl_i64 i = 0; i < t->n; i++) {
    if (order[i] >= t->n) return false;
    int c = i ? compare_texts(t, order[i - 1], order[i]) : -1;
    if (c > 0 || (c == 0 && order[i - 1] >= order[i])) return false;
  }
  return true;
}

/* Sorts by one to three keys, of which the second is a number; the collation, the direction and the
** place of NULLs vary. */
static void test_text(int kind, int start, wl_i64 n, const int *threads, int n_threads) {
  wl_u64 *words[TEXT_KEYS + 1];
  texts t = {.n = n, .layout = {.parts = t.parts}};
  size_t all = (size_t)n * TEXT_KEYS;
  t.bytes = wl_mem_alloc(all * TEXT_MOST + 1);
  t.v = wl_mem_alloc(all * sizeof *t.v + 1);
  wl_u32 *order = wl_mem_alloc((size_t)n * sizeof *order + 1);
  for (int k = 0; k < TEXT_KEYS; k++)
    for (wl_i64 i = 0; i < n; i++) {
      size_t at = (size_t)(k * n + i);
      t.v[at] =
          k == 1 ? wl_int((wl_i64)(rnd() % 3)) : text(kind, start, i, n, t.bytes + at * TEXT_MOST);
    }
  int n_keys = 1 + (int)(rnd() % TEXT_KEYS), coll = (int)(rnd() % 3);
  wl_domain domain = wl_domain_int(0, 2, false);
  for (int k = 0; k < n_keys; k++) {
    unsigned flags = (rnd() % 2 ? WL_KEY_DESC : 0) | (rnd() % 2 ? WL_KEY_NULL_LAST : 0);
    if (k == 1)
      (void)wl_key_layout_add(&t.layout, k, (wl_reg){WL_R_INT, false}, &domain, flags);
    else
      wl_key_layout_add_text(&t.layout, k, (wl_u8)coll, flags);
  }
  for (int k = 0; k < t.layout.n_words; k++) words[k] = wl_mem_alloc((size_t)n * 8 + 8);
  for (wl_i64 i = 0; i < n; i++) {
    wl_val row[TEXT_KEYS];
    wl_u64 coded[TEXT_KEYS];
    for (int k = 0; k < TEXT_KEYS; k++) row[k] = t.v[k * n + i];
    wl_key_layout_encode(&t.layout, row, coded);
    for (int k = 0; k < t.layout.n_words; k++) words[k][i] = coded[k];
  }
  for (int k = 0; k < n_threads; k++) {
    wl_error err = {0};
    wl_sort s = {.n = n,
                 .n_words = t.layout.n_words,
                 .words = words,
                 .layout = &t.layout,
                 .values = text_values,
                 .arg = &t,
                 .threads = threads[k]};
    char name[150];
    snprintf(name, sizeof name,
             "sort: %lld texts %s after %d bytes, %d keys, collation %d, %d threads", n,
             text_kinds[kind], start, n_keys, coll, threads[k]);
    bool ok = wl_sort_rows(&s, order, &err) == WL_OK && texts_sorted(&t, order);
    if (!ok) tap_bad(name, "out of order");
    if (ok && k == n_threads - 1) tap_ok(name);
  }
  for (int k = 0; k < t.layout.n_words; k++) wl_mem_free(words[k]);
  wl_mem_free(t.bytes);
  wl_mem_free(t.v);
  wl_mem_free(order);
}

static void test_texts(void) {
  static const wl_i64 sizes[] = {0, 1, 2, 24, 25, 1025, 20000, WL_TABLET_ROWS + 1, 300000};
  static const int threads[] = {1, 2, 3, 16};
  for (int z = 0; z < 9; z++)
    for (int kind = 0; kind < TEXT_KINDS; kind++)
      for (int round = 0; round < (sizes[z] > 2000 ? 1 : 8); round++) {
        wl_i64 n = TEST_SANITIZED && sizes[z] > 20000 ? 20000 : sizes[z];
        bool shared = kind == 9 || rnd() % 2;
        test_text(kind, shared ? (int)(rnd() % 41) : 0, n, threads, 4);
      }
}

/* A text cannot exhaust the stack: each one goes on where the one before ends. */
static void test_deep_texts(void) {
  enum { N = TEST_SANITIZED ? 400 : 2000 };
  static wl_u8 bytes[N * 7 + 7];
  static wl_u64 words[N];
  static wl_u32 order[N];
  texts t = {.n = N, .layout = {.parts = t.parts}};
  wl_u64 *list[1] = {words};
  wl_error err = {0};
  memset(bytes, 'a', sizeof bytes);
  t.v = wl_mem_alloc(N * sizeof *t.v);
  wl_key_layout_add_text(&t.layout, 0, WL_COLL_BINARY, 0);
  for (wl_u32 i = 0; i < N; i++) {
    t.v[i] = wl_text(bytes, 7 * (i * 7919 % N));
    wl_key_layout_encode(&t.layout, &t.v[i], &words[i]);
  }
  wl_sort s = {.n = N,
               .n_words = 1,
               .words = list,
               .layout = &t.layout,
               .values = text_values,
               .arg = &t,
               .threads = 2};
  bool ok = wl_sort_rows(&s, order, &err) == WL_OK && texts_sorted(&t, order);
  ok ? tap_ok("sort: texts that each go on where another ends")
     : tap_bad("sort: texts that each go on where another ends", "out of order");
  wl_mem_free(t.v);
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
      ok &= n_asked > (equal ? 1 : N >> 14);
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
  test_gaps();
  test_texts();
  test_deep_texts();
  test_stop();
  return tap_done();
}
