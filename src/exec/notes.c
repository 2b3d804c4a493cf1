/*
** Notes for EXPLAIN ANALYZE; see notes.h.
*/
#include "exec/notes.h"
#include "base/clock.h"
#include <string.h>

void wl_notes_open(wl_notes *n) {
  memset(n, 0, sizeof *n);
  wl_arena_init(&n->arena);
}

void wl_notes_close(wl_notes *n) {
  wl_arena_close(&n->arena);
  n->first = NULL;
}

wl_query_note *wl_notes_find(const wl_notes *n, const wl_query *q) {
  wl_query_note *note = n->first;
  while (note && note->q != q) note = note->next;
  return note;
}

wl_status wl_notes_add(wl_notes *n, const wl_query *q, wl_query_note **out, wl_error *err) {
  wl_query_note *note = *out = WL_NEW(&n->arena, wl_query_note);
  if (!note) return wl_nomem(err);
  note->q = q;
  note->n_rows = WL_NEW_N(&n->arena, wl_i64, q->n_sources + 1);
  note->loads = WL_NEW_N(&n->arena, wl_load_note, q->n_sources + 1);
  note->builds = WL_NEW_N(&n->arena, wl_build_note, q->n_sources + 1);
  if (!note->n_rows || !note->loads || !note->builds) return wl_nomem(err);
  for (int s = 0; s < q->n_sources; s++) {
    note->loads[s].missing = WL_NEW_N(&n->arena, bool, q->n_cols + 1);
    if (!note->loads[s].missing) return wl_nomem(err);
  }
  note->next = n->first; /* if a query runs again, its latest note is found first */
  n->first = note;
  return WL_OK;
}

wl_status wl_notes_tally(wl_notes *n, const wl_program *p, wl_tally **out, wl_error *err) {
  *out = WL_NEW_N(&n->arena, wl_tally, p->n_code + 1);
  return *out ? WL_OK : wl_nomem(err);
}

/* ---- loading */

void wl_load_note_begin(wl_load_note *l, const wl_table *t, const int *want, int n) {
  for (int i = 0; i < n; i++) {
    l->missing[i] = !wl_source_columns(t->source, &want[i], 1, NULL);
    l->n_cols += l->missing[i];
  }
  l->ns = wl_clock_ns();
}

void wl_load_note_end(wl_load_note *l, const wl_table *t, const wl_snapshot *snap) {
  l->ns = wl_clock_ns() - l->ns;
  l->n_rows = snap->n_rows;
  l->from = wl_source_used(t->source).loaded_from;
  for (int i = 0; i < snap->n_cols; i++)
    if (l->missing[i]) l->n_bytes += (wl_i64)snap->cols[i]->n_bytes;
}

/* ---- lookups */

static const char *kind_of(const wl_lookup *l) {
  if (l->plan.kind == WL_KEYS_NONE) return "all rows";
  if (l->direct) return "by value";
  return l->plan.kind == WL_KEYS_VALUES ? "hash of values" : "hash";
}

void wl_build_note_end(wl_build_note *b, const wl_build_in *in, const wl_lookup *l, bool found,
                       double ns) {
  b->done = true;
  b->found = found;
  b->n_in = in->n_rows;
  b->n_kept = l->n_rows;
  b->n_bytes = (wl_i64)l->n_bytes;
  b->unique = l->unique;
  b->kind = kind_of(l);
  b->ns = ns;
  for (int pc = 0; in->tally && pc < in->p->n_code; pc++) b->n_read += in->tally[pc].n_bytes;
}

/* ---- the pipeline */

static bool takes_rows(const wl_instr *in) {
  switch ((wl_shape)wl_opcodes[in->op].shape) {
  case WL_SHAPE_RESULT:
  case WL_SHAPE_GROUP:
  case WL_SHAPE_AGG:
  case WL_SHAPE_AGG_I:
  case WL_SHAPE_AGG_F:
  case WL_SHAPE_AGG_V:
  case WL_SHAPE_AGG_VV: return true;
  default: return false;
  }
}

