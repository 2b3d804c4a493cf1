/*
** From syntax tree to bound tree. The statement has been prepared by SQLite before, so it
** is known to be valid: what is not understood here is never an error, only "not taken".
*/
#include "base/quirks.h"
#include "sql/bind_impl.h"
#include "value/affinity.h"
#include "value/conv.h"
#include <string.h>

/* What a lookup in SQLite's list of IN costs, in operators. */
enum { IN_LOOKUP = 6 };

wl_status wl_bind_room(binder *b, void **array, int n, int *size, size_t width) {
  if (n < *size) return WL_OK;
  int more = *size ? *size * 2 : 8;
  void *p = wl_arena_alloc(b->arena, (size_t)more * width);
  if (!p) return wl_nomem(b->err);
  if (n) memcpy(p, *array, (size_t)n * width);
  *array = p;
  *size = more;
  return WL_OK;
}

wl_bexpr *wl_bind_node(binder *b, wl_bkind kind) {
  wl_bexpr *x = WL_NEW(b->arena, wl_bexpr);
  if (!x) return NULL;
  x->kind = kind;
  x->affinity = '@';
  x->id = b->q->n_exprs++;
  return x;
}

wl_status wl_bind_constant(binder *b, wl_val v, wl_bexpr **out) {
  *out = wl_bind_node(b, WL_B_CONST);
  if (!*out) return wl_nomem(b->err);
  (*out)->value = v;
  return WL_OK;
}

static bool numeric(char affinity) {
  return affinity >= 'C';
}

/* The affinity SQLite applies before comparing a with b. */
char wl_bind_compare_affinity(const wl_bexpr *a, const wl_bexpr *b) {
  if (a->affinity > '@' && b->affinity > '@')
    return numeric(a->affinity) || numeric(b->affinity) ? 'C' : 'A';
  return a->affinity > '@' ? a->affinity : b->affinity;
}

wl_u8 wl_bind_compare_coll(const wl_bexpr *a, const wl_bexpr *b) {
  if (a->explicit_coll) return a->coll;
  if (b->explicit_coll) return b->coll;
  if (a->has_coll) return a->coll;
  return b->has_coll ? b->coll : WL_COLL_BINARY;
}

/* An explicit COLLATE inside an operand carries up through operators, leftmost first. */
void wl_bind_collation(wl_bexpr *x) {
  for (int k = 0; k < 2 + x->n_list && !x->explicit_coll; k++) {
    const wl_bexpr *c = k == 0 ? x->a : k == 1 ? x->b : x->list[k - 2];
    if (!c || !c->explicit_coll) continue;
    x->has_coll = x->explicit_coll = true;
    x->coll = c->coll;
  }
}

/* x has the collation of `of` if that was written there, else none. */
static void inherit_collation(wl_bexpr *x, const wl_bexpr *of) {
  x->has_coll = x->explicit_coll = of->explicit_coll;
  x->coll = of->coll;
}

wl_status wl_bind_compare(binder *b, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                          wl_bexpr **out) {
  wl_bexpr *x = wl_bind_node(b, kind);
  if (!x) return wl_nomem(b->err);
  x->op = op;
  x->a = l;
  x->b = r;
  x->cmp_affinity = wl_bind_compare_affinity(l, r);
  x->cmp_coll = wl_bind_compare_coll(l, r);
  wl_bind_collation(x);
  *out = x;
  return WL_OK;
}

wl_status wl_bind_binary(binder *b, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                         wl_bexpr **out) {
  wl_bexpr *x = wl_bind_node(b, kind);
  if (!x) return wl_nomem(b->err);
  x->op = op;
  x->a = l;
  x->b = r;
  wl_bind_collation(x);
  *out = x;
  return WL_OK;
}

wl_status wl_bind_negate(binder *b, bool negated, wl_bexpr **x) {
  return negated ? wl_bind_binary(b, WL_B_NOT, WL_OP_NONE, *x, NULL, x) : WL_OK;
}

wl_status wl_bind_and(binder *b, wl_bexpr **to, wl_bexpr *more) {
  if (!*to) {
    *to = more;
    return WL_OK;
  }
  return wl_bind_binary(b, WL_B_AND, WL_OP_AND, *to, more, to);
}

/* ---- names */

/* 0 or 1 for the unquoted words FALSE and TRUE, which x IN () and x NOT IN () are too, else -1. */
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
  if (truth >= 0) return wl_bind_constant(b, wl_int(truth), out);
  if (e->quoted == '"' && !e->table)
    return wl_bind_constant(b, wl_text((const wl_u8 *)e->name, (wl_u32)strlen(e->name)), out);
  return wl_not_taken(b->err, "the name %s is not understood", e->name);
}

/* ---- operators */

