/*
** Computes an expression that depends on only one dictionary column once per entry, before any row
** runs. The expression is compiled for a table of the entries and evaluated (evaluate.h). The
** values become a map from code to value. The same is done for integers in a small range if the
** expression calls SQLite.
**
** Invariants:
** 1. An entry may belong to no row that gets here, so an error for an entry is not yet an error of
**    the statement. In that case no map is made, and the rows are computed one by one.
** 2. A map has one entry more than there are codes, for NULL.
*/
#include "base/mem.h"
#include "program/compile_impl.h"
#include "program/evaluate.h"
#include <string.h>

enum { DEPENDS_UNSEEN = 0, DEPENDS_NOTHING = -1, DEPENDS_MANY = -2 }; /* else leaf + 1 */
enum { INT_SPAN = 65536 };

/* ---- what a node depends on */

static int depends(wl_compiler *c, const wl_bexpr *e) {
  if (!e) return DEPENDS_NOTHING;
  if (c->deps[e->id] != DEPENDS_UNSEEN) return c->deps[e->id];
  int leaf = wl_compile_leaf(c, e), on = DEPENDS_NOTHING;
  if (leaf >= 0) {
    on = leaf + 1;
  } else if (e->kind == WL_B_COLUMN || e->kind == WL_B_AGG) {
    on = DEPENDS_MANY;
  } else {
    for (int k = 0; k < 2 + e->n_list; k++) {
      int d = depends(c, k == 0 ? e->a : k == 1 ? e->b : e->list[k - 2]);
      if (d == DEPENDS_NOTHING || d == on) continue;
      on = on == DEPENDS_NOTHING ? d : DEPENDS_MANY;
    }
  }
  return c->deps[e->id] = on;
}

/* Whether it contains a call into SQLite. */
static bool calls(wl_compiler *c, const wl_bexpr *e) {
  enum { UNSEEN, NO, YES };
  if (!e || wl_compile_leaf(c, e) >= 0) return false;
  if (c->called[e->id] != UNSEEN) return c->called[e->id] == YES;
  bool yes = e->kind == WL_B_CALL && e->index == WL_NATIVE_NONE;
  for (int k = 0; k < e->n_list && !yes; k++) yes = calls(c, e->list[k]);
  yes = yes || calls(c, e->a) || calls(c, e->b);
  c->called[e->id] = yes ? YES : NO;
  return yes;
}

/* ---- the entries as a column */

static const wl_column *entries_column(wl_compiler *c, const wl_dict *dict, wl_i64 base, wl_i64 n) {
  wl_column *col = WL_NEW(c->arena, wl_column);
  wl_u64 *v = WL_NEW_N(c->arena, wl_u64, n + 1);
  int n_tablets = (int)((n >> WL_TABLET_SHIFT) + 1);
  wl_segment *s = WL_NEW_N(c->arena, wl_segment, n_tablets);
  wl_u8 *valid = wl_arena_alloc(c->arena, (size_t)n / 8 + 2);
  if (!col || !v || !s || !valid) return NULL;
  for (wl_i64 i = 0; i < n; i++) {
    v[i] = dict ? dict->places[i] : (wl_u64)(base + i);
    valid[i >> 3] |= (wl_u8)(1 << (i & 7));
  }
  for (int t = 0; t < n_tablets; t++) {
    wl_i64 first = (wl_i64)t << WL_TABLET_SHIFT, rows = n + 1 - first;
    s[t].data = v + first;
    s[t].valid = valid + first / 8;
    s[t].heap = dict ? dict->heap : NULL;
    s[t].n_rows = (wl_i32)(rows < WL_TABLET_ROWS ? rows : WL_TABLET_ROWS);
    s[t].phys = dict ? WL_P_TEXT : WL_P_I64;
  }
  col->phys = dict ? WL_P_TEXT : WL_P_I64;
  col->domain = dict ? wl_domain_any(WL_M(WL_T_TEXT) | WL_M(WL_T_NULL))
                     : wl_domain_int(base, base + (n - 1), true);
  col->n_rows = n + 1;
  col->n_tablets = n_tablets;
  col->segments = s;
  return col;
}

/* ---- one run over the entries */