/*
** Finds the part that each instruction of the first pipeline belongs to. The instructions between
** the last one that may drop rows and a Probe or Expand compute the keys of that join, so they
** belong to its step. The join of step k is the program's k-th.
*/
static void find_parts(wl_query_note *note, const wl_program *p) {
  int part = 0, last = wl_query_note_last(note), cut = 0;
  for (int pc = 0; pc < p->n_code; pc++) {
    const wl_instr *in = &p->code[pc];
    bool joins = in->op == WL_OP__Probe || in->op == WL_OP__Expand;
    bool stops = joins || in->op == WL_OP__IfNot || in->op == WL_OP__Match || in->op == WL_OP__Mark;
    note->expands |= in->op == WL_OP__Expand;
    if (joins || (takes_rows(in) && part < last)) {
      part = joins ? in->c + 1 : last;
      for (int k = cut; k < pc; k++) note->part_of[k] = part;
    }
    note->part_of[pc] = part;
    if (stops) cut = pc + 1;
  }
}

wl_status wl_conjuncts(wl_arena *arena, const wl_bexpr *e, wl_jlist *out, wl_error *err) {
  const wl_bexpr *at = e;
  int n = 1;
  for (; at && at->kind == WL_B_AND; at = at->a) n++;
  out->e = WL_NEW_N(arena, const wl_bexpr *, n);
  out->n = 0;
  if (!out->e) return wl_nomem(err);
  /* a AND b AND c is (a AND b) AND c. An AND on the right side is not split. */
  for (at = e; at && at->kind == WL_B_AND; at = at->a) out->e[--n] = at->b;
  if (at) out->e[0] = at;
  for (at = e; at; at = at->kind == WL_B_AND ? at->a : NULL) out->n++;
  return WL_OK;
}

wl_status wl_query_note_ready(wl_notes *n, wl_query_note *note, const wl_jplan *plan,
                              const wl_program *p, const wl_i64 *n_rows,
                              double (*share)(void *arg, int source, const wl_jlist *list),
                              void *arg, wl_error *err) {
  const wl_query *q = note->q;
  wl_jlist list;
  note->plan = plan;
  note->n_code = p->n_code;
  note->part_of = WL_NEW_N(&n->arena, int, p->n_code + 1);
  wl_status rc = note->part_of ? WL_OK : wl_nomem(err);
  if (!rc) rc = wl_notes_tally(n, p, &note->run.tally, err);
  if (!rc) rc = wl_conjuncts(&n->arena, q->where, &list, err);
  if (rc) return rc;
  memcpy(note->n_rows, n_rows, (size_t)q->n_sources * sizeof *n_rows);
  find_parts(note, p);
  double rows = (double)n_rows[0];
  note->n_first = plan ? plan->n_first : list.n ? rows * share(arg, 0, &list) : rows;
  return WL_OK;
}

int wl_query_note_last(const wl_query_note *note) {
  return 1 + (note->plan ? note->plan->n_steps : 0);
}

/* Number of rows that reach the first instruction of a part; if it has none, of the next part. */
static wl_i64 rows_into(const wl_query_note *note, int part) {
  for (int pc = 0; pc < note->n_code; pc++)
    if (note->part_of[pc] >= part) return note->run.tally[pc].n_rows;
  return 0;
}

wl_flow wl_query_note_flow(const wl_query_note *note, int part) {
  wl_flow f = {.n_in = rows_into(note, part), .n_out = rows_into(note, part + 1)};
  double all = 0;
  for (int pc = 0; pc < note->n_code; pc++) {
    const wl_tally *t = &note->run.tally[pc];
    if (note->part_of[pc] >= 0) all += t->ns;
    if (note->part_of[pc] != part) continue;
    f.n_bytes += t->n_bytes;
    f.ns += t->ns;
  }
  /* Its share of the elapsed time is its share of the workers' time. */
  f.ns = all > 0 ? note->run.ns[WL_PHASE_SCAN] * (f.ns / all) : 0;
  return f;
}
