/*
** The grammar of SQLite's SELECT, INSERT, UPDATE and DELETE, for lemon. The lexer supplies its
** tokens and the binder reads its tree. Every rule's action only calls a builder of build.h.
**
** Invariants:
** 1. It accepts the same statements as SQLite 3.40. Whether names exist, and who runs the
**    statement, is decided later.
** 2. If a word can be both a name and the next keyword, each reading has a separate rule instead of
**    an optional part. Lemon tries the name (the fallback) before a default reduction, so an empty
**    optional part would lose the keyword.
** 3. No value owns memory. Everything is in the arena, so there are no destructors.
*/
%name wl_lemon
%token_prefix WLT_
%token_type {wl_token}
%default_type {wl_token}
%extra_context {wl_parser *p}
%stack_size 1000
%start_symbol statement

%include {
#include "sql/build.h"
#include <string.h>
#define YYNOERRORRECOVERY 1
#define YYPARSEFREENEVERNULL 1
}

%syntax_error { wl_build_syntax_error(p, TOKEN); }
%stack_overflow { wl_build_too_deep(p); }

/* Tokens that the lexer returns but no rule uses. */
%token SEMI RESERVED.

%fallback ID
  ABORT ASC BY CAST CONFLICT CURRENT DESC DO END EXCLUDE FAIL FIRST FOLLOWING GROUPS IGNORE LAST
  LIKE_KW MATCH MATERIALIZED NO NOW NULLS OFFSET OTHERS PARTITION PRECEDING RAISE RANGE RECURSIVE
  REPLACE ROLLBACK ROW ROWS TIES UNBOUNDED WITH.

/* From lowest to highest precedence. */
%left OR.
%left AND.
%right NOT.
%left IS MATCH LIKE_KW BETWEEN IN ISNULL NOTNULL NE EQ.
%left GT LE LT GE.
%right ESCAPE.
%left BITAND BITOR LSHIFT RSHIFT.
%left PLUS MINUS.
%left STAR SLASH REM.
%left CONCAT ARROW ARROW2.
%left COLLATE.
%right BITNOT.
%nonassoc ON.

statement ::= select(S). { p->result = S; }
statement ::= dml(D). { p->dml = D; }
statement ::= WITH(T) ctes(W) dml(D). { p->dml = wl_build_dml_with(D, T, W, false); }
statement ::= WITH(T) RECURSIVE ctes(W) dml(D). { p->dml = wl_build_dml_with(D, T, W, true); }

// ---- names

id(A) ::= ID(T). { A = T; }
id(A) ::= INDEXED(T). { A = T; }
nm(A) ::= id(T). { A = T; }
nm(A) ::= STRING(T). { A = T; }
nm(A) ::= JOIN_KW(T). { A = T; }
ids(A) ::= ID(T). { A = T; }
ids(A) ::= STRING(T). { A = T; }

%type names {wl_exprs}
names(A) ::= nm(N). {
  A = wl_build_append(p, (wl_exprs){0}, wl_build_column(p, (wl_token){0}, (wl_token){0}, N));
}
names(A) ::= names(L) COMMA nm(N). {
  A = wl_build_append(p, L, wl_build_column(p, (wl_token){0}, (wl_token){0}, N));
}

%type qname {wl_qname}
qname(A) ::= nm(N). { A = (wl_qname){NULL, wl_build_name(p, N)}; }
qname(A) ::= nm(S) DOT nm(N). { A = (wl_qname){wl_build_name(p, S), wl_build_name(p, N)}; }

as(A) ::= . { A = (wl_token){0}; }
as(A) ::= AS nm(N). { A = N; }
as(A) ::= ids(N). { A = N; }

// ---- the statement

%type select {wl_select *}
select(A) ::= body(S). { A = S; }
select(A) ::= WITH ctes(W) body(S). { A = wl_build_with(p, S, W, false); }
select(A) ::= WITH RECURSIVE ctes(W) body(S). { A = wl_build_with(p, S, W, true); }

%type ctes {wl_ctes}
ctes(A) ::= cte(C). { A = wl_build_cte(p, (wl_ctes){0}, &C); }
ctes(A) ::= ctes(L) COMMA cte(C). { A = wl_build_cte(p, L, &C); }

