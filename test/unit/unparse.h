/*
** A syntax tree back to SQL, in one canonical form: every operator in parentheses of its
** own, table names and aliases in double quotes, keywords in upper case. Tests compare the
** form with an expected one, and give it to SQLite to see that it means the same.
*/
#ifndef UNPARSE_H
#define UNPARSE_H

#include "sql/ast.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unparse_buf {
  char *s;
  size_t n, cap;
} unparse_buf;

static void put_bytes(unparse_buf *b, const char *s, size_t n) {
  if (b->n + n + 1 > b->cap) {
    b->cap = (b->n + n + 1) * 2;
    b->s = realloc(b->s, b->cap);
    if (!b->s) abort();
  }
  memcpy(b->s + b->n, s, n);
  b->n += n;
  b->s[b->n] = 0;
}

static void put(unparse_buf *b, const char *s) {
  put_bytes(b, s, strlen(s));
}

static void put_quoted(unparse_buf *b, char quote, const char *s, size_t n) {
  put_bytes(b, &quote, 1);
  for (size_t i = 0; i < n; i++) {
    if (s[i] == quote) put_bytes(b, &quote, 1);
    put_bytes(b, s + i, 1);
  }
  put_bytes(b, &quote, 1);
}

static void put_name(unparse_buf *b, const char *name) {
  put_quoted(b, '"', name, strlen(name));
}

static void put_select(unparse_buf *b, const wl_select *s);
static void put_expr(unparse_buf *b, const wl_expr *e);

static void put_list(unparse_buf *b, const wl_expr_list *l) {
  for (; l; l = l->next) {
    put_expr(b, l->expr);
    if (l->next) put(b, ", ");
  }
}

static void put_order(unparse_buf *b, const wl_order_term *t) {
  for (; t; t = t->next) {
    put_expr(b, t->expr);
    if (t->desc) put(b, " DESC");
    if (t->nulls) put(b, t->nulls == 1 ? " NULLS FIRST" : " NULLS LAST");
    if (t->next) put(b, ", ");
  }
}

static void put_window(unparse_buf *b, const wl_window *w) {
  const char *gap = "";
  put(b, "(");
  if (w->base) {
    put_name(b, w->base);
    gap = " ";
  }
  if (w->partition) {
    put(b, gap);
    put(b, "PARTITION BY ");
    put_list(b, w->partition);
    gap = " ";
  }
  if (w->order) {
    put(b, gap);
    put(b, "ORDER BY ");
    put_order(b, w->order);
    gap = " ";
  }
  if (w->frame) {
    put(b, gap);
    put(b, w->frame);
  }
  put(b, ")");
}

static void put_call(unparse_buf *b, const wl_expr *e) {
  put_name(b, e->name);
  put(b, e->distinct ? "(DISTINCT " : "(");
  if (e->star) put(b, "*");
  put_list(b, e->list);
  put(b, ")");
  if (e->a) {
    put(b, " FILTER (WHERE ");
    put_expr(b, e->a);
    put(b, ")");
  }
  if (e->window) {
    put(b, " OVER ");
    if (e->window->ref) {
      put_name(b, e->window->name);
    } else {
      put_window(b, e->window);
    }
  }
}

static void put_leaf(unparse_buf *b, const wl_expr *e) {
  char num[32];
  switch (e->kind) {
  case WL_E_NULL: put(b, "NULL"); break;
  case WL_E_INT:
    snprintf(num, sizeof num, e->i < 0 ? "(%lld)" : "%lld", (long long)e->i);
    put(b, num);
    break;
  case WL_E_REAL: put_bytes(b, e->text, e->n_text); break;
  case WL_E_TEXT: put_quoted(b, '\'', e->text, e->n_text); break;
  case WL_E_BLOB:
    put(b, "x'");
    for (size_t i = 0; i < e->n_text; i++) {
      snprintf(num, sizeof num, "%02x", (unsigned char)e->text[i]);
      put(b, num);
    }
    put(b, "'");
    break;
  case WL_E_NOW: put(b, e->name); break;
  case WL_E_PARAM:
    snprintf(num, sizeof num, "?%lld", (long long)e->i);
    put(b, num);
    break;
  default: /* WL_E_NAME */
    if (e->schema) {
      put_name(b, e->schema);
      put(b, ".");
    }
    if (e->table) {
      put_name(b, e->table);
      put(b, ".");
    }
    if (e->quoted == '[') {
      put(b, "[");
      put(b, e->name);
      put(b, "]");
    } else if (e->quoted) {
      put_quoted(b, e->quoted, e->name, strlen(e->name));
    } else {
      put(b, e->name);
    }
  }
}

