/*
** One thread sorts some of the rows; see sort_impl.h. Items are distributed by 8 bits of their keys
** at a time: from the highest bits down while there are many, then in the cache from the lowest
** bits up. Only bits that differ between rows are used. Then rows with equal keys get the next
** word: a key of numbers, or the next bytes of a text.
*/
#include "exec/sort/sort_impl.h"
#include <string.h>

enum { DIGIT = 256, SMALL = 24, IN_CACHE = 1 << 14, CHUNK = 1 << 17 };
enum { DEEP = 48 }; /* words, after which texts are compared: so a text cannot exhaust the stack */
enum { AT_ONCE = 64 }; /* values that are fetched together */

/* Where the chunk that starts at row i of n ends. Between chunks a worker may stop. */
static wl_i64 chunk_end(wl_i64 i, wl_i64 n) {
  return n - i < CHUNK ? n : i + CHUNK;
}

/*
** The sorts over an item type T whose sort bits are KEY(x). name_range sorts a[0 … n) by the bits
** [lo, hi) of their keys; t has room for n items. Bits from hi up are equal in all items. If w
** stops, a is left in any order.
*/
#define SORTS(name, T, KEY)                                                                        \
  static void name##_insert(T *a, wl_i64 n) {                                                      \
    for (wl_i64 i = 1; i < n; i++) {                                                               \
      T x = a[i];                                                                                  \
      wl_i64 j = i;                                                                                \
      for (; j > 0 && KEY(a[j - 1]) > KEY(x); j--) a[j] = a[j - 1];                                \
      a[j] = x;                                                                                    \
    }                                                                                              \
  }                                                                                                \
  static void name##_count(const T *a, wl_i64 n, int at, wl_u64 mask, wl_u32 *count,               \
                           sort_watcher *w) {                                                      \
    for (wl_i64 i = 0, to; i < n && !sort_stops(w, (to = chunk_end(i, n)) - i);)                   \
      for (; i < to; i++) count[KEY(a[i]) >> at & mask]++;                                         \
  }                                                                                                \
  static void name##_deal(const T *a, wl_i64 n, int at, wl_u64 mask, wl_u32 *place, T *out,        \
                          sort_watcher *w) {                                                       \
    for (wl_i64 i = 0, to; i < n && !sort_stops(w, (to = chunk_end(i, n)) - i);)                   \
      for (; i < to; i++) out[place[KEY(a[i]) >> at & mask]++] = a[i];                             \
  }                                                                                                \
  static void name##_copy(T *a, const T *from, wl_i64 n, sort_watcher *w) {                        \
    for (wl_i64 i = 0, to; i < n && !sort_stops(w, (to = chunk_end(i, n)) - i); i = to)            \
      memcpy(a + i, from + i, (size_t)(to - i) * sizeof *a);                                       \
  }                                                                                                \
  static void name##_upward(T *a, T *t, wl_i64 n, int lo, int hi, sort_watcher *w) {               \
    T *from = a, *to = t;                                                                          \
    for (int at = lo; at < hi; at += 8) {                                                          \
      wl_u32 count[DIGIT] = {0}, sum = 0;                                                          \
      wl_u64 mask = hi - at >= 8 ? 255 : (1ULL << (hi - at)) - 1;                                  \
      name##_count(from, n, at, mask, count, w);                                                   \
      if (count[KEY(from[0]) >> at & mask] == n) continue;                                         \
      for (int d = 0; d < DIGIT; d++) {                                                            \
        wl_u32 c = count[d];                                                                       \
        count[d] = sum;                                                                            \
        sum += c;                                                                                  \
      }                                                                                            \
      if (w->stopped) return;                                                                      \
      name##_deal(from, n, at, mask, count, to, w);                                                \
      if (w->stopped) return;                                                                      \
      T *swap = from;                                                                              \
      from = to;                                                                                   \
      to = swap;                                                                                   \
    }                                                                                              \
    if (from != a) name##_copy(a, from, n, w);                                                     \
  }                                                                                                \
  static void name##_range(T *a, T *t, wl_i64 n, int lo, int hi, sort_watcher *w) {                \
    if (n <= 1 || lo >= hi || w->stopped) return;                                                  \
    if (n <= SMALL) {                                                                              \
      name##_insert(a, n);                                                                         \
      return;                                                                                      \
    }                                                                                              \
    if (n <= IN_CACHE || hi - lo <= 8) {                                                           \
      name##_upward(a, t, n, lo, hi, w);                                                           \
      return;                                                                                      \
    }                                                                                              \
    wl_u32 count[DIGIT + 1] = {0}, place[DIGIT];                                                   \
    int at = hi - 8;                                                                               \
    name##_count(a, n, at, 255, count + 1, w);                                                     \
    for (int d = 0; d < DIGIT; d++) count[d + 1] += count[d];                                      \
    memcpy(place, count, sizeof place);                                                            \
    if (w->stopped) return;                                                                        \
    name##_deal(a, n, at, 255, place, t, w);                                                       \
    if (w->stopped) return;                                                                        \
    name##_copy(a, t, n, w);                                                                       \
    for (int d = 0; d < DIGIT; d++)                                                                \
      name##_range(a + count[d], t + count[d], (wl_i64)count[d + 1] - count[d], lo, at, w);        \
  }

