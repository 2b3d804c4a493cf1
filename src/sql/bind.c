/*
** Binds expressions: turns the syntax tree into the bound tree. SQLite has already prepared the
** statement, so it is valid. An expression that is not supported here is not an error: the result
** is WL_NOT_TAKEN. Part of the binder.
*/
#include "base/quirks.h"
#include "sql/bind_impl.h"
#include "value/collation.h"
#include "value/conv.h"
#include <string.h>

/* The cost of a lookup in SQLite's sorted IN list, in operators. */
enum { IN_LOOKUP = 6 };

static bool numeric(char affinity) {
  return affinity >= 'C';
}

/* Gives x the collation of `of` if COLLATE set it explicitly, else none. */
static void inherit_collation(wl_bexpr *x, const wl_bexpr *of) {
  x->has_coll = x->explicit_coll = of->explicit_coll;
  x->coll = of->coll;
}

/* ---- names */

/* 1 or 0 for the unquoted words TRUE and FALSE, else -1. x IN () and x NOT IN () count as these
** words. */
static int truth_word(const wl_expr *e) {
  if (e->kind == WL_E_IN && e->has_list && !e->list) return e->negated;
  if (e->kind != WL_E_NAME || e->table || e->quoted) return -1;
  return sqlite3_stricmp(e->name, "true") == 0    ? 1
         : sqlite3_stricmp(e->name, "false") == 0 ? 0
                                                  : -1;
}

static wl_status name(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_status rc = wl_bind_name(b, e, out);
  if (rc || *out) return rc;
  int truth = truth_word(e);
  if (truth >= 0) return wl_edit_constant(&b->edit, wl_int(truth), out);
  if (e->quoted == '"' && !e->table)
    return wl_edit_constant(&b->edit, wl_text((const wl_u8 *)e->name, (wl_u32)strlen(e->name)),
                            out);
  return wl_not_taken(b->edit.err, "the name %s cannot be resolved", e->name);
}

/* ---- operators */

static wl_status unary(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *a, *zero;
  wl_status rc;
  if (e->op == WL_OP_NEG && e->a->kind == WL_E_REAL) {
    /* negate the literal instead of computing 0 - literal, so that -0.0 keeps its sign */
    rc = wl_bind_expr(b, e->a, &a);
    if (rc) return rc;
    if (a->value.t == WL_T_REAL)
      return wl_edit_constant(&b->edit, wl_real(-wl_as_f64(a->value.v)), out);
    return wl_edit_constant(&b->edit, a->value, out);
  }
  rc = wl_bind_expr(b, e->a, &a);
  if (rc) return rc;
  switch (e->op) {
  case WL_OP_POS: {
    /* the result has no affinity but keeps the operand's collation */
    wl_bexpr *x = wl_edit_node(&b->edit, WL_B_CAST);
    if (!x) return wl_nomem(b->edit.err);
    x->op = WL_OP_POS;
    x->a = a;
    x->coll = a->coll;
    x->has_coll = a->has_coll;
    x->explicit_coll = a->explicit_coll;
    *out = x;
    return WL_OK;
  }
  case WL_OP_NOT: return wl_edit_binary(&b->edit, WL_B_NOT, WL_OP_NONE, a, NULL, out);
  case WL_OP_BITNOT: return wl_edit_binary(&b->edit, WL_B_ARITH, WL_OP_BITNOT, a, NULL, out);
  default:
    rc = wl_edit_constant(&b->edit, wl_int(0), &zero);
    return rc ? rc : wl_edit_binary(&b->edit, WL_B_ARITH, WL_OP_SUB, zero, a, out);
  }
}

/* ---- comparisons */

