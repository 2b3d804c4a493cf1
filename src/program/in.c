/*
** IN over a list, or over the values of a subquery. Part of the compiler.
*/
#include "program/compile_impl.h"
#include "value/conv.h"
#include <stdlib.h>
#include <string.h>

/* x = list[first] OR … up to end, as a balanced tree, because a long list would overflow the
** stack. */
static wl_status in_any(wl_compiler *c, const wl_bexpr *e, int first, int end, wl_operand *out) {
  wl_operand x, y;
  if (end - first == 1) {
    wl_status rc = wl_compile_expr(c, e->a, &x);
    if (!rc) rc = wl_compile_expr(c, e->list[first], &y);
    if (!rc) rc = wl_compile_arms_agree(c, e, &x, &y);
    return rc ? rc : wl_compile_compare(c, WL_OP_EQ, e->cmp_affinity, e->cmp_coll, &x, &y, out);
  }
  int mid = first + (end - first) / 2;
  wl_status rc = in_any(c, e, first, mid, &x);
  if (!rc) rc = in_any(c, e, mid, end, &y);
  return rc ? rc : wl_compile_either(c, false, &x, &y, out);
}

static int by_value(const void *a, const void *b, void *coll) {
  return wl_cmp_val(*(const wl_val *)a, *(const wl_val *)b, *(wl_u8 *)coll);
}

static void sort_set(wl_inset *s) {
  qsort_r(s->v, (size_t)s->n, sizeof *s->v, by_value, &s->coll);
  wl_i64 n = 0;
  for (wl_i64 k = 0; k < s->n; k++)
    if (k == 0 || wl_cmp_val(s->v[n - 1], s->v[k], s->coll) != 0) s->v[n++] = s->v[k];
  s->n = n;
}

/* A constant of the list after applying x's affinity. *ok: it is a constant. */
static wl_status in_constant(wl_compiler *side, const wl_bexpr *e, char affinity, bool x_text,
                             wl_val *out, bool *ok) {
  const unsigned N = WL_M(WL_T_INT) | WL_M(WL_T_REAL);
  wl_operand y;
  wl_status rc = wl_compile_expr(side, e, &y);
  if (!rc) rc = wl_compile_value(side, &y);
  *ok = !rc && wl_is_const(&y);
  if (!*ok) return rc;
  if (affinity >= 'C' && wl_has(&y, WL_T_TEXT))
    rc = wl_compile_emit1(side, WL_OP__NumAffinity, &y, y.dom, &y);
  else if (affinity == 'B' && (y.dom.mask & N) && x_text)
    rc = wl_compile_text(side, &y);
  if (!rc) *out = wl_const_value(side, &y);
  return rc;
}

/* The list as constants. *ok: all of them are constants, and none of them changes x. */
static wl_status in_constants(wl_compiler *c, const wl_bexpr *e, const wl_operand *x, wl_inset *set,
                              bool *ok) {
  wl_compiler side; /* a separate compiler, because a long list has many constants */
  *ok = true;
  /* TEXT affinity turns a number into text only if the other side is text */
  if (e->cmp_affinity == 'B' && (wl_has(x, WL_T_INT) || wl_has(x, WL_T_REAL))) *ok = false;
  if (!*ok) return WL_OK;
  wl_status rc = wl_compile_side(c, 0, &side);
  set->v = rc ? NULL : WL_NEW_N(c->arena, wl_val, e->n_list);
  if (!rc && !set->v) rc = wl_nomem(c->err);
  for (int k = 0; k < e->n_list && !rc && *ok; k++) {
    wl_val v = wl_null();
    wl_operand y = {.dom.mask = WL_M(e->list[k]->value.t)};
    if (e->list[k]->kind == WL_B_CONST)
      rc = wl_compile_arms_agree(c, e, x, &y);
    else if (e->arm_affinity)
      *ok = false;
    if (rc || !*ok) break;
    rc = in_constant(&side, e->list[k], e->cmp_affinity, wl_has(x, WL_T_TEXT), &v, ok);
    if (v.t == WL_T_NULL)
      set->has_null = true;
    else
      set->v[set->n++] = v;
  }
  wl_compile_side_close(&side);
  return rc;
}

/* x IN a set of constants. */
static wl_status in_set(wl_compiler *c, const wl_bexpr *e, wl_operand x, wl_inset set,
                        wl_operand *out) {
  wl_status rc;
  if (e->cmp_affinity >= 'C' && wl_has(&x, WL_T_TEXT)) {
    wl_domain d = wl_domain_union(x.dom, wl_domain_any(WL_M(WL_T_INT) | WL_M(WL_T_REAL)));
    rc = wl_compile_emit1(c, WL_OP__NumAffinity, &x, d, &x);
    if (rc) return rc;
  }
  sort_set(&set);
  wl_program *p = c->p;
  rc = wl_compile_room(c, (void **)&p->insets, p->n_insets, &c->size_insets, sizeof *p->insets,
                       WL_MAX_REGS);
  if (rc) return rc;
  p->insets[p->n_insets++] = set;
  memset(out, 0, sizeof *out);
  out->truth = true;
  out->dom = wl_truth_domain(wl_nullable(&x) || set.has_null);
  return wl_compile_reg(c, WL_OP__InSet, (wl_reg){WL_R_TRUTH, false}, x.x, 0,
                        (wl_i16)(p->n_insets - 1), &out->x);
}

