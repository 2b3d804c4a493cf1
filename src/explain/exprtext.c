/*
** Writes bound expressions as text; see exprtext.h. A tree may share branches, so its text can be
** much longer than the tree. Writing stops when the buffer is full.
*/
#include "explain/exprtext.h"
#include <stdio.h>
#include <string.h>

enum { MOST = 160 };

typedef struct words {
  wl_store *store;
  const wl_query *q;
  char text[MOST + 8];
  size_t n;
  bool full;
} words;

static void say(words *w, const char *s, size_t n) {
  if (w->full) return;
  if (w->n + n > MOST) {
    n = MOST - w->n;
    while (n && ((unsigned char)s[n] & 0xc0) == 0x80) n--;
    w->full = true;
  }
  memcpy(w->text + w->n, s, n);
  w->n += n;
  if (!w->full) return;
  memcpy(w->text + w->n, "…", 3);
  w->n += 3;
}

static void put(words *w, const char *s) {
  say(w, s, strlen(s));
}

static void put_number(words *w, int k) {
  char s[16];
  snprintf(s, sizeof s, "%d", k);
  put(w, s);
}

/* The precedence of an expression's operator. */
static int binding(const wl_bexpr *e) {
  switch (e->kind) {
  case WL_B_OR: return 1;
  case WL_B_AND: return 2;
  case WL_B_NOT: return 3;
  case WL_B_COMPARE:
  case WL_B_IS:
  case WL_B_IN:
  case WL_B_ISNULL:
  case WL_B_TRUTH:
  case WL_B_INSUB: return 4;
  case WL_B_ARITH:
    if (!e->b) return 9;
    if (e->op == WL_OP_CONCAT) return 8;
    if (e->op == WL_OP_MUL || e->op == WL_OP_DIV || e->op == WL_OP_REM) return 7;
    return e->op == WL_OP_ADD || e->op == WL_OP_SUB ? 6 : 5;
  default: return 10;
  }
}

static const char *const operators[] = {
    [WL_OP_NEG] = "-",      [WL_OP_BITNOT] = "~",   [WL_OP_EQ] = " = ",   [WL_OP_NE] = " <> ",
    [WL_OP_LT] = " < ",     [WL_OP_LE] = " <= ",    [WL_OP_GT] = " > ",   [WL_OP_GE] = " >= ",
    [WL_OP_BITAND] = " & ", [WL_OP_BITOR] = " | ",  [WL_OP_SHL] = " << ", [WL_OP_SHR] = " >> ",
    [WL_OP_ADD] = " + ",    [WL_OP_SUB] = " - ",    [WL_OP_MUL] = " * ",  [WL_OP_DIV] = " / ",
    [WL_OP_REM] = " % ",    [WL_OP_CONCAT] = " || "};

static const char *operator_of(wl_op op) {
  bool known = (size_t)op < sizeof operators / sizeof *operators && operators[op];
  return known ? operators[op] : " ? ";
}

/* ---- columns */

/* A column of a derived source has the name of the column it comes from, or else a number. */
static void put_column_name(words *w, const wl_query *q, int source, int column) {
  const wl_bsource *src = &q->sources[source];
  wl_table *t;
  wl_error ignored;
  for (int depth = 0; src->derived && depth < 64; depth++) {
    q = src->derived->arms[0];
    const wl_bexpr *e = column >= 0 && column < q->n_results ? q->results[column] : NULL;
    if (!e || e->kind != WL_B_COLUMN) {
      put(w, "#");
      put_number(w, column + 1);
      return;
    }
    source = q->cols[e->slot].source;
    column = q->cols[e->slot].column;
    src = &q->sources[source];
  }
  if (column < 0)
    put(w, "rowid");
  else if (src->table && !wl_store_table(w->store, src->schema, src->table, &t, &ignored) &&
           column < t->n_cols)
    put(w, t->cols[column].name);
  else
    put_number(w, column + 1);
}

static void put_column(words *w, int slot) {
  const wl_bcol *c = &w->q->cols[slot];
  const wl_bsource *src = &w->q->sources[c->source];
  if (w->q->n_sources > 1 && src->name) {
    put(w, src->name);
    put(w, ".");
  }
  put_column_name(w, w->q, c->source, c->column);
}

/* ---- expressions */

static void put_expr(words *w, const wl_bexpr *e, int least);

static void put_value(words *w, wl_val v) {
  char s[64];
  switch (v.t) {
  case WL_T_NULL: put(w, "NULL"); return;
  case WL_T_INT: snprintf(s, sizeof s, "%lld", (long long)v.v); break;
  case WL_T_REAL: snprintf(s, sizeof s, "%.15g", wl_as_f64(v.v)); break;
  case WL_T_TEXT:
    put(w, "'");
    for (wl_u32 i = 0; i < v.n && !w->full; i++) {
      const char *at = (const char *)wl_bytes(v) + i;
      size_t n = 1;
      while (i + 1 < v.n && ((unsigned char)at[n] & 0xc0) == 0x80 && n < 4) n++, i++;
      say(w, *at ? at : "?", *at ? n : 1);
      if (*at == '\'') put(w, "'");
    }
    put(w, "'");
    return;
  default: snprintf(s, sizeof s, "a blob of %u bytes", v.n);
  }
  put(w, s);
}

static void put_list(words *w, wl_bexpr *const *list, int n) {
  for (int i = 0; i < n && !w->full; i++) {
    if (i) put(w, ", ");
    put_expr(w, list[i], 0);
  }
}

