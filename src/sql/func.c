/*
** Scalar functions. Functions that are equivalent to a CASE are bound as one. The others become a
** call: an SQL expression over parameters. The compiler (program/call.c) uses an opcode if there is
** one, and otherwise lets SQLite compute the expression.
**
** Invariants:
** 1. A function is taken only if it is built into SQLite, SQLite lists it as deterministic, and the
**    application has not replaced it. wl_query.calls lists all functions that a query uses.
** 2. A call that is directly an argument of a call goes into the same SQL expression, because a
**    value can carry a hidden mark: JSON functions know whether their argument came from another
**    JSON function.
*/
#include "base/quirks.h"
#include "sql/bind_impl.h"
#include "value/conv.h"
#include <string.h>

#define T(x) WL_M(WL_T_##x)

enum { ALL_TYPES = T(NULL) | T(INT) | T(REAL) | T(TEXT) | T(BLOB) };
enum { OF_TIME = 1, REFUSED = 2, SAFE = 4 }; /* SAFE: it never raises an error, not even for size */

/* What is known about a function. Functions that are not listed can return any type. */
typedef struct function_info {
  const char *name;
  wl_u8 gives, flags;
  wl_u8 native;
} function_info;

static const function_info functions[] = {
    {"abs", T(NULL) | T(INT) | T(REAL), 0, WL_NATIVE_ABS},
    {"char", T(TEXT), SAFE, 0},
    {"date", T(NULL) | T(TEXT), OF_TIME | SAFE, WL_NATIVE_DATE},
    {"datetime", T(NULL) | T(TEXT), OF_TIME | SAFE, WL_NATIVE_DATETIME},
    {"format", T(NULL) | T(TEXT), 0, 0},
    {"glob", T(NULL) | T(INT), 0, WL_NATIVE_GLOB},
    {"hex", T(TEXT), 0, 0},
    {"instr", T(NULL) | T(INT), SAFE, WL_NATIVE_INSTR},
    {"julianday", T(NULL) | T(REAL), OF_TIME | SAFE, WL_NATIVE_JULIANDAY},
    {"length", T(NULL) | T(INT), SAFE, WL_NATIVE_LENGTH},
    {"like", T(NULL) | T(INT), 0, WL_NATIVE_LIKE},
    {"likelihood", 0, REFUSED, 0},
    {"likely", 0, REFUSED, 0},
    {"lower", T(NULL) | T(TEXT), SAFE, WL_NATIVE_LOWER},
    {"ltrim", T(NULL) | T(TEXT), SAFE, WL_NATIVE_LTRIM},
    {"printf", T(NULL) | T(TEXT), 0, 0},
    {"quote", T(TEXT), 0, 0},
    {"replace", ALL_TYPES, 0, 0},
    {"round", T(NULL) | T(REAL), SAFE, WL_NATIVE_ROUND},
    {"rtrim", T(NULL) | T(TEXT), SAFE, WL_NATIVE_RTRIM},
    {"sign", T(NULL) | T(INT), SAFE, WL_NATIVE_SIGN},
    {"sqlite_log", 0, REFUSED, 0},
    {"sqlite_offset", 0, REFUSED, 0},
    {"strftime", T(NULL) | T(TEXT), OF_TIME, WL_NATIVE_STRFTIME},
    {"substr", T(NULL) | T(TEXT) | T(BLOB), SAFE, WL_NATIVE_SUBSTR},
    {"substring", T(NULL) | T(TEXT) | T(BLOB), SAFE, WL_NATIVE_SUBSTR},
    {"timediff", T(NULL) | T(TEXT), OF_TIME | SAFE, 0},
    {"time", T(NULL) | T(TEXT), OF_TIME | SAFE, WL_NATIVE_TIME},
    {"trim", T(NULL) | T(TEXT), SAFE, WL_NATIVE_TRIM},
    {"typeof", T(TEXT), SAFE, WL_NATIVE_TYPEOF},
    {"unicode", T(NULL) | T(INT), SAFE, 0},
    {"unixepoch", T(NULL) | T(INT), OF_TIME | SAFE, WL_NATIVE_UNIXEPOCH},
    {"unlikely", 0, REFUSED, 0},
    {"upper", T(NULL) | T(TEXT), SAFE, WL_NATIVE_UPPER},
};

