/*
** Finds rows of a joined source on the CPU machine (exec_impl.h). Keys become words, and words find
** slots of a lookup. Probe finds one row for each row of the vector. Build passes keys to a lookup
** that is being built.
*/
#include "exec/cpu/exec_impl.h"
#include "exec/cpu/encode.h"
#include "value/hash.h"
#include <string.h>

enum { PREFETCH_FROM = 1 << 15 };

/* ---- words of keys */

/* Computes x->words and x->there from the join's keys. Returns whether a key was NULL that must not
** be. */
bool wl_exec_words(wl_exec *x, const wl_key_plan *plan, const wl_i16 *keys, int n) {
  bool null = false;
  if (plan->kind == WL_KEYS_NONE) {
    memset(x->there, 1, (size_t)n);
    memset(x->words, 0, (size_t)n * 8);
  }
  for (int k = 0; k < plan->n; k++) {
    const plane *a = wl_exec_operand(x, keys[k]);
    const wl_key_part *part = &plan->parts[k];
    wl_vec v = vec_of(a);
    if (plan->kind != WL_KEYS_VALUES) {
      wl_encode_within(part, k == 0, &v, n, x->words, x->there);
      for (int i = 0; a->t && !part->null && !null && i < n; i++) null = !a->t[i];
      continue;
    }
    for (int i = 0; i < n; i++) {
      wl_val key = wl_vec_get(&v, i);
      bool ok = key.t != WL_T_NULL || part->null;
      null |= !ok;
      x->there[i] = ok && (!k || x->there[i]);
      x->words[i] = wl_hash_mix(k ? x->words[i] : 0, wl_hash_val(key, plan->coll[k]));
    }
  }
  return null;
}

wl_status wl_exec_build(wl_exec *x, const wl_join *j, int n) {
  wl_build_sink *s = x->sink;
  s->has_null |= wl_exec_words(x, s->plan, j->keys, n);
  wl_u32 base = ((wl_u32)x->tablet << WL_TABLET_SHIFT) + (wl_u32)x->row;
  wl_u32 *restrict rows = s->rows + s->n;
  if (x->selected)
    for (int i = 0; i < n; i++) rows[i] = base + x->sel[i];
  else
    for (int i = 0; i < n; i++) rows[i] = base + (wl_u32)i;
  wl_u64 *restrict words = s->words + s->n;
  if (!memchr(x->there, 0, (wl_u32)n)) {
    memcpy(words, x->words, (size_t)n * sizeof *words);
    s->n += n;
    return WL_OK;
  }
  int k = 0;
  for (int i = 0; i < n; i++) {
    words[k] = x->words[i];
    rows[k] = rows[i];
    k += x->there[i];
  }
  s->n += k;
  return WL_OK;
}

/* ---- finding */

/* The slot of a hashed word, or an empty slot. */
static inline wl_u64 slot_of(const wl_lookup *l, wl_u64 word) {
  wl_u64 at = wl_key_hash(word) & l->mask;
  while (l->slots[at] != WL_NO_ROW && l->words[at] != word) at = (at + 1) & l->mask;
  return at;
}

static WL_CLONES void hash_words(wl_u32 *restrict home, const wl_u64 *words, wl_u64 mask, int n) {
  for (int i = 0; i < n; i++) home[i] = (wl_u32)(wl_key_hash(words[i]) & mask);
}

/* Computes the slot of each word into x->slots. For a large table, prefetches the slots first. */
void wl_exec_slots(wl_exec *x, const wl_lookup *l, int n) {
  wl_u32 *at = x->slots;
  hash_words(at, x->words, l->mask, n);
  if (l->mask >= PREFETCH_FROM)
    for (int i = 0; i < n; i++) {
      __builtin_prefetch(&l->slots[at[i]]);
      __builtin_prefetch(&l->words[at[i]]);
    }
  for (int i = 0; i < n; i++) {
    /* the first slot decides for most words: it is the word's own, or empty */
    bool first = (l->words[at[i]] == x->words[i]) | (l->slots[at[i]] == WL_NO_ROW);
    if (!first) at[i] = (wl_u32)slot_of(l, x->words[i]);
  }
}

/*
** Finds integer keys in a direct table, or in its bitmap. Keys outside the table's range find the
** last place, which is empty. Keys are taken in blocks: first the places of all of them, in a loop
** of vector instructions, then what is there. Computing both for one key after the other would be
** slower: the minimum would become a jump that is often mispredicted, or on some processors an
** instruction that waits until the key before is done.
*/
enum { BLOCK = 64 };
#define PLACES(m)                                                                                  \
  for (int j = 0; j < (m); j++) {                                                                  \
    place d = (place)k[j] - first;                                                                 \
    at[j] = d < last ? d : last;                                                                   \
  }