/* The text of a call, with its arguments in place of ?1, ?2 and so on. */
static void put_call(words *w, const wl_bexpr *e) {
  bool like = e->index == WL_NATIVE_LIKE;
  if ((like || e->index == WL_NATIVE_GLOB) && e->n_list == 2) {
    put_expr(w, e->list[1], 5);
    put(w, like ? " LIKE " : " GLOB ");
    put_expr(w, e->list[0], 5);
    return;
  }
  const char *s = e->text ? e->text : "function";
  for (; *s && !w->full; s++) {
    if (*s != '?') {
      say(w, s, 1);
      continue;
    }
    int k = 0;
    while (s[1] >= '0' && s[1] <= '9' && k < 10000) k = k * 10 + (*++s - '0');
    if (k >= 1 && k <= e->n_list) put_expr(w, e->list[k - 1], 0);
  }
}

static void put_case(words *w, const wl_bexpr *e) {
  put(w, "CASE");
  int i = 0;
  for (; i + 1 < e->n_list && !w->full; i += 2) {
    put(w, " WHEN ");
    put_expr(w, e->list[i], 0);
    put(w, " THEN ");
    put_expr(w, e->list[i + 1], 0);
  }
  if (i < e->n_list) {
    put(w, " ELSE ");
    put_expr(w, e->list[i], 0);
  }
  put(w, " END");
}

static void put_two(words *w, const wl_bexpr *e, const char *between) {
  int own = binding(e);
  put_expr(w, e->a, own);
  put(w, between);
  put_expr(w, e->b, own + 1);
}

static void put_bare(words *w, const wl_bexpr *e) {
  static const char *const casts[] = {"BLOB", "TEXT", "NUMERIC", "INTEGER", "REAL"};
  static const char *const functions[] = {"count", "sum", "total",       "avg",
                                          "min",   "max", "group_concat"};
  int own = binding(e);
  switch (e->kind) {
  case WL_B_CONST: put_value(w, e->value); break;
  case WL_B_PARAM:
    put(w, "?");
    put_number(w, e->index);
    break;
  case WL_B_COLUMN: put_column(w, e->slot); break;
  case WL_B_AGG: {
    const wl_bagg *g = &w->q->aggs[e->index];
    put(w, functions[g->fn]);
    put(w, g->distinct ? "(DISTINCT " : "(");
    if (g->arg)
      put_expr(w, g->arg, 0);
    else
      put(w, "*");
    put(w, ")");
    break;
  }
  case WL_B_ARITH:
    if (e->b) {
      put_two(w, e, operator_of(e->op));
    } else {
      put(w, operator_of(e->op));
      put_expr(w, e->a, own);
    }
    break;
  case WL_B_COMPARE: put_two(w, e, operator_of(e->op)); break;
  case WL_B_IS: put_two(w, e, " IS "); break;
  case WL_B_AND: put_two(w, e, " AND "); break;
  case WL_B_OR: put_two(w, e, " OR "); break;
  case WL_B_NOT:
    put(w, "NOT ");
    put_expr(w, e->a, own);
    break;
  case WL_B_ISNULL:
    put_expr(w, e->a, own);
    put(w, " IS NULL");
    break;
  case WL_B_TRUTH:
    put_expr(w, e->a, own);
    put(w, " IS TRUE");
    break;
  case WL_B_IN:
    put_expr(w, e->a, own);
    put(w, " IN (");
    put_list(w, e->list, e->n_list);
    put(w, ")");
    break;
  case WL_B_CASE: put_case(w, e); break;
  case WL_B_CAST:
    if (e->op == WL_OP_POS) {
      put_expr(w, e->a, 0);
      break;
    }
    put(w, "CAST(");
    put_expr(w, e->a, 0);
    put(w, " AS ");
    put(w, e->affinity >= 'A' && e->affinity <= 'E' ? casts[e->affinity - 'A'] : "ANY");
    put(w, ")");
    break;
  case WL_B_CALL: put_call(w, e); break;
  case WL_B_SUB:
    put(w, "(subquery ");
    put_number(w, e->index + 1);
    put(w, ")");
    break;
  case WL_B_FOUND:
    put(w, "found in ");
    put(w, w->q->sources[e->source].name ? w->q->sources[e->source].name : "subquery");
    break;
  case WL_B_INSUB:
    put_expr(w, e->a, own);
    put(w, " IN (subquery ");
    put_number(w, e->index + 1);
    put(w, ")");
    break;
  case WL_B_OUTER:
  case WL_B_SUBQUERY: break; /* do not occur after the rewrite */
  }
}

static void put_expr(words *w, const wl_bexpr *e, int least) {
  if (!e || w->full) return;
  bool inside = binding(e) < least;
  if (inside) put(w, "(");
  put_bare(w, e);
  if (inside) put(w, ")");
}

/* ---- */

static const char *finish(wl_arena *arena, const words *w) {
  const char *s = wl_arena_strndup(arena, w->text, w->n);
  return s ? s : ""; /* the arena remembers the failure */
}

const char *wl_exprtext_expr(wl_arena *arena, wl_store *store, const wl_query *q,
                             const wl_bexpr *e) {
  words w = {.store = store, .q = q};
  put_expr(&w, e, 0);
  return finish(arena, &w);
}

const char *wl_exprtext_list(wl_arena *arena, wl_store *store, const wl_query *q,
                             const wl_jlist *l) {
  words w = {.store = store, .q = q};
  for (int k = 0; k < l->n; k++) {
    if (k) put(&w, " AND ");
    put_expr(&w, l->e[k], 3);
  }
  return finish(arena, &w);
}

const char *wl_exprtext_columns(wl_arena *arena, wl_store *store, const wl_query *q, int source) {
  words w = {.store = store, .q = q};
  bool any = false;
  for (int k = 0; k < q->n_cols; k++) {
    if (q->cols[k].source != source) continue;
    if (any) put(&w, ", ");
    put_column_name(&w, q, source, q->cols[k].column);
    any = true;
  }
  return finish(arena, &w);
}
