/*
** The price of SQLite's program: how often each opcode runs, times what it takes.
**
** Opcodes are visited in the order of their addresses. Each has a flow: how often it runs. A step
** passes its flow on to the next one and to the address that it jumps to. The flow at the head of a
** loop is multiplied by how often the loop is run through.
**
** A loop over m rows may be left early: by LIMIT, by EXISTS, after the row with the smallest value.
** If a share r of the flow at the head comes back to the head, the loop is run through 1 + r + r² …
** times, at most m: (1 - rᵐ) / (1 - r). A step that counts k rows down jumps with a probability of
** 1 / k, so that k rows pass it on average.
**
** Some numbers are known only later in the program: the rows in a temporary table, how often a
** subroutine before it is called, r. So the program is visited several times, each time with the
** numbers of the time before.
*/
#include "plan/price/price_impl.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Costs in ns that depend on the data, measured like those in opcodes.def. */
#define START       1500.0    /* starting a statement: locks, checking the schema */
#define SEEK        60.0      /* finding an entry, and … */
#define SEEK_LEVEL  11.0      /* … for each doubling of the tree */
#define PAGE_CACHED 80.0      /* moving to another page that SQLite has in memory */
#define PAGE_READ   800.0     /* the same if the page must be read from the file */
#define CACHE_BYTES 2000000.0 /* SQLite's page cache, by default */
#define PAGE_RANDOM 1500.0    /* the same if the pages read are far from each other */
#define AT_RANDOM   0.8       /* share of lookups that are not in the page of the one before */
#define COUNT_PAGE  130.0     /* counting the entries of a page */
#define SORT        8.0       /* sorting a row, for each doubling of their number */
#define COLUMN_NEXT 1.0       /* Column: passing over a column before it */
#define RESULT      16.0      /* reading a column of a result row */
#define OTHER       10.0      /* an opcode that is not listed */
#define BLOCK       10.0      /* rows with equal keys, in a sort by the rest of the keys */
#define TOP_STAYS   0.05      /* share of rows that get into the first rows of a sort with LIMIT */

enum { PASSES = 8 };

static const struct {
  double ns;
  double jumps;
} ops[] = {
#define WL_VDBE(name, ns, jumps) {ns, jumps / 100.0},
#include "plan/price/opcodes.def"
#undef WL_VDBE
    {OTHER, 0}};

typedef enum flow_kind {
  AS_ESTIMATED,
  LEAST, /* ranges that are not known are empty */
  WHOLE  /* LIMIT ends nothing early */
} flow_kind;

/* The numbers of one pass. */
typedef struct flow {
  pricing *p;
  flow_kind kind;
  double *in, *late; /* [n + 1] flow into each step; late: from steps after it, for the next pass */
  double inserted[MAX_CURSORS], before[MAX_CURSORS]; /* rows put into temporary tables; in the pass
                                                     ** before */
  double *flows;  /* [n + 1] how often each step runs; those not visited yet: in the pass before */
  double *called; /* [n + 1] flow at BeginSubrtn and InitCoroutine, by register */
  double ns, n_rows;
} flow;

static double loop_rows(const flow *f, const vdbe_loop *l) {
  return f->kind == LEAST ? l->least : l->rows;
}

static const vdbe_cursor *cursor_of(const flow *f, int i) {
  static const vdbe_cursor none = {.copy_of = -1};
  const vdbe_cursor *c = i >= 0 && i < MAX_CURSORS ? &f->p->cursors[i] : &none;
  return c;
}

static double inserted(const flow *f, int cursor) {
  const vdbe_cursor *c = cursor_of(f, cursor);
  if (c->copy_of >= 0 && c->copy_of < MAX_CURSORS) cursor = c->copy_of;
  return cursor >= 0 && cursor < MAX_CURSORS ? f->before[cursor] : 0;
}

/* The share of the pages of a tree that SQLite must read from the file. */
static double missing_share(const tree_now *now) {
  double bytes = now->leaves * now->page_bytes;
  return bytes > CACHE_BYTES ? 1 - CACHE_BYTES / bytes / 2 : 0;
}

