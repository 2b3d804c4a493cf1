/*
** Finds the loops of SQLite's program, and the bounds of those that read a range of a tree.
**
** Registers are followed in the order of addresses, after the constants at the end of the program,
** which SQLite computes first. That is the order in which they are written on the way to a loop.
*/
#include "plan/price/price_impl.h"
#include <stdlib.h>
#include <string.h>

typedef struct vdbe_register {
  end_kind kind; /* END_KNOWN, END_UNKNOWN or END_OF_ROW */
  wl_val value;
  int cursor; /* END_OF_ROW: whose row */
  int stamp;
} vdbe_register;

typedef struct registers {
  vdbe_register *r;
  int n, stamp;
  vdbe_register none; /* for numbers that no register has */
} registers;

static vdbe_register *reg(registers *s, int i) {
  if (i > 0 && i < s->n) return &s->r[i];
  s->none = (vdbe_register){.kind = END_UNKNOWN, .cursor = -1};
  return &s->none;
}

static void write_value(registers *s, int i, wl_val v) {
  if (i > 0 && i < s->n) s->r[i] = (vdbe_register){END_KNOWN, v, -1, ++s->stamp};
}

static void write_unknown(registers *s, int i) {
  if (i > 0 && i < s->n) s->r[i] = (vdbe_register){END_UNKNOWN, wl_null(), -1, ++s->stamp};
}

static void write_of_row(registers *s, int i, int cursor) {
  if (i > 0 && i < s->n) s->r[i] = (vdbe_register){END_OF_ROW, wl_null(), cursor, ++s->stamp};
}

/* The result of an operator depends on what its operands depend on. */
static void write_from(registers *s, int to, const vdbe_register *a, const vdbe_register *b) {
  if (a->kind == END_OF_ROW)
    write_of_row(s, to, a->cursor);
  else if (b->kind == END_OF_ROW)
    write_of_row(s, to, b->cursor);
  else
    write_unknown(s, to);
}

static bool is_number(wl_val v) {
  return v.t == WL_T_INT || v.t == WL_T_REAL;
}

static double as_real(wl_val v) {
  return v.t == WL_T_INT ? (double)(wl_i64)v.v : wl_as_f64(v.v);
}

/* Add, Subtract and Multiply: r[p3] = r[p2] op r[p1]. */
static void arithmetic(registers *s, const wl_vdbe_step *x) {
  vdbe_register a = *reg(s, x->p2), b = *reg(s, x->p1);
  if (a.kind != END_KNOWN || b.kind != END_KNOWN || !is_number(a.value) || !is_number(b.value)) {
    write_from(s, x->p3, &a, &b);
    return;
  }
  wl_i64 i = (wl_i64)a.value.v, k = (wl_i64)b.value.v, y;
  double u = as_real(a.value), v = as_real(b.value);
  bool whole = a.value.t == WL_T_INT && b.value.t == WL_T_INT, over;
  switch (x->op) {
  case WL_VDBE_Add:
    over = __builtin_add_overflow(i, k, &y);
    u += v;
    break;
  case WL_VDBE_Subtract:
    over = __builtin_sub_overflow(i, k, &y);
    u -= v;
    break;
  default: over = __builtin_mul_overflow(i, k, &y); u *= v;
  }
  write_value(s, x->p3, whole && !over ? wl_int(y) : wl_real(u));
}

/* Applies an affinity to a known value: text that looks like a number becomes one. */
static void apply(registers *s, int i, char affinity) {
  vdbe_register *r = reg(s, i);
  if (r->kind != END_KNOWN) return;
  char text[64], *end;
  if (affinity >= 'C' && r->value.t == WL_T_TEXT && r->value.n > 0 && r->value.n < sizeof text) {
    memcpy(text, wl_bytes(r->value), r->value.n);
    text[r->value.n] = 0;
    double d = strtod(text, &end);
    if (*end == 0 && end > text) r->value = wl_real(d);
  } else if (affinity == 'B' && is_number(r->value)) {
    r->kind = END_UNKNOWN; /* its text is not needed often enough to compute it */
  }
}