%type cte {wl_cte}
cte(A) ::= nm(N) cte_columns(L) cte_as(M) LP select(S) RP. {
  A = (wl_cte){.name = wl_build_name(p, N), .columns = L.head, .materialized = M, .select = S};
}
%type cte_columns {wl_exprs}
cte_columns(A) ::= . { A = (wl_exprs){0}; }
cte_columns(A) ::= LP names(L) RP. { A = L; }
%type cte_as {signed char}
cte_as(A) ::= AS. { A = 0; }
cte_as(A) ::= AS MATERIALIZED. { A = 1; }
cte_as(A) ::= AS NOT MATERIALIZED. { A = 2; }

%type body {wl_select *}
body(A) ::= core(S). { A = S; }
body(A) ::= body(L) compound(O) core(R). { A = wl_build_compound(p, L, O, R); }

%type compound {wl_compound}
compound(A) ::= UNION. { A = WL_COMPOUND_UNION; }
compound(A) ::= UNION ALL. { A = WL_COMPOUND_UNION_ALL; }
compound(A) ::= INTERSECT. { A = WL_COMPOUND_INTERSECT; }
compound(A) ::= EXCEPT. { A = WL_COMPOUND_EXCEPT; }

%type core {wl_select *}
core(A) ::= SELECT distinct(D) cols(C) from(F) where(W) group(G) having(H) windows(N) order(O)
            limit(L). {
  A = wl_build_select(p, &(wl_select){.distinct = D == 1, .all = D == 2, .cols = C.head,
                                      .from = F.head, .where = W, .group_by = G.head,
                                      .having = H, .windows = N.head, .order_by = O.head,
                                      .limit = L.limit, .offset = L.offset});
}
core(A) ::= VALUES rows(R). {
  A = wl_build_select(p, &(wl_select){.is_values = true, .values = R.head});
}

%type rows {wl_exprs}
rows(A) ::= row(R). { A = wl_build_append(p, (wl_exprs){0}, R); }
rows(A) ::= rows(L) COMMA row(R). { A = wl_build_append(p, L, R); }
%type row {wl_expr *}
row(A) ::= LP(T) exprs(L) RP. { A = WL_NODE(T.pos, .kind = WL_E_VECTOR, .list = L.head); }

%type distinct {int}
distinct(A) ::= . { A = 0; }
distinct(A) ::= DISTINCT. { A = 1; }
distinct(A) ::= ALL. { A = 2; }

%type cols {wl_cols}
cols(A) ::= col(C). { A = wl_build_col(p, (wl_cols){0}, &C); }
cols(A) ::= cols(L) COMMA col(C). { A = wl_build_col(p, L, &C); }
%type col {wl_result_col}
col(A) ::= expr(E) as(N). { A = (wl_result_col){.expr = E, .alias = wl_build_name(p, N)}; }
col(A) ::= STAR. { A = (wl_result_col){.star = true}; }
col(A) ::= nm(N) DOT STAR. { A = (wl_result_col){.star = true, .star_table = wl_build_name(p, N)}; }

%type where {wl_expr *}
where(A) ::= . { A = NULL; }
where(A) ::= WHERE expr(E). { A = E; }
%type group {wl_exprs}
group(A) ::= . { A = (wl_exprs){0}; }
group(A) ::= GROUP BY exprs(L). { A = L; }
%type having {wl_expr *}
having(A) ::= . { A = NULL; }
having(A) ::= HAVING expr(E). { A = E; }

%type order {wl_orders}
order(A) ::= . { A = (wl_orders){0}; }
order(A) ::= ORDER BY terms(L). { A = L; }
%type terms {wl_orders}
terms(A) ::= term(T). { A = wl_build_order(p, (wl_orders){0}, &T); }
terms(A) ::= terms(L) COMMA term(T). { A = wl_build_order(p, L, &T); }
%type term {wl_order_term}
term(A) ::= expr(E) direction(D) nulls(N). {
  A = (wl_order_term){.expr = E, .desc = D, .nulls = N};
}
%type direction {bool}
direction(A) ::= . { A = false; }
direction(A) ::= ASC. { A = false; }
direction(A) ::= DESC. { A = true; }
%type nulls {signed char}
nulls(A) ::= . { A = 0; }
nulls(A) ::= NULLS FIRST. { A = 1; }
nulls(A) ::= NULLS LAST. { A = 2; }