static const function_info *find_function_info(const char *name) {
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
    if (sqlite3_stricmp(functions[k].name, name) == 0) return &functions[k];
  return NULL;
}

bool wl_function_asks_time(const char *name) {
  const function_info *f = find_function_info(name);
  return f && f->flags & OF_TIME;
}

static bool is_name(const wl_expr *e, const char *name) {
  return sqlite3_stricmp(e->name, name) == 0;
}

/* ---- functions that are CASE in other words */

static wl_status not_null(binder *b, wl_bexpr *x, wl_bexpr **out) {
  wl_status rc = wl_edit_binary(&b->edit, WL_B_ISNULL, WL_OP_NONE, x, NULL, out);
  return rc ? rc : wl_edit_binary(&b->edit, WL_B_NOT, WL_OP_NONE, *out, NULL, out);
}

/* x op y without affinity, under the first collation found among all arguments. */
static wl_status compare_values(binder *b, wl_bkind kind, wl_op op, wl_bexpr *x, wl_bexpr *y,
                                wl_bexpr **args, int n, wl_bexpr **out) {
  wl_status rc = wl_edit_compare(&b->edit, kind, op, x, y, out);
  if (rc) return rc;
  (*out)->cmp_affinity = '@';
  (*out)->cmp_coll = WL_COLL_BINARY;
  for (int k = n - 1; k >= 0; k--)
    if (args[k]->has_coll) (*out)->cmp_coll = args[k]->coll;
  return WL_OK;
}

/* min() and max() with several arguments. The result is NULL if one argument is. Among equal values
** min() takes the last and max() the first. */
static wl_status extreme(binder *b, bool min, wl_bexpr **args, int n, wl_bexpr **out) {
  wl_bexpr *best = args[0], *any = NULL, *null;
  wl_status rc = WL_OK;
  for (int k = 0; k < n && !rc; k++) {
    wl_bexpr *x;
    rc = wl_edit_binary(&b->edit, WL_B_ISNULL, WL_OP_NONE, args[k], NULL, &x);
    if (!rc && any)
      rc = wl_edit_binary(&b->edit, WL_B_OR, WL_OP_OR, any, x, &any);
    else if (!rc)
      any = x;
  }
  for (int k = 1; k < n && !rc; k++) {
    wl_bexpr *x = wl_edit_node(&b->edit, WL_B_CASE);
    if (x) x->list = WL_NEW_N(b->edit.arena, wl_bexpr *, 3);
    if (!x || !x->list) return wl_nomem(b->edit.err);
    rc = compare_values(b, WL_B_COMPARE, min ? WL_OP_GE : WL_OP_LT, best, args[k], args, n,
                        &x->list[0]);
    x->list[1] = args[k];
    x->list[2] = best;
    x->n_list = 3;
    best = x;
  }
  if (!rc) rc = wl_edit_constant(&b->edit, wl_null(), &null);
  wl_bexpr *x = rc ? NULL : wl_edit_node(&b->edit, WL_B_CASE);
  if (!rc && x) x->list = WL_NEW_N(b->edit.arena, wl_bexpr *, 3);
  if (rc || !x || !x->list) return rc ? rc : wl_nomem(b->edit.err);
  x->list[0] = any;
  x->list[1] = null;
  x->list[2] = best;
  x->n_list = 3;
  for (int k = 0; k < n && !x->explicit_coll; k++) {
    if (!args[k]->explicit_coll) continue;
    x->has_coll = x->explicit_coll = true;
    x->coll = args[k]->coll;
  }
  *out = x;
  return WL_OK;
}