static wl_val text_value(const char *text) {
  return wl_text((const wl_u8 *)text, (wl_u32)strlen(text));
}

/* Follows a step that writes registers. */
static void follow(registers *s, const wl_price_in *in, const wl_vdbe_step *x) {
  switch (x->op) {
  case WL_VDBE_Integer: write_value(s, x->p2, wl_int(x->p1)); break;
  case WL_VDBE_Int64: write_value(s, x->p2, wl_int(strtoll(x->p4, NULL, 10))); break;
  case WL_VDBE_Real: write_value(s, x->p2, wl_real(strtod(x->p4, NULL))); break;
  case WL_VDBE_String8:
  case WL_VDBE_String: write_value(s, x->p2, text_value(x->p4)); break;
  case WL_VDBE_Null:
    for (int i = x->p2; i <= x->p2 || i <= x->p3; i++) write_value(s, i, wl_null());
    break;
  case WL_VDBE_Variable:
    if (in->params && x->p1 >= 1 && x->p1 <= in->n_params)
      write_value(s, x->p2, in->params[x->p1 - 1]);
    else
      write_unknown(s, x->p2);
    break;
  case WL_VDBE_Copy:
  case WL_VDBE_SCopy:
  case WL_VDBE_Move: {
    int n = x->op == WL_VDBE_Copy ? x->p3 + 1 : x->op == WL_VDBE_Move ? x->p3 : 1;
    for (int i = 0; i < n; i++) {
      vdbe_register r = *reg(s, x->p1 + i);
      if (x->p2 + i > 0 && x->p2 + i < s->n) s->r[x->p2 + i] = r;
    }
    break;
  }
  case WL_VDBE_Add:
  case WL_VDBE_Subtract:
  case WL_VDBE_Multiply: arithmetic(s, x); break;
  case WL_VDBE_Divide:
  case WL_VDBE_Remainder:
  case WL_VDBE_Concat:
  case WL_VDBE_BitAnd:
  case WL_VDBE_BitOr:
  case WL_VDBE_ShiftLeft:
  case WL_VDBE_ShiftRight:
  case WL_VDBE_And:
  case WL_VDBE_Or: write_from(s, x->p3, reg(s, x->p1), reg(s, x->p2)); break;
  case WL_VDBE_Function:
  case WL_VDBE_PureFunc: write_from(s, x->p3, reg(s, x->p2), reg(s, x->p2)); break;
  case WL_VDBE_OffsetLimit: {
    const vdbe_register *a = reg(s, x->p1), *b = reg(s, x->p3);
    if (a->kind == END_KNOWN && b->kind == END_KNOWN && a->value.t == WL_T_INT &&
        b->value.t == WL_T_INT && (wl_i64)a->value.v >= 0 && (wl_i64)b->value.v >= 0)
      write_value(s, x->p2, wl_real(as_real(a->value) + as_real(b->value)));
    else
      write_unknown(s, x->p2);
    break;
  }
  case WL_VDBE_Affinity:
    for (int i = 0; i < x->p2 && x->p4[i]; i++) apply(s, x->p1 + i, x->p4[i]);
    break;
  case WL_VDBE_MustBeInt: apply(s, x->p1, 'D'); break;
  case WL_VDBE_Column:
  case WL_VDBE_VColumn: write_of_row(s, x->p3, x->p1); break;
  case WL_VDBE_Rowid:
  case WL_VDBE_IdxRowid: write_of_row(s, x->p2, x->p1); break;
  case WL_VDBE_AggFinal:
  case WL_VDBE_Cast: write_unknown(s, x->p1); break;
  case WL_VDBE_Not:
  case WL_VDBE_BitNot: write_from(s, x->p2, reg(s, x->p1), reg(s, x->p1)); break;
  default: break;
  }
}

/* ---- loops */

static bool is_seek(wl_vdbe_op op) {
  return op == WL_VDBE_SeekGE || op == WL_VDBE_SeekGT || op == WL_VDBE_SeekLE ||
         op == WL_VDBE_SeekLT;
}