%type limit {wl_limits}
limit(A) ::= . { A = (wl_limits){0}; }
limit(A) ::= LIMIT expr(L). { A = (wl_limits){L, NULL}; }
limit(A) ::= LIMIT expr(L) OFFSET expr(O). { A = (wl_limits){L, O}; }
limit(A) ::= LIMIT expr(O) COMMA expr(L). { A = (wl_limits){L, O}; }

// ---- FROM

%type from {wl_sources}
from(A) ::= . { A = (wl_sources){0}; }
from(A) ::= FROM sources(L). { A = L; }

%type sources {wl_sources}
sources(A) ::= source(S). {
  A = wl_build_join(p, (wl_sources){0}, (wl_joinop){WL_JOIN_NONE, false}, S);
}
sources(A) ::= sources(L) joinop(J) source(S). { A = wl_build_join(p, L, J, S); }

%type joinop {wl_joinop}
joinop(A) ::= COMMA. { A = (wl_joinop){WL_JOIN_COMMA, false}; }
joinop(A) ::= JOIN. { A = (wl_joinop){WL_JOIN_INNER, false}; }
joinop(A) ::= JOIN_KW(X) JOIN. { A = wl_build_joinop(p, X, (wl_token){0}, (wl_token){0}); }
joinop(A) ::= JOIN_KW(X) nm(Y) JOIN. { A = wl_build_joinop(p, X, Y, (wl_token){0}); }
joinop(A) ::= JOIN_KW(X) nm(Y) nm(Z) JOIN. { A = wl_build_joinop(p, X, Y, Z); }

%type source {wl_from_item *}
source(A) ::= qname(N) as(L) indexing(I) join_cond(C). {
  A = wl_build_source(p, &(wl_from_item){.schema = N.schema, .name = N.name,
                                      .alias = wl_build_name(p, L), .indexed_by = I.by,
                                      .not_indexed = I.none}, C);
}
source(A) ::= qname(N) LP args(E) RP as(L) join_cond(C). {
  A = wl_build_source(p, &(wl_from_item){.schema = N.schema, .name = N.name, .args = E.head,
                                      .is_call = true, .alias = wl_build_name(p, L)}, C);
}
source(A) ::= LP select(S) RP as(L) join_cond(C). {
  A = wl_build_source(p, &(wl_from_item){.select = S, .alias = wl_build_name(p, L)}, C);
}
source(A) ::= LP sources(S) RP as(L) join_cond(C). {
  A = wl_build_source(p, &(wl_from_item){.nested = S.head, .alias = wl_build_name(p, L)}, C);
}

%type indexing {wl_indexing}
indexing(A) ::= . { A = (wl_indexing){NULL, false}; }
indexing(A) ::= INDEXED BY nm(N). { A = (wl_indexing){wl_build_name(p, N), false}; }
indexing(A) ::= NOT INDEXED. { A = (wl_indexing){NULL, true}; }

%type join_cond {wl_join_cond}
// An ON that could also start ON CONFLICT belongs to the join, as in SQLite.
join_cond(A) ::= . [OR] { A = (wl_join_cond){NULL, NULL}; }
join_cond(A) ::= ON expr(E). { A = (wl_join_cond){E, NULL}; }
join_cond(A) ::= USING LP names(L) RP. { A = (wl_join_cond){NULL, L.head}; }

// ---- windows

%type windows {wl_windows}
windows(A) ::= . { A = (wl_windows){0}; }
windows(A) ::= WINDOW window_list(L). { A = L; }
%type window_list {wl_windows}
window_list(A) ::= nm(N) AS LP spec(W) RP. { A = wl_build_window(p, (wl_windows){0}, W, N); }
window_list(A) ::= window_list(L) COMMA nm(N) AS LP spec(W) RP. {
  A = wl_build_window(p, L, W, N);
}