#define WORD_KEY(x) (x)
#define ITEM_KEY(x) ((x).key)
SORTS(word, wl_u64, WORD_KEY)
SORTS(item, sort_item, ITEM_KEY)

void wl_sort_range(wl_u64 *a, wl_u64 *t, wl_i64 n, int lo, int hi, sort_watcher *w) {
  word_range(a, t, n, lo, hi, w);
}

/* ---- words at a place */

const wl_key_part *wl_sort_text(const wl_sort *s, int word) {
  const wl_key_layout *l = s->layout;
  for (int k = 0; l && k < l->n_parts; k++)
    if (l->parts[k].word == word && l->parts[k].kind == WL_PART_TEXT) return &l->parts[k];
  return NULL;
}

sort_next wl_sort_advance(const wl_sort *s, wl_u64 key, sort_place *p) {
  const wl_key_part *text = wl_sort_text(s, p->word);
  p->at = text ? wl_text_next(text, key, p->at) : 0;
  if (p->at) return SORT_MORE;
  if (++p->word < s->n_words) return SORT_MORE;
  return s->tie ? SORT_COMPARE : SORT_EQUAL;
}

/* Fetches values of a key of 1 to AT_ONCE items, and prefetches the bytes from `at` on. */
static void fetch(const wl_sort *s, int key, wl_u32 at, const sort_item *a, int n, wl_val *out) {
  wl_u32 rows[AT_ONCE] = {a[0].row};
  for (int i = 1; i < n; i++) rows[i] = a[i].row;
  s->values(s->arg, key, rows, n, out);
  if (at == WL_TEXT_AT_LENGTH) return;
  for (int i = 0; i < n; i++) __builtin_prefetch((const void *)(size_t)(out[i].v + at));
}

wl_u64 wl_sort_fill(const wl_sort *s, sort_place p, sort_item *a, wl_i64 n, wl_u64 first) {
  enum { AHEAD = 16 };
  wl_u64 x = 0;
  if (!p.at) {
    const wl_u64 *words = s->words[p.word];
    for (wl_i64 i = 0; i < n; i++) {
      __builtin_prefetch(&words[a[i + AHEAD < n ? i + AHEAD : i].row]);
      a[i].key = words[a[i].row];
      x |= a[i].key ^ first;
    }
    return x;
  }
  const wl_key_part *text = wl_sort_text(s, p.word);
  wl_val v[AT_ONCE];
  for (wl_i64 i = 0; i < n; i += AT_ONCE) {
    int m = n - i < AT_ONCE ? (int)(n - i) : AT_ONCE;
    fetch(s, text->key, p.at, a + i, m, v);
    for (int k = 0; k < m; k++) {
      a[i + k].key = wl_text_word(text, v[k], p.at);
      x |= a[i + k].key ^ first;
    }
  }
  return x;
}