static bool starts_loop(wl_vdbe_op op) {
  return is_seek(op) || op == WL_VDBE_Rewind || op == WL_VDBE_Last || op == WL_VDBE_Sort ||
         op == WL_VDBE_SorterSort || op == WL_VDBE_VFilter;
}

static bool steps_cursor(wl_vdbe_op op) {
  return op == WL_VDBE_Next || op == WL_VDBE_Prev || op == WL_VDBE_SorterNext ||
         op == WL_VDBE_VNext;
}

static vdbe_cursor *cursor(pricing *p, int i) {
  if (i >= 0 && i < MAX_CURSORS) return &p->cursors[i];
  p->no_cursor = (vdbe_cursor){.copy_of = -1};
  return &p->no_cursor;
}

static void note_cursor(pricing *p, const wl_vdbe_step *x) {
  vdbe_cursor *c = cursor(p, x->p1);
  switch (x->op) {
  case WL_VDBE_OpenRead:
  case WL_VDBE_ReopenIdx:
    *c = (vdbe_cursor){.copy_of = -1};
    for (int i = 0; i < p->of->n_trees; i++)
      if (p->of->trees[i].db == x->p3 && p->of->trees[i].root == (wl_u32)x->p2)
        c->tree = &p->of->trees[i];
    break;
  case WL_VDBE_OpenEphemeral:
  case WL_VDBE_OpenAutoindex:
  case WL_VDBE_SorterOpen:
  case WL_VDBE_OpenPseudo: *c = (vdbe_cursor){.temporary = true, .copy_of = -1}; break;
  case WL_VDBE_OpenDup: *c = (vdbe_cursor){.temporary = true, .copy_of = x->p2}; break;
  case WL_VDBE_VOpen: *c = (vdbe_cursor){.is_virtual = true, .copy_of = -1}; break;
  default: break;
  }
}

/* Goto from the end of a LEFT JOIN to its body, for a row of NULLs. It is no loop. */
static bool is_null_row(const wl_vdbe_step *steps, int at) {
  for (int i = at - 1; i > 0 && i >= at - 3; i--)
    if (steps[i].op == WL_VDBE_NullRow) return steps[at].op == WL_VDBE_Goto;
  return false;
}

/* Adds the loop that a step jumps back for. Two steps that jump to the same head are one loop. */
static void add_loop(pricing *p, int at) {
  const wl_vdbe_step *steps = p->of->program.steps, *x = &steps[at];
  vdbe_loop *l = NULL;
  for (int i = 0; i < p->n_loops; i++)
    if (p->loops[i].head == x->p2) l = &p->loops[i];
  bool merged = l != NULL;
  if (!merged) {
    if (p->n_loops == MAX_LOOPS) return;
    l = &p->loops[p->n_loops++];
    *l = (vdbe_loop){.kind = LOOP_OTHER, .head = x->p2, .start = -1, .cursor = -1, .rows = 1};
  }
  l->tail = at;
  if (steps_cursor(x->op)) {
    l->cursor = x->p1;
  } else if (steps[x->p2].op == WL_VDBE_Yield) {
    l->kind = LOOP_COROUTINE;
    l->cursor = steps[x->p2].p1;
  } else if (at > 0 && is_seek(steps[at - 1].op)) {
    l->skips = atoi(steps[at - 1].p4);
  }
}

/* Whether a temporary table is emptied somewhere. */
static bool is_emptied(const pricing *p, int cursor) {
  const wl_vdbe *v = &p->of->program;
  for (int i = 0; i < v->n; i++)
    if (v->steps[i].op == WL_VDBE_ResetSorter && v->steps[i].p1 == cursor) return true;
  return false;
}

static void find_loops(pricing *p) {
  const wl_vdbe *v = &p->of->program;
  for (int i = 0; i < v->n; i++) {
    const wl_vdbe_step *x = &v->steps[i];
    bool back = steps_cursor(x->op) || x->op == WL_VDBE_Goto;
    if (back && x->p2 > 1 && x->p2 <= i && !is_null_row(v->steps, i)) add_loop(p, i);
  }
}