%type spec {wl_window *}
spec(A) ::= PARTITION BY exprs(L) order(O) frame(F). {
  A = wl_build_spec(p, &(wl_window){.partition = L.head, .order = O.head, .frame = F});
}
spec(A) ::= nm(N) PARTITION BY exprs(L) order(O) frame(F). {
  A = wl_build_spec(p, &(wl_window){.base = wl_build_name(p, N), .partition = L.head,
                                    .order = O.head, .frame = F});
}
spec(A) ::= ORDER BY terms(O) frame(F). {
  A = wl_build_spec(p, &(wl_window){.order = O.head, .frame = F});
}
spec(A) ::= nm(N) ORDER BY terms(O) frame(F). {
  A = wl_build_spec(p, &(wl_window){.base = wl_build_name(p, N), .order = O.head, .frame = F});
}
spec(A) ::= frame(F). { A = wl_build_spec(p, &(wl_window){.frame = F}); }
spec(A) ::= nm(N) frame(F). {
  A = wl_build_spec(p, &(wl_window){.base = wl_build_name(p, N), .frame = F});
}

%type frame {const char *}
frame(A) ::= . { A = NULL; }
frame(A) ::= RANGE|ROWS|GROUPS(T) bound_from exclude. {
  A = wl_build_text(p, T.pos, p->last_end);
}
frame(A) ::= RANGE|ROWS|GROUPS(T) BETWEEN bound_from AND bound_to exclude. {
  A = wl_build_text(p, T.pos, p->last_end);
}
bound_from ::= bound.
bound_from ::= UNBOUNDED PRECEDING.
bound_to ::= bound.
bound_to ::= UNBOUNDED FOLLOWING.
bound ::= expr PRECEDING.
bound ::= expr FOLLOWING.
bound ::= CURRENT ROW.
exclude ::= .
exclude ::= EXCLUDE NO OTHERS.
exclude ::= EXCLUDE CURRENT ROW.
exclude ::= EXCLUDE GROUP.
exclude ::= EXCLUDE TIES.

%type over {wl_over}
over(A) ::= filter(F). { A = (wl_over){F, NULL}; }
over(A) ::= over_window(W). { A = (wl_over){NULL, W}; }
over(A) ::= filter(F) over_window(W). { A = (wl_over){F, W}; }
%type filter {wl_expr *}
filter(A) ::= FILTER LP WHERE expr(E) RP. { A = E; }
%type over_window {wl_window *}
over_window(A) ::= OVER LP spec(W) RP. { A = W; }
over_window(A) ::= OVER nm(N). {
  A = wl_build_spec(p, &(wl_window){.name = wl_build_name(p, N), .ref = true});
}

// ---- expressions

%type exprs {wl_exprs}
exprs(A) ::= expr(E). { A = wl_build_append(p, (wl_exprs){0}, E); }
exprs(A) ::= exprs(L) COMMA expr(E). { A = wl_build_append(p, L, E); }
%type args {wl_exprs}
args(A) ::= . { A = (wl_exprs){0}; }
args(A) ::= exprs(L). { A = L; }

%type expr {wl_expr *}
expr(A) ::= NULL(T). { A = WL_NODE(T.pos, .kind = WL_E_NULL); }
expr(A) ::= INTEGER(T). { A = wl_build_integer(p, T); }
expr(A) ::= FLOAT(T). {
  A = WL_NODE(T.pos, .kind = WL_E_REAL, .text = wl_build_text(p, T.pos, T.pos + T.n),
              .n_text = T.n);
}
expr(A) ::= STRING(T). { A = wl_build_string(p, T); }
expr(A) ::= BLOB(T). { A = wl_build_blob(p, T); }
expr(A) ::= NOW(T). { A = WL_NODE(T.pos, .kind = WL_E_NOW, .name = wl_build_word(p, T, true)); }
expr(A) ::= VARIABLE(T). { A = wl_build_param(p, T); }

