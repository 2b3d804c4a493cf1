/*
** The functions that the grammar's rules call to build the syntax tree. parse.y calls them and the
** binder reads the tree. build.h states their rules, ast.h those of the tree.
*/
#include "sql/build.h"
#include <string.h>

int wl_list_length(const wl_expr_list *l) {
  int n = 0;
  for (; l; l = l->next) n++;
  return n;
}

/* ---- failure */

static void refuse(wl_parser *p, const char *message) {
  if (p->status == WL_OK) p->status = wl_fail(p->err, WL_ERROR, "%s", message);
}

void wl_build_syntax_error(wl_parser *p, wl_token near) {
  if (p->status != WL_OK) return;
  if (near.n == 0) {
    p->status = wl_fail(p->err, WL_ERROR, "incomplete input");
  } else {
    int n = near.n > 200 ? 200 : (int)near.n;
    p->status = wl_fail(p->err, WL_ERROR, "near \"%.*s\": syntax error", n, p->sql + near.pos);
  }
}

void wl_build_too_deep(wl_parser *p) {
  refuse(p, "too deeply nested");
}

/* ---- tokens to strings */

const char *wl_build_text(wl_parser *p, size_t from, size_t to) {
  return wl_arena_strndup(p->arena, p->sql + from, to - from);
}

/* The contents of a quoted token, with doubled quotes made single. *n_out does not count the
** NUL. */
static char *unquote(wl_parser *p, wl_token t, size_t *n_out) {
  const char *s = p->sql + t.pos + 1;
  char close = s[-1] == '[' ? ']' : s[-1];
  size_t n = 0;
  char *out = wl_arena_alloc(p->arena, t.n);
  if (!out) return NULL;
  for (size_t i = 0; i + 2 < t.n; i++) {
    out[n++] = s[i];
    if (s[i] == close) i++;
  }
  out[n] = 0;
  *n_out = n;
  return out;
}

static char quote_of(const wl_parser *p, wl_token t) {
  char c = p->sql[t.pos];
  return c == '"' || c == '\'' || c == '`' || c == '[' ? c : 0;
}

const char *wl_build_name(wl_parser *p, wl_token t) {
  size_t n;
  if (t.n == 0) return NULL;
  if (quote_of(p, t)) return unquote(p, t, &n);
  return wl_build_text(p, t.pos, t.pos + t.n);
}

const char *wl_build_word(wl_parser *p, wl_token t, bool upper) {
  char *s = wl_arena_strndup(p->arena, p->sql + t.pos, t.n);
  if (!s) return NULL;
  for (char *c = s; *c; c++) {
    if (upper && *c >= 'a' && *c <= 'z') *c = (char)(*c - 32);
    if (!upper && *c >= 'A' && *c <= 'Z') *c = (char)(*c + 32);
  }
  return s;
}

/*
** SQLite derives a type's affinity from its raw text, including quotes and comments. So everything
** stays, except that each gap becomes one space.
*/
const char *wl_build_type(wl_parser *p, wl_token t) {
  char *out = wl_arena_alloc(p->arena, t.n + 1);
  if (!out) return NULL;
  size_t n = 0;
  for (size_t i = 0; i < t.n; i++) {
    char c = p->sql[t.pos + i];
    if (c >= '\t' && c <= '\r') c = ' ';
    if (c == ' ' && n && out[n - 1] == ' ') continue;
    out[n++] = c;
  }
  return out;
}

/* ---- depth */

static int max_depth(int a, int b) {
  return a > b ? a : b;
}

static int expr_depth(const wl_expr *e) {
  return e ? e->depth : 0;
}

static int list_depth(const wl_expr_list *l) {
  int d = 0;
  for (; l; l = l->next) d = max_depth(d, expr_depth(l->expr));
  return d;
}

static int order_depth(const wl_order_term *t) {
  int d = 0;
  for (; t; t = t->next) d = max_depth(d, expr_depth(t->expr));
  return d;
}

static int window_depth(const wl_window *w) {
  int d = 0;
  for (; w; w = w->next) {
    d = max_depth(d, list_depth(w->partition));
    d = max_depth(d, order_depth(w->order));
  }
  return d;
}

/* Recurses only into parentheses. The parser's stack bounds how deep they nest. */
static int source_depth(const wl_from_item *s) {
  int d = 0;
  for (; s; s = s->next) {
    d = max_depth(d, expr_depth(s->on));
    d = max_depth(d, list_depth(s->args));
    if (s->select) d = max_depth(d, s->select->depth);
    if (s->nested) d = max_depth(d, source_depth(s->nested));
  }
  return d;
}

/* ---- expressions */