wl_u32 wl_sort_common(const wl_sort *s, sort_place p, wl_u32 first, const sort_item *a, wl_i64 n,
                      wl_u32 most) {
  const wl_key_part *text = wl_sort_text(s, p.word);
  wl_val v[AT_ONCE], like;
  s->values(s->arg, text->key, &first, 1, &like);
  for (wl_i64 i = 0; i < n && most > p.at; i += AT_ONCE) {
    int m = n - i < AT_ONCE ? (int)(n - i) : AT_ONCE;
    fetch(s, text->key, p.at, a + i, m, v);
    for (int k = 0; k < m; k++) {
      most =
          wl_bytes_common(wl_bytes(like), like.n, wl_bytes(v[k]), v[k].n, p.at, most, text->coll);
    }
  }
  return most;
}

/* ---- comparing rows */

/* Compares rows that are equal before a place. */
static int compare(const wl_sort *s, sort_place p, wl_u32 a, wl_u32 b) {
  for (int k = p.word; k < s->n_words; k++) {
    const wl_key_part *text = wl_sort_text(s, k);
    wl_u64 x = s->words[k][a], y = s->words[k][b];
    if (x != y) return x < y ? -1 : 1;
    if (!text || !wl_text_next(text, x, 0)) continue;
    wl_u32 rows[2] = {a, b};
    wl_val v[2];
    s->values(s->arg, text->key, rows, 2, v);
    int c = wl_text_compare(text, v[0], v[1], 0);
    if (c) return c;
  }
  return s->tie ? s->tie(s->arg, a, b) : 0;
}

/* Sorts items that are equal before a place, by comparing them. Stable. A comparison takes much
** longer than that of words. */
static void by_comparing(const wl_sort *s, sort_place p, sort_item *a, sort_item *t, wl_i64 n,
                         sort_watcher *w) {
  enum { COST = 32, EVERY = 1024 };
  if (sort_stops(w, n <= SMALL ? n * COST : COST)) return;
  if (n <= SMALL) {
    for (wl_i64 i = 1; i < n; i++) {
      sort_item x = a[i];
      wl_i64 j = i;
      for (; j > 0 && compare(s, p, a[j - 1].row, x.row) > 0; j--) a[j] = a[j - 1];
      a[j] = x;
    }
    return;
  }
  wl_i64 m = n / 2, i = 0, j = m, k = 0;
  by_comparing(s, p, a, t, m, w);
  by_comparing(s, p, a + m, t + m, n - m, w);
  if (w->stopped || compare(s, p, a[m - 1].row, a[m].row) <= 0) return;
  while (i < m && j < n) {
    if (k % EVERY == 0 && sort_stops(w, k ? EVERY * COST : COST)) return;
    t[k++] = compare(s, p, a[j].row, a[i].row) < 0 ? a[j++] : a[i++];
  }
  while (i < m) t[k++] = a[i++];
  while (j < n) t[k++] = a[j++];
  memcpy(a, t, (size_t)n * sizeof *a);
}

void wl_sort_ties(const wl_sort *s, sort_item *a, sort_item *t, wl_i64 n, sort_watcher *w) {
  by_comparing(s, (sort_place){.word = s->n_words}, a, t, n, w);
}