expr(A) ::= id(N). { A = wl_build_column(p, (wl_token){0}, (wl_token){0}, N); }
expr(A) ::= JOIN_KW(N). { A = wl_build_column(p, (wl_token){0}, (wl_token){0}, N); }
expr(A) ::= nm(T) DOT nm(N). { A = wl_build_column(p, (wl_token){0}, T, N); }
expr(A) ::= nm(S) DOT nm(T) DOT nm(N). { A = wl_build_column(p, S, T, N); }

expr(A) ::= LP(T) expr(E) RP. { A = wl_build_paren(p, T, E); }
expr(A) ::= LP(T) exprs(L) COMMA expr(E) RP. {
  A = WL_NODE(T.pos, .kind = WL_E_VECTOR, .list = wl_build_append(p, L, E).head);
}
expr(A) ::= LP(T) select(S) RP. { A = WL_NODE(T.pos, .kind = WL_E_SELECT, .select = S); }
expr(A) ::= EXISTS(T) LP select(S) RP. {
  A = WL_NODE(T.pos, .kind = WL_E_EXISTS, .select = S);
}

expr(A) ::= expr(L) OR expr(R). { A = wl_build_binary(p, WL_OP_OR, L, R); }
expr(A) ::= expr(L) AND expr(R). { A = wl_build_binary(p, WL_OP_AND, L, R); }
expr(A) ::= expr(L) EQ expr(R). { A = wl_build_binary(p, WL_OP_EQ, L, R); }
expr(A) ::= expr(L) NE expr(R). { A = wl_build_binary(p, WL_OP_NE, L, R); }
expr(A) ::= expr(L) LT expr(R). { A = wl_build_binary(p, WL_OP_LT, L, R); }
expr(A) ::= expr(L) LE expr(R). { A = wl_build_binary(p, WL_OP_LE, L, R); }
expr(A) ::= expr(L) GT expr(R). { A = wl_build_binary(p, WL_OP_GT, L, R); }
expr(A) ::= expr(L) GE expr(R). { A = wl_build_binary(p, WL_OP_GE, L, R); }
expr(A) ::= expr(L) BITAND expr(R). { A = wl_build_binary(p, WL_OP_BITAND, L, R); }
expr(A) ::= expr(L) BITOR expr(R). { A = wl_build_binary(p, WL_OP_BITOR, L, R); }
expr(A) ::= expr(L) LSHIFT expr(R). { A = wl_build_binary(p, WL_OP_SHL, L, R); }
expr(A) ::= expr(L) RSHIFT expr(R). { A = wl_build_binary(p, WL_OP_SHR, L, R); }
expr(A) ::= expr(L) PLUS expr(R). { A = wl_build_binary(p, WL_OP_ADD, L, R); }
expr(A) ::= expr(L) MINUS expr(R). { A = wl_build_binary(p, WL_OP_SUB, L, R); }
expr(A) ::= expr(L) STAR expr(R). { A = wl_build_binary(p, WL_OP_MUL, L, R); }
expr(A) ::= expr(L) SLASH expr(R). { A = wl_build_binary(p, WL_OP_DIV, L, R); }
expr(A) ::= expr(L) REM expr(R). { A = wl_build_binary(p, WL_OP_REM, L, R); }
expr(A) ::= expr(L) CONCAT expr(R). { A = wl_build_binary(p, WL_OP_CONCAT, L, R); }
expr(A) ::= expr(L) ARROW expr(R). { A = wl_build_binary(p, WL_OP_ARROW, L, R); }
expr(A) ::= expr(L) ARROW2 expr(R). { A = wl_build_binary(p, WL_OP_ARROW2, L, R); }

expr(A) ::= NOT(T) expr(E). { A = wl_build_unary(p, WL_OP_NOT, T, E); }
expr(A) ::= BITNOT(T) expr(E). { A = wl_build_unary(p, WL_OP_BITNOT, T, E); }
expr(A) ::= PLUS(T) expr(E). [BITNOT] { A = wl_build_unary(p, WL_OP_POS, T, E); }
expr(A) ::= MINUS(T) expr(E). [BITNOT] { A = wl_build_unary(p, WL_OP_NEG, T, E); }