/* The affinities of an expression as bits 1 << (affinity - '@'): for a column of a compound, those
** of all arms. *n_left: how many expressions may be visited. WITH entries that use each other can
** have very many arms. */
static unsigned affinities_of(const wl_query *q, const wl_bexpr *e, int *n_left) {
  enum { ALL = 0x7f };
  while (e->kind == WL_B_CAST && e->op == WL_OP_POS && e->affinity == e->a->affinity) e = e->a;
  const wl_derived *d = e->kind == WL_B_COLUMN ? q->sources[e->source].derived : NULL;
  if (!d) return 1u << (e->affinity - '@');
  unsigned bits = --*n_left < 0 ? ALL : 0;
  for (int k = 0; k < d->n_arms && bits != ALL; k++)
    bits |= affinities_of(d->arms[k], d->arms[k]->results[e->index], n_left);
  return bits;
}

/* Sets arm_affinity of comparison x, with these sides. SQLite 3.40 moves a condition on one source
** into the arms of a compound. There, a column has the affinity of the arm. Other sources may turn
** out to be constant (s.y = t.x AND t.x = '1'), so their number does not matter. r: NULL for the
** list of IN, which has no affinity. */
static void note_arm_affinity(const wl_query *q, wl_bexpr *x, const wl_bexpr *l,
                              const wl_bexpr *r) {
  int n_left = 1000;
  unsigned left = affinities_of(q, l, &n_left), right = r ? affinities_of(q, r, &n_left) : 1;
  if (!(left & (left - 1)) && !(right & (right - 1))) return;
  bool none = false, text = false, numeric = false;
  for (char i = '@'; i <= 'F'; i++)
    for (char k = '@'; k <= 'F'; k++) {
      if (!(left >> (i - '@') & 1) || !(right >> (k - '@') & 1)) continue;
      wl_bexpr a = {.affinity = i}, b = {.affinity = k};
      char c = wl_compare_affinity(&a, &b);
      none |= c <= 'A';
      text |= c == 'B';
      numeric |= c >= 'C';
    }
  if (none + text + numeric > 1) x->arm_affinity = numeric ? 'C' : 'B';
}

wl_status wl_bind_compare(binder *b, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                          wl_bexpr **out) {
  wl_status rc = wl_edit_compare(&b->edit, kind, op, l, r, out);
  if (!rc) note_arm_affinity(b->edit.q, *out, l, r);
  return rc;
}

/* ---- row values */

/* (a, b, …) op (c, d, …). The first pair that is not equal decides. Only an explicit COLLATE of the
** first pair applies to the whole expression. */
static wl_status compare_rows(binder *b, wl_op op, const wl_expr_list *l, const wl_expr_list *r,
                              wl_bexpr **out) {
  wl_bexpr *x, *y, *eq, *rest, *less;
  wl_status rc = wl_bind_expr(b, l->expr, &x);
  if (!rc) rc = wl_bind_expr(b, r->expr, &y);
  if (rc) return rc;
  bool last = !l->next;
  if (op == WL_OP_EQ || op == WL_OP_NE) {
    rc = wl_bind_compare(b, WL_B_COMPARE, op, x, y, out);
    if (rc || last) return rc;
    rc = compare_rows(b, op, l->next, r->next, &rest);
    if (rc) return rc;
    eq = *out;
    rc = op == WL_OP_EQ ? wl_edit_binary(&b->edit, WL_B_AND, WL_OP_AND, eq, rest, out)
                        : wl_edit_binary(&b->edit, WL_B_OR, WL_OP_OR, eq, rest, out);
    if (!rc) inherit_collation(*out, eq);
    return rc;
  }
  if (last) return wl_bind_compare(b, WL_B_COMPARE, op, x, y, out);
  wl_op strict = op == WL_OP_LE ? WL_OP_LT : op == WL_OP_GE ? WL_OP_GT : op;
  rc = wl_bind_compare(b, WL_B_COMPARE, strict, x, y, &less);
  if (!rc) rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_EQ, x, y, &eq);
  if (!rc) rc = compare_rows(b, op, l->next, r->next, &rest);
  if (!rc) rc = wl_edit_binary(&b->edit, WL_B_AND, WL_OP_AND, eq, rest, &rest);
  if (!rc) rc = wl_edit_binary(&b->edit, WL_B_OR, WL_OP_OR, less, rest, out);
  if (!rc) inherit_collation(*out, less);
  return rc;
}