static wl_status unary(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *a, *zero;
  wl_status rc;
  if (e->op == WL_OP_NEG && e->a->kind == WL_E_REAL) {
    /* a negated literal, not 0 - literal: -0.0 keeps its sign */
    rc = wl_bind_expr(b, e->a, &a);
    if (rc) return rc;
    if (a->value.t == WL_T_REAL) return wl_bind_constant(b, wl_real(-wl_as_f64(a->value.v)), out);
    return wl_bind_constant(b, a->value, out);
  }
  rc = wl_bind_expr(b, e->a, &a);
  if (rc) return rc;
  switch (e->op) {
  case WL_OP_POS: {
    /* no affinity, but the operand's collation */
    wl_bexpr *x = wl_bind_node(b, WL_B_CAST);
    if (!x) return wl_nomem(b->err);
    x->op = WL_OP_POS;
    x->a = a;
    x->coll = a->coll;
    x->has_coll = a->has_coll;
    x->explicit_coll = a->explicit_coll;
    *out = x;
    return WL_OK;
  }
  case WL_OP_NOT: return wl_bind_binary(b, WL_B_NOT, WL_OP_NONE, a, NULL, out);
  case WL_OP_BITNOT: return wl_bind_binary(b, WL_B_ARITH, WL_OP_BITNOT, a, NULL, out);
  default:
    rc = wl_bind_constant(b, wl_int(0), &zero);
    return rc ? rc : wl_bind_binary(b, WL_B_ARITH, WL_OP_SUB, zero, a, out);
  }
}

/* ---- row values */

static int length(const wl_expr_list *l) {
  int n = 0;
  for (; l; l = l->next) n++;
  return n;
}

/* (a, b, …) op (c, d, …), from the left: what comes first decides, unless it is equal. Of COLLATE
** only that of the first of them goes up. */
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
    rc = op == WL_OP_EQ ? wl_bind_binary(b, WL_B_AND, WL_OP_AND, eq, rest, out)
                        : wl_bind_binary(b, WL_B_OR, WL_OP_OR, eq, rest, out);
    if (!rc) inherit_collation(*out, eq);
    return rc;
  }
  if (last) return wl_bind_compare(b, WL_B_COMPARE, op, x, y, out);
  wl_op strict = op == WL_OP_LE ? WL_OP_LT : op == WL_OP_GE ? WL_OP_GT : op;
  rc = wl_bind_compare(b, WL_B_COMPARE, strict, x, y, &less);
  if (!rc) rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_EQ, x, y, &eq);
  if (!rc) rc = compare_rows(b, op, l->next, r->next, &rest);
  if (!rc) rc = wl_bind_binary(b, WL_B_AND, WL_OP_AND, eq, rest, &rest);
  if (!rc) rc = wl_bind_binary(b, WL_B_OR, WL_OP_OR, less, rest, out);
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
    if (!rc) rc = wl_bind_and(b, out, is);
    if (rc) return rc;
  }
  return WL_OK;
}

static bool both_rows(const wl_expr *l, const wl_expr *r) {
  return l->kind == WL_E_VECTOR && r->kind == WL_E_VECTOR && length(l->list) == length(r->list);
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
  case WL_OP_AND: return wl_bind_binary(b, WL_B_AND, e->op, l, r, out);
  case WL_OP_OR: return wl_bind_binary(b, WL_B_OR, e->op, l, r, out);
  case WL_OP_EQ:
  case WL_OP_NE:
  case WL_OP_LT:
  case WL_OP_LE:
  case WL_OP_GT:
  case WL_OP_GE: return wl_bind_compare(b, WL_B_COMPARE, e->op, l, r, out);
  default: return wl_bind_binary(b, WL_B_ARITH, e->op, l, r, out);
  }
}

/* Whether e is the word TRUE or FALSE, under any COLLATE, and not a column of that name: *truth. */
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
static wl_status is(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *l, *r;
  int truth;
  if (both_rows(e->a, e->b)) {
    wl_status st = same_rows(b, e->a->list, e->b->list, out);
    return st ? st : wl_bind_negate(b, e->negated, out);
  }
  wl_status rc = wl_bind_expr(b, e->a, &l);
  if (!rc) rc = is_truth_word(b, e->b, &truth);
  if (!rc) rc = wl_bind_expr(b, e->b, &r);
  if (rc) return rc;
  if (truth < 0) {
    rc = wl_bind_compare(b, WL_B_IS, WL_OP_EQ, l, r, out);
    return rc ? rc : wl_bind_negate(b, e->negated, out);
  }
  if (truth == 0) rc = wl_bind_binary(b, WL_B_NOT, WL_OP_NONE, l, NULL, &l);
  if (!rc) rc = wl_bind_binary(b, WL_B_TRUTH, WL_OP_NONE, l, NULL, out);
  if (rc) return rc;
  if (!(*out)->explicit_coll) inherit_collation(*out, r); /* the COLLATE goes up, though unused */
  return wl_bind_negate(b, e->negated, out);
}