#define LOOK(what, name, T, P, OUT, TABLE, FOUND)                                                  \
  static WL_CLONES void what##_##name(OUT *restrict out, const void *data, const wl_u16 *sel,      \
                                      int n, wl_u64 lo, wl_u64 span, const TABLE *table) {         \
    typedef P place;                                                                               \
    place first = (place)lo, last = (place)span, at[BLOCK];                                        \
    T keys[BLOCK];                                                                                 \
    for (int i = 0; i < n; i += BLOCK) {                                                           \
      int m = n - i < BLOCK ? n - i : BLOCK;                                                       \
      const T *k = (const T *)data + i;                                                            \
      if (sel) {                                                                                   \
        for (int j = 0; j < m; j++) keys[j] = ((const T *)data)[sel[i + j]];                       \
        k = keys;                                                                                  \
      }                                                                                            \
      if (m == BLOCK) {                                                                            \
        PLACES(BLOCK)                                                                              \
      } else {                                                                                     \
        PLACES(m)                                                                                  \
      }                                                                                            \
      for (int j = 0; j < m; j++) {                                                                \
        wl_u64 w = at[j];                                                                          \
        out[i + j] = (FOUND);                                                                      \
      }                                                                                            \
    }                                                                                              \
  }
/* Narrow columns are compared in 32 bits; see is_near(). */
#define FIND(name, T, P) LOOK(find, name, T, P, wl_u32, wl_u32, table[w])
#define HAS(name, T, P)                                                                            \
  LOOK(has, name, T, P, wl_u8, wl_u8, (wl_u8)((table[w >> 3] >> (w & 7) & 1) << 1))
HAS(i8, wl_i8, wl_u32)
HAS(i16, wl_i16, wl_u32)
HAS(i32, wl_i32, wl_u32)
HAS(i64, wl_i64, wl_u64)
FIND(i8, wl_i8, wl_u32)
FIND(i16, wl_i16, wl_u32)
FIND(i32, wl_i32, wl_u32)
FIND(i64, wl_i64, wl_u64)

typedef void (*find_loop)(wl_u32 *out, const void *data, const wl_u16 *sel, int n, wl_u64 lo,
                          wl_u64 span, const wl_u32 *slots);
static const find_loop find_loops[] = {
    [WL_P_I8] = find_i8, [WL_P_I16] = find_i16, [WL_P_I32] = find_i32, [WL_P_I64] = find_i64};

typedef void (*has_loop)(wl_u8 *out, const void *data, const wl_u16 *sel, int n, wl_u64 lo,
                         wl_u64 span, const wl_u8 *bits);
static const has_loop has_loops[] = {
    [WL_P_I8] = has_i8, [WL_P_I16] = has_i16, [WL_P_I32] = has_i32, [WL_P_I64] = has_i64};

static WL_CLONES void lose_nulls(wl_u32 *restrict out, const wl_u8 *valid, int n) {
  for (int i = 0; i < n; i++) out[i] = valid[i] ? out[i] : WL_NO_ROW;
}

/* Whether the range of a table with one key is one of 32-bit integers. */
static bool is_near(const wl_lookup *l) {
  wl_i64 lo = l->plan.parts[0].lo;
  return lo >= INT32_MIN && lo <= INT32_MAX && l->span <= (wl_u64)(INT32_MAX - lo) + 1;
}

/* The column of a key whose values can be read directly: it is not loaded yet. Else NULL. */
static const wl_column *direct_column(const wl_exec *x, const wl_lookup *l, wl_i16 key) {
  if (WL_IS_CONST(key) || x->pending[key] < 0) return NULL;
  const wl_column *c = x->cols[x->pending[key]];
  if (x->lists[wl_column_source(x->p, x->pending[key])]) return NULL;
  return c->phys == WL_P_I64 || is_near(l) ? c : NULL;
}

/* The row of one integer key for a whole vector. */
static void find_one(wl_exec *x, const wl_lookup *l, wl_i16 key, int n, wl_u32 *out) {
  wl_u64 lo = (wl_u64)l->plan.parts[0].lo, span = l->span;
  const wl_column *c = direct_column(x, l, key);
  if (c) {
    const wl_segment *s = &c->segments[x->tablet];
    const wl_u16 *sel = x->selected ? x->sel : NULL;
    const char *data = (const char *)s->data + (size_t)x->row * (size_t)wl_phys_width(c->phys);
    find_loops[c->phys](out, data, sel, n, lo, span, l->slots);
    if (x->tally) wl_exec_reads(x, c, n);
    if (!s->valid) return;
    wl_exec_bits(x->there, s->valid, x->row, sel, n);
    lose_nulls(out, x->there, n);
    return;
  }
  const plane *a = wl_exec_operand(x, key);
  if (!a->stride) {
    wl_u64 d = a->v[0] - lo;
    wl_u32 r = a->t || d >= span ? WL_NO_ROW : l->slots[d];
    for (int i = 0; i < n; i++) out[i] = r;
    return;
  }
  find_i64(out, a->v, NULL, n, lo, span, l->slots);
  if (a->t) lose_nulls(out, a->t, n);
}