/* (a, b, …) IS (c, d, …) */
static wl_status same_rows(binder *b, const wl_expr_list *l, const wl_expr_list *r,
                           wl_bexpr **out) {
  wl_bexpr *x, *y, *is;
  *out = NULL;
  for (; l; l = l->next, r = r->next) {
    wl_status rc = wl_bind_expr(b, l->expr, &x);
    if (!rc) rc = wl_bind_expr(b, r->expr, &y);
    if (!rc) rc = wl_bind_compare(b, WL_B_IS, WL_OP_EQ, x, y, &is);
    if (!rc) rc = wl_edit_and(&b->edit, out, is);
    if (rc) return rc;
  }
  return WL_OK;
}

static bool both_rows(const wl_expr *l, const wl_expr *r) {
  return l->kind == WL_E_VECTOR && r->kind == WL_E_VECTOR &&
         wl_list_length(l->list) == wl_list_length(r->list);
}

static wl_status operator2(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *l, *r;
  if (both_rows(e->a, e->b) && e->op >= WL_OP_EQ && e->op <= WL_OP_GE)
    return compare_rows(b, e->op, e->a->list, e->b->list, out);
  if (e->op == WL_OP_ARROW || e->op == WL_OP_ARROW2) return wl_bind_function(b, e, out);
  wl_status rc = wl_bind_expr(b, e->a, &l);
  if (!rc) rc = wl_bind_expr(b, e->b, &r);
  if (rc) return rc;
  switch (e->op) {
  case WL_OP_AND: return wl_edit_binary(&b->edit, WL_B_AND, e->op, l, r, out);
  case WL_OP_OR: return wl_edit_binary(&b->edit, WL_B_OR, e->op, l, r, out);
  case WL_OP_EQ:
  case WL_OP_NE:
  case WL_OP_LT:
  case WL_OP_LE:
  case WL_OP_GT:
  case WL_OP_GE: return wl_bind_compare(b, WL_B_COMPARE, e->op, l, r, out);
  default: return wl_edit_binary(&b->edit, WL_B_ARITH, e->op, l, r, out);
  }
}

/* Sets *truth if e is the word TRUE or FALSE, with or without COLLATE, and not a column with that
** name. */
static wl_status is_truth_word(binder *b, const wl_expr *e, int *truth) {
  wl_bexpr *column = NULL;
  while (e->kind == WL_E_COLLATE) e = e->a;
  *truth = truth_word(e);
  if (*truth < 0 || e->kind != WL_E_NAME) return WL_OK;
  wl_status rc = wl_bind_name(b, e, &column);
  if (column) *truth = -1;
  return rc;
}

/* x IS [NOT] TRUE|FALSE tests truth; every other IS compares. */
static wl_status bind_is(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *l, *r;
  int truth;
  if (both_rows(e->a, e->b)) {
    wl_status st = same_rows(b, e->a->list, e->b->list, out);
    return st ? st : wl_edit_negate(&b->edit, e->negated, out);
  }
  wl_status rc = wl_bind_expr(b, e->a, &l);
  if (!rc) rc = is_truth_word(b, e->b, &truth);
  if (!rc) rc = wl_bind_expr(b, e->b, &r);
  if (rc) return rc;
  if (truth < 0) {
    rc = wl_bind_compare(b, WL_B_IS, WL_OP_EQ, l, r, out);
    return rc ? rc : wl_edit_negate(&b->edit, e->negated, out);
  }
  if (truth == 0) rc = wl_edit_binary(&b->edit, WL_B_NOT, WL_OP_NONE, l, NULL, &l);
  if (!rc) rc = wl_edit_binary(&b->edit, WL_B_TRUTH, WL_OP_NONE, l, NULL, out);
  if (rc) return rc;
  /* r's COLLATE has no effect on this comparison, but it counts further up */
  if (!(*out)->explicit_coll) inherit_collation(*out, r);
  return wl_edit_negate(&b->edit, e->negated, out);
}