static wl_status between(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *x, *lo, *hi, *ge, *le;
  if (both_rows(e->a, e->b) && both_rows(e->a, e->c)) {
    wl_status st = compare_rows(b, WL_OP_GE, e->a->list, e->b->list, &ge);
    if (!st) st = compare_rows(b, WL_OP_LE, e->a->list, e->c->list, &le);
    if (!st) st = wl_bind_binary(b, WL_B_AND, WL_OP_AND, ge, le, out);
    return st ? st : wl_bind_negate(b, e->negated, out);
  }
  wl_status rc = wl_bind_expr(b, e->a, &x);
  if (!rc) rc = wl_bind_expr(b, e->b, &lo);
  if (!rc) rc = wl_bind_expr(b, e->c, &hi);
  if (!rc) rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_GE, x, lo, &ge);
  if (!rc) rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_LE, x, hi, &le);
  if (!rc) rc = wl_bind_binary(b, WL_B_AND, WL_OP_AND, ge, le, out);
  if (rc) return rc;
  if (!wl_quirks_get().between_collates) inherit_collation(*out, x);
  return wl_bind_negate(b, e->negated, out);
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
  wl_bexpr **row = *out = WL_NEW_N(b->arena, wl_bexpr *, n);
  wl_status rc = row ? WL_OK : wl_nomem(b->err);
  for (; l && !rc; l = l->next) rc = wl_bind_expr(b, l->expr, row++);
  return rc;
}

/*
** Whether a comparison of x with y goes by x's own collation and leaves x as it is. Where something
** on the left is NULL, or nothing was found, SQLite looks for rows that make the outcome NULL by
** the left side's collations and, in the first case, by its values as they are.
*/
static bool by_left_rules(const wl_bexpr *x, const wl_bexpr *y, bool never_null) {
  char affinity = wl_bind_compare_affinity(x, y);
  bool kept =
      affinity <= 'A' || affinity == x->affinity || (affinity == 'C' && numeric(x->affinity));
  return (kept || never_null) &&
         wl_bind_compare_coll(x, y) == (x->has_coll ? x->coll : WL_COLL_BINARY);
}

/* (a, b, …) IN ((c, d, …), …). To SQLite this is IN (VALUES …), whose last row says under which
** affinities and collations all of them are compared. */
static wl_status in_rows(binder *b, const wl_expr *e, wl_bexpr **out) {
  const wl_expr_list *last = e->list;
  int n = length(e->a->list);
  wl_bexpr **left = NULL, **right, **rules = NULL;
  wl_status rc = WL_OK;
  for (const wl_expr_list *l = e->list; l; last = l, l = l->next)
    if (!both_rows(e->a, l->expr)) return wl_not_taken(b->err, "row values are not native here");
  rc = bind_row(b, e->a->list, n, &left);
  if (!rc) rc = bind_row(b, last->expr->list, n, &rules);
  bool never_null = true;
  for (int k = 0; k < n && !rc; k++)
    never_null = never_null && left[k]->kind == WL_B_CONST && left[k]->value.t != WL_T_NULL;
  for (int k = 0; k < n && !rc; k++)
    if (!by_left_rules(left[k], rules[k], never_null))
      return wl_not_taken(b->err, "IN of row values under another affinity or collation than those "
                                  "of the left side");
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
      eq->cmp_affinity = wl_bind_compare_affinity(left[k], rules[k]);
      eq->cmp_coll = wl_bind_compare_coll(left[k], rules[k]);
      rc = wl_bind_and(b, &same, eq);
    }
    if (!rc && *out)
      rc = wl_bind_binary(b, WL_B_OR, WL_OP_OR, *out, same, out);
    else if (!rc)
      *out = same;
  }
  if (rc) return rc;
  inherit_collation(*out, left[0]);
  return wl_bind_negate(b, e->negated, out);
}

/* x IN (list): one node, under x's own affinity and collation. */
static wl_status in(binder *b, const wl_expr *e, wl_bexpr **out) {
  if (!e->has_list) return wl_bind_in_select(b, e, out);
  if (e->a->kind == WL_E_VECTOR && e->list) return in_rows(b, e, out);
  wl_bexpr *x;
  wl_status rc = wl_bind_expr(b, e->a, &x);
  if (rc) return rc;
  if (!e->list) return wl_bind_constant(b, wl_int(e->negated), out);
  if (!e->list->next && e->list->expr->kind == WL_E_SELECT && wl_quirks_get().in_parentheses)
    return wl_not_taken(b->err, "IN ((SELECT ...)) in two pairs of parentheses");
  int n = 0, before = b->q->n_nodes_cost;
  bool constants = true;
  for (const wl_expr_list *l = e->list; l; l = l->next, n++)
    constants = constants && is_constant(l->expr);
  wl_bexpr *y = wl_bind_node(b, WL_B_IN);
  if (y) y->list = WL_NEW_N(b->arena, wl_bexpr *, n);
  if (!y || !y->list) return wl_nomem(b->err);
  y->a = x;
  for (const wl_expr_list *l = e->list; l && !rc; l = l->next, y->n_list++)
    rc = wl_bind_expr(b, l->expr, &y->list[y->n_list]);
  if (rc) return rc;
  y->cmp_affinity = x->affinity;
  /* a list of one constant is a comparison, where the constant's collation counts too */
  y->cmp_coll = n > 1 || !constants ? (x->has_coll ? x->coll : WL_COLL_BINARY)
                                    : wl_bind_compare_coll(x, y->list[0]);
  wl_bind_collation(y);
  /* constants are looked up in a sorted list, by SQLite and by us */
  if (constants && n > IN_LOOKUP) b->q->n_nodes_cost = before + IN_LOOKUP;
  *out = y;
  return wl_bind_negate(b, e->negated, out);
}