wl_status wl_bind_coalesce(binder *b, wl_bexpr **args, int n, wl_bexpr **out) {
  if (wl_edit_uses(&b->edit, "coalesce")) return wl_nomem(b->edit.err); /* SQLite's USING does so */
  wl_bexpr *x = *out = wl_edit_node(&b->edit, WL_B_CASE);
  if (x) x->list = WL_NEW_N(b->edit.arena, wl_bexpr *, 2 * n);
  if (!x || !x->list) return wl_nomem(b->edit.err);
  int k = 0;
  for (; k < n - 1; k++) {
    wl_status rc = not_null(b, args[k], &x->list[2 * k]);
    if (rc) return rc;
    x->list[2 * k + 1] = args[k];
  }
  x->list[2 * k] = args[k];
  x->n_list = 2 * k + 1;
  wl_bexpr_raise_collate(x);
  return WL_OK;
}

wl_status wl_bind_joined(binder *b, wl_bexpr **columns, int n, wl_bexpr **out) {
  wl_status rc = wl_bind_coalesce(b, columns, n, out);
  if (rc || !wl_quirks_get().using_as_column) return rc;
  (*out)->affinity = columns[0]->affinity;
  (*out)->has_coll = columns[0]->has_coll;
  (*out)->coll = columns[0]->coll;
  return WL_OK;
}

/* Binds coalesce, ifnull, iif, nullif, and min and max with several arguments. *found says whether
** the call is one of them. */
static wl_status as_case(binder *b, const wl_expr *e, int n, bool *found, wl_bexpr **out) {
  bool coalesce = is_name(e, "coalesce") || is_name(e, "ifnull");
  bool iif = is_name(e, "iif"), nullif = is_name(e, "nullif");
  bool best = is_name(e, "min") || is_name(e, "max");
  *found = (coalesce && n >= 2) || (iif && n == 3) || (nullif && n == 2) || (best && n >= 2);
  if (!*found) return WL_OK;
  if (wl_edit_uses(&b->edit, e->name)) return wl_nomem(b->edit.err);
  wl_bexpr **args = WL_NEW_N(b->edit.arena, wl_bexpr *, n);
  if (!args) return wl_nomem(b->edit.err);
  wl_status rc = WL_OK;
  int k = 0;
  for (const wl_expr_list *l = e->list; l && !rc; l = l->next)
    rc = wl_bind_expr(b, l->expr, &args[k++]);
  if (rc) return rc;
  if (best) return extreme(b, is_name(e, "min"), args, n, out);
  if (coalesce) return wl_bind_coalesce(b, args, n, out);
  wl_bexpr *x = *out = wl_edit_node(&b->edit, WL_B_CASE);
  if (x) x->list = WL_NEW_N(b->edit.arena, wl_bexpr *, 3);
  if (!x || !x->list) return wl_nomem(b->edit.err);
  if (iif) {
    memcpy(x->list, args, 3 * sizeof *args);
    x->n_list = 3;
  } else {
    rc = compare_values(b, WL_B_IS, WL_OP_EQ, args[0], args[1], args, n, &x->list[0]);
    if (!rc) rc = wl_edit_constant(&b->edit, wl_null(), &x->list[1]);
    x->list[2] = args[0];
    x->n_list = 3;
  }
  if (!rc) wl_bexpr_raise_collate(x);
  return rc;
}

/* ---- calls */

/* A call that is being built: its text, and the arguments that ?1, ?2, … stand for. */
typedef struct call_builder {
  const char *text;
  wl_bexpr **args;
  int n, size;
  bool of_time, fallible;
  bool json;     /* the text contains a JSON function */
  bool for_json; /* the argument that is being written goes to a function that checks JSON marks */
} call_builder;

static bool is_arrow(const wl_expr *e) {
  return e->kind == WL_E_BINARY && (e->op == WL_OP_ARROW || e->op == WL_OP_ARROW2);
}