/* The cost of finding an entry of a cursor's tree. */
static double seek_ns(const flow *f, int cursor) {
  const vdbe_cursor *c = cursor_of(f, cursor);
  if (!c->tree) return SEEK + SEEK_LEVEL * log2(inserted(f, cursor) + 2);
  const tree_now *now = wl_price_now(f->p, c->tree);
  return SEEK + SEEK_LEVEL * log2(now->rows + 2) + PAGE_RANDOM * AT_RANDOM * missing_share(now);
}

/* Whether the keys of a search come in the order of its tree: from the first column of an index that
** is read in its order, or from the rowids of a table. */
static bool comes_in_order(const flow *f, int at) {
  const wl_vdbe *v = &f->p->of->program;
  int key = v->steps[at].p3;
  for (int i = at - 1; i > 0; i--) {
    const wl_vdbe_step *s = &v->steps[i];
    const wl_priced_tree *from = cursor_of(f, s->p1)->tree;
    if (s->op == WL_VDBE_Column && s->p3 == key) return from && !from->tree.of_table && s->p2 == 0;
    if (s->op == WL_VDBE_Rowid && s->p2 == key) return from != NULL;
    if (s->op == WL_VDBE_Next || s->op == WL_VDBE_Prev) break; /* another loop */
  }
  return false;
}

/* The cost of a search for each of n keys in the order of the tree: neighbours share their page. */
static double seek_in_order_ns(const flow *f, int cursor, double n) {
  const vdbe_cursor *c = cursor_of(f, cursor);
  if (!c->tree) return seek_ns(f, cursor);
  const tree_now *now = wl_price_now(f->p, c->tree);
  double pages = n > now->leaves ? now->leaves / n : 1;
  return SEEK + SEEK_LEVEL * log2(now->rows + 2) +
         pages * (PAGE_CACHED + PAGE_READ * missing_share(now));
}

/* The cost of moving on to the next entry, beyond that of the opcode: sometimes another page. */
static double next_ns(const flow *f, int cursor) {
  const vdbe_cursor *c = cursor_of(f, cursor);
  if (!c->tree) return 0;
  const tree_now *now = wl_price_now(f->p, c->tree);
  double per_page = now->leaves > 0 ? now->rows / now->leaves : 50;
  if (per_page < 1) per_page = 1;
  return (PAGE_CACHED + PAGE_READ * missing_share(now)) / per_page;
}

/* For which share of n rows a column of the cursor is read. DeferredSeek only looks these up. */
static double read_share(const flow *f, int cursor, double n) {
  const wl_vdbe *v = &f->p->of->program;
  double most = 0;
  for (int i = 0; i < v->n; i++)
    if (v->steps[i].op == WL_VDBE_Column && v->steps[i].p1 == cursor && f->flows[i] > most)
      most = f->flows[i];
  return most < n ? most / n : 1;
}

/* The cost of each run of a step that runs n times. */
static double step_ns(const flow *f, int at, double n) {
  const wl_vdbe_step *x = &f->p->of->program.steps[at];
  double ns = ops[x->op].ns;
  switch (x->op) {
  case WL_VDBE_SeekGE:
  case WL_VDBE_SeekGT:
  case WL_VDBE_SeekLE:
  case WL_VDBE_SeekLT: return ns + seek_ns(f, x->p1);
  case WL_VDBE_SeekRowid:
  case WL_VDBE_NotExists:
    return ns + (comes_in_order(f, at) ? seek_in_order_ns(f, x->p1, n) : seek_ns(f, x->p1));
  case WL_VDBE_DeferredSeek: return ns + read_share(f, x->p3, n) * seek_ns(f, x->p3);
  case WL_VDBE_Found:
  case WL_VDBE_NotFound:
  case WL_VDBE_NoConflict:
  case WL_VDBE_IdxInsert: return ns + SEEK_LEVEL * log2(inserted(f, x->p1) + 2);
  case WL_VDBE_Next:
  case WL_VDBE_Prev: return ns + next_ns(f, x->p1);
  case WL_VDBE_Column: return ns + COLUMN_NEXT * (x->p2 < 40 ? x->p2 : 40);
  case WL_VDBE_ResultRow: return ns + RESULT * x->p2;
  case WL_VDBE_SorterInsert: return ns + SORT * log2(inserted(f, x->p1) + 2);
  case WL_VDBE_Count: {
    const vdbe_cursor *c = cursor_of(f, x->p1);
    const tree_now *now = c->tree ? wl_price_now(f->p, c->tree) : NULL;
    if (!now) return ns;
    return ns + now->leaves * (COUNT_PAGE + PAGE_READ * missing_share(now)) + now->rows / 50;
  }
  default: return ns;
  }
}