static void put_expr(unparse_buf *b, const wl_expr *e) {
  static const char *const ops[] = {
      [WL_OP_NEG] = "-",    [WL_OP_POS] = "+",     [WL_OP_NOT] = "NOT ", [WL_OP_BITNOT] = "~",
      [WL_OP_OR] = "OR",    [WL_OP_AND] = "AND",   [WL_OP_EQ] = "=",     [WL_OP_NE] = "<>",
      [WL_OP_LT] = "<",     [WL_OP_LE] = "<=",     [WL_OP_GT] = ">",     [WL_OP_GE] = ">=",
      [WL_OP_BITAND] = "&", [WL_OP_BITOR] = "|",   [WL_OP_SHL] = "<<",   [WL_OP_SHR] = ">>",
      [WL_OP_ADD] = "+",    [WL_OP_SUB] = "-",     [WL_OP_MUL] = "*",    [WL_OP_DIV] = "/",
      [WL_OP_REM] = "%",    [WL_OP_CONCAT] = "||", [WL_OP_ARROW] = "->", [WL_OP_ARROW2] = "->>",
  };
  const char *no = e->negated ? "NOT " : "";
  if (e->kind <= WL_E_NAME) {
    put_leaf(b, e);
    return;
  }
  if (e->kind == WL_E_EXISTS) put(b, "EXISTS");
  put(b, "(");
  switch (e->kind) {
  case WL_E_UNARY:
    put(b, ops[e->op]);
    put_expr(b, e->a);
    break;
  case WL_E_BINARY:
    put_expr(b, e->a);
    put(b, " ");
    put(b, ops[e->op]);
    put(b, " ");
    put_expr(b, e->b);
    break;
  case WL_E_IS:
    put_expr(b, e->a);
    put(b, " IS ");
    put(b, no);
    put_expr(b, e->b);
    break;
  case WL_E_ISNULL:
    put_expr(b, e->a);
    put(b, e->negated ? " NOTNULL" : " ISNULL");
    break;
  case WL_E_BETWEEN:
    put_expr(b, e->a);
    put(b, " ");
    put(b, no);
    put(b, "BETWEEN ");
    put_expr(b, e->b);
    put(b, " AND ");
    put_expr(b, e->c);
    break;
  case WL_E_LIKE:
    put_expr(b, e->a);
    put(b, " ");
    put(b, no);
    put(b, e->name);
    put(b, " ");
    put_expr(b, e->b);
    if (e->c) {
      put(b, " ESCAPE ");
      put_expr(b, e->c);
    }
    break;
  case WL_E_IN:
    put_expr(b, e->a);
    put(b, " ");
    put(b, no);
    put(b, "IN ");
    if (e->schema) {
      put_name(b, e->schema);
      put(b, ".");
    }
    if (e->name) put_name(b, e->name);
    if (e->select || e->has_list || e->list) {
      put(b, "(");
      if (e->select) put_select(b, e->select);
      put_list(b, e->list);
      put(b, ")");
    }
    break;
  case WL_E_CASE:
    put(b, "CASE");
    if (e->a) {
      put(b, " ");
      put_expr(b, e->a);
    }
    for (const wl_expr_list *l = e->list; l; l = l->next->next) {
      put(b, " WHEN ");
      put_expr(b, l->expr);
      put(b, " THEN ");
      put_expr(b, l->next->expr);
    }
    if (e->b) {
      put(b, " ELSE ");
      put_expr(b, e->b);
    }
    put(b, " END");
    break;
  case WL_E_CAST:
    put(b, "CAST(");
    put_expr(b, e->a);
    put(b, " AS ");
    put(b, e->name);
    put(b, ")");
    break;
  case WL_E_COLLATE:
    put_expr(b, e->a);
    put(b, " COLLATE ");
    put_name(b, e->name);
    break;
  case WL_E_CALL: put_call(b, e); break;
  case WL_E_VECTOR: put_list(b, e->list); break;
  case WL_E_SELECT:
  case WL_E_EXISTS: put_select(b, e->select); break;
  default: /* WL_E_RAISE */
    put(b, "RAISE(");
    put(b, e->name);
    if (e->text) {
      put(b, ", ");
      put_quoted(b, '\'', e->text, e->n_text);
    }
    put(b, ")");
  }
  put(b, ")");
}