static wl_status case_of(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_bexpr *base = NULL, *x = wl_bind_node(b, WL_B_CASE);
  wl_status rc = x ? WL_OK : wl_nomem(b->err);
  int n = 1, k = 0;
  for (const wl_expr_list *l = e->list; l; l = l->next) n++;
  if (!rc && e->a) rc = wl_bind_expr(b, e->a, &base);
  if (rc) return rc;
  x->list = WL_NEW_N(b->arena, wl_bexpr *, n);
  if (!x->list) return wl_nomem(b->err);
  for (const wl_expr_list *l = e->list; l && !rc; l = l->next, k++) {
    rc = wl_bind_expr(b, l->expr, &x->list[k]);
    if (!rc && base && k % 2 == 0)
      rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_EQ, base, x->list[k], &x->list[k]);
  }
  if (!rc)
    rc = e->b ? wl_bind_expr(b, e->b, &x->list[k]) : wl_bind_constant(b, wl_null(), &x->list[k]);
  if (rc) return rc;
  x->n_list = n;
  wl_bind_collation(x);
  *out = x;
  return WL_OK;
}

wl_status wl_bind_collate(binder *b, const char *name, wl_bexpr *a, wl_bexpr **out) {
  static const char *const names[] = {"BINARY", "NOCASE", "RTRIM"};
  int k = 0;
  while (k < 3 && sqlite3_stricmp(name, names[k]) != 0) k++;
  if (k == 3 || !b->catalog->own_collation(b->catalog->of, k))
    return wl_not_taken(b->err, "the collation %s is not SQLite's own", name);
  wl_bexpr *x = wl_bind_node(b, WL_B_CAST);
  if (!x) return wl_nomem(b->err);
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
  x = wl_bind_node(b, WL_B_CAST);
  if (!x) return wl_nomem(b->err);
  x->op = WL_OP_NONE;
  x->a = a;
  /* no type name at all is NUMERIC here, though it is BLOB in a column */
  x->affinity = e->name && *e->name ? wl_affinity_of_type(e->name) : 'C';
  x->coll = a->coll;
  x->has_coll = a->has_coll;
  x->explicit_coll = a->explicit_coll;
  *out = x;
  return WL_OK;
}

/* ---- aggregates */

static const char *const aggregates[] = {"count", "sum", "total",       "avg",
                                         "min",   "max", "group_concat"};

/* CASE WHEN filter THEN arg END, which is how an aggregate that skips NULLs sees a FILTER. */
static wl_status filtered(binder *b, const wl_expr *filter, wl_bexpr **arg) {
  wl_bexpr *x = wl_bind_node(b, WL_B_CASE);
  wl_status rc = x ? WL_OK : wl_nomem(b->err);
  if (!rc) x->list = WL_NEW_N(b->arena, wl_bexpr *, 3);
  if (!rc && !x->list) rc = wl_nomem(b->err);
  if (!rc) rc = wl_bind_expr(b, filter, &x->list[0]);
  if (!rc && *arg)
    x->list[1] = *arg;
  else if (!rc)
    rc = wl_bind_constant(b, wl_int(1), &x->list[1]); /* count(*) */
  if (!rc) rc = wl_bind_constant(b, wl_null(), &x->list[2]);
  if (rc) return rc;
  x->n_list = 3;
  if (*arg) {
    x->coll = (*arg)->coll;
    x->has_coll = (*arg)->has_coll;
    x->explicit_coll = (*arg)->explicit_coll;
  }
  *arg = x;
  return WL_OK;
}

/* Whether an expression refers outwards (1), to columns of the query itself (2), or both. */
static int refers(const wl_bexpr *e) {
  if (!e) return 0;
  if (e->kind == WL_B_OUTER) return 1;
  int r = e->kind == WL_B_COLUMN ? 2 : 0;
  for (int k = 0; k < e->n_list; k++) r |= refers(e->list[k]);
  return r | refers(e->a) | refers(e->b);
}

static wl_status add_aggregate(binder *b, wl_bagg agg, wl_bexpr **out) {
  wl_query *q = b->q;
  if (refers(agg.arg) == 1)
    return wl_not_taken(b->err, "an aggregate in a subquery that belongs to the query round it");
  if (q->n_aggs == b->size_aggs) {
    int size = b->size_aggs ? b->size_aggs * 2 : 8;
    wl_bagg *p = WL_NEW_N(b->arena, wl_bagg, size);
    if (!p) return wl_nomem(b->err);
    if (q->n_aggs) memcpy(p, q->aggs, (size_t)q->n_aggs * sizeof *p);
    q->aggs = p;
    b->size_aggs = size;
  }
  wl_bexpr *x = wl_bind_node(b, WL_B_AGG);
  if (!x) return wl_nomem(b->err);
  x->index = q->n_aggs;
  if (agg.arg && agg.arg->explicit_coll) {
    x->coll = agg.arg->coll;
    x->has_coll = x->explicit_coll = true;
  }
  q->aggs[q->n_aggs++] = agg;
  q->aggregate = true;
  if (wl_bind_uses(b, aggregates[agg.fn])) return wl_nomem(b->err);
  *out = x;
  return WL_OK;
}

