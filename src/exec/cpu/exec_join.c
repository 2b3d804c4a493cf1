/*
** Joins on the CPU machine: Probe finds one row a vector row, Expand makes chunks of (row,
** candidate) pairs and Match settles what a test of them means, Build hands keys to a lookup that
** is being made. See exec_impl.h.
**
** A block with Expands is a stack of loops: each open Expand keeps its rows and how far their
** candidates are done (level), and the innermost one gives the next chunk. The stack is plain
** data, so a run can stop after any chunk and go on later.
**
** Invariants:
** 1. Pairs come in the order of the rows, and of a row's candidates.
** 2. What leaves a Match, for one chunk, fits a vector: a row without candidates takes the place
**    of a pair.
*/
#include "exec/cpu/exec_impl.h"
#include "base/clock.h"
#include "base/mem.h"
#include "value/hash.h"
#include "value/key_hash.h"
#include "value/scratch.h"
#include <string.h>

enum { POLL_CHUNKS = 64, PREFETCH_FROM = 1 << 15 };
static const double POLL_NS = 5e6;

/* ---- opening */

static void note_sources(wl_exec *x) {
  const wl_program *p = x->p;
  for (int pc = x->first; pc < x->end; pc++) {
    const wl_instr *in = &p->code[pc];
    int s = -1, last = pc;
    if (in->op == WL_OP__Column) {
      s = column_source(p, in->a);
      last = x->live.last_read[in->d]; /* it is loaded when it is read */
    } else if (in->op == WL_OP__Found) {
      s = in->a;
    } else if (in->op == WL_OP__Expand) {
      level *l = &x->levels[x->n_levels++];
      l->pc = pc;
      l->join = &p->joins[in->c];
      l->match = l->join->match;
      l->first_only = l->join->how >= WL_HOW_SEMI;
    }
    if (in->op == WL_OP__Probe || in->op == WL_OP__Expand) {
      const wl_join *j = &p->joins[in->c];
      x->misses[j->source] = j->how == WL_HOW_LEFT || j->how == WL_HOW_MARK;
      x->set_at[j->source] = pc;
    }
    if (s >= 0 && last > x->last_read[s]) x->last_read[s] = last;
  }
}

wl_status wl_exec_open_joins(wl_exec *x) {
  const wl_program *p = x->p;
  bool joins = !x->source && p->n_joins > 0;
  size_t n = p->n_sources > 1 ? (size_t)p->n_sources : 1, n_expands = 0;
  for (int pc = x->first; joins && pc < x->end; pc++) n_expands += p->code[pc].op == WL_OP__Expand;
  x->test_end = -1;
  x->lists = wl_mem_zalloc(n * sizeof *x->lists);
  x->misses = wl_mem_zalloc(n);
  x->last_read = wl_mem_zalloc(2 * n * sizeof(int));
  x->tablets = wl_mem_zalloc(((size_t)p->n_columns + 1) * sizeof *x->tablets);
  if (!x->lists || !x->misses || !x->last_read || !x->tablets) return WL_NOMEM;
  x->set_at = x->last_read + n;
  for (int c = 0; c < p->n_columns && !x->source; c++) {
    if (!joins && x->part != WL_EXEC_ROWS) break;
    const wl_column *col = x->cols[c];
    if (!col) continue;
    x->tablets[c] = wl_mem_alloc(((size_t)col->n_tablets + 1) * sizeof **x->tablets);
    if (!x->tablets[c]) return WL_NOMEM;
    for (int t = 0; t < col->n_tablets; t++) x->tablets[c][t] = col->segments[t].data;
  }
  if (!joins) return WL_OK;
  x->levels = wl_mem_zalloc((n_expands + 1) * sizeof *x->levels);
  x->rooms = wl_mem_zalloc((n_expands + 1) * n * sizeof *x->rooms);
  if (!x->levels || !x->rooms) return WL_NOMEM;
  note_sources(x);
  /* a list at each depth where the source is read, or handed on */
  size_t n_lists = 0;
  for (int pass = 0; pass < 2; pass++) {
    wl_u32 *at = x->join_memory;
    for (size_t d = 0; d <= n_expands; d++)
      for (size_t s = 0; s < n; s++) {
        int begin = d ? x->levels[d - 1].pc : x->first;
        if (x->last_read[s] < begin) continue;
        n_lists += pass == 0;
        if (pass) x->rooms[d * n + s] = at;
        if (pass) at += WL_VECTOR;
      }
    if (!pass && !(x->join_memory = wl_mem_alloc((n_lists + 1) * WL_VECTOR * sizeof *at)))
      return WL_NOMEM;
  }
  return WL_OK;
}