expr(A) ::= expr(E) COLLATE ids(N). {
  A = WL_NODE(WL_START(E), .kind = WL_E_COLLATE, .a = E, .name = wl_build_name(p, N));
}

expr(A) ::= expr(L) IS expr(R). {
  A = WL_NODE(WL_START(L), .kind = WL_E_IS, .a = L, .b = R);
}
expr(A) ::= expr(L) IS NOT expr(R). {
  A = WL_NODE(WL_START(L), .kind = WL_E_IS, .negated = true, .a = L, .b = R);
}
expr(A) ::= expr(L) IS DISTINCT FROM expr(R). {
  A = WL_NODE(WL_START(L), .kind = WL_E_IS, .negated = true, .a = L, .b = R);
}
expr(A) ::= expr(L) IS NOT DISTINCT FROM expr(R). {
  A = WL_NODE(WL_START(L), .kind = WL_E_IS, .a = L, .b = R);
}
expr(A) ::= expr(E) ISNULL. { A = WL_NODE(WL_START(E), .kind = WL_E_ISNULL, .a = E); }
expr(A) ::= expr(E) NOTNULL. {
  A = WL_NODE(WL_START(E), .kind = WL_E_ISNULL, .negated = true, .a = E);
}
expr(A) ::= expr(E) NOT NULL. {
  A = WL_NODE(WL_START(E), .kind = WL_E_ISNULL, .negated = true, .a = E);
}

like_op(A) ::= LIKE_KW|MATCH(T). { A = T; }
expr(A) ::= expr(L) like_op(O) expr(R). [LIKE_KW] {
  A = WL_NODE(WL_START(L), .kind = WL_E_LIKE, .name = wl_build_word(p, O, false), .a = L, .b = R);
}
expr(A) ::= expr(L) like_op(O) expr(R) ESCAPE expr(E). [LIKE_KW] {
  A = WL_NODE(WL_START(L), .kind = WL_E_LIKE, .name = wl_build_word(p, O, false), .a = L, .b = R,
              .c = E);
}
expr(A) ::= expr(L) NOT like_op(O) expr(R). [LIKE_KW] {
  A = WL_NODE(WL_START(L), .kind = WL_E_LIKE, .negated = true, .name = wl_build_word(p, O, false),
              .a = L, .b = R);
}
expr(A) ::= expr(L) NOT like_op(O) expr(R) ESCAPE expr(E). [LIKE_KW] {
  A = WL_NODE(WL_START(L), .kind = WL_E_LIKE, .negated = true, .name = wl_build_word(p, O, false),
              .a = L, .b = R, .c = E);
}

%type between_op {bool}
between_op(A) ::= BETWEEN. { A = false; }
between_op(A) ::= NOT BETWEEN. { A = true; }
expr(A) ::= expr(E) between_op(N) expr(L) AND expr(H). [BETWEEN] {
  A = WL_NODE(WL_START(E), .kind = WL_E_BETWEEN, .negated = N, .a = E, .b = L, .c = H);
}

%type in_op {bool}
in_op(A) ::= IN. { A = false; }
in_op(A) ::= NOT IN. { A = true; }
expr(A) ::= expr(E) in_op(N) LP args(L) RP. [IN] {
  A = WL_NODE(WL_START(E), .kind = WL_E_IN, .negated = N, .a = E, .list = L.head,
              .has_list = true);
}
expr(A) ::= expr(E) in_op(N) LP select(S) RP. [IN] {
  A = WL_NODE(WL_START(E), .kind = WL_E_IN, .negated = N, .a = E, .select = S);
}
expr(A) ::= expr(E) in_op(N) qname(T) in_args(L). [IN] {
  A = WL_NODE(WL_START(E), .kind = WL_E_IN, .negated = N, .a = E, .schema = T.schema,
              .name = T.name, .list = L.head);
}
%type in_args {wl_exprs}
in_args(A) ::= . { A = (wl_exprs){0}; }
in_args(A) ::= LP args(L) RP. { A = L; }

