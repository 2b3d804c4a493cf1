/*
** Joins that multiply rows, on the CPU machine (exec_impl.h). Expand makes chunks of pairs of a row
** and a candidate. Match decides what the test of the pairs means for the rows. exec_probe.c finds
** the candidates.
**
** A pipeline with Expands is a stack of loops. Each open Expand (level) stores its rows and how far
** their candidates are processed, and the innermost one makes the next chunk. The stack is plain
** data, so a run can stop after any chunk and continue later.
**
** Invariants:
** 1. Pairs are in the order of the rows, then of each row's candidates.
** 2. What leaves a Match for one chunk fits a vector, because a row without candidates uses the
**    space of a pair.
*/
#include "exec/cpu/exec_impl.h"
#include "base/clock.h"
#include "base/mem.h"
#include "value/hash.h"
#include "value/scratch.h"
#include <string.h>

enum { POLL_CHUNKS = 64 };
static const double POLL_NS = 5e6;

/* ---- opening */

static void note_sources(wl_exec *x) {
  const wl_program *p = x->p;
  for (int pc = 0; pc < x->end; pc++) {
    const wl_instr *in = &p->code[pc];
    int s = -1, last = pc;
    if (in->op == WL_OP__Column) {
      s = wl_column_source(p, in->a);
      last = x->live.last_read[in->d]; /* it is loaded when it is read */
    } else if (in->op == WL_OP__Found || in->op == WL_OP__Row) {
      s = in->a;
    } else if (in->op == WL_OP__Mark) {
      s = p->joins[in->c].source;
    } else if (in->op == WL_OP__Expand) {
      level *l = &x->levels[x->n_levels++];
      l->pc = pc;
      l->join = &p->joins[in->c];
      l->match = l->join->match;
      l->first_only = wl_how_finds_one(l->join->how);
    }
    if (in->op == WL_OP__Probe || in->op == WL_OP__Expand) {
      const wl_join *j = &p->joins[in->c];
      x->misses[j->source] = j->how == WL_HOW_LEFT || j->how == WL_HOW_MARK;
      x->set_at[j->source] = pc;
    }
    if (s >= 0 && last > x->last_read[s]) x->last_read[s] = last;
  }
}

/* In a pipeline over unmatched rows, the sources that its code does not join have no row, except
** the one that it reads. */
static void note_absent(wl_exec *x) {
  const wl_program *p = x->p;
  for (int s = 0; s < p->n_sources; s++)
    if (x->set_at[s] < 0) x->misses[s] = s != p->joins[p->unmatched].source;
}