static void put_sources(unparse_buf *b, const wl_from_item *s) {
  static const char *const joins[] = {
      [WL_JOIN_NONE] = "",           [WL_JOIN_COMMA] = ", ",
      [WL_JOIN_INNER] = "JOIN ",     [WL_JOIN_CROSS] = "CROSS JOIN ",
      [WL_JOIN_LEFT] = "LEFT JOIN ", [WL_JOIN_RIGHT] = "RIGHT JOIN ",
      [WL_JOIN_FULL] = "FULL JOIN ",
  };
  for (; s; s = s->next) {
    if (s->join > WL_JOIN_COMMA) put(b, " ");
    if (s->natural) put(b, "NATURAL ");
    put(b, joins[s->join]);
    if (s->schema) {
      put_name(b, s->schema);
      put(b, ".");
    }
    if (s->name) put_name(b, s->name);
    if (s->is_call || s->select || s->nested) {
      put(b, "(");
      put_list(b, s->args);
      if (s->select) put_select(b, s->select);
      put_sources(b, s->nested);
      put(b, ")");
    }
    if (s->alias) {
      put(b, " AS ");
      put_name(b, s->alias);
    }
    if (s->indexed_by) {
      put(b, " INDEXED BY ");
      put_name(b, s->indexed_by);
    }
    if (s->not_indexed) put(b, " NOT INDEXED");
    if (s->on) {
      put(b, " ON ");
      put_expr(b, s->on);
    }
    if (s->using_cols) {
      put(b, " USING (");
      put_list(b, s->using_cols);
      put(b, ")");
    }
  }
}

static void put_core(unparse_buf *b, const wl_select *s) {
  if (s->is_values) {
    put(b, "VALUES ");
    put_list(b, s->values);
    return;
  }
  put(b, s->distinct ? "SELECT DISTINCT " : s->all ? "SELECT ALL " : "SELECT ");
  for (const wl_result_col *c = s->cols; c; c = c->next) {
    if (c->star_table) {
      put_name(b, c->star_table);
      put(b, ".");
    }
    if (c->star) put(b, "*");
    if (c->expr) put_expr(b, c->expr);
    if (c->alias) {
      put(b, " AS ");
      put_name(b, c->alias);
    }
    if (c->next) put(b, ", ");
  }
  if (s->from) put(b, " FROM ");
  put_sources(b, s->from);
  if (s->where) {
    put(b, " WHERE ");
    put_expr(b, s->where);
  }
  if (s->group_by) {
    put(b, " GROUP BY ");
    put_list(b, s->group_by);
  }
  if (s->having) {
    put(b, " HAVING ");
    put_expr(b, s->having);
  }
  for (const wl_window *w = s->windows; w; w = w->next) {
    put(b, w == s->windows ? " WINDOW " : ", ");
    put_name(b, w->name);
    put(b, " AS ");
    put_window(b, w);
  }
}

static void put_body(unparse_buf *b, const wl_select *s) {
  static const char *const compounds[] = {
      [WL_COMPOUND_UNION] = " UNION ",
      [WL_COMPOUND_UNION_ALL] = " UNION ALL ",
      [WL_COMPOUND_INTERSECT] = " INTERSECT ",
      [WL_COMPOUND_EXCEPT] = " EXCEPT ",
  };
  if (s->prior) {
    put_body(b, s->prior);
    put(b, compounds[s->compound]);
  }
  put_core(b, s);
}

static void put_select(unparse_buf *b, const wl_select *s) {
  if (s->with) put(b, s->recursive ? "WITH RECURSIVE " : "WITH ");
  for (const wl_cte *c = s->with; c; c = c->next) {
    put_name(b, c->name);
    if (c->columns) {
      put(b, "(");
      put_list(b, c->columns);
      put(b, ")");
    }
    put(b, c->materialized == 0   ? " AS ("
           : c->materialized == 1 ? " AS MATERIALIZED ("
                                  : " AS NOT MATERIALIZED (");
    put_select(b, c->select);
    put(b, c->next ? "), " : ") ");
  }
  put_body(b, s);
  if (s->order_by) {
    put(b, " ORDER BY ");
    put_order(b, s->order_by);
  }
  if (s->limit) {
    put(b, " LIMIT ");
    put_expr(b, s->limit);
  }
  if (s->offset) {
    put(b, " OFFSET ");
    put_expr(b, s->offset);
  }
}

/* The canonical form of a SELECT, to be freed by the caller. */
static char *unparse(const wl_select *s) {
  unparse_buf b = {0};
  put_select(&b, s);
  return b.s;
}

#endif