/* Whether an argument is a call that can go into the same SQL expression. Not if a collation
** matters (min, max, nullif), because parameters have none. */
static bool goes_inside(const wl_expr *e) {
  if (is_arrow(e)) return true;
  if (e->kind != WL_E_CALL || e->distinct || e->star || e->window || e->a || !e->list) return false;
  const function_info *f = find_function_info(e->name);
  if (f && f->native) return false; /* an opcode is faster, and its value carries no mark */
  return !is_name(e, "min") && !is_name(e, "max") && !is_name(e, "nullif") &&
         wl_conv_function(e->name);
}

/*
** JSON functions mark their values as JSON (SQLite's subtype), and other JSON functions check the
** mark. Depending on SQLite's plan, a value keeps its mark when it passes through CASE, min(), a
** column of a subquery or a scalar subquery. Values in warplite have no marks, so a value that may
** be marked in SQLite must not reach a JSON function from here.
*/
typedef struct scope {
  const wl_query *q;
  const struct scope *around; /* the outer query, if it is not the binder's parent */
} scope;

static bool may_be_marked(const binder *b, const scope *s, const wl_bexpr *e);

/* When the results of aggregates are marked. */
enum { NEVER, ALWAYS, ARGUMENT };
static const wl_u8 aggregate_marks[WL_N_AGGREGATES] = {
#define WL_AGGREGATE(name, sql, least, most, marks, empty) marks,
#include "value/aggregates.def"
#undef WL_AGGREGATE
};

/* Whether a column's values may be marked. A table's column may be if it is computed when read, and
** a derived source's column if its queries return marked values. */
static bool marked_column(const binder *b, const scope *in, const wl_bexpr *e) {
  const wl_bsource *s = &in->q->sources[e->source];
  wl_table *t;
  wl_error err;
  if (s->table && wl_bind_table(b, s->schema, s->table, &t, &err)) return true;
  if (s->table) return e->index >= 0 && e->index < t->n_cols && t->cols[e->index].computed;
  for (int k = 0; s->derived && k < s->derived->n_arms; k++) {
    const wl_query *arm = s->derived->arms[k];
    if (e->index >= 0 && e->index < arm->n_results &&
        may_be_marked(b, &(scope){arm, in}, arm->results[e->index]))
      return true;
  }
  return false;
}

static bool may_be_marked(const binder *b, const scope *s, const wl_bexpr *e) {
  bool yes = false;
  if (!e) return false;
  switch (e->kind) {
  case WL_B_COLUMN: return marked_column(b, s, e);
  case WL_B_SUBQUERY:
    return e->index == WL_SUBQUERY_VALUE &&
           may_be_marked(b, &(scope){e->query, s}, e->query->results[0]);
  case WL_B_OUTER:
    if (s->around) return may_be_marked(b, s->around, e->a);
    return may_be_marked(b->parent, &(scope){b->parent->edit.q, NULL}, e->a);
  case WL_B_AGG: {
    const wl_bagg *a = &s->q->aggs[e->index];
    return aggregate_marks[a->fn] == ALWAYS ||
           (aggregate_marks[a->fn] == ARGUMENT && may_be_marked(b, s, a->arg));
  }
  case WL_B_CASE:
    for (int k = 1; k < e->n_list && !yes; k += 2) yes = may_be_marked(b, s, e->list[k]);
    return yes || may_be_marked(b, s, e->list[e->n_list - 1]);
  case WL_B_CAST: return may_be_marked(b, s, e->a);
  case WL_B_CALL:
    if (e->index != WL_NATIVE_NONE) return false;
    for (int k = 0; k < e->n_list && !yes; k++) yes = may_be_marked(b, s, e->list[k]);
    return yes || e->json;
  default: return false;
  }
}