wl_expr *wl_build_expr(wl_parser *p, const wl_expr *node) {
  wl_expr *e = WL_NEW(p->arena, wl_expr);
  if (!e) return NULL;
  *e = *node;
  e->end = p->last_end;
  int d = max_depth(expr_depth(e->a), max_depth(expr_depth(e->b), expr_depth(e->c)));
  d = max_depth(d, list_depth(e->list));
  d = max_depth(d, window_depth(e->window));
  if (e->select) d = max_depth(d, e->select->depth);
  e->depth = d + 1;
  if (e->depth > WL_MAX_DEPTH) wl_build_too_deep(p);
  return e;
}

wl_expr *wl_build_binary(wl_parser *p, wl_op op, wl_expr *a, wl_expr *b) {
  return WL_NODE(WL_START(a), .kind = WL_E_BINARY, .op = op, .a = a, .b = b);
}

/* Whether the literal is 2^63, which fits in an integer only after a minus sign. */
static bool is_two_to_63(const wl_expr *e) {
  static const char digits[] = "9223372036854775808";
  const char *s = e->text;
  if (!s) return false;
  while (*s == '0') s++;
  return strcmp(s, digits) == 0;
}

wl_expr *wl_build_unary(wl_parser *p, wl_op op, wl_token t, wl_expr *a) {
  if (op == WL_OP_NEG && a && a->kind == WL_E_REAL && is_two_to_63(a))
    return WL_NODE(t.pos, .kind = WL_E_INT, .i = INT64_MIN);
  return WL_NODE(t.pos, .kind = WL_E_UNARY, .op = op, .a = a);
}

wl_expr *wl_build_paren(wl_parser *p, wl_token lp, wl_expr *a) {
  if (a) {
    a->pos = lp.pos;
    a->end = p->last_end;
  }
  return a;
}

static int hex_value(char c) {
  if (c <= '9') return c - '0';
  return (c | 32) - 'a' + 10;
}

wl_expr *wl_build_integer(wl_parser *p, wl_token t) {
  const char *s = p->sql + t.pos;
  uint64_t v = 0;
  if (t.n > 2 && (s[1] | 32) == 'x') {
    for (size_t i = 2; i < t.n; i++) {
      if (v >> 60) {
        refuse(p, "hex literal too big");
        return NULL;
      }
      v = v << 4 | (uint64_t)hex_value(s[i]);
    }
    return WL_NODE(t.pos, .kind = WL_E_INT, .i = (int64_t)v);
  }
  for (size_t i = 0; i < t.n; i++) {
    uint64_t digit = (uint64_t)(s[i] - '0');
    if (v > ((uint64_t)INT64_MAX - digit) / 10)
      return WL_NODE(t.pos, .kind = WL_E_REAL, .text = wl_build_text(p, t.pos, t.pos + t.n),
                     .n_text = t.n);
    v = v * 10 + digit;
  }
  return WL_NODE(t.pos, .kind = WL_E_INT, .i = (int64_t)v);
}

wl_expr *wl_build_string(wl_parser *p, wl_token t) {
  size_t n = 0;
  const char *text = unquote(p, t, &n);
  return WL_NODE(t.pos, .kind = WL_E_TEXT, .text = text, .n_text = n);
}

wl_expr *wl_build_blob(wl_parser *p, wl_token t) {
  const char *s = p->sql + t.pos + 2;
  size_t n = (t.n - 3) / 2;
  char *bytes = wl_arena_alloc(p->arena, n + 1);
  if (!bytes) return NULL;
  for (size_t i = 0; i < n; i++)
    bytes[i] = (char)(hex_value(s[2 * i]) << 4 | hex_value(s[2 * i + 1]));
  return WL_NODE(t.pos, .kind = WL_E_BLOB, .text = bytes, .n_text = n);
}

enum { MAX_PARAM = 250000 }; /* the largest number that common builds of SQLite accept */

/* Grows params so that it has at least n entries. */
static bool reserve_params(wl_parser *p, int n) {
  if (n <= p->cap_params) return true;
  int cap = p->cap_params ? p->cap_params : 8;
  while (cap < n) cap *= 2;
  const char **params = WL_NEW_N(p->arena, const char *, cap);
  if (!params) return false;
  if (p->n_params) memcpy(params, p->params, sizeof *params * (size_t)p->n_params);
  p->params = params;
  p->cap_params = cap;
  return true;
}