static wl_status between(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *x, *lo, *hi, *ge, *le;
  if (both_rows(e->a, e->b) && both_rows(e->a, e->c)) {
    wl_status st = compare_rows(b, WL_OP_GE, e->a->list, e->b->list, &ge);
    if (!st) st = compare_rows(b, WL_OP_LE, e->a->list, e->c->list, &le);
    if (!st) st = wl_edit_binary(&b->edit, WL_B_AND, WL_OP_AND, ge, le, out);
    return st ? st : wl_edit_negate(&b->edit, e->negated, out);
  }
  wl_status rc = wl_bind_expr(b, e->a, &x);
  if (!rc) rc = wl_bind_expr(b, e->b, &lo);
  if (!rc) rc = wl_bind_expr(b, e->c, &hi);
  if (!rc) rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_GE, x, lo, &ge);
  if (!rc) rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_LE, x, hi, &le);
  if (!rc) rc = wl_edit_binary(&b->edit, WL_B_AND, WL_OP_AND, ge, le, out);
  if (rc) return rc;
  if (!wl_quirks_get().between_collates) inherit_collation(*out, x);
  return wl_edit_negate(&b->edit, e->negated, out);
}

static bool is_constant(const wl_expr *e) {
  if (!e) return true;
  if (e->kind == WL_E_NAME || e->kind == WL_E_SELECT || e->kind == WL_E_EXISTS ||
      e->kind == WL_E_CALL)
    return false;
  for (const wl_expr_list *l = e->list; l; l = l->next)
    if (!is_constant(l->expr)) return false;
  return is_constant(e->a) && is_constant(e->b) && is_constant(e->c);
}

static wl_status bind_row(binder *b, const wl_expr_list *l, int n, wl_bexpr ***out) {
  wl_bexpr **row = *out = WL_NEW_N(b->edit.arena, wl_bexpr *, n);
  wl_status rc = row ? WL_OK : wl_nomem(b->edit.err);
  for (; l && !rc; l = l->next) rc = wl_bind_expr(b, l->expr, row++);
  return rc;
}

/*
** Whether comparing x with y uses x's own collation and leaves x's value unchanged. If a value on
** the left is NULL, or no row matched, SQLite searches for rows that make the result NULL. That
** search uses the collations of the left side and, in the first case, its values as they are.
*/
static bool by_left_rules(const wl_bexpr *x, const wl_bexpr *y, bool never_null) {
  char affinity = wl_compare_affinity(x, y);
  bool kept =
      affinity <= 'A' || affinity == x->affinity || (affinity == 'C' && numeric(x->affinity));
  return (kept || never_null) && wl_compare_coll(x, y) == (x->has_coll ? x->coll : WL_COLL_BINARY);
}

/* (a, b, …) IN ((c, d, …), …). SQLite treats this as IN (VALUES …). The last row there decides the
** affinities and collations of all comparisons. */
static wl_status in_rows(binder *b, const wl_expr *e, wl_bexpr **out) {
  const wl_expr_list *last = e->list;
  int n = wl_list_length(e->a->list);
  wl_bexpr **left = NULL, **right, **rules = NULL;
  wl_status rc = WL_OK;
  for (const wl_expr_list *l = e->list; l; last = l, l = l->next)
    if (!both_rows(e->a, l->expr))
      return wl_not_taken(b->edit.err, "IN with row values, one of which is a subquery");
  rc = bind_row(b, e->a->list, n, &left);
  if (!rc) rc = bind_row(b, last->expr->list, n, &rules);
  bool never_null = true;
  for (int k = 0; k < n && !rc; k++)
    never_null = never_null && left[k]->kind == WL_B_CONST && left[k]->value.t != WL_T_NULL;
  for (int k = 0; k < n && !rc; k++)
    if (!by_left_rules(left[k], rules[k], never_null))
      return wl_not_taken(b->edit.err,
                          "IN with row values, compared under an affinity or collation other "
                          "than the left side's");
  *out = NULL;
  for (const wl_expr_list *l = e->list; l && !rc; l = l->next) {
    wl_bexpr *same = NULL;
    right = rules;
    if (l != last) rc = bind_row(b, l->expr->list, n, &right);
    for (int k = 0; k < n && !rc; k++) {
      wl_bexpr *eq;
      rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_EQ, left[k], right[k], &eq);
      if (rc) break;
      eq->index = 1;
      eq->cmp_affinity = wl_compare_affinity(left[k], rules[k]);
      eq->cmp_coll = wl_compare_coll(left[k], rules[k]);
      rc = wl_edit_and(&b->edit, &same, eq);
    }
    if (!rc && *out)
      rc = wl_edit_binary(&b->edit, WL_B_OR, WL_OP_OR, *out, same, out);
    else if (!rc)
      *out = same;
  }
  if (rc) return rc;
  inherit_collation(*out, left[0]);
  return wl_edit_negate(&b->edit, e->negated, out);
}