static const wl_bexpr *under_collate(const wl_bexpr *x) {
  while (x->kind == WL_B_CAST && x->op == WL_OP_POS) x = x->a;
  return x;
}

/* When SQLite 3.40 searches a group's REAL column in a list, it turns reals into integers. Its sort
** of the groups then keeps them so: 0.0 is shown as 0. */
static bool shows_integers(const wl_compiler *c, const wl_bexpr *e) {
  const wl_bexpr *x = under_collate(e->a);
  return !c->entries && !c->over_table && c->in->query->n_order > 0 && e->n_list > 2 &&
         e->cmp_affinity == 'E' && x->kind == WL_B_COLUMN;
}

wl_status wl_compile_in_list(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand x;
  wl_inset set = {.coll = e->cmp_coll};
  bool constants = false;
  if (shows_integers(c, e))
    return wl_not_taken(c->err, "IN with a REAL column, in a query that sorts its groups");
  wl_status rc = wl_compile_expr(c, e->a, &x);
  if (!rc) rc = wl_compile_value(c, &x);
  if (!rc && e->n_list > 3 && !wl_is_const(&x)) rc = in_constants(c, e, &x, &set, &constants);
  if (rc) return rc;
  return constants ? in_set(c, e, x, set, out) : in_any(c, e, 0, e->n_list, out);
}

/* SQLite 3.40 applies the affinity of IN (SELECT …) to the group's own value and then keeps using
** the result: 5.0 or '5' becomes 5, and with REALs 5 becomes 5.0. */
static bool changes_group(const wl_bexpr *e, const wl_operand *x) {
  wl_bkind kind = under_collate(e->a)->kind;
  /* constants and CASE can be columns of a flattened subquery */
  bool own = kind == WL_B_COLUMN || kind == WL_B_AGG || kind == WL_B_CONST || kind == WL_B_CASE;
  int other = e->cmp_affinity == 'E' ? WL_T_INT : WL_T_REAL;
  return own && e->cmp_affinity >= 'C' && (wl_has(x, WL_T_TEXT) || wl_has(x, other));
}

/* x IN (a subquery that has already run): its rows are constants. */
wl_status wl_compile_in_sub(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  enum { MOST = 1 << 20 };
  const wl_column *col = c->in->sub_lists[e->index];
  int n = (int)col->n_rows;
  if (col->n_rows > MOST) return wl_not_taken(c->err, "IN over a long list, computed for groups");
  wl_operand x;
  wl_inset set = {.coll = e->cmp_coll, .v = WL_NEW_N(c->arena, wl_val, n + 1)};
  wl_status rc = wl_compile_expr(c, e->a, &x);
  if (!rc) rc = wl_compile_value(c, &x);
  if (rc) return rc;
  if (!set.v) return wl_nomem(c->err);
  if (e->cmp_affinity == 'B' && (wl_has(&x, WL_T_INT) || wl_has(&x, WL_T_REAL)))
    return wl_not_taken(c->err, "IN with numbers compared as text, computed for groups");
  if (changes_group(e, &x))
    return wl_not_taken(c->err,
                        "IN with values that SQLite's affinity changes, computed for groups");
  if (n == 0) {
    rc = wl_compile_constant(c, wl_int(0), out);
    out->truth = true;
    return rc;
  }
  for (int k = 0; k < n && !rc; k++) {
    wl_val v = wl_column_value(col, k);
    if (v.t >= WL_T_TEXT) {
      char *copy = wl_arena_strndup(c->arena, (const char *)wl_bytes(v), v.n);
      if (!copy) return wl_nomem(c->err);
      v.v = (wl_u64)(size_t)copy;
    }
    if (e->cmp_affinity >= 'C' && v.t == WL_T_TEXT)
      v = wl_conv_number(&c->fold, v, WL_NUMBER_AFFINITY);
    if (e->cmp_affinity == 'B' && (v.t == WL_T_INT || v.t == WL_T_REAL))
      return wl_not_taken(c->err, "IN with numbers compared as text, computed for groups");
    if (v.t == WL_T_NULL)
      set.has_null = true;
    else
      set.v[set.n++] = v;
  }
  return in_set(c, e, x, set, out);
}

wl_status wl_compile_in_real(wl_compiler *c, const wl_bexpr *e, const wl_operand *a,
                             const wl_operand *b) {
  if (e->index != 1 || e->cmp_affinity != 'E') return WL_OK;
  if ((wl_has(a, WL_T_INT) && !wl_exact_as_real(a)) ||
      (wl_has(b, WL_T_INT) && !wl_exact_as_real(b)))
    return wl_not_taken(c->err, "IN with large integers compared as reals");
  return WL_OK;
}