wl_expr *wl_build_param(wl_parser *p, wl_token t) {
  const char *s = p->sql + t.pos;
  int index = 0;
  if (s[0] == '?' && t.n > 1) {
    for (size_t i = 1; i < t.n && index <= MAX_PARAM; i++) index = index * 10 + (s[i] - '0');
    if (index < 1) index = MAX_PARAM + 1;
  } else if (s[0] != '?') {
    for (int i = 0; i < p->n_params && !index; i++)
      if (p->params[i] && strncmp(p->params[i], s, t.n) == 0 && !p->params[i][t.n]) index = i + 1;
  }
  if (index == 0) index = p->n_params + 1;
  if (index > MAX_PARAM) {
    refuse(p, "parameter number out of range");
    return NULL;
  }
  if (!reserve_params(p, index)) return NULL;
  if (index > p->n_params) p->n_params = index;
  /* a plain ? has the name "?"; an explicit number such as ?2 replaces it */
  const char **name = &p->params[index - 1];
  if (!*name || (t.n > 1 && strcmp(*name, "?") == 0)) *name = wl_build_text(p, t.pos, t.pos + t.n);
  if (p->n_param_at == p->cap_param_at) {
    int cap = p->cap_param_at ? p->cap_param_at * 2 : 8;
    wl_param_at *more = WL_NEW_N(p->arena, wl_param_at, cap);
    if (!more) return NULL;
    if (p->n_param_at) memcpy(more, p->param_at, sizeof *more * (size_t)p->n_param_at);
    p->param_at = more;
    p->cap_param_at = cap;
  }
  p->param_at[p->n_param_at++] = (wl_param_at){t.pos, index};
  return WL_NODE(t.pos, .kind = WL_E_PARAM, .i = index);
}

wl_expr *wl_build_column(wl_parser *p, wl_token schema, wl_token table, wl_token name) {
  size_t start = schema.n ? schema.pos : table.n ? table.pos : name.pos;
  return WL_NODE(start, .kind = WL_E_NAME, .schema = wl_build_name(p, schema),
                 .table = wl_build_name(p, table), .name = wl_build_name(p, name),
                 .quoted = quote_of(p, name));
}

wl_expr *wl_build_raise(wl_parser *p, wl_token start, wl_token action, wl_token message) {
  bool known = wl_lex_is(p->sql, action, "IGNORE");
  if (message.n) {
    known = wl_lex_is(p->sql, action, "ROLLBACK") || wl_lex_is(p->sql, action, "ABORT") ||
            wl_lex_is(p->sql, action, "FAIL");
  }
  if (!known) wl_build_syntax_error(p, action);
  const char *text = wl_build_name(p, message);
  return WL_NODE(start.pos, .kind = WL_E_RAISE, .name = wl_build_word(p, action, false),
                 .text = text, .n_text = text ? strlen(text) : 0);
}

/* ---- lists */

#define APPEND(list, node)                                                                         \
  do {                                                                                             \
    if (!(node)) break;                                                                            \
    if ((list).tail) {                                                                             \
      (list).tail->next = (node);                                                                  \
    } else {                                                                                       \
      (list).head = (node);                                                                        \
    }                                                                                              \
    (list).tail = (node);                                                                          \
  } while (0)

wl_exprs wl_build_append(wl_parser *p, wl_exprs list, wl_expr *e) {
  wl_expr_list *node = WL_NEW(p->arena, wl_expr_list);
  if (node) node->expr = e;
  APPEND(list, node);
  return list;
}

/* Builders that append a copy of a node to a list. */
#define COPIES(FN, LIST, NODE)                                                                     \
  LIST FN(wl_parser *p, LIST list, const NODE *from) {                                             \
    NODE *node = WL_NEW(p->arena, NODE);                                                           \
    if (node) *node = *from;                                                                       \
    APPEND(list, node);                                                                            \
    return list;                                                                                   \
  }
COPIES(wl_build_order, wl_orders, wl_order_term)
COPIES(wl_build_col, wl_cols, wl_result_col)
COPIES(wl_build_cte, wl_ctes, wl_cte)
COPIES(wl_build_set, wl_sets, wl_assign)
COPIES(wl_build_upsert, wl_upserts, wl_upsert)

wl_window *wl_build_spec(wl_parser *p, const wl_window *w) {
  wl_window *node = WL_NEW(p->arena, wl_window);
  if (node) *node = *w;
  return node;
}

wl_windows wl_build_window(wl_parser *p, wl_windows list, wl_window *w, wl_token name) {
  if (w) w->name = wl_build_name(p, name);
  APPEND(list, w);
  return list;
}

/* ---- FROM */