static wl_status call(binder *b, const wl_expr *e, wl_bexpr **out) {
  int fn = 0, n_args = 0;
  for (const wl_expr_list *l = e->list; l; l = l->next) n_args++;
  while (fn < 7 && sqlite3_stricmp(e->name, aggregates[fn]) != 0) fn++;
  bool extreme = fn == WL_FN_MIN || fn == WL_FN_MAX;
  if (fn == 7 || (extreme && n_args != 1)) return wl_bind_function(b, e, out);
  if (e->window) return wl_not_taken(b->err, "window functions are not native yet");
  if (b->in_agg || b->in_where || n_args > (fn == WL_FN_CONCAT ? 2 : 1) ||
      (fn == WL_FN_CONCAT && n_args == 0))
    return wl_not_taken(b->err, "the use of %s() is not understood", e->name);
  wl_bagg agg = {.fn = (wl_agg_fn)fn, .filtered = e->a != NULL, .where = b->where};
  agg.distinct = e->distinct && n_args == 1;
  wl_status st = WL_OK;
  b->in_agg = true;
  if (n_args > 0) st = wl_bind_expr(b, e->list->expr, &agg.arg);
  if (!st && n_args > 1) st = wl_bind_expr(b, e->list->next->expr, &agg.separator);
  if (!st && e->a) st = filtered(b, e->a, &agg.arg);
  b->in_agg = false;
  return st ? st : add_aggregate(b, agg, out);
}

/* Whether an expression has an aggregate, not looking into subqueries. */
static bool has_aggregate(const wl_expr *e) {
  if (!e) return false;
  if (e->kind == WL_E_CALL && !e->window) {
    int fn = 0, n = 0;
    for (const wl_expr_list *l = e->list; l; l = l->next) n++;
    while (fn < 7 && sqlite3_stricmp(e->name, aggregates[fn]) != 0) fn++;
    if (fn < 7 && !((fn == WL_FN_MIN || fn == WL_FN_MAX) && n != 1)) return true;
  }
  for (const wl_expr_list *l = e->list; l; l = l->next)
    if (has_aggregate(l->expr)) return true;
  return has_aggregate(e->a) || has_aggregate(e->b) || has_aggregate(e->c);
}

static bool aggregated(const wl_select *s) {
  bool yes = s->group_by || has_aggregate(s->having);
  for (const wl_result_col *c = s->cols; c; c = c->next) yes |= has_aggregate(c->expr);
  for (const wl_order_term *t = s->order_by; t; t = t->next) yes |= has_aggregate(t->expr);
  return yes;
}

wl_status wl_bind_expr(binder *b, const wl_expr *e, wl_bexpr **out) {
  b->q->n_nodes_cost++;
  switch (e->kind) {
  case WL_E_NULL: return wl_bind_constant(b, wl_null(), out);
  case WL_E_INT: return wl_bind_constant(b, wl_int(e->i), out);
  case WL_E_REAL: {
    wl_val v;
    wl_status rc = wl_conv_literal(e->text, e->n_text, &v, b->err);
    return rc ? rc : wl_bind_constant(b, v, out);
  }
  case WL_E_TEXT:
    return wl_bind_constant(b, wl_text((const wl_u8 *)e->text, (wl_u32)e->n_text), out);
  case WL_E_BLOB:
    return wl_bind_constant(b, wl_val_make(WL_T_BLOB, (wl_u64)(size_t)e->text, (wl_u32)e->n_text),
                            out);
  case WL_E_PARAM:
    *out = wl_bind_node(b, WL_B_PARAM);
    if (!*out) return wl_nomem(b->err);
    (*out)->index = (int)e->i;
    return WL_OK;
  case WL_E_NAME: return name(b, e, out);
  case WL_E_UNARY: return unary(b, e, out);
  case WL_E_BINARY: return operator2(b, e, out);
  case WL_E_IS: return is(b, e, out);
  case WL_E_ISNULL: {
    wl_bexpr *a;
    wl_status rc = wl_bind_expr(b, e->a, &a);
    if (!rc) rc = wl_bind_binary(b, WL_B_ISNULL, WL_OP_NONE, a, NULL, out);
    return rc ? rc : wl_bind_negate(b, e->negated, out);
  }
  case WL_E_BETWEEN: return between(b, e, out);
  case WL_E_IN: return in(b, e, out);
  case WL_E_CASE: return case_of(b, e, out);
  case WL_E_CAST: return cast(b, e, out);
  case WL_E_COLLATE: return collate(b, e, out);
  case WL_E_CALL: return call(b, e, out);
  case WL_E_LIKE: return wl_bind_like(b, e, out);
  case WL_E_NOW: return wl_not_taken(b->err, "%s is not native yet", e->name);
  case WL_E_SELECT: return wl_bind_scalar(b, e, out);
  case WL_E_EXISTS: return wl_bind_exists(b, e, out);
  case WL_E_VECTOR: return wl_not_taken(b->err, "row values are not native yet");
  case WL_E_RAISE: break;
  }
  return wl_not_taken(b->err, "an expression is not understood");
}

/* ---- results */