/* Compiles a program that computes e for every entry. Returns WL_NOT_TAKEN if that is
** impossible. */
static wl_status program_of(wl_compiler *c, const wl_bexpr *e, const wl_column *entries,
                            wl_program **out, bool *truth) {
  wl_compiler side;
  wl_operand o = {0};
  wl_reg *reg = WL_NEW(c->arena, wl_reg);
  if (!reg) return wl_nomem(c->err);
  *reg = wl_column_reg(entries);
  wl_status rc = wl_compile_side(c, 1, &side);
  if (!rc) {
    wl_program *p = *out = side.p;
    side.entries = entries; /* the only leaf stands for the entries */
    p->source = WL_SOURCE_TABLE;
    p->table = "entries";
    p->n_columns = 1;
    p->column_sources = NULL;
    p->n_sources = 0;
    p->column_regs = reg;
    rc = wl_compile_expr(&side, e, &o);
  }
  *truth = o.truth;
  if (!rc) rc = wl_compile_value(&side, &o);
  if (!rc) wl_compile_side_give(&side, &o);
  if (!rc) rc = wl_compile_side_end(&side);
  wl_compile_side_close(&side);
  return rc;
}

/* Computes the values of all entries. Texts point into *r. */
static wl_status evaluate(const wl_compiler *c, const wl_program *p, wl_column *entries,
                          wl_evaluated *r, wl_val *values, wl_error *err) {
  wl_row_range *ranges = WL_NEW_N(c->arena, wl_row_range, entries->n_tablets);
  if (!ranges) return wl_nomem(err);
  for (int t = 0; t < entries->n_tablets; t++)
    ranges[t] = (wl_row_range){.tablet = t, .n = entries->segments[t].n_rows};
  wl_evaluation e = {.program = p,
                     .cols = &entries,
                     .ranges = ranges,
                     .n_ranges = entries->n_tablets,
                     .max_text = c->in->max_text,
                     .check = c->in->check,
                     .check_arg = c->in->check_arg};
  wl_status rc = c->in->evaluate(&e, r, err);
  for (const wl_batch *b = rc ? NULL : r->batches; b; b = b->next)
    for (wl_i64 i = 0; i < b->n_rows; i++)
      *values++ = wl_batch_value(b, wl_pool_regs(r->pool), 0, i);
  return rc;
}

void wl_evaluated_close(wl_evaluated *r) {
  while (r->batches) {
    wl_batch *b = r->batches;
    r->batches = b->next;
    wl_batch_give(b);
  }
  wl_pool_close(r->pool);
}

/* ---- maps */

static wl_status new_map(wl_compiler *c, wl_i64 base, wl_i64 n, wl_map **out) {
  wl_program *p = c->p;
  wl_status rc =
      wl_compile_room(c, (void **)&p->maps, p->n_maps, &c->size_maps, sizeof *p->maps, WL_MAX_REGS);
  if (rc) return rc;
  wl_map *m = *out = &p->maps[p->n_maps];
  memset(m, 0, sizeof *m);
  m->base = base;
  m->n = n;
  m->t = wl_arena_alloc(c->arena, (size_t)n + 1);
  if (!m->t) return wl_nomem(c->err);
  p->n_maps++;
  return WL_OK;
}

/* d = entry a of the map, in a register of type r. */
static wl_status emit_map(wl_compiler *c, wl_opcode op, wl_reg r, const wl_operand *a,
                          wl_operand *out) {
  return wl_compile_reg(c, op, r, a->x, 0, (wl_i16)(c->p->n_maps - 1), &out->x);
}

wl_status wl_compile_plain(wl_compiler *c, wl_operand *o) {
  const wl_dict *d = o->dict;
  if (o->date) return wl_compile_date_text(c, o);
  if (!d) return WL_OK;
  wl_map *m = NULL;
  int k = 0;
  while (k < c->p->n_maps && (!c->p->maps[k].len || c->p->maps[k].heap != d->heap)) k++;
  if (k == c->p->n_maps) {
    wl_status rc = new_map(c, 0, d->n, &m);
    if (rc) return rc;
    m->v = WL_NEW_N(c->arena, wl_u64, d->n + 1);
    m->len = WL_NEW_N(c->arena, wl_u32, d->n + 1);
    if (!m->v || !m->len) return wl_nomem(c->err);
    m->heap = d->heap;
    m->n_heap = d->n_heap;
    for (wl_i32 i = 0; i < d->n; i++) {
      m->v[i] = (wl_u32)d->places[i];
      m->len[i] = (wl_u32)(d->places[i] >> 32);
      m->t[i] = WL_T_TEXT;
    }
  }
  o->dict = NULL;
  wl_reg r = {WL_R_TEXT, wl_nullable(o)};
  return wl_compile_reg(c, WL_OP__MapV, r, o->x, 0, (wl_i16)k, &o->x);
}