void wl_exec_close_joins(wl_exec *x) {
  for (int c = 0; x->tablets && c < x->p->n_columns; c++) wl_mem_free(x->tablets[c]);
  wl_mem_free(x->tablets);
  wl_mem_free(x->lists);
  wl_mem_free(x->misses);
  wl_mem_free(x->last_read);
  wl_mem_free(x->levels);
  wl_mem_free(x->rooms);
  wl_mem_free(x->join_memory);
}

static wl_u32 *room_of(const wl_exec *x, int depth, int source) {
  return x->rooms[depth * x->p->n_sources + source];
}

/* ---- words of keys */

static WL_CLONES void word_first(wl_u64 *restrict w, wl_u8 *restrict ok, const wl_i64 *v, int n,
                                 wl_u64 lo, wl_u64 span, wl_u64 below) {
  for (int i = 0; i < n; i++) {
    wl_u64 d = (wl_u64)v[i] - lo;
    w[i] = d * below;
    ok[i] = d < span;
  }
}
static WL_CLONES void word_next(wl_u64 *restrict w, wl_u8 *restrict ok, const wl_i64 *v, int n,
                                wl_u64 lo, wl_u64 span, wl_u64 below) {
  for (int i = 0; i < n; i++) {
    wl_u64 d = (wl_u64)v[i] - lo;
    w[i] += d * below;
    ok[i] &= d < span;
  }
}

static void word_ints(wl_exec *x, const wl_key_plan *plan, int k, const plane *a, int n) {
  wl_u64 lo = (wl_u64)plan->lo[k], span = (wl_u64)plan->hi[k] - lo + 1, below = plan->below[k];
  wl_u64 *w = x->words;
  wl_u8 *ok = x->there;
  if (a->stride && !(a->t && plan->null_equal[k])) {
    (k ? word_next : word_first)(w, ok, (const wl_i64 *)a->v, n, lo, span, below);
    for (int i = 0; a->t && i < n; i++) ok[i] &= a->t[i];
    return;
  }
  for (int i = 0; i < n; i++) {
    bool there = !a->t || a->t[i];
    wl_u64 d = there ? a->v[a->stride ? i : 0] - lo : span;
    bool fits = there ? d < span : plan->null_equal[k];
    w[i] = (k ? w[i] : 0) + d * below;
    ok[i] = fits && (!k || ok[i]);
  }
}

/* x->words and x->there of the join's keys. Returns whether a key was NULL and may not be. */
static bool make_words(wl_exec *x, const wl_key_plan *plan, const wl_i16 *keys, int n) {
  bool null = false;
  if (plan->kind == WL_KEYS_NONE) {
    memset(x->there, 1, (size_t)n);
    memset(x->words, 0, (size_t)n * 8);
  }
  for (int k = 0; k < plan->n; k++) {
    const plane *a = wl_exec_operand(x, keys[k]);
    wl_vec v = vec_of(a);
    if (plan->kind == WL_KEYS_INT) {
      word_ints(x, plan, k, a, n);
      for (int i = 0; a->t && !plan->null_equal[k] && !null && i < n; i++) null = !a->t[i];
    } else {
      for (int i = 0; i < n; i++) {
        wl_val key = wl_vec_get(&v, i);
        bool ok = key.t != WL_T_NULL || plan->null_equal[k];
        null |= !ok;
        x->there[i] = ok && (!k || x->there[i]);
        if (plan->kind == WL_KEYS_REAL)
          x->words[i] = ok ? wl_f64_bits(wl_as_f64(key.v) == 0.0 ? 0.0 : wl_as_f64(key.v)) : 0;
        else
          x->words[i] = wl_hash_mix(k ? x->words[i] : 0, wl_hash_val(key, plan->coll[k]));
      }
    }
  }
  return null;
}