static wl_status one_result(binder *b, wl_bexpr *e, const wl_result_col *c) {
  wl_query *q = b->q;
  int size = b->size_results;
  wl_status rc = WL_BIND_ROOM(b, q->results, q->n_results, size);
  if (!rc) rc = WL_BIND_ROOM(b, b->result_cols, q->n_results, b->size_results);
  if (rc) return rc;
  b->result_cols[q->n_results] = c;
  q->results[q->n_results++] = e;
  return WL_OK;
}

static wl_status star_column(binder *b, wl_item *item, int k) {
  const char *name = wl_bind_item_name(item, k);
  wl_bexpr *x = NULL;
  wl_status rc = WL_OK;
  bool joined = false;
  for (wl_item *j = item + 1; j < b->items + b->n_items && item->before_right; j++)
    joined |= wl_bind_item_joins(j, name);
  if (joined) rc = wl_bind_name(b, &(wl_expr){.kind = WL_E_NAME, .name = name}, &x);
  if (!rc && !x) rc = wl_bind_item(b, item, k, &x);
  if (!rc) rc = one_result(b, x, NULL);
  if (!rc) b->result_names[b->q->n_results - 1] = name;
  return rc;
}

/* Whether column k of an item is one of * or t.*. Of columns that USING joins, the first one stands
** for all. */
static bool in_star(const wl_item *item, int k, const char *table, bool first) {
  const char *of = item->nested ? item->nested->cols[k].table : item->name;
  if (wl_bind_item_hides(item, k)) return false;
  if (table) return of && sqlite3_stricmp(of, table) == 0;
  if (item->nested && item->nested->cols[k].no_expand) return false;
  return first || !wl_bind_item_joins(item, wl_bind_item_name(item, k));
}

static wl_status star(binder *b, const wl_result_col *c) {
  wl_status rc = WL_OK;
  for (int i = 0; i < b->n_items; i++)
    for (int k = 0; k < b->items[i].n_cols && !rc; k++)
      if (in_star(&b->items[i], k, c->star_table, i == 0)) rc = star_column(b, &b->items[i], k);
  return rc;
}

static wl_status bind_results(binder *b) {
  int n = 1;
  for (int i = 0; i < b->n_items; i++) n += b->items[i].n_cols;
  int most = 1;
  for (const wl_result_col *c = b->select->cols; c; c = c->next) most += c->star ? n : 1;
  b->result_names = WL_NEW_N(b->arena, const char *, most);
  if (!b->result_names) return wl_nomem(b->err);
  for (const wl_result_col *c = b->select->cols; c; c = c->next) {
    wl_bexpr *x;
    wl_status rc = WL_OK;
    if (c->star) {
      rc = star(b, c);
    } else {
      rc = wl_bind_expr(b, c->expr, &x);
      if (!rc) rc = one_result(b, x, c);
    }
    if (rc) return rc;
  }
  return WL_OK;
}

/* ---- GROUP BY and ORDER BY */

bool wl_bexpr_same(const wl_bexpr *a, const wl_bexpr *b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->op != b->op || a->index != b->index ||
      a->n_list != b->n_list || a->coll != b->coll || a->cmp_coll != b->cmp_coll ||
      a->affinity != b->affinity || a->cmp_affinity != b->cmp_affinity || a->source != b->source)
    return false;
  if (a->kind == WL_B_CONST) {
    if (a->value.t != b->value.t || a->value.n != b->value.n) return false;
    if (a->value.t >= WL_T_TEXT)
      return memcmp(wl_bytes(a->value), wl_bytes(b->value), a->value.n) == 0;
    return a->value.v == b->value.v;
  }
  if (a->kind == WL_B_CALL && sqlite3_stricmp(a->text, b->text) != 0) return false;
  for (int k = 0; k < a->n_list; k++)
    if (!wl_bexpr_same(a->list[k], b->list[k])) return false;
  return wl_bexpr_same(a->a, b->a) && wl_bexpr_same(a->b, b->b);
}

/* Whether e can be computed from the group keys and aggregates alone. */
static bool from_groups(const wl_query *q, const wl_bexpr *e) {
  if (!e) return true;
  for (int k = 0; k < q->n_groups; k++)
    if (wl_bexpr_same(q->groups[k], e)) return true;
  if (e->kind == WL_B_COLUMN || e->kind == WL_B_FOUND) return false;
  if (e->kind == WL_B_OUTER) return true;
  for (int k = 0; k < e->n_list; k++)
    if (!from_groups(q, e->list[k])) return false;
  return e->kind == WL_B_AGG || (from_groups(q, e->a) && from_groups(q, e->b));
}

/* The number a term is, signs and all: +1 and -(-1) name the first result column too. */
bool wl_bind_term_number(const wl_expr *e, wl_i64 *out) {
  if (e->kind == WL_E_INT) {
    *out = e->i;
    return e->i <= INT32_MAX;
  }
  if (e->kind != WL_E_UNARY || (e->op != WL_OP_POS && e->op != WL_OP_NEG)) return false;
  if (!wl_bind_term_number(e->a, out)) return false;
  if (e->op == WL_OP_NEG) *out = -*out;
  return true;
}