wl_joinop wl_build_joinop(wl_parser *p, wl_token a, wl_token b, wl_token c) {
  enum { LEFT = 1, RIGHT = 2, OUTER = 4, INNER = 8, CROSS = 16, NATURAL = 32, UNKNOWN = 64 };
  static const struct join_word {
    const char *word;
    int means;
  } words[] = {{"LEFT", LEFT | OUTER}, {"RIGHT", RIGHT | OUTER}, {"FULL", LEFT | RIGHT | OUTER},
               {"OUTER", OUTER},       {"INNER", INNER},         {"CROSS", CROSS | INNER},
               {"NATURAL", NATURAL}};
  const wl_token tokens[] = {a, b, c};
  int all = 0;
  for (int i = 0; i < 3 && tokens[i].n; i++) {
    int means = UNKNOWN;
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
      if (wl_lex_is(p->sql, tokens[i], words[k].word)) means = words[k].means;
    all |= means;
  }
  wl_joinop op = {WL_JOIN_INNER, (all & NATURAL) != 0};
  if ((all & UNKNOWN) || (all & (INNER | OUTER)) == (INNER | OUTER) ||
      (all & (OUTER | LEFT | RIGHT)) == OUTER) {
    refuse(p, "unknown join type");
  } else if (all & CROSS) {
    op.kind = WL_JOIN_CROSS;
  } else if ((all & LEFT) && (all & RIGHT)) {
    op.kind = WL_JOIN_FULL;
  } else if (all & LEFT) {
    op.kind = WL_JOIN_LEFT;
  } else if (all & RIGHT) {
    op.kind = WL_JOIN_RIGHT;
  }
  return op;
}

wl_from_item *wl_build_source(wl_parser *p, const wl_from_item *s, wl_join_cond cond) {
  wl_from_item *node = WL_NEW(p->arena, wl_from_item);
  if (!node) return NULL;
  *node = *s;
  node->on = cond.on;
  node->using_cols = cond.using_cols;
  return node;
}

wl_sources wl_build_join(wl_parser *p, wl_sources list, wl_joinop op, wl_from_item *s) {
  if (!s) return list;
  bool first = !list.head, cond = s->on || s->using_cols;
  if (first && cond) {
    refuse(p, s->on ? "a JOIN clause is required before ON"
                    : "a JOIN clause is required before USING");
  }
  if (s->nested && first && !s->alias && !cond) {
    list.head = list.tail = s->nested;
    while (list.tail->next) list.tail = list.tail->next;
    return list;
  }
  if (s->nested && !s->nested->next) {
    wl_from_item *inner = s->nested;
    inner->alias = s->alias;
    inner->on = s->on;
    inner->using_cols = s->using_cols;
    s = inner;
  }
  s->join = op.kind;
  s->natural = op.natural;
  APPEND(list, s);
  return list;
}

/* ---- SELECT */

wl_select *wl_build_select(wl_parser *p, const wl_select *s) {
  wl_select *node = WL_NEW(p->arena, wl_select);
  if (!node) return NULL;
  *node = *s;
  const int depths[] = {
      list_depth(s->values),    source_depth(s->from), expr_depth(s->where),
      list_depth(s->group_by),  expr_depth(s->having), window_depth(s->windows),
      order_depth(s->order_by), expr_depth(s->limit),  expr_depth(s->offset),
  };
  int d = 0;
  for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) d = max_depth(d, depths[i]);
  for (const wl_result_col *c = s->cols; c; c = c->next) d = max_depth(d, expr_depth(c->expr));
  node->depth = d;
  return node;
}

wl_select *wl_build_compound(wl_parser *p, wl_select *left, wl_compound op, wl_select *right) {
  if (!left || !right) return NULL;
  if (left->order_by || left->limit) {
    refuse(p, left->order_by ? "ORDER BY clause must come after the last SELECT of a compound"
                             : "LIMIT clause must come after the last SELECT of a compound");
  }
  int n = 1;
  for (const wl_select *s = left; s; s = s->prior) n++;
  if (n > WL_MAX_COMPOUND) refuse(p, "too many terms in compound SELECT");
  right->prior = left;
  right->compound = op;
  right->depth = max_depth(left->depth, right->depth);
  return right;
}

wl_select *wl_build_with(wl_parser *p, wl_select *s, wl_ctes with, bool recursive) {
  if (!s) return NULL;
  s->with = with.head;
  s->recursive = recursive;
  for (const wl_cte *c = with.head; c; c = c->next)
    if (c->select) s->depth = max_depth(s->depth, c->select->depth);
  return s;
}

/* ---- INSERT, UPDATE, DELETE */

wl_dml *wl_build_dml(wl_parser *p, const wl_dml *d) {
  wl_dml *node = WL_NEW(p->arena, wl_dml);
  if (node) *node = *d;
  return node;
}

wl_dml *wl_build_dml_with(wl_dml *d, wl_token with, wl_ctes ctes, bool recursive) {
  if (!d) return NULL;
  d->with = ctes.head;
  d->with_at = (wl_span){with.pos, d->start};
  d->recursive = recursive;
  return d;
}