wl_status wl_exec_open_joins(wl_exec *x) {
  const wl_program *p = x->p;
  bool joins = !x->source && p->n_joins > 0;
  size_t n = p->n_sources > 1 ? (size_t)p->n_sources : 1, n_expands = 0;
  for (int pc = 0; joins && pc < x->end; pc++) n_expands += p->code[pc].op == WL_OP__Expand;
  x->test_end = -1;
  x->lists = wl_mem_zalloc(n * sizeof *x->lists);
  x->misses = wl_mem_zalloc(n);
  x->last_read = wl_mem_alloc(2 * n * sizeof(int));
  x->tablets = wl_mem_zalloc(((size_t)p->n_columns + 1) * sizeof *x->tablets);
  if (!x->lists || !x->misses || !x->last_read || !x->tablets) return WL_NOMEM;
  x->set_at = x->last_read + n;
  x->misses[0] = p->may_miss;
  for (size_t s = 0; s < n; s++) x->last_read[s] = x->set_at[s] = -1;
  for (int c = 0; c < p->n_columns && !x->source; c++) {
    if (!joins && p->source != WL_SOURCE_SORTED) break;
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
  if (p->source == WL_SOURCE_UNMATCHED) note_absent(x);
  /* a list at each depth where the source is read or passed on */
  size_t n_lists = 0;
  for (int pass = 0; pass < 2; pass++) {
    wl_u32 *at = x->join_memory;
    for (size_t d = 0; d <= n_expands; d++)
      for (size_t s = 0; s < n; s++) {
        int begin = d ? x->levels[d - 1].pc : 0;
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

/* ---- Expand */

/* Finds the candidates of each row. */
static void find_runs(wl_exec *x, level *v) {
  const wl_lookup *l = v->join->lookup;
  int n = v->n;
  v->candidates = l->unique ? NULL : l->rows;
  if (l->plan.kind == WL_KEYS_NONE) {
    v->candidates = l->rows;
    for (int i = 0; i < n; i++) v->begin[i] = 0;
    for (int i = 0; i < n; i++) v->end[i] = (wl_u32)l->n_rows;
  } else if (l->unique) {
    wl_exec_find_rows(x, v->join, n, v->begin);
    for (int i = 0; i < n; i++) v->end[i] = v->begin[i] + (v->begin[i] != WL_NO_ROW);
  } else {
    wl_exec_words(x, &l->plan, v->join->keys, n);
    if (l->direct) {
      for (int i = 0; i < n; i++) {
        wl_u64 w = x->there[i] ? x->words[i] : l->span;
        v->begin[i] = l->starts[w];
        v->end[i] = l->starts[w + 1];
        __builtin_prefetch(&l->rows[v->begin[i]]);
      }
    } else {
      wl_exec_slots(x, l, n);
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
  wl_u32 *rows = wl_exec_list_room(x, 0, 0);
  if (!x->depth && !x->lists[0] && rows && x->last_read[0] > v->pc) {
    wl_u32 base = ((wl_u32)x->tablet << WL_TABLET_SHIFT) + (wl_u32)x->row;
    for (int i = 0; i < v->n; i++) rows[i] = base + (x->selected ? x->sel[i] : (wl_u32)i);
    x->lists[0] = rows;
  }
  x->depth++;
}

static WL_CLONES void gather(wl_u32 *restrict d, const wl_u32 *s, const wl_u32 *at, int n) {
  for (int i = 0; i < n; i++) d[i] = s[at[i]];
}

/* Makes the lists of all sources that are read after pc, for rows `origin` of the level's input. */
static void gather_lists(wl_exec *x, const level *v, const wl_u32 *origin, int n, int pc) {
  for (int s = 0; s < x->p->n_sources; s++) {
    wl_u32 *to = wl_exec_list_room(x, x->depth, s);
    if (s == v->join->source || !to || x->last_read[s] <= pc || x->set_at[s] >= v->pc) continue;
    gather(to, wl_exec_list_room(x, x->depth - 1, s), origin, n);
    x->lists[s] = to;
  }
}

/* Loads the next pairs into the vector. Returns false if there are none left and every row is
** decided. */
static bool load_chunk(wl_exec *x, level *v) {
  int n = 0, taken = 0, row = v->row;
  wl_u32 at = v->at, *origin = v->origin;
  wl_u32 *rows = wl_exec_list_room(x, x->depth, v->join->source);
  if (row == v->n) return false;
  while (row < v->n && taken < WL_VECTOR) {
    wl_u32 m = v->end[row] - at;
    bool done = v->first_only && v->match >= 0 && v->matched[row];
    if (m == 0 || done) {
      /* a row with candidates has already used its space */
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
  /* for the sources before, the rows that the level started with */
  gather_lists(x, v, origin, n, v->pc);
  x->origin = v->match >= 0 ? origin : NULL;
  x->test_end = v->match;
  return true;
}

/* ---- Match */

/* All pairs in the vector have passed the test. Makes the rows that continue. */
static void run_match(wl_exec *x, level *v) {
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
  wl_u32 *to = wl_exec_list_room(x, x->depth, j->source);
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

/* Makes the lists of the next rows that are not marked. The other sources have no row. */
static void read_unmatched(wl_exec *x) {
  const wl_program *p = x->p;
  const wl_join *j = &p->joins[p->unmatched];
  wl_u32 *rows = wl_exec_list_room(x, 0, j->source);
  if (!rows) rows = x->found;
  int n = wl_marks_left(x->marks, p->unmatched,
                        ((wl_u32)x->tablet << WL_TABLET_SHIFT) + (wl_u32)x->row, x->n, rows);
  x->n = 0;
  for (int i = 0; i < n; i++) {
    rows[x->n] = rows[i];
    x->n += j->live < 0 || wl_column_stored(x->cols[j->live], rows[i]).v != 0;
  }
  for (int s = 0; s < p->n_sources; s++) {
    if (x->set_at[s] >= 0) continue;
    x->lists[s] = wl_exec_list_room(x, 0, s);
    if (x->lists[s] && s != j->source) memset(x->lists[s], 0xff, (size_t)x->n * sizeof *rows);
  }
}

static void next_vector(wl_exec *x) {
  x->row = x->at;
  x->n = x->stop - x->at < WL_VECTOR ? x->stop - x->at : WL_VECTOR;
  x->at += x->n;
  x->selected = false;
  x->lists[0] = NULL;
  x->made = 0;
  x->most = (wl_i64)x->n << 31;
  if (x->p->source == WL_SOURCE_UNMATCHED) read_unmatched(x);
}

static wl_status ask_poll(wl_exec *x, const wl_poll *p, bool *stop, wl_error *err) {
  *stop = (p->pause && atomic_load_explicit(p->pause, memory_order_relaxed)) ||
          (x->stop_by && wl_stop_is_set(x->stop_by));
  if (*stop || !p->check || ++x->n_chunks < POLL_CHUNKS) return WL_OK;
  x->n_chunks = 0;
  double now = wl_clock_ns();
  if (now - x->polled < POLL_NS) return WL_OK;
  x->polled = now;
  return p->check(p->arg, err);
}

static bool next_chunk(wl_exec *x, level *v) {
  if (x->tally) wl_exec_tick(x, v->pc, 0);
  return load_chunk(x, v);
}

/* The most rows that the next step can give. */
static int most_of_step(const wl_exec *x) {
  return x->n_levels || x->stop - x->at > WL_VECTOR ? WL_VECTOR : x->stop - x->at;
}

static wl_status go(wl_exec *x, const wl_exec_io *io, bool *done, wl_error *err) {
  wl_batch *out = io->out;
  bool stop;
  *done = false;
  x->fault = WL_FAULT_NONE;
  wl_exec_use_groups(x, io->groups);
  x->sorter = io->sorter;
  x->sort_worker = io->worker;
  x->sink = io->build;
  x->marks = io->marks;
  for (;;) {
    if (out && io->max_rows >= 0 && out->n_rows >= io->max_rows) break;
    if (out && x->depth == x->n_levels && out->n_rows + most_of_step(x) > wl_pool_rows(out->pool))
      return WL_OK;
    wl_status rc = ask_poll(x, &io->poll, &stop, err);
    if (rc || stop) return rc;
    int pc = 0;
    level *v = x->depth ? &x->levels[x->depth - 1] : NULL;
    if (!v) {
      if (x->at >= x->stop) break;
      next_vector(x);
      if (!x->n) continue;
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
        x->ran[pc] = true;
        run_match(x, v);
        pc++;
        if (!x->n) break;
      }
      wl_scratch_reset(&x->ctx);
      rc = wl_exec_failure(x, wl_exec_steps(x, &pc, out), err);
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