expr(A) ::= CASE(T) case_of(E) whens(L) case_else(D) END. {
  A = WL_NODE(T.pos, .kind = WL_E_CASE, .a = E, .list = L.head, .b = D);
}
%type case_of {wl_expr *}
case_of(A) ::= . { A = NULL; }
case_of(A) ::= expr(E). { A = E; }
%type whens {wl_exprs}
whens(A) ::= WHEN expr(W) THEN expr(T). {
  A = wl_build_append(p, wl_build_append(p, (wl_exprs){0}, W), T);
}
whens(A) ::= whens(L) WHEN expr(W) THEN expr(T). {
  A = wl_build_append(p, wl_build_append(p, L, W), T);
}
%type case_else {wl_expr *}
case_else(A) ::= . { A = NULL; }
case_else(A) ::= ELSE expr(E). { A = E; }

expr(A) ::= CAST(T) LP expr(E) AS type(Y) RP. {
  A = WL_NODE(T.pos, .kind = WL_E_CAST, .a = E, .name = wl_build_type(p, Y));
}
type(A) ::= . { A = (wl_token){0}; }
type(A) ::= type_words(T). { A = T; }
type(A) ::= type_words(T) LP signed RP. {
  A = (wl_token){T.pos, p->last_end - T.pos};
}
type(A) ::= type_words(T) LP signed COMMA signed RP. {
  A = (wl_token){T.pos, p->last_end - T.pos};
}
type_words(A) ::= ids(T). { A = T; }
type_words(A) ::= type_words(T) ids. { A = (wl_token){T.pos, p->last_end - T.pos}; }
signed ::= number.
signed ::= PLUS number.
signed ::= MINUS number.
number ::= INTEGER|FLOAT.

expr(A) ::= id(N) LP distinct(D) args(L) RP. {
  A = WL_NODE(N.pos, .kind = WL_E_CALL, .name = wl_build_name(p, N), .distinct = D == 1,
              .list = L.head);
}
expr(A) ::= id(N) LP STAR RP. {
  A = WL_NODE(N.pos, .kind = WL_E_CALL, .name = wl_build_name(p, N), .star = true);
}
expr(A) ::= id(N) LP distinct(D) args(L) RP over(O). {
  A = WL_NODE(N.pos, .kind = WL_E_CALL, .name = wl_build_name(p, N), .distinct = D == 1,
              .list = L.head, .a = O.filter, .window = O.window);
}
expr(A) ::= id(N) LP STAR RP over(O). {
  A = WL_NODE(N.pos, .kind = WL_E_CALL, .name = wl_build_name(p, N), .star = true,
              .a = O.filter, .window = O.window);
}

expr(A) ::= RAISE(T) LP id(N) RP. { A = wl_build_raise(p, T, N, (wl_token){0}); }
expr(A) ::= RAISE(T) LP id(N) COMMA nm(M) RP. { A = wl_build_raise(p, T, N, M); }

// ---- INSERT, UPDATE and DELETE (sql/dml.h)

%type mark {size_t}
mark(A) ::= . { A = p->last_end; }