/* x IN (list) becomes one node, compared under x's affinity and collation. */
static wl_status bind_in(binder *b, const wl_expr *e, wl_bexpr **out) {
  if (!e->has_list) return wl_bind_in_select(b, e, out);
  if (e->a->kind == WL_E_VECTOR && e->list) return in_rows(b, e, out);
  wl_bexpr *x;
  wl_status rc = wl_bind_expr(b, e->a, &x);
  if (rc) return rc;
  if (!e->list) return wl_edit_constant(&b->edit, wl_int(e->negated), out);
  if (!e->list->next && e->list->expr->kind == WL_E_SELECT && wl_quirks_get().in_parentheses)
    return wl_not_taken(b->edit.err, "IN ((SELECT ...)) with double parentheses");
  int n = 0, before = b->edit.q->n_nodes_cost;
  bool constants = true;
  for (const wl_expr_list *l = e->list; l; l = l->next, n++)
    constants = constants && is_constant(l->expr);
  wl_bexpr *y = wl_edit_node(&b->edit, WL_B_IN);
  if (y) y->list = WL_NEW_N(b->edit.arena, wl_bexpr *, n);
  if (!y || !y->list) return wl_nomem(b->edit.err);
  y->a = x;
  for (const wl_expr_list *l = e->list; l && !rc; l = l->next, y->n_list++)
    rc = wl_bind_expr(b, l->expr, &y->list[y->n_list]);
  if (rc) return rc;
  y->cmp_affinity = x->affinity;
  note_arm_affinity(b->edit.q, y, x, NULL);
  /* a list of one constant is a plain comparison, so the constant's collation counts too */
  y->cmp_coll = n > 1 || !constants ? (x->has_coll ? x->coll : WL_COLL_BINARY)
                                    : wl_compare_coll(x, y->list[0]);
  wl_bexpr_raise_collate(y);
  /* both SQLite and warplite look up constants in a sorted list */
  if (constants && n > IN_LOOKUP) b->edit.q->n_nodes_cost = before + IN_LOOKUP;
  *out = y;
  return wl_edit_negate(&b->edit, e->negated, out);
}

static wl_status case_of(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *base = NULL, *x = wl_edit_node(&b->edit, WL_B_CASE);
  wl_status rc = x ? WL_OK : wl_nomem(b->edit.err);
  int n = 1 + wl_list_length(e->list), k = 0;
  if (!rc && e->a) rc = wl_bind_expr(b, e->a, &base);
  if (rc) return rc;
  x->list = WL_NEW_N(b->edit.arena, wl_bexpr *, n);
  if (!x->list) return wl_nomem(b->edit.err);
  for (const wl_expr_list *l = e->list; l && !rc; l = l->next, k++) {
    rc = wl_bind_expr(b, l->expr, &x->list[k]);
    if (!rc && base && k % 2 == 0)
      rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_EQ, base, x->list[k], &x->list[k]);
  }
  if (!rc)
    rc = e->b ? wl_bind_expr(b, e->b, &x->list[k])
              : wl_edit_constant(&b->edit, wl_null(), &x->list[k]);
  if (rc) return rc;
  x->n_list = n;
  wl_bexpr_raise_collate(x);
  *out = x;
  return WL_OK;
}