/* ---- flow */

/* Passes flow on to an address. Flow backwards counts in the next pass. */
static void pass(flow *f, int from, int to, double x) {
  const wl_vdbe *v = &f->p->of->program;
  if (to < 0 || to >= v->n || !(x > 0)) return;
  if (to > from)
    f->in[to] += x;
  else
    f->late[to] += x;
}

static vdbe_loop *loop_with(const flow *f, int head, int tail) {
  for (int i = 0; i < f->p->n_loops; i++) {
    vdbe_loop *l = &f->p->loops[i];
    if (head >= 0 ? l->head == head : l->tail == tail) return l;
  }
  return NULL;
}

static vdbe_loop *loop_started_at(const flow *f, int at) {
  for (int i = 0; i < f->p->n_loops; i++)
    if (f->p->loops[i].start == at) return &f->p->loops[i];
  return NULL;
}

/* The rows of a loop, if nothing ends it early. At least one: no rows means it is not entered. */
static double whole_rows(const flow *f, const vdbe_loop *l) {
  double n = loop_rows(f, l);
  if (l->kind == LOOP_TEMPORARY) { /* a search is by a key with few rows */
    n = inserted(f, l->cursor);
    if (l->finds)
      n = n < 1 ? n : 1;
    else if (l->empties && l->entered > 1)
      n /= l->entered;
  }
  if (l->kind == LOOP_OTHER) n = 100;
  return n < 1 ? 1 : n;
}

/* How often a loop that is entered once is run through. */
static double times_through(const flow *f, const vdbe_loop *l) {
  double m = whole_rows(f, l), r = l->again;
  if (r > 0.999999) return m;
  return (1 - pow(r, m)) / (1 - r);
}

/* Whether a jump leaves the innermost loop around it. Sets the rows of that loop. */
static bool leaves_loop(const flow *f, int at, int to, double *rows) {
  const vdbe_loop *inner = NULL;
  for (int i = 0; i < f->p->n_loops; i++) {
    const vdbe_loop *l = &f->p->loops[i];
    if (l->head <= at && at <= l->tail && (!inner || l->head > inner->head)) inner = l;
  }
  if (!inner || (inner->head <= to && to <= inner->tail)) return false;
  *rows = whole_rows(f, inner);
  return true;
}

/* How often a condition jumps. It is the end of a loop at most once. */
static double condition(const flow *f, int at, double jumps) {
  double rows;
  if (f->p->is_end[at] || jumps == 0) return 0;
  if (jumps < 1 && leaves_loop(f, at, f->p->of->program.steps[at].p2, &rows) && jumps > 1 / rows)
    return 1 / rows;
  return jumps;
}