/* The same for a lookup that only has bits: row 0 if there is one. */
static void find_bits(wl_exec *x, const wl_join *j, int n, wl_u32 *out) {
  const wl_lookup *l = j->lookup;
  wl_exec_words(x, &l->plan, j->keys, n);
  for (int i = 0; i < n; i++) {
    wl_u64 w = x->there[i] ? x->words[i] : l->span;
    out[i] = l->bits[w >> 3] >> (w & 7) & 1 ? 0 : WL_NO_ROW;
  }
}

/* The row of each row's keys in a unique lookup, or WL_NO_ROW. */
void wl_exec_find_rows(wl_exec *x, const wl_join *j, int n, wl_u32 *out) {
  const wl_lookup *l = j->lookup;
  if (l->only_bits) {
    find_bits(x, j, n, out);
    return;
  }
  if (l->plan.kind == WL_KEYS_NONE) {
    wl_u32 r = l->n_rows == 0 ? WL_NO_ROW : l->rows ? l->rows[0] : 0;
    for (int i = 0; i < n; i++) out[i] = r;
    return;
  }
  if (l->direct && l->plan.n == 1 && !l->plan.parts[0].null) {
    find_one(x, l, j->keys[0], n, out);
    return;
  }
  wl_exec_words(x, &l->plan, j->keys, n);
  if (l->direct) {
    for (int i = 0; i < n; i++) out[i] = l->slots[x->there[i] ? x->words[i] : l->span];
    return;
  }
  wl_exec_slots(x, l, n);
  for (int i = 0; i < n; i++) out[i] = x->there[i] ? l->slots[x->slots[i]] : WL_NO_ROW;
}

static WL_CLONES void truth_found(wl_u8 *restrict t, const wl_u32 *rows, int n, wl_u8 found) {
  wl_u8 lost = (wl_u8)(WL_TRUE - found);
  for (int i = 0; i < n; i++) t[i] = rows[i] != WL_NO_ROW ? found : lost;
}

/*
** A Probe that drops rows, using the bitmap first. Slots are read only for the rows that remain.
** rows: NULL if nothing reads them.
*/
static int probe_bits(wl_exec *x, const wl_join *j, int pc, int n, wl_u32 *rows) {
  const wl_lookup *l = j->lookup;
  wl_i16 key = j->keys[0];
  wl_u64 lo = (wl_u64)l->plan.parts[0].lo, span = l->span;
  const wl_u16 *sel = NULL;
  const void *data;
  int phys = WL_P_I64;
  bool nulls = false;
  const wl_column *c = direct_column(x, l, key);
  if (c) {
    const wl_segment *s = &c->segments[x->tablet];
    if (x->tally) wl_exec_reads(x, c, n);
    phys = c->phys;
    sel = x->selected ? x->sel : NULL;
    data = (const char *)s->data + (size_t)x->row * (size_t)wl_phys_width(c->phys);
    nulls = s->valid != NULL;
    if (nulls) wl_exec_bits((wl_u8 *)x->room, s->valid, x->row, sel, n);
  } else {
    const plane *a = wl_exec_operand(x, key);
    data = a->v;
    nulls = a->t != NULL;
    if (nulls) memcpy(x->room, a->t, (size_t)n);
  }
  has_loops[phys](x->there, data, sel, n, lo, span, l->bits);
  for (int i = 0; nulls && i < n; i++) x->there[i] &= (wl_u8)(((wl_u8 *)x->room)[i] << 1);
  for (int i = 0; j->how == WL_HOW_ANTI && i < n; i++) x->there[i] = WL_TRUE - x->there[i];
  int k = wl_exec_true(x, x->there, n);
  if (rows && k) {
    wl_u16 *at = (wl_u16 *)x->room;
    for (int i = 0; i < k; i++) at[i] = sel ? sel[x->keep[i]] : x->keep[i];
    find_loops[phys](rows, data, at, k, lo, span, l->slots);
  }
  x->lists[j->source] = NULL; /* the rows are already dense */
  if (k < n && k > 0) wl_exec_keep(x, pc, k);
  x->lists[j->source] = rows;
  return k;
}

int wl_exec_probe(wl_exec *x, int pc, int n) {
  const wl_join *j = &x->p->joins[x->p->code[pc].c];
  wl_u32 *rows = wl_exec_list_room(x, x->depth, j->source);
  bool read = rows && x->last_read[j->source] > pc,
       drops = j->how != WL_HOW_LEFT && j->how != WL_HOW_MARK;
  bool one = j->n_keys == 1 && !j->lookup->plan.parts[0].null && !WL_IS_CONST(j->keys[0]);
  if (j->lookup->bits && drops && one)
    return probe_bits(x, j, pc, n, read && j->how == WL_HOW_INNER ? rows : NULL);
  if (!read) rows = x->found;
  wl_exec_find_rows(x, j, n, rows);
  x->lists[j->source] = read ? rows : NULL;
  if (!drops) return n;
  truth_found(x->there, rows, n, j->how == WL_HOW_ANTI ? WL_FALSE : WL_TRUE);
  int k = wl_exec_true(x, x->there, n);
  if (k < n && k > 0) wl_exec_keep(x, pc, k);
  return k;
}