/* Sorts a few items by their texts from a place on, then by what follows: fetches each text
** once. */
static void few_texts(const wl_sort *s, sort_item *a, int n, sort_place p) {
  const wl_key_part *text = wl_sort_text(s, p.word);
  sort_place after = {.word = p.word + 1};
  wl_u32 at = p.at == WL_TEXT_AT_LENGTH ? 0 : p.at;
  wl_val v[SMALL];
  fetch(s, text->key, p.at, a, n, v);
  for (int i = 0; i < n; i++) a[i].key = wl_text_word(text, v[i], p.at);
  for (int i = 1; i < n; i++) {
    sort_item x = a[i];
    wl_val vx = v[i];
    int j = i;
    for (; j > 0; j--) {
      int c = a[j - 1].key < x.key ? -1 : a[j - 1].key > x.key;
      if (!c && wl_text_next(text, x.key, p.at)) c = wl_text_compare(text, v[j - 1], vx, at);
      if (!c && (after.word < s->n_words || s->tie)) c = compare(s, after, a[j - 1].row, x.row);
      if (c <= 0) break;
      a[j] = a[j - 1];
      v[j] = v[j - 1];
    }
    a[j] = x;
    v[j] = vx;
  }
}

/* ---- word by word */

static void next_words(const wl_sort *s, sort_item *a, sort_item *t, wl_i64 n, sort_place p,
                       int depth, sort_watcher *w);

/* Sorts items that are equal before a place. depth: how many calls of it there are above. */
static void rest(const wl_sort *s, sort_item *a, sort_item *t, wl_i64 n, sort_place p, int depth,
                 sort_watcher *w) {
  bool again = false;
  for (;;) {
    if (sort_stops(w, n)) return;
    if (p.at && n <= SMALL) {
      few_texts(s, a, (int)n, p);
      return;
    }
    if (depth > DEEP) {
      by_comparing(s, p, a, t, n, w);
      return;
    }
    if (p.at && again && p.at != WL_TEXT_AT_LENGTH)
      p.at = wl_sort_common(s, p, a[0].row, a + 1, n - 1, WL_TEXT_AT_LENGTH - 1);
    wl_sort_fill(s, p, a, 1, 0);
    wl_u64 x = wl_sort_fill(s, p, a, n, a[0].key);
    if (x) {
      item_range(a, t, n, __builtin_ctzll(x), 64 - __builtin_clzll(x), w);
      next_words(s, a, t, n, p, depth, w);
      return;
    }
    sort_next next = wl_sort_advance(s, a[0].key, &p);
    if (next == SORT_COMPARE) wl_sort_ties(s, a, t, n, w);
    if (next != SORT_MORE) return;
    again = true;
  }
}

/* Items are in the order of their keys at a place: sorts those with equal keys. */
static void next_words(const wl_sort *s, sort_item *a, sort_item *t, wl_i64 n, sort_place p,
                       int depth, sort_watcher *w) {
  if (p.word + 1 >= s->n_words && !s->tie && !wl_sort_text(s, p.word)) return;
  for (wl_i64 from = 0, to; from < n && !w->stopped; from = to) {
    for (to = from + 1; to < n && a[to].key == a[from].key;) to++;
    wl_i64 m = to - from;
    if (sort_stops(w, m)) return;
    if (m == 1) continue;
    sort_place q = p;
    sort_next next = wl_sort_advance(s, a[from].key, &q);
    if (next == SORT_COMPARE) wl_sort_ties(s, a + from, t + from, m, w);
    if (next == SORT_MORE) rest(s, a + from, t + from, m, q, depth + 1, w);
  }
}

void wl_sort_items(const wl_sort *s, sort_item *a, sort_item *t, wl_i64 n, sort_place p,
                   sort_watcher *w) {
  wl_u64 x = 0;
  for (wl_i64 i = 1; i < n; i++) x |= a[i].key ^ a[0].key;
  if (x) item_range(a, t, n, __builtin_ctzll(x), 64 - __builtin_clzll(x), w);
  next_words(s, a, t, n, p, 0, w);
}

void wl_sort_rest(const wl_sort *s, sort_item *a, sort_item *t, wl_i64 n, sort_place p,
                  sort_watcher *w) {
  rest(s, a, t, n, p, 0, w);
}