/* The innermost loop that a step is in, or that it starts if before is set. */
static vdbe_loop *loop_of(pricing *p, int at, int cursor, bool before) {
  vdbe_loop *best = NULL;
  for (int i = 0; i < p->n_loops; i++) {
    vdbe_loop *l = &p->loops[i];
    if (l->cursor != cursor || l->kind == LOOP_COROUTINE) continue;
    bool fits = before ? l->head > at : l->head <= at && at <= l->tail;
    if (fits && (!best || (before ? l->head < best->head : l->head > best->head))) best = l;
  }
  return best;
}

/* Notes a value that is put into a temporary table. */
static void note_list(pricing *p, registers *s, int at) {
  const wl_vdbe_step *x = &p->of->program.steps[at];
  if (x->op != WL_VDBE_IdxInsert && x->op != WL_VDBE_Insert && x->op != WL_VDBE_SorterInsert)
    return;
  vdbe_cursor *c = cursor(p, x->p1);
  const vdbe_register *r = reg(s, x->p3);
  bool one = x->op == WL_VDBE_IdxInsert && r->kind == END_KNOWN && strcmp(x->p4, "1") == 0;
  if (one && c->n_list >= 0 && c->n_list < MAX_LIST)
    c->list[c->n_list++] = r->value;
  else
    c->n_list = -1;
}

/* ---- bounds */

/* Whether a cursor is that of a loop around an address. */
static bool is_around(pricing *p, int cursor, int at) {
  for (int i = 0; i < p->n_loops; i++)
    if (p->loops[i].cursor == cursor && p->loops[i].head <= at && at <= p->loops[i].tail)
      return true;
  return false;
}

static void set_end(pricing *p, registers *s, int at, int first, int n, bool after, loop_end *out) {
  memset(out, 0, sizeof *out);
  out->kind = END_KNOWN;
  out->bound.after = after;
  if (n > WL_TREE_COLS) n = WL_TREE_COLS;
  out->bound.n = n;
  for (int i = 0; i < n; i++) {
    const vdbe_register *r = reg(s, first + i);
    end_kind kind = r->kind == END_OF_ROW && !is_around(p, r->cursor, at) ? END_UNKNOWN : r->kind;
    out->kinds[i] = kind;
    out->stamps[i] = r->stamp;
    out->cursors[i] = r->cursor;
    out->bound.key[i] = r->value;
    if (kind > out->kind) out->kind = kind;
  }
}

/* A step that starts a loop: sets the end from which it starts. */
static void note_start(pricing *p, registers *s, int at) {
  const wl_vdbe_step *x = &p->of->program.steps[at];
  vdbe_loop *l = loop_of(p, at, x->p1, true);
  const vdbe_cursor *c = cursor(p, x->p1);
  if (!l) return;
  /* Of several such steps before a loop, the last one starts it. The others find single rows. */
  l->low.kind = l->high.kind = END_OPEN;
  l->start = at;
  l->tree = c->tree;
  l->empties = is_emptied(p, x->p1);
  l->kind = c->tree         ? LOOP_TREE
            : c->is_virtual ? LOOP_VIRTUAL
            : c->temporary  ? LOOP_TEMPORARY
                            : LOOP_OTHER;
  if (x->op == WL_VDBE_VFilter) {
    const vdbe_register *number = reg(s, x->p3);
    l->by_key = (number->kind == END_KNOWN && number->value.v != 0) || strstr(x->p4, "r=");
  }
  if (!is_seek(x->op)) return;
  l->finds = true;
  int n = c->tree && c->tree->tree.of_table ? 1 : atoi(x->p4);
  bool forward = x->op == WL_VDBE_SeekGE || x->op == WL_VDBE_SeekGT;
  bool after = x->op == WL_VDBE_SeekGT || x->op == WL_VDBE_SeekLE;
  set_end(p, s, at, x->p3, n, after, forward ? &l->low : &l->high);
}