wl_status wl_exec_build(wl_exec *x, const wl_join *j, int n) {
  wl_build_sink *s = x->sink;
  s->has_null |= make_words(x, s->plan, j->keys, n);
  wl_u32 base = ((wl_u32)x->tablet << WL_TABLET_SHIFT) + (wl_u32)x->row;
  wl_u32 *restrict rows = s->rows + s->n;
  if (x->selected)
    for (int i = 0; i < n; i++) rows[i] = base + x->sel[i];
  else
    for (int i = 0; i < n; i++) rows[i] = base + (wl_u32)i;
  wl_u64 *restrict words = s->words + s->n;
  if (!memchr(x->there, 0, (size_t)n)) {
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

/* The slot of a hashed word, or one that is empty. */
static inline wl_u64 slot_of(const wl_lookup *l, wl_u64 word) {
  wl_u64 at = wl_key_hash(word) & l->mask;
  while (l->slots[at] != WL_NO_ROW && l->words[at] != word) at = (at + 1) & l->mask;
  return at;
}

static WL_CLONES void hash_words(wl_u32 *restrict home, const wl_u64 *words, wl_u64 mask, int n) {
  for (int i = 0; i < n; i++) home[i] = (wl_u32)(wl_key_hash(words[i]) & mask);
}

/* The slot of each word into x->slots. A large table's slots are brought near first. */
static void find_slots(wl_exec *x, const wl_lookup *l, int n) {
  wl_u32 *at = x->slots;
  hash_words(at, x->words, l->mask, n);
  if (l->mask >= PREFETCH_FROM)
    for (int i = 0; i < n; i++) {
      __builtin_prefetch(&l->slots[at[i]]);
      __builtin_prefetch(&l->words[at[i]]);
    }
  for (int i = 0; i < n; i++) {
    /* most are settled by the first slot; an empty one is as good as the word's own */
    bool first = (l->words[at[i]] == x->words[i]) | (l->slots[at[i]] == WL_NO_ROW);
    if (!first) at[i] = (wl_u32)slot_of(l, x->words[i]);
  }
}

/* d, or span if it is not below that: by a mask, since a jump would be a guess in vain. */
static inline wl_u64 within(wl_u64 d, wl_u64 span) {
  return span ^ ((d ^ span) & (0 - (wl_u64)(d < span)));
}

/* One integer key in a table by value: what is outside finds the last slot, which is empty. */
#define FIND(name, T)                                                                              \
  static WL_CLONES void find_##name(wl_u32 *restrict out, const void *data, const wl_u16 *sel,     \
                                    int n, wl_u64 lo, wl_u64 span, const wl_u32 *slots) {          \
    const T *v = data;                                                                             \
    if (sel)                                                                                       \
      for (int i = 0; i < n; i++) {                                                                \
        wl_u64 d = (wl_u64)(wl_i64)v[sel[i]] - lo;                                                 \
        out[i] = slots[within(d, span)];                                                           \
      }                                                                                            \
    else                                                                                           \
      for (int i = 0; i < n; i++) {                                                                \
        wl_u64 d = (wl_u64)(wl_i64)v[i] - lo;                                                      \
        out[i] = slots[within(d, span)];                                                           \
      }                                                                                            \
  }
/* Whether such a key has a row, as truths: from the table of bits. */
#define HAS(name, T)                                                                               \
  static WL_CLONES void has_##name(wl_u8 *restrict out, const void *data, const wl_u16 *sel,       \
                                   int n, wl_u64 lo, wl_u64 span, const wl_u8 *bits) {             \
    const T *v = data;                                                                             \
    for (int i = 0; i < n; i++) {                                                                  \
      wl_u64 d = (wl_u64)(wl_i64)v[sel ? sel[i] : i] - lo;                                         \
      wl_u64 w = within(d, span);                                                                  \
      out[i] = (wl_u8)((bits[w >> 3] >> (w & 7) & 1) << 1);                                        \
    }                                                                                              \
  }
HAS(i8, wl_i8)
HAS(i16, wl_i16)
HAS(i32, wl_i32)
HAS(i64, wl_i64)
FIND(i8, wl_i8)
FIND(i16, wl_i16)
FIND(i32, wl_i32)
FIND(i64, wl_i64)

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