/* The result column that an ORDER BY or GROUP BY term stands for by number or, in ORDER BY,
** by alias; NULL if it is an expression of its own. */
static wl_bexpr *named_result(const binder *b, const wl_expr *e, bool by_alias) {
  const wl_query *q = b->q;
  while (e->kind == WL_E_COLLATE) e = e->a;
  wl_i64 i;
  if (wl_bind_term_number(e, &i) && i >= 1 && i <= q->n_results) return q->results[i - 1];
  if (!by_alias || e->kind != WL_E_NAME || e->table) return NULL;
  for (int k = 0; k < q->n_results; k++) {
    const wl_result_col *c = b->result_cols[k];
    if (c && c->alias && sqlite3_stricmp(c->alias, e->name) == 0) return q->results[k];
  }
  return NULL;
}

/* A term: the result it names, under the term's own COLLATE, or an expression. */
static wl_status term(binder *b, const wl_expr *e, bool by_alias, wl_bexpr **out) {
  wl_bexpr *named = named_result(b, e, by_alias);
  if (!named) return wl_bind_expr(b, e, out);
  if (e->kind != WL_E_COLLATE) {
    *out = named;
    return WL_OK;
  }
  return wl_bind_collate(b, e->name, named, out);
}

static wl_status bind_groups(binder *b) {
  wl_query *q = b->q;
  int n = 0;
  for (const wl_expr_list *l = b->select->group_by; l; l = l->next) n++;
  q->groups = WL_NEW_N(b->arena, wl_bexpr *, n + 1);
  if (!q->groups) return wl_nomem(b->err);
  q->grouped = n > 0;
  b->in_where = true; /* no aggregates here */
  for (const wl_expr_list *l = b->select->group_by; l; l = l->next) {
    wl_status rc = term(b, l->expr, false, &q->groups[q->n_groups]);
    if (rc) return rc;
    q->n_groups++;
  }
  b->in_where = false;
  return WL_OK;
}

static wl_status bind_order(binder *b) {
  wl_query *q = b->q;
  int n = 0;
  for (const wl_order_term *t = b->select->order_by; t; t = t->next) n++;
  q->order = WL_NEW_N(b->arena, wl_border, n + 1);
  if (!q->order) return wl_nomem(b->err);
  for (const wl_order_term *t = b->select->order_by; t; t = t->next) {
    wl_border *o = &q->order[q->n_order++];
    wl_status rc = term(b, t->expr, true, &o->expr);
    if (rc) return rc;
    o->desc = t->desc;
    o->nulls_last = t->nulls ? t->nulls == 2 : t->desc;
  }
  return WL_OK;
}

/* Whether an aggregate is one that SQLite has met before it, of those marked: it computes it
** once. */
static bool repeated(const wl_query *q, const bool *met, int k) {
  const wl_bagg *a = &q->aggs[k];
  for (int i = 0; i < q->n_aggs; i++) {
    const wl_bagg *o = &q->aggs[i];
    if (met[i] && o->fn == a->fn && o->distinct == a->distinct && o->filtered == a->filtered &&
        wl_bexpr_same(o->arg, a->arg))
      return true;
  }
  return false;
}

/* Whether a conjunct is x IS NULL or x IS y. */
static bool tests_null(const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_AND) return tests_null(e->a) || tests_null(e->b);
  return e->kind == WL_B_ISNULL || e->kind == WL_B_IS;
}

/*
** In a query with aggregates or groups, what is given comes from the groups, or it is a column
** of one row of each: where the last min() or max() was met first, or the first row if there is
** none. SQLite takes up the aggregates of the result list, then of ORDER BY, then of HAVING.
*/
static wl_status check_grouped(binder *b) {
  wl_query *q = b->q;
  bool ok = from_groups(q, q->having), elsewhere = q->grouped;
  for (int k = 0; k < q->n_aggs; k++) elsewhere |= q->aggs[k].where != 'o';
  if (!elsewhere) return wl_not_taken(b->err, "an aggregate in ORDER BY alone");
  for (int k = 0; k < q->n_results && ok; k++) ok = from_groups(q, q->results[k]);
  for (int k = 0; k < q->n_order && ok; k++) ok = from_groups(q, q->order[k].expr);
  q->decides = -1;
  if (ok) return WL_OK;
  q->bare = true;
  bool *met = WL_NEW_N(b->arena, bool, q->n_aggs + 1);
  if (!met) return wl_nomem(b->err);
  for (const char *where = "roh"; *where; where++)
    for (int k = 0; k < q->n_aggs; k++) {
      const wl_bagg *a = &q->aggs[k];
      if (a->where != *where || (a->fn != WL_FN_MIN && a->fn != WL_FN_MAX) || repeated(q, met, k))
        continue;
      met[k] = true;
      q->decides = k;
    }
  /* one min() or max() of a column that WHERE makes constant: SQLite then reads one row only */
  if (!q->grouped && q->n_aggs == 1 && q->decides >= 0 && tests_null(q->where))
    return wl_not_taken(b->err, "a column beside min() or max() of what WHERE says is NULL");
  if (q->decides >= 0 && (q->aggs[q->decides].filtered || q->aggs[q->decides].distinct))
    return wl_not_taken(b->err,
                        "a column beside the groups and a min() or max() of some rows only");
  return WL_OK;
}