/* A step in a loop over a tree that leaves it when the cursor has passed the other end. */
static void note_end(pricing *p, registers *s, int at) {
  const wl_vdbe_step *steps = p->of->program.steps, *x = &steps[at];
  bool of_index = x->op == WL_VDBE_IdxGT || x->op == WL_VDBE_IdxGE || x->op == WL_VDBE_IdxLT ||
                  x->op == WL_VDBE_IdxLE;
  bool of_rowid =
      at > 0 && steps[at - 1].op == WL_VDBE_Rowid && steps[at - 1].p2 == x->p3 &&
      (x->op == WL_VDBE_Gt || x->op == WL_VDBE_Ge || x->op == WL_VDBE_Lt || x->op == WL_VDBE_Le);
  if (!of_index && !of_rowid) return;
  vdbe_loop *l = loop_of(p, at, of_index ? x->p1 : steps[at - 1].p1, false);
  if (!l || l->kind != LOOP_TREE || x->p2 <= l->tail) return;
  if (of_rowid && (!l->tree->tree.of_table || at > l->head + 1)) return;
  bool upper = x->op == WL_VDBE_IdxGT || x->op == WL_VDBE_IdxGE || x->op == WL_VDBE_Gt ||
               x->op == WL_VDBE_Ge;
  bool after = x->op == WL_VDBE_IdxGT || x->op == WL_VDBE_IdxLE || x->op == WL_VDBE_Gt ||
               x->op == WL_VDBE_Le;
  set_end(p, s, at, of_index ? x->p3 : x->p1, of_index ? atoi(x->p4) : 1, after,
          upper ? &l->high : &l->low);
  p->is_end[at] = true;
}

/* A step that counts a register down: notes how many there are. */
static void note_limit(pricing *p, registers *s, int at) {
  const wl_vdbe_step *x = &p->of->program.steps[at];
  p->limits[at] = -1;
  if (x->op != WL_VDBE_DecrJumpZero && x->op != WL_VDBE_IfNotZero &&
      !(x->op == WL_VDBE_IfPos && x->p3 > 0 /* OFFSET */))
    return;
  const vdbe_register *r = reg(s, x->p1);
  if (r->kind == END_KNOWN && is_number(r->value) && as_real(r->value) >= 0)
    p->limits[at] = as_real(r->value);
  else if (r->kind != END_KNOWN)
    p->limits[at] = 10; /* a parameter of LIMIT is a small number most of the time */
}

wl_status wl_price_loops(pricing *p, wl_arena *arena, wl_error *err) {
  const wl_vdbe *v = &p->of->program;
  registers s = {.n = 1};
  for (int i = 0; i < v->n; i++) {
    const wl_vdbe_step *x = &v->steps[i];
    int most = x->p1 > x->p2 ? x->p1 : x->p2;
    if (x->p3 > most) most = x->p3;
    if (most + 1 > s.n && most < MAX_REGISTERS) s.n = most + 1;
  }
  s.r = WL_NEW_N(arena, vdbe_register, s.n);
  p->limits = WL_NEW_N(arena, double, v->n + 1);
  p->is_end = WL_NEW_N(arena, bool, v->n + 1);
  if (!s.r || !p->limits || !p->is_end) return wl_nomem(err);
  for (int i = 0; i < s.n; i++) s.r[i] = (vdbe_register){.kind = END_UNKNOWN, .cursor = -1};
  memset(p->is_end, 0, (size_t)v->n * sizeof *p->is_end);
  find_loops(p);
  int main_end =
      v->n && v->steps[0].op == WL_VDBE_Init && v->steps[0].p2 > 0 ? v->steps[0].p2 : v->n;
  for (int i = main_end; i < v->n; i++) follow(&s, p->in, &v->steps[i]);
  for (int i = 1; i < main_end && i < v->n; i++) {
    const wl_vdbe_step *x = &v->steps[i];
    note_cursor(p, x);
    if (starts_loop(x->op)) note_start(p, &s, i);
    note_end(p, &s, i);
    note_limit(p, &s, i);
    note_list(p, &s, i);
    follow(&s, p->in, x);
  }
  return WL_OK;
}