/* The same for a whole vector; a column that is not loaded yet is read as it lies. */
static void find_one(wl_exec *x, const wl_lookup *l, wl_i16 key, int n, wl_u32 *out) {
  wl_u64 lo = (wl_u64)l->plan.lo[0], span = l->span;
  if (!WL_IS_CONST(key) && x->pending[key] >= 0 &&
      !x->lists[column_source(x->p, x->pending[key])]) {
    const wl_column *c = x->cols[x->pending[key]];
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

/* The row of each row's keys in a unique lookup, or WL_NO_ROW. */
static void find_rows(wl_exec *x, const wl_join *j, int n, wl_u32 *out) {
  const wl_lookup *l = j->lookup;
  if (l->plan.kind == WL_KEYS_NONE) {
    wl_u32 r = l->n_rows == 0 ? WL_NO_ROW : l->rows ? l->rows[0] : 0;
    for (int i = 0; i < n; i++) out[i] = r;
    return;
  }
  if (l->direct && l->plan.n == 1 && !l->plan.null_equal[0]) {
    find_one(x, l, j->keys[0], n, out);
    return;
  }
  make_words(x, &l->plan, j->keys, n);
  if (l->direct) {
    for (int i = 0; i < n; i++) out[i] = l->slots[x->there[i] ? x->words[i] : l->span];
    return;
  }
  find_slots(x, l, n);
  for (int i = 0; i < n; i++) out[i] = x->there[i] ? l->slots[x->slots[i]] : WL_NO_ROW;
}

static WL_CLONES void truth_found(wl_u8 *restrict t, const wl_u32 *rows, int n, wl_u8 found) {
  wl_u8 lost = (wl_u8)(WL_TRUE - found);
  for (int i = 0; i < n; i++) t[i] = rows[i] != WL_NO_ROW ? found : lost;
}

/*
** A Probe that drops rows, by the table of bits first: the slots are looked at for the rows that
** stay. rows: NULL where nothing reads them.
*/
static int probe_bits(wl_exec *x, const wl_join *j, int pc, int n, wl_u32 *rows) {
  const wl_lookup *l = j->lookup;
  wl_i16 key = j->keys[0];
  wl_u64 lo = (wl_u64)l->plan.lo[0], span = l->span;
  const wl_u16 *sel = NULL;
  const void *data;
  int phys = WL_P_I64;
  bool nulls = false;
  if (x->pending[key] >= 0 && !x->lists[column_source(x->p, x->pending[key])]) {
    const wl_column *c = x->cols[x->pending[key]];
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
  x->lists[j->source] = NULL; /* dense already */
  if (k < n && k > 0) wl_exec_keep(x, pc, k);
  x->lists[j->source] = rows;
  return k;
}

int wl_exec_probe(wl_exec *x, int pc, int n) {
  const wl_join *j = &x->p->joins[x->p->code[pc].c];
  wl_u32 *rows = room_of(x, x->depth, j->source);
  bool read = rows && x->last_read[j->source] > pc,
       drops = j->how != WL_HOW_LEFT && j->how != WL_HOW_MARK;
  if (j->lookup->bits && drops && j->n_keys == 1 && !WL_IS_CONST(j->keys[0]))
    return probe_bits(x, j, pc, n, read && j->how == WL_HOW_INNER ? rows : NULL);
  if (!read) rows = x->found;
  find_rows(x, j, n, rows);
  x->lists[j->source] = read ? rows : NULL;
  if (!drops) return n;
  truth_found(x->there, rows, n, j->how == WL_HOW_ANTI ? WL_FALSE : WL_TRUE);
  int k = wl_exec_true(x, x->there, n);
  if (k < n && k > 0) wl_exec_keep(x, pc, k);
  return k;
}

/* ---- Expand */

/* The candidates of each row. */
static void find_runs(wl_exec *x, level *v) {
  const wl_lookup *l = v->join->lookup;
  int n = v->n;
  v->candidates = l->unique ? NULL : l->rows;
  if (l->plan.kind == WL_KEYS_NONE) {
    v->candidates = l->rows;
    for (int i = 0; i < n; i++) v->begin[i] = 0;
    for (int i = 0; i < n; i++) v->end[i] = (wl_u32)l->n_rows;
  } else if (l->unique) {
    find_rows(x, v->join, n, v->begin);
    for (int i = 0; i < n; i++) v->end[i] = v->begin[i] + (v->begin[i] != WL_NO_ROW);
  } else {
    make_words(x, &l->plan, v->join->keys, n);
    if (l->direct) {
      for (int i = 0; i < n; i++) {
        wl_u64 w = x->there[i] ? x->words[i] : l->span;
        v->begin[i] = l->starts[w];
        v->end[i] = l->starts[w + 1];
        __builtin_prefetch(&l->rows[v->begin[i]]);
      }
    } else {
      find_slots(x, l, n);
      for (int i = 0; i < n; i++) {
        wl_u32 at = x->slots[i];
        bool any = x->there[i] && l->slots[at] != WL_NO_ROW;
        v->begin[i] = any ? l->slots[at] : 0;
        v->end[i] = any ? l->slots[at] + l->counts[at] : 0;
        __builtin_prefetch(&l->rows[v->begin[i]]);
      }
    }
  }
  /* without a test the first candidate passes */
  if (v->first_only && v->match == v->pc + 1)
    for (int i = 0; i < n; i++)
      if (v->end[i] > v->begin[i]) v->end[i] = v->begin[i] + 1;
}

static void enter(wl_exec *x, level *v) {
  v->n = x->n;
  find_runs(x, v);
  v->begin[v->n] = 0;
  v->row = v->settled = 0;
  v->at = v->begin[0];
  if (v->match >= 0) memset(v->matched, 0, (size_t)v->n);
  wl_u32 *rows = room_of(x, 0, 0);
  if (!x->depth && rows && x->last_read[0] > v->pc) {
    wl_u32 base = ((wl_u32)x->tablet << WL_TABLET_SHIFT) + (wl_u32)x->row;
    for (int i = 0; i < v->n; i++) rows[i] = base + (x->selected ? x->sel[i] : (wl_u32)i);
    x->lists[0] = rows;
  }
  x->depth++;
}

static WL_CLONES void gather(wl_u32 *restrict d, const wl_u32 *s, const wl_u32 *at, int n) {
  for (int i = 0; i < n; i++) d[i] = s[at[i]];
}

/* The lists of all sources that are read past pc, for rows `origin` of the level's input. */
static void gather_lists(wl_exec *x, const level *v, const wl_u32 *origin, int n, int pc) {
  for (int s = 0; s < x->p->n_sources; s++) {
    wl_u32 *to = room_of(x, x->depth, s);
    if (s == v->join->source || !to || x->last_read[s] <= pc || x->set_at[s] >= v->pc) continue;
    gather(to, room_of(x, x->depth - 1, s), origin, n);
    x->lists[s] = to;
  }
}

/* The next pairs into the vector; false: there are no more, and no row is unsettled. */
static bool chunk(wl_exec *x, level *v) {
  int n = 0, taken = 0, row = v->row;
  wl_u32 at = v->at, *origin = v->origin;
  wl_u32 *rows = room_of(x, x->depth, v->join->source);
  if (row == v->n) return false;
  while (row < v->n && taken < WL_VECTOR) {
    wl_u32 m = v->end[row] - at;
    bool done = v->first_only && v->match >= 0 && v->matched[row];
    if (m == 0 || done) {
      /* a row that has had candidates has had its place too */
      taken += v->match >= 0 && v->begin[row] == v->end[row];
      at = v->begin[++row];
      continue;
    }
    bool all = m <= (wl_u32)(WL_VECTOR - taken);
    if (!all) m = (wl_u32)(WL_VECTOR - taken);
    for (wl_u32 i = 0; i < m; i++) origin[n + (int)i] = (wl_u32)row;
    if (rows && v->candidates)
      for (wl_u32 i = 0; i < m; i++) rows[n + (int)i] = v->candidates[at + i];
    else if (rows)
      for (wl_u32 i = 0; i < m; i++) rows[n + (int)i] = at + i;
    n += (int)m;
    taken += (int)m;
    at += m;
    if (all) at = v->begin[++row];
  }
  v->row = row;
  v->at = at;
  x->n = n;
  x->selected = false;
  x->lists[v->join->source] = rows;
  /* of the sources before, what the level was entered with */
  gather_lists(x, v, origin, n, v->pc);
  x->origin = v->match >= 0 ? origin : NULL;
  x->test_end = v->match;
  return true;
}

/* ---- Match */

/* Every pair in the vector has passed the test: makes the rows that go on of them. */
static void match(wl_exec *x, level *v) {
  const wl_join *j = v->join;
  x->origin = NULL;
  x->test_end = -1;
  if (j->how == WL_HOW_INNER) return;
  wl_u32 *origin = (wl_u32 *)x->room, *rows = origin + WL_VECTOR;
  const wl_u32 *passed = x->lists[j->source];
  bool lost = j->how != WL_HOW_SEMI, each = j->how == WL_HOW_LEFT;
  int n = 0, row = v->settled;
  for (int i = 0; i <= x->n; i++) {
    int to = i < x->n ? (int)v->origin[i] : v->row;
    for (; row < to; row++) {
      if (!lost || v->matched[row]) continue;
      origin[n] = (wl_u32)row;
      rows[n++] = WL_NO_ROW;
    }
    if (i == x->n) break;
    if (j->how != WL_HOW_ANTI && (each || !v->matched[row])) {
      origin[n] = (wl_u32)row;
      rows[n++] = passed ? passed[i] : 0;
    }
    v->matched[row] = 1;
  }
  v->settled = row;
  wl_u32 *to = room_of(x, x->depth, j->source);
  if (to) memcpy(to, rows, (size_t)n * sizeof *to);
  x->n = n;
  gather_lists(x, v, origin, n, v->match);
}

/* ---- the stack */

void wl_exec_begin(wl_exec *x, int tablet, wl_i32 first, wl_i32 n) {
  x->tablet = tablet;
  x->at = first;
  x->stop = first + n;
  x->depth = 0;
  x->test_end = -1;
  x->origin = NULL;
}

static void next_vector(wl_exec *x) {
  x->row = x->at;
  x->n = x->stop - x->at < WL_VECTOR ? x->stop - x->at : WL_VECTOR;
  x->at += x->n;
  x->selected = false;
  x->lists[0] = NULL;
  x->made = 0;
  x->most = (wl_i64)x->n << 31;
}

static wl_status poll(wl_exec *x, const wl_poll *p, bool *stop, wl_error *err) {
  *stop = false;
  if (++x->n_chunks < POLL_CHUNKS) return WL_OK;
  x->n_chunks = 0;
  *stop = (p->pause && atomic_load_explicit(p->pause, memory_order_relaxed)) ||
          (x->stop_by && wl_stop_is_set(x->stop_by));
  if (*stop || !p->check) return WL_OK;
  double now = wl_clock_ns();
  if (now - x->polled < POLL_NS) return WL_OK;
  x->polled = now;
  return p->check(p->arg, err);
}

static bool next_chunk(wl_exec *x, level *v) {
  if (x->tally) wl_exec_tick(x, v->pc, 0);
  return chunk(x, v);
}

static wl_status go(wl_exec *x, const wl_exec_io *io, bool *done, wl_error *err) {
  wl_batch *out = io->out;
  bool stop;
  *done = false;
  x->fault = WL_FAULT_NONE;
  x->groups = io->groups;
  for (;;) {
    if (out && io->max_rows >= 0 && out->n_rows >= io->max_rows) break;
    if (out && x->depth == x->n_levels && out->n_rows + WL_VECTOR > wl_pool_rows(out->pool))
      return WL_OK;
    wl_status rc = poll(x, &io->poll, &stop, err);
    if (rc || stop) return rc;
    int pc = x->first;
    level *v = x->depth ? &x->levels[x->depth - 1] : NULL;
    if (!v) {
      if (x->at >= x->stop) break;
      next_vector(x);
    } else if (next_chunk(x, v)) {
      pc = x->n ? v->pc + 1 : v->match >= 0 ? v->match : x->end;
    } else {
      x->depth--;
      continue;
    }
    while (pc < x->end) {
      const wl_instr *in = &x->p->code[pc];
      if (x->tally && (in->op == WL_OP__Expand || in->op == WL_OP__Match))
        wl_exec_tick(x, pc, x->n);
      if (in->op == WL_OP__Expand) {
        enter(x, &x->levels[x->depth]);
        break;
      }
      if (in->op == WL_OP__Match) {
        match(x, v);
        pc++;
        if (!x->n) break;
      }
      wl_scratch_reset(&x->ctx);
      rc = wl_exec_failure(x, wl_exec_steps(x, &pc, out, io->accs), err);
      if (rc) return rc;
    }
  }
  *done = true;
  return WL_OK;
}

wl_status wl_exec_go(wl_exec *x, const wl_exec_io *io, bool *done, wl_error *err) {
  wl_status rc = go(x, io, done, err);
  if (x->tally) wl_exec_tock(x);
  return rc;
}

wl_status wl_exec_run_build(wl_exec *x, int tablet, wl_i32 n, wl_build_sink *sink, wl_error *err) {
  x->sink = sink;
  return wl_exec_run(x, tablet, 0, n, NULL, -1, NULL, NULL, err);
}