static wl_status add_arg(binder *b, call_builder *m, const wl_expr *e) {
  if (m->n == m->size) {
    int size = m->size ? m->size * 2 : 4;
    wl_bexpr **p = WL_NEW_N(b->edit.arena, wl_bexpr *, size);
    if (!p) return wl_nomem(b->edit.err);
    if (m->n) memcpy(p, m->args, (size_t)m->n * sizeof *p);
    m->args = p;
    m->size = size;
  }
  wl_status rc = wl_bind_expr(b, e, &m->args[m->n]);
  if (rc) return rc;
  if (m->for_json && may_be_marked(b, &(scope){b->edit.q, NULL}, m->args[m->n]))
    return wl_not_taken(b->edit.err,
                        "a JSON value that reaches a JSON function through another expression");
  m->n++;
  m->text = wl_arena_printf(b->edit.arena, "%s?%d", m->text, m->n);
  return m->text ? WL_OK : wl_nomem(b->edit.err);
}

static wl_status write_call(binder *b, call_builder *m, const wl_expr *e);

static wl_status write_arg(binder *b, call_builder *m, const wl_expr *e) {
  return goes_inside(e) ? write_call(b, m, e) : add_arg(b, m, e);
}

static wl_status append_text(binder *b, call_builder *m, const char *text) {
  m->text = wl_arena_printf(b->edit.arena, "%s%s", m->text, text);
  return m->text ? WL_OK : wl_nomem(b->edit.err);
}

static wl_status write_arrow(binder *b, call_builder *m, const wl_expr *e) {
  const char *op = e->op == WL_OP_ARROW ? "->" : "->>";
  if (wl_edit_uses(&b->edit, op)) return wl_nomem(b->edit.err);
  m->fallible = m->json = true;
  m->for_json = false;
  wl_status rc = append_text(b, m, "(");
  if (!rc) rc = write_arg(b, m, e->a);
  if (!rc) rc = append_text(b, m, e->op == WL_OP_ARROW ? " -> " : " ->> ");
  if (!rc) rc = write_arg(b, m, e->b);
  return rc ? rc : append_text(b, m, ")");
}

static wl_status write_function(binder *b, call_builder *m, const wl_expr *e) {
  wl_status rc;
  const function_info *f = find_function_info(e->name);
  int n = wl_list_length(e->list);
  if (e->distinct || e->star || e->window || e->a || (f && f->flags & REFUSED) ||
      !wl_conv_function(e->name))
    return wl_not_taken(b->edit.err, "the function %s() is not native", e->name);
  if (f && f->flags & OF_TIME) {
    if (n < (is_name(e, "strftime") ? 2 : 1))
      return wl_not_taken(b->edit.err, "%s() asks for the current time", e->name);
    m->of_time = true;
  }
  m->fallible |= !f || !(f->flags & SAFE);
  if (wl_edit_uses(&b->edit, e->name)) return wl_nomem(b->edit.err);
  bool json = sqlite3_strnicmp(e->name, "json", 4) == 0;
  m->json |= json;
  m->for_json |= json || is_name(e, "subtype");
  rc = append_text(b, m, wl_arena_printf(b->edit.arena, "\"%s\"(", e->name));
  for (const wl_expr_list *l = e->list; l && !rc; l = l->next) {
    /* the arguments of date functions must be checked at run time: one may be "now" */
    rc = f && f->flags & OF_TIME ? add_arg(b, m, l->expr) : write_arg(b, m, l->expr);
    if (!rc && l->next) rc = append_text(b, m, ", ");
  }
  return rc ? rc : append_text(b, m, ")");
}

static wl_status write_call(binder *b, call_builder *m, const wl_expr *e) {
  bool for_json = m->for_json;
  wl_status rc = is_arrow(e) ? write_arrow(b, m, e) : write_function(b, m, e);
  m->for_json = for_json;
  return rc;
}