wl_status wl_compile_translate(wl_compiler *c, const wl_dict *to, wl_operand *o) {
  const wl_dict *d = o->dict;
  wl_map *m;
  bool null = wl_nullable(o);
  if (d == to) {
    o->dict = NULL;
    o->dom = wl_domain_int(0, d->n - 1, null);
    return WL_OK;
  }
  wl_status rc = new_map(c, 0, d->n, &m);
  if (rc) return rc;
  m->v = WL_NEW_N(c->arena, wl_u64, d->n + 1);
  if (!m->v) return wl_nomem(c->err);
  wl_i32 j = 0;
  for (wl_i32 i = 0; i < d->n; i++) { /* both are sorted */
    int cmp = 1;
    while (j < to->n &&
           (cmp = wl_cmp_val(wl_dict_value(to, j), wl_dict_value(d, i), WL_COLL_BINARY)) < 0)
      j++;
    bool there = j < to->n && cmp == 0;
    m->v[i] = there ? (wl_u64)j : 0;
    m->t[i] = there ? WL_T_INT : WL_T_NULL;
  }
  o->dict = NULL;
  o->dom = wl_domain_int(0, to->n - 1, true);
  return emit_map(c, WL_OP__MapI, (wl_reg){WL_R_INT, true}, o, o);
}

wl_status wl_compile_common(wl_compiler *c, wl_operand *a, wl_operand *b) {
  const wl_dict *da = a->dict, *db = b->dict;
  wl_operand *side[2] = {a, b};
  if (da == db) { /* codes of one dictionary are already sorted */
    for (int k = 0; k < 2; k++) {
      side[k]->dom = wl_domain_int(0, da->n - 1, wl_nullable(side[k]));
      side[k]->dict = NULL;
    }
    return WL_OK;
  }
  for (int k = 0; k < 2; k++) {
    const wl_dict *d = side[k]->dict;
    wl_map *m;
    bool null = wl_nullable(side[k]);
    wl_status rc = new_map(c, 0, d->n, &m);
    if (rc) return rc;
    m->v = WL_NEW_N(c->arena, wl_u64, d->n + 1);
    if (!m->v) return wl_nomem(c->err);
    wl_i32 j = 0;
    for (wl_i32 i = 0; i < d->n; i++) {
      int cmp = 1;
      if (k == 1)
        while (j < da->n &&
               (cmp = wl_cmp_val(wl_dict_value(da, j), wl_dict_value(d, i), WL_COLL_BINARY)) < 0)
          j++;
      /* entry j of a's dictionary becomes 2j + 1; a text between entries j - 1 and j becomes 2j */
      m->v[i] = k == 0 ? 2 * (wl_u64)i + 1 : 2 * (wl_u64)j + (j < da->n && cmp == 0);
      m->t[i] = WL_T_INT;
    }
    side[k]->dict = NULL;
    side[k]->dom = wl_domain_int(0, 2 * (wl_i64)da->n + 1, null);
    rc = emit_map(c, WL_OP__MapI, (wl_reg){WL_R_INT, null}, side[k], side[k]);
    if (rc) return rc;
  }
  return WL_OK;
}

wl_status wl_compile_ranks(wl_compiler *c, int coll, wl_operand *o) {
  const wl_dict *d = o->dict;
  wl_map *m;
  wl_i32 *ranks = WL_NEW_N(c->arena, wl_i32, d->n + 1);
  wl_status rc = ranks ? new_map(c, 0, d->n, &m) : wl_nomem(c->err);
  if (rc) return rc;
  if (wl_dict_ranks(d, coll, ranks)) return wl_nomem(c->err);
  m->v = WL_NEW_N(c->arena, wl_u64, d->n + 1);
  if (!m->v) return wl_nomem(c->err);
  for (wl_i32 i = 0; i < d->n; i++) {
    m->v[i] = (wl_u64)ranks[i];
    m->t[i] = WL_T_INT;
  }
  bool null = wl_nullable(o);
  o->dict = NULL;
  o->dom = wl_domain_int(0, d->n - 1, null);
  return emit_map(c, WL_OP__MapI, (wl_reg){WL_R_INT, null}, o, o);
}