static double rounded(double share) {
  return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* The LIMIT of a subroutine that returns groups. When it is reached, a flag is set. < 0: none. */
static double limit_of_call(const flow *f, int at) {
  const wl_vdbe *v = &f->p->of->program;
  if (v->steps[at].op != WL_VDBE_Gosub) return -1;
  for (int i = v->steps[at].p2; i > 0 && i < v->n; i++) {
    if (v->steps[i].op == WL_VDBE_DecrJumpZero && f->kind != WHOLE) return f->p->limits[i];
    if (v->steps[i].op == WL_VDBE_Halt || v->steps[i].op == WL_VDBE_Transaction) break;
  }
  return -1;
}

/* IfPos tests OFFSET, or a flag: the rows of a group have been seen, a LEFT JOIN has found a row, or
** LIMIT has been reached in the subroutine before. */
static double flag(const flow *f, int at, double x) {
  double limit = f->p->limits[at], rows;
  if (limit >= 0) return rounded(limit / x);
  if (!leaves_loop(f, at, f->p->of->program.steps[at].p2, &rows)) return 0.99;
  limit = limit_of_call(f, at - 1);
  return limit < 0 ? 0 : limit < 1 ? 1 : 1 / limit;
}

/* IfNot leaves the loop when a sort in blocks has returned as many rows as LIMIT wants. < 0: it is
** another condition. */
static double block_limit(const flow *f, int at) {
  const wl_vdbe *v = &f->p->of->program;
  for (int i = 0; i < v->n && f->kind != WHOLE; i++)
    if (v->steps[i].op == WL_VDBE_IfNotZero && v->steps[i].p1 == v->steps[at].p1)
      return f->p->limits[i] > BLOCK ? BLOCK / f->p->limits[i] : 1;
  return -1;
}

/* The flow of a step goes on to the next one, to its target, or both. */
static void split(flow *f, int at, double x, double jumps) {
  const wl_vdbe_step *s = &f->p->of->program.steps[at];
  if (jumps > 1) jumps = 1;
  pass(f, at, s->p2, x * jumps);
  pass(f, at, at + 1, x * (1 - jumps));
}

/* A step that starts a loop jumps over it if there is no row. */
static void start_loop(flow *f, int at, double x) {
  const vdbe_loop *l = loop_started_at(f, at);
  double n = l ? loop_rows(f, l) : 1;
  if (l && l->kind == LOOP_TEMPORARY) n = inserted(f, l->cursor);
  const wl_vdbe_step *s = &f->p->of->program.steps[at];
  bool jumps = s->p2 > at;
  split(f, at, x, jumps && n < 1 ? 1 - n : 0);
}

/* A step that ends a loop: some of the flow has come back to its head, the rest goes on. */
static void end_loop(flow *f, int at, double x) {
  const wl_vdbe_step *s = &f->p->of->program.steps[at];
  vdbe_loop *l = loop_with(f, s->p2, -1);
  if (!l) {
    pass(f, at, at + 1, x);
    return;
  }
  l->back += x;
  if (s->op == WL_VDBE_Goto) return;
  double m = whole_rows(f, l), out = l->entered * pow(l->again > 1 ? 1 : l->again, m);
  pass(f, at, at + 1, out < x || x == 0 ? out : x);
}

static void yield(flow *f, int at, double x) {
  const wl_vdbe_step *s = &f->p->of->program.steps[at];
  const vdbe_loop *l = loop_with(f, at, -1);
  if (l && l->kind == LOOP_COROUTINE) /* the reader of the rows, which ends with them */
    pass(f, at, s->p2, l->entered);
  pass(f, at, at + 1, x);
}

/* Passes the flow of one step on. */
static void move_on(flow *f, int at, double x) {
  const wl_vdbe_step *s = &f->p->of->program.steps[at];
  double limit = f->p->limits[at];
  switch (s->op) {
  case WL_VDBE_Rewind:
  case WL_VDBE_Last:
  case WL_VDBE_SeekGE:
  case WL_VDBE_SeekGT:
  case WL_VDBE_SeekLE:
  case WL_VDBE_SeekLT:
  case WL_VDBE_Sort:
  case WL_VDBE_SorterSort:
  case WL_VDBE_VFilter: start_loop(f, at, x); return;
  case WL_VDBE_Next:
  case WL_VDBE_Prev:
  case WL_VDBE_SorterNext:
  case WL_VDBE_VNext: end_loop(f, at, x); return;
  case WL_VDBE_Goto:
    if (s->p2 <= at && s->p2 > 1)
      end_loop(f, at, x);
    else
      pass(f, at, s->p2, x);
    return;
  case WL_VDBE_Once: split(f, at, x, x > 1 ? 1 - 1 / x : 0); return;
  case WL_VDBE_Gosub:
    pass(f, at, s->p2, x);
    pass(f, at, at + 1, x);
    return;
  case WL_VDBE_BeginSubrtn:
    if (s->p2 > 0 && s->p2 < f->p->of->program.n) f->called[s->p2] = x;
    pass(f, at, at + 1, x);
    return;
  case WL_VDBE_Return: /* of a subroutine that stands where it is first needed */
    if (s->p3 && s->p1 > 0 && s->p1 < f->p->of->program.n) pass(f, at, at + 1, f->called[s->p1]);
    return;
  case WL_VDBE_InitCoroutine: pass(f, at, s->p2 > at ? s->p2 : at + 1, x); return;
  case WL_VDBE_Yield: yield(f, at, x); return;
  case WL_VDBE_Halt:
  case WL_VDBE_EndCoroutine: return;
  case WL_VDBE_DecrJumpZero:
    if (f->kind == WHOLE) limit = -1;
    split(f, at, x, limit < 0 ? 0 : limit < 1 ? 1 : 1 / limit);
    return;
  case WL_VDBE_IfNotZero: split(f, at, x, limit < 0 ? 1 : rounded(limit / x)); return;
  case WL_VDBE_IfPos: split(f, at, x, flag(f, at, x)); return;
  case WL_VDBE_IfNot: {
    double ends = block_limit(f, at);
    split(f, at, x, ends < 0 ? condition(f, at, ops[s->op].jumps) : ends);
    return;
  }
  case WL_VDBE_Jump: /* the keys of a group are equal most of the time */
    pass(f, at, s->p2, x * 0.9);
    pass(f, at, s->p1, x * 0.05);
    pass(f, at, s->p3, x * 0.05);
    return;
  case WL_VDBE_IdxLE:
  case WL_VDBE_IdxGE:
  case WL_VDBE_IdxLT:
  case WL_VDBE_IdxGT: /* the end of a range, or a row that is not among the first of a sort */
    split(f, at, x, f->p->is_end[at] || cursor_of(f, s->p1)->tree ? 0 : 1 - TOP_STAYS);
    return;
  case WL_VDBE_Eq: /* NULL equals NULL: DISTINCT drops a row that is like the one before it */
    split(f, at, x, condition(f, at, s->p5 & 0x80 ? 0.9 : ops[s->op].jumps));
    return;
  default: split(f, at, x, condition(f, at, ops[s->op].jumps));
  }
}

static void note_insert(flow *f, int at, double x) {
  const wl_vdbe_step *s = &f->p->of->program.steps[at];
  bool inserts =
      s->op == WL_VDBE_IdxInsert || s->op == WL_VDBE_Insert || s->op == WL_VDBE_SorterInsert;
  if (inserts && s->p1 >= 0 && s->p1 < MAX_CURSORS) f->inserted[s->p1] += x;
  if (s->op == WL_VDBE_Delete && s->p1 >= 0 && s->p1 < MAX_CURSORS) f->inserted[s->p1] -= x;
}

/* The part of the program that makes the rows of a coroutine, and how often it starts. */
static void enter_coroutines(flow *f) {
  const wl_vdbe *v = &f->p->of->program;
  for (int i = 0; i < v->n; i++) {
    const wl_vdbe_step *s = &v->steps[i];
    if (s->op != WL_VDBE_InitCoroutine || s->p2 <= i) continue;
    double starts = 0, read = 1;
    for (int k = 0; k < f->p->n_loops; k++) {
      const vdbe_loop *l = &f->p->loops[k];
      if (l->kind != LOOP_COROUTINE || l->cursor != s->p1) continue;
      starts += l->entered;
      double all = l->rows < 1 ? 1 : l->rows;
      if (l->times > 0 && l->times < all) read = l->times / all;
    }
    f->in[s->p3] += starts > 0 ? starts * read : 1;
  }
}

/* Counts the rows that coroutines make for each start. */
static void count_yields(flow *f, const double *flows) {
  const wl_vdbe *v = &f->p->of->program;
  for (int k = 0; k < f->p->n_loops; k++) {
    vdbe_loop *l = &f->p->loops[k];
    if (l->kind != LOOP_COROUTINE) continue;
    double made = 0, starts = 0;
    for (int i = 0; i < v->n; i++) {
      const wl_vdbe_step *s = &v->steps[i];
      if (s->op == WL_VDBE_InitCoroutine && s->p1 == l->cursor && s->p2 > i) starts += flows[s->p3];
      if (s->op == WL_VDBE_Yield && s->p1 == l->cursor && i != l->head && i < l->head)
        made += flows[i];
    }
    l->rows = l->least = starts > 0 ? made / starts : made;
  }
}

static void visit(flow *f) {
  const wl_vdbe *v = &f->p->of->program;
  double *flows = f->flows;
  memset(f->in, 0, (size_t)(v->n + 1) * sizeof *f->in);
  memcpy(f->in, f->late, (size_t)(v->n + 1) * sizeof *f->in);
  memset(f->late, 0, (size_t)(v->n + 1) * sizeof *f->late);
  memcpy(f->before, f->inserted, sizeof f->before);
  memset(f->inserted, 0, sizeof f->inserted);
  f->ns = START;
  f->n_rows = 0;
  enter_coroutines(f);
  f->in[1] += 1;
  for (int k = 0; k < f->p->n_loops; k++) f->p->loops[k].back = 0;
  for (int i = 1; i < v->n; i++) {
    double x = f->in[i];
    vdbe_loop *l = loop_with(f, i, -1);
    if (l) {
      l->entered = x;
      l->times = times_through(f, l);
      x *= l->times;
    }
    flows[i] = x;
    if (!(x > 0)) continue;
    f->ns += x * step_ns(f, i, x);
    if (v->steps[i].op == WL_VDBE_ResultRow) f->n_rows += x;
    note_insert(f, i, x);
    move_on(f, i, x);
  }
  for (int k = 0; k < f->p->n_loops; k++) {
    vdbe_loop *l = &f->p->loops[k];
    double head = flows[l->head];
    l->again = head > 0 ? rounded(l->back / head) : 1;
  }
  count_yields(f, flows);
}

static wl_status run_flow(pricing *p, flow_kind kind, wl_arena *arena, double *ns, double *n_rows,
                          wl_error *err) {
  int n = p->of->program.n;
  flow f = {.p = p, .kind = kind};
  f.in = WL_NEW_N(arena, double, n + 1);
  f.late = WL_NEW_N(arena, double, n + 1);
  f.called = WL_NEW_N(arena, double, n + 1);
  f.flows = WL_NEW_N(arena, double, n + 1);
  if (!f.in || !f.late || !f.called || !f.flows) return wl_nomem(err);
  memset(f.flows, 0, (size_t)(n + 1) * sizeof *f.flows);
  memset(f.late, 0, (size_t)(n + 1) * sizeof *f.late);
  memset(f.called, 0, (size_t)(n + 1) * sizeof *f.called);
  for (int k = 0; k < p->n_loops; k++) {
    p->loops[k].again = 1;
    p->loops[k].entered = p->loops[k].times = 0;
  }
  for (int i = 0; i < PASSES && n > 1; i++) visit(&f);
  *ns = f.ns;
  *n_rows = f.n_rows;
  return WL_OK;
}

wl_status wl_priced_price(const wl_priced *priced, const wl_price_in *in, wl_sqlite_price *out,
                          wl_error *err) {
  wl_arena arena;
  memset(out, 0, sizeof *out);
  wl_arena_init(&arena);
  pricing *p = WL_NEW(&arena, pricing);
  wl_status rc = p ? WL_OK : wl_nomem(err);
  if (!rc) {
    memset(p, 0, sizeof *p);
    p->of = priced;
    p->in = in;
    p->now = WL_NEW_N(&arena, tree_now, priced->n_trees + 1);
    for (int i = 0; i < MAX_CURSORS; i++) p->cursors[i].copy_of = -1;
    rc = p->now ? wl_price_loops(p, &arena, err) : wl_nomem(err);
  }
  if (!rc) rc = wl_price_rows(p, err);
  if (!rc) rc = run_flow(p, AS_ESTIMATED, &arena, &out->ns, &out->n_rows, err);
  out->least_ns = out->whole_ns = out->ns;
  double rows;
  if (!rc && p->unknown) {
    snprintf(out->unknown, sizeof out->unknown, "%s", p->unknown);
    rc = run_flow(p, LEAST, &arena, &out->least_ns, &rows, err);
  }
  bool limited = false;
  for (int i = 0; i < priced->program.n && !rc; i++)
    limited |= priced->program.steps[i].op == WL_VDBE_DecrJumpZero;
  if (!rc && limited) rc = run_flow(p, WHOLE, &arena, &out->whole_ns, &rows, err);
  for (int i = 0; !rc && i < p->n_loops; i++)
    out->by_values |= p->loops[i].low.kind == END_UNKNOWN || p->loops[i].high.kind == END_UNKNOWN;
  out->by_pages = true;
  for (int i = 0; i < priced->n_trees && !rc; i++) out->by_pages &= p->now[i].known;
  wl_arena_close(&arena);
  return rc;
}