/* Whether the arguments of a date function, besides its time, are such that only SQLite can compute
** it: they are not constant, or the C library's time zone or the digits of %J are needed. */
static bool date_needs_sqlite(wl_native f, wl_bexpr **args, int n) {
  int time = f == WL_NATIVE_STRFTIME ? 1 : 0;
  for (int k = 0; k < n; k++) {
    if (k == time || args[k]->kind == WL_B_PARAM) continue;
    if (args[k]->kind != WL_B_CONST) return true;
    wl_val v = args[k]->value;
    const char *p = (const char *)wl_bytes(v);
    if (v.t != WL_T_TEXT) continue;
    if (k > time && v.n == 9 && sqlite3_strnicmp(p, "localtime", 9) == 0) return true;
    if (k > time && v.n == 3 && sqlite3_strnicmp(p, "utc", 3) == 0) return true;
    for (wl_u32 i = 0; k < time && i + 1 < v.n; i++)
      if (p[i] == '%' && p[++i] == 'J') return true;
  }
  return false;
}

wl_status wl_bind_function(binder *b, const wl_expr *e, wl_bexpr **out) {
  call_builder m = {.text = ""};
  const function_info *f = NULL;
  if (!is_arrow(e)) {
    bool found = false, plain = !e->distinct && !e->star && !e->window && !e->a;
    wl_status rc = plain ? as_case(b, e, wl_list_length(e->list), &found, out) : WL_OK;
    if (rc || found) return rc;
    if (e->window) return wl_not_taken(b->edit.err, "window functions are not native yet");
    f = find_function_info(e->name);
  }
  wl_status rc = write_call(b, &m, e);
  wl_bexpr *x = rc ? NULL : wl_edit_node(&b->edit, WL_B_CALL);
  if (!x) return rc ? rc : wl_nomem(b->edit.err);
  x->text = m.text;
  x->list = m.args;
  x->n_list = m.n;
  x->of_time = m.of_time;
  x->fallible = m.fallible;
  x->json = m.json;
  x->gives = f ? f->gives : ALL_TYPES;
  /* an opcode takes only the function's own arguments */
  x->index = f && m.n == wl_list_length(e->list) ? f->native : WL_NATIVE_NONE;
  bool of_time = f && f->flags & OF_TIME;
  for (const wl_expr_list *l = is_arrow(e) ? NULL : e->list; l; l = l->next)
    if (goes_inside(l->expr) && !of_time) x->index = WL_NATIVE_NONE;
  if (x->index >= WL_NATIVE_DATE && date_needs_sqlite((wl_native)x->index, m.args, m.n))
    x->index = WL_NATIVE_NONE;
  b->edit.q->n_call_cost += x->index == WL_NATIVE_NONE;
  wl_bexpr_raise_collate(x);
  *out = x;
  return WL_OK;
}

wl_status wl_bind_like(binder *b, const wl_expr *e, wl_bexpr **out) {
  bool like = is_name(e, "like");
  if (!like && !is_name(e, "glob"))
    return wl_not_taken(b->edit.err, "the operator %s is not native", e->name);
  wl_bexpr *x = wl_edit_node(&b->edit, WL_B_CALL);
  if (x) x->list = WL_NEW_N(b->edit.arena, wl_bexpr *, 3);
  if (!x || !x->list || wl_edit_uses(&b->edit, like ? "like" : "glob"))
    return wl_nomem(b->edit.err);
  wl_status rc = wl_bind_expr(b, e->b, &x->list[0]);
  if (!rc) rc = wl_bind_expr(b, e->a, &x->list[1]);
  if (!rc && e->c) rc = wl_bind_expr(b, e->c, &x->list[2]);
  if (rc) return rc;
  x->n_list = e->c ? 3 : 2;
  b->edit.q->like_param |= x->list[0]->kind == WL_B_PARAM;
  x->text = e->c ? "like(?1, ?2, ?3)" : like ? "like(?1, ?2)" : "glob(?1, ?2)";
  x->index = like ? WL_NATIVE_LIKE : WL_NATIVE_GLOB;
  x->gives = T(NULL) | T(INT);
  /* LIKE can fail: an ESCAPE with several characters, or a pattern that is too long */
  x->fallible = e->c || (x->list[0]->kind != WL_B_CONST && x->list[0]->kind != WL_B_PARAM);
  wl_bexpr_raise_collate(x);
  *out = x;
  return wl_edit_negate(&b->edit, e->negated, out);
}