/*
** A map to truths. If the true codes are contiguous (as for =, <, BETWEEN, LIKE 'a%'), or the false
** ones are, comparing the code is faster than looking it up.
*/
static wl_status truth_map(wl_compiler *c, const wl_val *values, wl_i64 base, wl_i64 n,
                           const wl_operand *leaf, wl_operand *out) {
  bool null_leaf = wl_nullable(leaf), unknown = false;
  wl_i64 edges = 0, first = -1, last = -1, n_true = 0;
  for (wl_i64 i = 0; i < n; i++) {
    bool is = values[i].t == WL_T_INT && values[i].v;
    unknown |= values[i].t == WL_T_NULL;
    edges += i > 0 && is != (values[i - 1].t == WL_T_INT && values[i - 1].v);
    n_true += is;
  }
  bool runs = !unknown && (!null_leaf || values[n].t == WL_T_NULL);
  bool inside = n_true < n && edges <= 2 && !values[0].v; /* the true codes are contiguous */
  if (edges == 1 || n_true == n || n_true == 0) inside = true;
  if (runs && edges <= 2) {
    for (wl_i64 i = 0; i < n; i++) {
      if ((values[i].v != 0) != inside) continue;
      if (first < 0) first = i;
      last = i;
    }
    if (n_true == 0) last = first = 0, inside = false;
    wl_domain d = wl_domain_int(0, 1, null_leaf);
    wl_operand code = *leaf, lo, hi, ge, le;
    code.dict = NULL;
    code.dom = wl_domain_int(base, base + (n - 1), null_leaf);
    if ((n_true == 0 || n_true == n) && !null_leaf) {
      wl_status rc = wl_compile_constant(c, wl_int(n_true != 0), out);
      out->truth = true;
      return rc;
    }
    if (n_true == 0) { /* never true; NULL if the code is NULL */
      wl_status rc = wl_compile_constant(c, wl_int(base), &lo);
      return rc ? rc : wl_compile_emit(c, WL_OP__LtI, &code, &lo, &wl_no_operand, 0, d, out);
    }
    wl_status rc = wl_compile_constant(c, wl_int(base + first), &lo);
    if (!rc) rc = wl_compile_constant(c, wl_int(base + last), &hi);
    if (!rc && first == last) {
      rc = wl_compile_emit(c, WL_OP__EqI, &code, &lo, &wl_no_operand, 0, d, out);
    } else {
      if (!rc) rc = wl_compile_emit(c, WL_OP__GeI, &code, &lo, &wl_no_operand, 0, d, &ge);
      if (!rc) rc = wl_compile_emit(c, WL_OP__LeI, &code, &hi, &wl_no_operand, 0, d, &le);
      if (!rc && first == 0)
        *out = le;
      else if (!rc && last == n - 1)
        *out = ge;
      else if (!rc)
        rc = wl_compile_emit(c, WL_OP__And, &ge, &le, &wl_no_operand, 0, d, out);
    }
    if (!rc && !inside)
      rc = wl_compile_emit(c, WL_OP__Not, out, &wl_no_operand, &wl_no_operand, 0, d, out);
    return rc;
  }
  wl_map *m;
  wl_status rc = new_map(c, base, n, &m);
  if (rc) return rc;
  for (wl_i64 i = 0; i <= n; i++)
    m->t[i] = values[i].t == WL_T_NULL ? WL_UNKNOWN : values[i].v ? WL_TRUE : WL_FALSE;
  out->truth = true;
  out->dom = wl_domain_int(0, 1, unknown || (null_leaf && values[n].t == WL_T_NULL));
  return emit_map(c, WL_OP__MapB, (wl_reg){WL_R_TRUTH, false}, leaf, out);
}

/* A map to texts: codes of a new dictionary. */
static wl_status text_map(wl_compiler *c, const wl_val *values, wl_i64 base, wl_i64 n,
                          const wl_operand *leaf, wl_domain dom, wl_operand *out) {
  wl_map *m;
  wl_i32 *codes = WL_NEW_N(c->arena, wl_i32, n + 1);
  wl_status rc = codes ? new_map(c, base, n, &m) : wl_nomem(c->err);
  if (rc) return rc;
  if (wl_dict_of(c->arena, values, n + 1, codes, &out->dict)) return wl_nomem(c->err);
  m->v = WL_NEW_N(c->arena, wl_u64, n + 1);
  if (!m->v) return wl_nomem(c->err);
  for (wl_i64 i = 0; i <= n; i++) {
    m->v[i] = codes[i] < 0 ? 0 : (wl_u64)codes[i];
    m->t[i] = codes[i] < 0 ? WL_T_NULL : WL_T_INT;
  }
  out->dom = dom;
  return emit_map(c, WL_OP__MapI, (wl_reg){WL_R_INT, wl_nullable(out)}, leaf, out);
}