/* What is of_row becomes NULL where there are no rows. */
static wl_status null_without_rows(wl_graft *g, const wl_bexpr *e, wl_bexpr **out) {
  wl_bexpr *count = g->arg, *x;
  if (e->kind == WL_B_OUTER || e->kind == WL_B_COLUMN || e->kind == WL_B_AGG)
    *out = (wl_bexpr *)(size_t)e;
  if (!e->of_row) return WL_OK;
  x = *out = wl_bind_node(g->to, WL_B_CASE);
  if (x) x->list = WL_NEW_N(g->to->arena, wl_bexpr *, 3);
  if (!x || !x->list) return wl_nomem(g->to->err);
  x->n_list = 3;
  x->list[0] = count;
  x->list[1] = (wl_bexpr *)(size_t)e;
  x->affinity = e->affinity;
  x->coll = e->coll;
  x->has_coll = e->has_coll;
  return wl_bind_constant(g->to, wl_null(), &x->list[2]);
}

/*
** Aggregates without GROUP BY give a row for no rows, too, and columns beside them are NULL there.
** SQLite takes subqueries with a FROM into the query, so that a constant of theirs stays one; a
** column of one without FROM remains a column.
*/
static wl_status beside_no_rows(binder *b) {
  wl_query *q = b->q;
  wl_bexpr *count;
  wl_graft g;
  b->where = 'r';
  wl_status rc = add_aggregate(b, (wl_bagg){.fn = WL_FN_COUNT, .where = 'r'}, &count);
  if (!rc) rc = wl_graft_open(&g, b, q);
  g.node = null_without_rows;
  g.arg = count;
  for (int k = 0; k < q->n_results && !rc; k++)
    rc = wl_graft_expr(&g, q->results[k], &q->results[k]);
  for (int k = 0; k < q->n_order && !rc; k++)
    rc = wl_graft_expr(&g, q->order[k].expr, &q->order[k].expr);
  return rc ? rc : wl_graft_expr(&g, q->having, &q->having);
}

/* WHERE, conjunct by conjunct: EXISTS and IN among them become joins. */
static wl_status bind_where(binder *b, const wl_expr *e) {
  if (e->kind == WL_E_BINARY && e->op == WL_OP_AND) {
    wl_status rc = bind_where(b, e->a);
    return rc ? rc : bind_where(b, e->b);
  }
  wl_bexpr *x;
  wl_status rc = wl_bind_conjunct(b, e, &x);
  return rc || !x ? rc : wl_bind_and(b, &b->q->where, x);
}

/* What subqueries beside the groups give, as group keys: it must be settled by the others. */
static wl_status beside_groups(binder *b) {
  wl_query *q = b->q;
  int n = q->n_groups;
  if (!b->n_beside) return WL_OK;
  wl_bexpr **groups = WL_NEW_N(b->arena, wl_bexpr *, n + b->n_beside + 1);
  if (!groups) return wl_nomem(b->err);
  if (n) memcpy(groups, q->groups, (size_t)n * sizeof *groups);
  for (int k = 0; k < b->n_beside; k++) {
    const wl_beside *s = &b->beside[k];
    for (int i = 0; i < s->n; i++)
      if (!q->grouped || !from_groups(q, s->outers[i]))
        return wl_not_taken(b->err, "a subquery that refers to columns beside the groups");
    groups[n++] = s->value;
  }
  q->groups = groups;
  q->n_groups = n;
  return WL_OK;
}

wl_status wl_bind_core(binder *b) {
  const wl_select *s = b->select;
  wl_query *q = b->q;
  wl_status rc = WL_OK;
  if (s->windows) return wl_not_taken(b->err, "window functions are not native yet");
  b->aggregated = aggregated(s);
  if (s->where) {
    b->in_where = b->sees_alias = true;
    rc = bind_where(b, s->where);
    b->in_where = b->sees_alias = false;
    if (rc) return rc;
  }
  b->where = 'r';
  b->after_groups = b->aggregated;
  rc = bind_results(b);
  b->sees_alias = true;
  b->after_groups = false;
  if (!rc) rc = bind_groups(b);
  b->after_groups = b->aggregated;
  b->where = 'h';
  if (!rc && s->having) rc = wl_bind_expr(b, s->having, &q->having);
  b->where = 'o';
  if (!rc && !b->in_compound) rc = bind_order(b);
  b->sees_alias = b->after_groups = false;
  if (rc) return rc;
  q->distinct = s->distinct;
  q->aggregate |= q->grouped;
  if (s->having && !q->aggregate)
    return wl_not_taken(b->err, "HAVING without groups is not native yet");
  rc = beside_groups(b);
  if (!rc && q->aggregate && !q->grouped && b->of_row) rc = beside_no_rows(b);
  if (!rc && q->aggregate) rc = check_grouped(b);
  if (!rc && q->bare && !q->grouped && b->shared_with && wl_quirks_get().with_taken_in)
    return wl_not_taken(b->err, "columns beside aggregates, of a WITH entry used several times");
  /* the rows of a table are counted by SQLite's count() */
  if (!rc && q->n_cols == 0 && wl_bind_uses(b, "count")) return wl_nomem(b->err);
  return rc;
}