wl_status wl_bind_collate(binder *b, const char *name, wl_bexpr *a, wl_bexpr **out) {
  int k = wl_collation_find(name);
  if (k < 0 || !b->catalog->own_collation(b->catalog->of, k))
    return wl_not_taken(b->edit.err, "the collation %s is not built into SQLite", name);
  wl_bexpr *x = wl_edit_node(&b->edit, WL_B_CAST);
  if (!x) return wl_nomem(b->edit.err);
  x->op = WL_OP_POS;
  x->a = a;
  x->affinity = a->affinity;
  x->coll = (wl_u8)k;
  x->has_coll = x->explicit_coll = true;
  *out = x;
  return WL_OK;
}

static wl_status collate(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *a;
  wl_status rc = wl_bind_expr(b, e->a, &a);
  return rc ? rc : wl_bind_collate(b, e->name, a, out);
}

static wl_status cast(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *a, *x;
  wl_status rc = wl_bind_expr(b, e->a, &a);
  if (rc) return rc;
  x = wl_edit_node(&b->edit, WL_B_CAST);
  if (!x) return wl_nomem(b->edit.err);
  x->op = WL_OP_NONE;
  x->a = a;
  /* an empty type name means NUMERIC in a CAST, though it means BLOB in a column */
  x->affinity = e->name && *e->name ? wl_affinity_of_type(e->name) : 'C';
  x->coll = a->coll;
  x->has_coll = a->has_coll;
  x->explicit_coll = a->explicit_coll;
  *out = x;
  return WL_OK;
}

wl_status wl_bind_expr(binder *b, const wl_expr *e, wl_bexpr **out) {
  b->edit.q->n_nodes_cost++;
  switch (e->kind) {
  case WL_E_NULL: return wl_edit_constant(&b->edit, wl_null(), out);
  case WL_E_INT: return wl_edit_constant(&b->edit, wl_int(e->i), out);
  case WL_E_REAL: {
    wl_val v;
    wl_status rc = wl_conv_literal(e->text, e->n_text, &v, b->edit.err);
    return rc ? rc : wl_edit_constant(&b->edit, v, out);
  }
  case WL_E_TEXT:
    return wl_edit_constant(&b->edit, wl_text((const wl_u8 *)e->text, (wl_u32)e->n_text), out);
  case WL_E_BLOB:
    return wl_edit_constant(
        &b->edit, wl_val_make(WL_T_BLOB, (wl_u64)(size_t)e->text, (wl_u32)e->n_text), out);
  case WL_E_PARAM:
    *out = wl_edit_node(&b->edit, WL_B_PARAM);
    if (!*out) return wl_nomem(b->edit.err);
    (*out)->index = (int)e->i;
    return WL_OK;
  case WL_E_NAME: return name(b, e, out);
  case WL_E_UNARY: return unary(b, e, out);
  case WL_E_BINARY: return operator2(b, e, out);
  case WL_E_IS: return bind_is(b, e, out);
  case WL_E_ISNULL: {
    wl_bexpr *a;
    wl_status rc = wl_bind_expr(b, e->a, &a);
    if (!rc) rc = wl_edit_binary(&b->edit, WL_B_ISNULL, WL_OP_NONE, a, NULL, out);
    return rc ? rc : wl_edit_negate(&b->edit, e->negated, out);
  }
  case WL_E_BETWEEN: return between(b, e, out);
  case WL_E_IN: return bind_in(b, e, out);
  case WL_E_CASE: return case_of(b, e, out);
  case WL_E_CAST: return cast(b, e, out);
  case WL_E_COLLATE: return collate(b, e, out);
  case WL_E_CALL: return wl_bind_call(b, e, out);
  case WL_E_LIKE: return wl_bind_like(b, e, out);
  case WL_E_NOW: return wl_not_taken(b->edit.err, "%s is not native yet", e->name);
  case WL_E_SELECT: return wl_bind_scalar(b, e, out);
  case WL_E_EXISTS: return wl_bind_exists(b, e, out);
  case WL_E_VECTOR: return wl_not_taken(b->edit.err, "row values are not native yet");
  case WL_E_RAISE: break;
  }
  return wl_not_taken(b->edit.err, "an expression of this kind is not supported");
}