static wl_status value_map(wl_compiler *c, const wl_val *values, wl_i64 base, wl_i64 n,
                           const wl_operand *leaf, wl_domain dom, wl_operand *out) {
  wl_map *m;
  wl_status rc = new_map(c, base, n, &m);
  if (rc) return rc;
  wl_reg r = wl_domain_reg(dom);
  m->v = WL_NEW_N(c->arena, wl_u64, n + 1);
  if (r.type == WL_R_ANY) m->len = WL_NEW_N(c->arena, wl_u32, n + 1);
  for (wl_i64 i = 0; i <= n; i++) m->n_heap += values[i].t >= WL_T_TEXT ? values[i].n : 0;
  if (r.type == WL_R_ANY) m->heap = wl_arena_alloc(c->arena, m->n_heap + 1);
  if (c->arena->failed) return wl_nomem(c->err);
  size_t at = 0;
  for (wl_i64 i = 0; i <= n; i++) {
    m->v[i] = values[i].t == WL_T_NULL ? 0 : values[i].v;
    m->t[i] = values[i].t;
    if (values[i].t < WL_T_TEXT) continue;
    m->v[i] = at;
    m->len[i] = values[i].n;
    if (values[i].n) memcpy(m->heap + at, wl_bytes(values[i]), values[i].n);
    at += values[i].n;
  }
  out->dom = dom;
  wl_opcode op = r.type == WL_R_INT ? WL_OP__MapI : r.type == WL_R_REAL ? WL_OP__MapF : WL_OP__MapV;
  return emit_map(c, op, r, leaf, out);
}

wl_status wl_compile_map(wl_compiler *c, wl_val *values, wl_i64 base, wl_i64 n, bool truth,
                         const wl_operand *leaf, wl_operand *out) {
  wl_domain dom = {.mask = 0, .lo = WL_I64_MAX, .hi = WL_I64_MIN};
  bool null_leaf = wl_nullable(leaf), one = true;
  if (!null_leaf) values[n] = wl_null();
  memset(out, 0, sizeof *out);
  if (truth) return truth_map(c, values, base, n, leaf, out);
  dom = wl_domain_of(values[0]);
  for (wl_i64 i = 1; i < n + null_leaf; i++) {
    dom = wl_domain_union(dom, wl_domain_of(values[i]));
    one &= values[i].t == values[0].t && values[i].v == values[0].v && values[i].t < WL_T_TEXT;
  }
  if (one) return wl_compile_constant(c, values[0], out);
  if ((dom.mask & ~WL_M(WL_T_NULL)) == WL_M(WL_T_TEXT))
    return text_map(c, values, base, n, leaf, dom, out);
  return value_map(c, values, base, n, leaf, dom, out);
}

wl_status wl_compile_entries(wl_compiler *c, const wl_bexpr *e, bool *done, wl_operand *out) {
  *done = false;
  int on = depends(c, e);
  if (on <= 0 || (e->kind == WL_B_ISNULL && wl_compile_leaf(c, e->a) >= 0)) return WL_OK;
  wl_operand leaf;
  wl_status rc = wl_compile_leaf_operand(c, on - 1, &leaf);
  if (rc || wl_is_const(&leaf)) return rc;
  wl_i64 base = 0, n;
  if (leaf.dict) {
    n = leaf.dict->n;
  } else {
    __int128 span = (__int128)leaf.dom.hi - leaf.dom.lo + 1;
    if (!wl_only(&leaf, WL_M(WL_T_INT)) || span > INT_SPAN || span > c->in->n_rows || !calls(c, e))
      return WL_OK;
    base = leaf.dom.lo;
    n = (wl_i64)span;
  }
  if (n <= 0) return WL_OK;
  const wl_column *entries = entries_column(c, leaf.dict, base, n);
  wl_program *p = NULL;
  bool truth = false;
  wl_evaluated results = {0};
  wl_val *values = wl_mem_alloc((size_t)(n + 1) * sizeof *values);
  rc = entries && values ? program_of(c, e, entries, &p, &truth) : wl_nomem(c->err);
  if (!rc) rc = evaluate(c, p, (wl_column *)(size_t)entries, &results, values, c->err);
  if (!rc) {
    rc = wl_compile_map(c, values, base, n, truth, &leaf, out);
    *done = true;
  } else if (rc != WL_NOMEM && rc != WL_INTERRUPT) {
    rc = WL_OK; /* invariant 1 */
  }
  wl_evaluated_close(&results);
  wl_mem_free(values);
  return rc;
}