%type dml {wl_dml *}
dml(A) ::= insert(V) INTO qname(N) dml_as(L) mark(B) dml_columns(C) mark(D) select(S) mark(E)
           upserts(U) mark(F) returning(R). {
  A = wl_build_dml(p, &(wl_dml){.kind = WL_DML_INSERT, .conflict = V.conflict, .start = V.pos,
                                .schema = N.schema, .name = N.name, .alias = wl_build_name(p, L),
                                .columns = C.head, .columns_at = {B, D}, .select = S,
                                .source_at = {D, E}, .upserts = U.head, .upserts_at = {E, F},
                                .returning = R.head, .returning_at = {F, p->last_end}});
}
dml(A) ::= insert(V) INTO qname(N) dml_as(L) mark(B) dml_columns(C) mark(D) DEFAULT VALUES mark(F)
           returning(R). {
  A = wl_build_dml(p, &(wl_dml){.kind = WL_DML_INSERT, .conflict = V.conflict, .start = V.pos,
                                .schema = N.schema, .name = N.name, .alias = wl_build_name(p, L),
                                .columns = C.head, .columns_at = {B, D}, .default_values = true,
                                .returning = R.head, .returning_at = {F, p->last_end}});
}
dml(A) ::= UPDATE(T) or_conflict(O) qname(N) dml_as(L) indexing(I) SET sets(V) mark(B) from(F)
           where(W) mark(C) returning(R) mark(D) order(S) limit(M). {
  A = wl_build_dml(p, &(wl_dml){.kind = WL_DML_UPDATE, .conflict = O, .start = T.pos,
                                .schema = N.schema, .name = N.name, .alias = wl_build_name(p, L),
                                .indexed_by = I.by, .sets = V.head, .from = F.head,
                                .where = W, .from_at = {B, C}, .returning = R.head,
                                .returning_at = {C, D}, .order_by = S.head, .limit = M.limit,
                                .tail_at = {D, p->last_end}});
}
dml(A) ::= DELETE(T) FROM qname(N) dml_as(L) indexing(I) where(W) mark(C) returning(R) mark(D)
           order(S) limit(M). {
  A = wl_build_dml(p, &(wl_dml){.kind = WL_DML_DELETE, .start = T.pos, .schema = N.schema,
                                .name = N.name, .alias = wl_build_name(p, L),
                                .indexed_by = I.by, .where = W, .returning = R.head,
                                .returning_at = {C, D}, .order_by = S.head, .limit = M.limit,
                                .tail_at = {D, p->last_end}});
}

dml_as(A) ::= . { A = (wl_token){0}; }
dml_as(A) ::= AS nm(N). { A = N; }

%type insert {wl_insert_word}
insert(A) ::= INSERT(T) or_conflict(O). { A = (wl_insert_word){T.pos, O}; }
insert(A) ::= REPLACE(T). { A = (wl_insert_word){T.pos, WL_CONFLICT_REPLACE}; }

%type or_conflict {wl_conflict}
or_conflict(A) ::= . { A = WL_CONFLICT_NONE; }
or_conflict(A) ::= OR ROLLBACK. { A = WL_CONFLICT_ROLLBACK; }
or_conflict(A) ::= OR ABORT. { A = WL_CONFLICT_ABORT; }
or_conflict(A) ::= OR FAIL. { A = WL_CONFLICT_FAIL; }
or_conflict(A) ::= OR IGNORE. { A = WL_CONFLICT_IGNORE; }
or_conflict(A) ::= OR REPLACE. { A = WL_CONFLICT_REPLACE; }

%type dml_columns {wl_exprs}
dml_columns(A) ::= . { A = (wl_exprs){0}; }
dml_columns(A) ::= LP names(L) RP. { A = L; }

%type sets {wl_sets}
sets(A) ::= set(S). { A = wl_build_set(p, (wl_sets){0}, &S); }
sets(A) ::= sets(L) COMMA set(S). { A = wl_build_set(p, L, &S); }
%type set {wl_assign}
set(A) ::= nm(N) EQ expr(E). {
  A = (wl_assign){.names = wl_build_append(p, (wl_exprs){0}, wl_build_column(p, (wl_token){0},
                                                                         (wl_token){0}, N)).head,
               .value = E};
}
set(A) ::= LP names(L) RP EQ expr(E). { A = (wl_assign){.names = L.head, .row = true, .value = E}; }

%type upserts {wl_upserts}
upserts(A) ::= . { A = (wl_upserts){0}; }
upserts(A) ::= upserts(L) ON CONFLICT upsert_target(T) DO NOTHING. {
  A = wl_build_upsert(p, L, &(wl_upsert){.target = T.head});
}
upserts(A) ::= upserts(L) ON CONFLICT upsert_target(T) DO UPDATE SET sets(S) where(W). {
  A = wl_build_upsert(p, L, &(wl_upsert){.target = T.head, .updates = true, .sets = S.head,
                                         .where = W});
}
%type upsert_target {wl_orders}
upsert_target(A) ::= . { A = (wl_orders){0}; }
upsert_target(A) ::= LP terms(L) RP where. { A = L; }

%type returning {wl_cols}
returning(A) ::= . { A = (wl_cols){0}; }
returning(A) ::= RETURNING cols(L). { A = L; }
