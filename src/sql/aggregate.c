/*
** Aggregates: decides which calls are aggregates and binds them. Part of the binder.
*/
#include "sql/bind_impl.h"
#include <string.h>

/* Turns the argument into CASE WHEN filter THEN arg END. Aggregates skip NULLs, so this applies
** FILTER. */
static wl_status apply_filter(binder *b, const wl_expr *filter, wl_bexpr **arg) {
  wl_bexpr *test, *value = *arg, *null;
  wl_status rc = wl_bind_expr(b, filter, &test);
  if (!rc && !value) rc = wl_edit_constant(&b->edit, wl_int(1), &value); /* count(*) */
  if (!rc) rc = wl_edit_constant(&b->edit, wl_null(), &null);
  wl_bexpr *x = NULL;
  if (!rc) rc = wl_edit_case(&b->edit, test, value, null, &x);
  if (rc) return rc;
  if (*arg) {
    x->coll = value->coll;
    x->has_coll = value->has_coll;
    x->explicit_coll = value->explicit_coll;
  }
  *arg = x;
  return WL_OK;
}

/* Whether an expression refers to the outer query (1), to columns of its own query (2), or both
** (3). A subquery's value that refers to anything counts as 2. */
static int references(const wl_bexpr *e) {
  if (!e) return 0;
  if (e->kind == WL_B_OUTER) return 1;
  bool own = e->kind == WL_B_COLUMN ||
             (e->kind == WL_B_SUBQUERY && e->query->n_outers && e->index == WL_SUBQUERY_VALUE);
  int r = own ? 2 : 0;
  for (int k = 0; k < e->n_list; k++) r |= references(e->list[k]);
  return r | references(e->a) | references(e->b);
}

/* Whether a call is an aggregate, by its name and number of arguments. min() and max() with several
** arguments are scalar functions. */
static bool is_aggregate(const wl_expr *e, wl_agg_fn *fn) {
  int k = 0;
  while (k < WL_N_AGGREGATES && sqlite3_stricmp(e->name, wl_aggregate_names[k]) != 0) k++;
  *fn = (wl_agg_fn)k;
  bool extreme = *fn == WL_FN_MIN || *fn == WL_FN_MAX;
  return k < WL_N_AGGREGATES && !(extreme && wl_list_length(e->list) != 1);
}

/* Binds json_quote(e). It writes every value as json_group_array() does, embeds values that are
** marked as JSON, and fails for a blob. */
static wl_status quote(binder *b, wl_expr *e, wl_bexpr **out) {
  wl_expr *call = WL_NEW(b->edit.arena, wl_expr);
  wl_expr_list *list = WL_NEW(b->edit.arena, wl_expr_list);
  if (!call || !list) return wl_nomem(b->edit.err);
  list->expr = e;
  call->kind = WL_E_CALL;
  call->name = "json_quote";
  call->list = list;
  return wl_bind_function(b, call, out);
}

/* Binds the arguments of json_group_object() as one text, "name":value. */
static wl_status bind_member(binder *b, wl_expr_list *args, wl_bexpr **out) {
  wl_expr *cast = WL_NEW(b->edit.arena, wl_expr);
  if (!cast) return wl_nomem(b->edit.err);
  cast->kind = WL_E_CAST;
  cast->a = args->expr;
  cast->name = "TEXT";
  wl_bexpr *name, *colon, *value;
  wl_status rc = quote(b, cast, &name);
  if (!rc) rc = quote(b, args->next->expr, &value);
  if (!rc) rc = wl_edit_constant(&b->edit, wl_text((const wl_u8 *)":", 1), &colon);
  if (!rc) rc = wl_edit_binary(&b->edit, WL_B_ARITH, WL_OP_CONCAT, name, colon, &name);
  return rc ? rc : wl_edit_binary(&b->edit, WL_B_ARITH, WL_OP_CONCAT, name, value, out);
}

static wl_status bind_arguments(binder *b, wl_expr_list *args, wl_bagg *agg) {
  if (!args) return WL_OK;
  if (agg->fn == WL_FN_JSON_ARRAY) return quote(b, args->expr, &agg->arg);
  if (agg->fn == WL_FN_JSON_OBJECT) return bind_member(b, args, &agg->arg);
  wl_status rc = wl_bind_expr(b, args->expr, &agg->arg);
  return rc || !args->next ? rc : wl_bind_expr(b, args->next->expr, &agg->separator);
}

/* How many arguments each aggregate takes. */
static const struct {
  int least, most;
} arguments[WL_N_AGGREGATES] = {
#define WL_AGGREGATE(name, sql, least, most, marks, empty) {least, most},
#include "value/aggregates.def"
#undef WL_AGGREGATE
};

wl_status wl_bind_call(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_agg_fn fn;
  int n_args = wl_list_length(e->list);
  if (!is_aggregate(e, &fn)) return wl_bind_function(b, e, out);
  if (e->window) return wl_not_taken(b->edit.err, "window functions are not native yet");
  if (b->in_agg || b->in_where || n_args < arguments[fn].least || n_args > arguments[fn].most)
    return wl_not_taken(b->edit.err, "this use of %s() is not supported", e->name);
  wl_bagg agg = {.fn = fn, .filtered = e->a != NULL, .where = b->where};
  agg.distinct = e->distinct && n_args == 1;
  wl_status rc = WL_OK;
  b->in_agg = true;
  rc = bind_arguments(b, e->list, &agg);
  if (!rc && e->a) rc = apply_filter(b, e->a, &agg.arg);
  b->in_agg = false;
  if (rc) return rc;
  if (references(agg.arg) == 1)
    return wl_not_taken(b->edit.err, "an aggregate in a subquery that belongs to the outer query");
  return wl_edit_aggregate(&b->edit, agg, out);
}

/* Whether an expression contains an aggregate. Does not look into subqueries. */
static bool has_aggregate(const wl_expr *e) {
  if (!e) return false;
  wl_agg_fn fn;
  if (e->kind == WL_E_CALL && !e->window && is_aggregate(e, &fn)) return true;
  for (const wl_expr_list *l = e->list; l; l = l->next)
    if (has_aggregate(l->expr)) return true;
  return has_aggregate(e->a) || has_aggregate(e->b) || has_aggregate(e->c);
}

bool wl_bind_aggregated(const wl_select *s) {
  bool yes = s->group_by || has_aggregate(s->having);
  for (const wl_result_col *c = s->cols; c; c = c->next) yes |= has_aggregate(c->expr);
  for (const wl_order_term *t = s->order_by; t; t = t->next) yes |= has_aggregate(t->expr);
  return yes;
}
