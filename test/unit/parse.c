/*
** Tests of the parser, most of them against SQLite itself: what it accepts, how it reads
** precedence, how it numbers parameters.
**
**     unit_parse [folder]
**
** With a folder, also every query of the sqllogictest files under it: parsed, written back
** in canonical form, and compiled by SQLite both ways to the same program.
*/
#define _XOPEN_SOURCE 700
#include "base/mem.h"
#include "unparse.h"
#include <ftw.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <strings.h>

static int n_failed;
static sqlite3 *db;

static void report(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void report(bool ok, const char *fmt, ...) {
  char line[1000];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  for (char *c = line; *c; c++)
    if (*c == '\n') *c = ' ';
  printf("%s %s\n", ok ? "ok" : "not ok", line);
  if (!ok) n_failed++;
}

static unsigned long long seed = 88172645463325252ull;
static unsigned below(unsigned n) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (unsigned)((seed >> 11) % n);
}

/* Parses; on WL_OK *form is the canonical form of a SELECT (to be freed) or NULL. */
static wl_status parse_n(const char *sql, size_t n, char **form, char *message) {
  wl_arena arena;
  wl_stmt *stmt = NULL;
  wl_error err = {0};
  /* a copy without a NUL behind it, so that reading past the end shows */
  char *text = malloc(n ? n : 1);
  if (!text) abort();
  memcpy(text, sql, n);
  wl_arena_init(&arena);
  wl_status st = wl_parse(&arena, text, n, &stmt, &err);
  free(text);
  if (form) *form = st == WL_OK && stmt->kind == WL_STMT_SELECT ? unparse(stmt->select) : NULL;
  if (message) strcpy(message, err.text);
  wl_arena_close(&arena);
  return st;
}

static wl_status parse(const char *sql, char **form) {
  return parse_n(sql, strlen(sql), form, NULL);
}

/* SQLite's program for a statement as text; NULL if it does not compile. */
static char *program_of(sqlite3 *conn, const char *sql) {
  sqlite3_stmt *q = NULL;
  unparse_buf b = {0};
  unparse_buf text = {0};
  put(&text, "EXPLAIN ");
  put(&text, sql);
  if (sqlite3_prepare_v2(conn, text.s, -1, &q, NULL) == SQLITE_OK) {
    put(&b, "");
    while (sqlite3_step(q) == SQLITE_ROW) {
      const char *opcode = (const char *)sqlite3_column_text(q, 1);
      for (int i = 1; i < 7; i++) {
        const char *v = (const char *)sqlite3_column_text(q, i);
        bool param_name = i == 5 && strcmp(opcode, "Variable") == 0; /* only ?N in the form */
        put(&b, v && !param_name ? v : "");
        put(&b, " ");
      }
    }
  }
  sqlite3_finalize(q);
  free(text.s);
  return b.s;
}

/*
** Whether SQLite makes the same program of a statement and of its canonical form, which it
** does only if both are the same tree to it. True where SQLite has no program for it.
*/
static bool same_program(sqlite3 *conn, const char *sql, int *n_programs) {
  char *want = program_of(conn, sql), *form = NULL, *got = NULL;
  bool same = true;
  if (want) {
    ++*n_programs;
    if (parse(sql, &form) == WL_OK && form) got = program_of(conn, form);
    same = got && strcmp(got, want) == 0;
    if (!same) printf("#   %s\n#   %s\n", sql, form ? form : "not parsed");
  }
  free(want);
  free(got);
  free(form);
  return same;
}

/* ---- canonical forms */

static const char *const forms[][2] = {
#include "parse_forms.h"
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

static void test_forms(void) {
  for (int i = 0; i < N_FORMS; i++) {
    char *got = NULL, *again = NULL;
    char message[480] = "";
    wl_status st = parse_n(forms[i][0], strlen(forms[i][0]), &got, message);
    const char *want = forms[i][1];
    if (!want) {
      report(st == WL_ERROR && message[0], "refused: %s", forms[i][0]);
    } else {
      bool same = st == WL_OK && got && strcmp(got, want) == 0;
      report(same, "form of %s", forms[i][0]);
      if (!same) printf("#   want %s\n#   got  %s %s\n", want, got ? got : "nothing", message);
      if (got && (parse(got, &again) != WL_OK || strcmp(got, again) != 0))
        report(false, "form is its own form: %s", got);
    }
    free(got);
    free(again);
  }
}

/* ---- statements, positions, parameters */

static void test_statements(void) {
  static const struct {
    const char *sql;
    wl_stmt_kind kind;
    wl_explain explain;
    const char *verb;
    size_t body;
  } cases[] = {
      {"", WL_STMT_EMPTY, WL_EXPLAIN_NONE, "", 0},
      {" ;; -- x\n /* y", WL_STMT_EMPTY, WL_EXPLAIN_NONE, "", 0},
      {";select 1;;", WL_STMT_SELECT, WL_EXPLAIN_NONE, "SELECT", 0},
      {"\xEF\xBB\xBFvalues(1)", WL_STMT_SELECT, WL_EXPLAIN_NONE, "VALUES", 0},
      {"explain select 1", WL_STMT_SELECT, WL_EXPLAIN_PROGRAM, "SELECT", 7},
      {"EXPLAIN /**/ query\nplan with a as (values(1)) select 1", WL_STMT_SELECT, WL_EXPLAIN_PLAN,
       "WITH", 23},
      {"explain query", WL_STMT_OTHER, WL_EXPLAIN_PROGRAM, "QUERY", 7},
      {"Insert into t values(1)", WL_STMT_OTHER, WL_EXPLAIN_NONE, "INSERT", 0},
      {"with a(b) as (select 1) insert into t select * from a", WL_STMT_OTHER, WL_EXPLAIN_NONE,
       "WITH", 0},
      {"with a as (select 1) replace into t select * from a", WL_STMT_OTHER, WL_EXPLAIN_NONE,
       "WITH", 0},
      {"with replace as (select 1) select * from replace", WL_STMT_SELECT, WL_EXPLAIN_NONE, "WITH",
       0},
      {"with a as (select 1) delete from t", WL_STMT_OTHER, WL_EXPLAIN_NONE, "WITH", 0},
      {"(select 1)", WL_STMT_OTHER, WL_EXPLAIN_NONE, "", 0},
      {"pragma x", WL_STMT_OTHER, WL_EXPLAIN_NONE, "PRAGMA", 0},
      {"\"select\" 1", WL_STMT_OTHER, WL_EXPLAIN_NONE, "", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    wl_arena arena;
    wl_stmt *s = NULL;
    wl_arena_init(&arena);
    wl_status st = wl_parse(&arena, cases[i].sql, strlen(cases[i].sql), &s, NULL);
    report(st == WL_OK && s->kind == cases[i].kind && s->explain == cases[i].explain &&
               strcmp(s->verb, cases[i].verb) == 0 && s->body == cases[i].body,
           "statement %zu", i);
    wl_arena_close(&arena);
  }
  report(parse("explain", NULL) == WL_ERROR, "EXPLAIN of nothing is refused");
  report(parse("select 1; select 2", NULL) == WL_ERROR, "two statements are refused");
}

/* The columns' own texts, between bars. */
static void test_positions(void) {
  const char *sql =
      "SELECT /*a*/ a+ b /*b*/, ( x )y, ((1)) ,f( 2 ) filter ( where 3 )over w z,"
      "count(*) OVER (ROWS 1 PRECEDING) , - 9223372036854775808,a . b ,x in t ,"
      "c collate nocase, cast ( a as int ( 3 ) ),case a when b then c end,"
      "a not null /**/,  (1 , 2)=(select 1, 2 ),?1 ,'a''b' is not null  -- c\n FROM t";
  const char *want = "a+ b|( x )|((1))|f( 2 ) filter ( where 3 )over w|"
                     "count(*) OVER (ROWS 1 PRECEDING)|- 9223372036854775808|a . b|x in t|"
                     "c collate nocase|cast ( a as int ( 3 ) )|case a when b then c end|"
                     "a not null|(1 , 2)=(select 1, 2 )|?1|'a''b' is not null|";
  wl_arena arena;
  wl_stmt *s = NULL;
  unparse_buf b = {0};
  wl_arena_init(&arena);
  wl_status st = wl_parse(&arena, sql, strlen(sql), &s, NULL);
  if (st == WL_OK) {
    for (const wl_result_col *c = s->select->cols; c; c = c->next) {
      put_bytes(&b, sql + c->expr->pos, c->expr->end - c->expr->pos);
      put(&b, "|");
    }
  }
  report(st == WL_OK && b.s && strcmp(b.s, want) == 0, "positions of result columns");
  if (b.s && strcmp(b.s, want) != 0) printf("#   want %s\n#   got  %s\n", want, b.s);
  free(b.s);
  wl_arena_close(&arena);
}

static void test_params(void) {
  static const char *const cases[] = {
      "select ?, ?, ?",
      "select ?5, ?, ?2, ?",
      "select :a, @a, $a, :a, ?",
      "select $a::b(c), $a::b(c), $a, :x1, ?3, ?",
      "select ?, ?1, ?007",
      "select ?3, :a, :b, :a limit ? offset :b",
      "select (select ? where :q) from (select @z) order by :q, ?",
      "select sum(1) over (order by 1 rows ? preceding), ? group by ?9",
      "select #a, :a$b, @1, ?",
      "select 1",
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sqlite3_stmt *q = NULL;
    wl_arena arena;
    wl_stmt *s = NULL;
    wl_arena_init(&arena);
    bool ok = sqlite3_prepare_v2(db, cases[i], -1, &q, NULL) == SQLITE_OK &&
              wl_parse(&arena, cases[i], strlen(cases[i]), &s, NULL) == WL_OK &&
              s->n_params == sqlite3_bind_parameter_count(q);
    for (int k = 0; ok && k < s->n_params; k++) {
      const char *theirs = sqlite3_bind_parameter_name(q, k + 1), *ours = s->params[k];
      if (!theirs) ok = !ours || strcmp(ours, "?") == 0;
      if (theirs) ok = ours && strcmp(ours, theirs) == 0;
    }
    report(ok, "parameters of %s", cases[i]);
    sqlite3_finalize(q);
    wl_arena_close(&arena);
  }
  report(parse("select ?0", NULL) == WL_ERROR && parse("select ?250001", NULL) == WL_ERROR &&
             parse("select ?99999999999999999999", NULL) == WL_ERROR,
         "parameter numbers out of range");
}

/* ---- what SQLite accepts */

enum verdict { ACCEPTS, REFUSES, UNSURE };

/* Whether SQLite finds the text to be a statement, whatever the names in it mean. */
static enum verdict sqlite_says(const char *sql) {
  static const char *const after_parse[] = {"no such column",   "no such table",
                                            "no such function", "wrong number of arguments",
                                            "ambiguous column", "no such collation"};
  static const char *const in_parse[] = {"syntax error", "incomplete input", "unrecognized token"};
  sqlite3_stmt *q = NULL;
  const char *tail = "";
  int rc = sqlite3_prepare_v2(db, sql, -1, &q, &tail);
  bool more = rc == SQLITE_OK && tail[strspn(tail, " ;\n\t\r")] != 0;
  sqlite3_finalize(q);
  if (more) return UNSURE;
  if (rc == SQLITE_OK) return ACCEPTS;
  const char *message = sqlite3_errmsg(db);
  for (size_t i = 0; i < sizeof in_parse / sizeof in_parse[0]; i++)
    if (strstr(message, in_parse[i])) return REFUSES;
  for (size_t i = 0; i < sizeof after_parse / sizeof after_parse[0]; i++)
    if (strncmp(message, after_parse[i], strlen(after_parse[i])) == 0) return ACCEPTS;
  return UNSURE;
}

/* Whether we judge as SQLite does; counts the judgements that were sure. */
static bool agrees(const char *sql, int *n_accepted, int *n_refused) {
  int n_programs = 0;
  wl_arena arena;
  wl_stmt *s = NULL;
  wl_error err = {0};
  wl_arena_init(&arena);
  wl_status st = wl_parse(&arena, sql, strlen(sql), &s, &err);
  bool other = st == WL_OK && s->kind != WL_STMT_SELECT;
  wl_arena_close(&arena);
  if (other) return true;
  enum verdict v = sqlite_says(sql);
  if (v == ACCEPTS) ++*n_accepted;
  if (v == REFUSES) ++*n_refused;
  bool ok = v == UNSURE || (v == ACCEPTS) == (st == WL_OK);
  if (!ok) printf("#   %s\n#   SQLite: %s; here: %s\n", sql, sqlite3_errmsg(db), err.text);
  /* the form writes ? as ?1, which SQLite may see to be the same value as another ?1 */
  if (ok && v == ACCEPTS && !strchr(sql, '?')) ok = same_program(db, sql, &n_programs);
  return ok;
}

static void test_keywords(void) {
  static const char *const frames[] = {
      "select %s",
      "select 1 as %s",
      "select 1 %s",
      "select a.%s from a",
      "select %s.* from a",
      "select 1 from %s",
      "select 1 from a %s",
      "select 1 from a as %s",
      "select %s(1)",
      "select %s.a from a",
      "select 1 from a, b %s, c",
      "select a %s from a",
      "select a from a order by a %s",
      "select a in %s from a",
      "with %s as (select 1) select 1",
      "select cast(1 as %s)",
      "select a collate %s from a",
      "select 1 from a join b using(%s)",
      "select sum(a) over %s from a window %s as ()",
      "select sum(a) over (%s) from a",
      "select sum(a) over (%s rows 1 preceding) from a",
      "select * from a %s join b",
      "select * from a natural %s join b",
      "select a from a limit 1 %s 2",
      "select case a when 1 then %s end from a",
      "select case %s when 1 then 2 end from a",
      "select a from a indexed by %s",
      "select 1 %s select 2",
      "select a %s null from a",
      "select a %s b from a",
      "select a not %s b from a",
      "select %s a from a",
      "select sum(a) over (order by %s rows %s preceding) from a",
      "select count(*) %s (where a) from a",
  };
  int n_bad = 0, n_yes = 0, n_no = 0;
  for (int k = 0; k < sqlite3_keyword_count(); k++) {
    const char *word;
    int n;
    char name[40], sql[200];
    sqlite3_keyword_name(k, &word, &n);
    snprintf(name, sizeof name, "%.*s", n, word);
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
      sqlite3_snprintf(sizeof sql, sql, frames[i], name, name);
      if (!agrees(sql, &n_yes, &n_no)) n_bad++;
    }
  }
  report(n_bad == 0 && n_yes > 1000 && n_no > 1000,
         "every keyword in every place: %d accepted, %d refused as in SQLite, %d differ", n_yes,
         n_no, n_bad);
}

/* Statements made of the tabled ones by changing tokens at random. */
static void test_mutations(int n) {
  static const char *const pool[] = {
      "(",     ")",   ",",  ".",       "*",       "-",    "+",   "~",   "=",      "<",
      "||",    "->>", "a",  "b",       "t",       "1",    "2.5", "'s'", "\"q\"",  "[z]",
      "x'00'", "?",   ":p", "NOT",     "NULL",    "IS",   "IN",  "AND", "OR",     "LIKE",
      "AS",    "(a)", "()", "BETWEEN", "COLLATE", "FROM", "BY",  "ON",  "ESCAPE",
  };
  int n_bad = 0, n_yes = 0, n_no = 0;
  for (int i = 0; i < n; i++) {
    char tokens[400][80];
    int n_tokens = 0;
    const char *s = forms[below(N_FORMS)][1];
    if (!s || strlen(s) > 2000) continue;
    while (*s && n_tokens < 300) { /* words, strings and single characters */
      size_t len = 1;
      if (*s == '\'' || *s == '"') {
        while (s[len] && s[len] != *s) len++;
        if (s[len]) len++;
      } else {
        len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789<>|=.");
        if (!len) len = 1;
      }
      if (len > 79) len = 79;
      if (*s != ' ') {
        memcpy(tokens[n_tokens], s, len);
        tokens[n_tokens++][len] = 0;
      }
      s += len;
    }
    for (unsigned m = 1 + below(3); m && n_tokens; m--) {
      unsigned at = below((unsigned)n_tokens), other = below((unsigned)n_tokens);
      const char *word;
      int len;
      switch (below(5)) {
      case 0: /* leave out */
        memmove(tokens[at], tokens[at + 1], sizeof tokens[0] * (size_t)(n_tokens - (int)at - 1));
        n_tokens--;
        break;
      case 1: /* copy over */ memmove(tokens[at], tokens[other], sizeof tokens[0]); break;
      case 2: /* a keyword */
        sqlite3_keyword_name((int)below((unsigned)sqlite3_keyword_count()), &word, &len);
        snprintf(tokens[at], sizeof tokens[0], "%.*s", len, word);
        break;
      case 3: /* another */ strcpy(tokens[at], pool[below(sizeof pool / sizeof pool[0])]); break;
      default: /* put in */
        memmove(tokens[at + 1], tokens[at], sizeof tokens[0] * (size_t)(n_tokens - (int)at));
        strcpy(tokens[at], pool[below(sizeof pool / sizeof pool[0])]);
        n_tokens++;
      }
    }
    unparse_buf b = {0};
    for (int k = 0; k < n_tokens; k++) {
      put(&b, tokens[k]);
      put(&b, " ");
    }
    if (b.s && !agrees(b.s, &n_yes, &n_no)) n_bad++;
    free(b.s);
  }
  report(n_bad == 0 && n_yes > n / 50 && n_no > n / 50,
         "changed statements: %d accepted, %d refused as in SQLite, %d differ", n_yes, n_no, n_bad);
}

/* Text of characters that matter to the lexer. */
static void test_characters(int n) {
  static const char alphabet[] =
      "0123456789.eExX'\"`[]$:@#?_aAbz \t\n\v\f-/*+<>=!|&~%(),\\\x80\xef\xbb\xbf";
  int n_bad = 0, n_yes = 0, n_no = 0;
  for (int i = 0; i < n; i++) {
    char sql[64] = "select ";
    size_t at = 7;
    for (unsigned k = 1 + below(below(3) ? 5 : 20); k; k--)
      sql[at++] = alphabet[below(sizeof alphabet - 1)];
    sql[at] = 0;
    if (!agrees(sql, &n_yes, &n_no)) n_bad++;
  }
  report(n_bad == 0 && n_yes > n / 50 && n_no > n / 50,
         "random characters: %d accepted, %d refused as in SQLite, %d differ", n_yes, n_no, n_bad);
}

/* ---- precedence, by value */

static void random_expr(unparse_buf *b, int depth) {
  static const char *const leaves[] = {"0",
                                       "1",
                                       "2",
                                       "3",
                                       "-1",
                                       "7",
                                       "1.5",
                                       ".5",
                                       "2e1",
                                       "NULL",
                                       "'a'",
                                       "'A'",
                                       "'1'",
                                       "'[1,2]'",
                                       "'2.5'",
                                       "''",
                                       "x'31'",
                                       "0x10",
                                       "9223372036854775807",
                                       "-9223372036854775808"};
  static const char *const binary[] = {" OR ",
                                       " AND ",
                                       " = ",
                                       " == ",
                                       " != ",
                                       " <> ",
                                       " < ",
                                       " <= ",
                                       " > ",
                                       " >= ",
                                       " & ",
                                       " | ",
                                       " << ",
                                       " >> ",
                                       " + ",
                                       " - ",
                                       " * ",
                                       " / ",
                                       " % ",
                                       "||",
                                       " -> ",
                                       " ->> ",
                                       " IS ",
                                       " IS NOT ",
                                       " LIKE ",
                                       " NOT LIKE ",
                                       " GLOB ",
                                       " NOT GLOB ",
                                       " IS DISTINCT FROM ",
                                       " IS NOT DISTINCT FROM "};
  static const char *const prefix[] = {"NOT ", "- ", "+ ", "~ "};
  static const char *const suffix[] = {" ISNULL",         " NOTNULL", " NOT NULL",
                                       " COLLATE NOCASE", " IN ()",   " COLLATE BINARY"};
  if (depth == 0) {
    put(b, leaves[below(sizeof leaves / sizeof leaves[0])]);
    return;
  }
  unsigned kind = below(20);
  if (kind < 11) {
    random_expr(b, (int)below((unsigned)depth));
    put(b, binary[below(sizeof binary / sizeof binary[0])]);
    random_expr(b, (int)below((unsigned)depth));
  } else if (kind < 14) {
    put(b, prefix[below(4)]);
    random_expr(b, depth - 1);
  } else if (kind < 16) {
    random_expr(b, depth - 1);
    put(b, suffix[below(sizeof suffix / sizeof suffix[0])]);
  } else if (kind == 16) {
    random_expr(b, depth - 1);
    put(b, below(2) ? " BETWEEN " : " NOT BETWEEN ");
    random_expr(b, (int)below((unsigned)depth));
    put(b, " AND ");
    random_expr(b, (int)below((unsigned)depth));
  } else if (kind == 17) {
    random_expr(b, depth - 1);
    put(b, below(2) ? " IN (" : " NOT IN (");
    random_expr(b, (int)below((unsigned)depth));
    put(b, ", ");
    random_expr(b, 0);
    put(b, ")");
  } else if (kind == 18) {
    put(b, "CASE ");
    if (below(2)) random_expr(b, 0);
    put(b, " WHEN ");
    random_expr(b, depth - 1);
    put(b, " THEN ");
    random_expr(b, (int)below((unsigned)depth));
    put(b, below(2) ? " ELSE 5 END" : " END");
  } else {
    random_expr(b, depth - 1);
    put(b, " LIKE ");
    random_expr(b, (int)below((unsigned)depth));
    put(b, " ESCAPE 'x'");
  }
}

/* The one row of a query as text with its types; NULL if SQLite raises an error. */
static char *row_of(const char *sql) {
  sqlite3_stmt *q = NULL;
  char *out = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
    out = sqlite3_mprintf("%d %s", sqlite3_column_type(q, 0), sqlite3_column_text(q, 0));
  sqlite3_finalize(q);
  return out;
}

static void test_precedence(int n) {
  int n_bad = 0, n_values = 0;
  for (int i = 0; i < n; i++) {
    unparse_buf b = {0};
    char *form = NULL;
    put(&b, "SELECT ");
    random_expr(&b, 1 + (int)below(5));
    char *want = row_of(b.s);
    bool accepted = sqlite_says(b.s) == ACCEPTS;
    bool ok = !accepted || (parse(b.s, &form) == WL_OK && form);
    char *got = form ? row_of(form) : NULL;
    if (want) n_values++;
    if (ok && want) ok = got && strcmp(got, want) == 0;
    if (ok && !want) ok = !got;
    if (!ok) {
      n_bad++;
      printf("#   %s = %s\n#   %s = %s\n", b.s, want ? want : "error", form ? form : "not parsed",
             got ? got : "error");
    }
    sqlite3_free(want);
    sqlite3_free(got);
    free(form);
    free(b.s);
  }
  report(n_bad == 0 && n_values > n / 2, "precedence: %d random values, %d differ", n_values,
         n_bad);
}

/* ---- limits, garbage, memory */

static char *repeat(const char *head, const char *unit, int n, const char *tail) {
  unparse_buf b = {0};
  put(&b, head);
  for (int i = 0; i < n; i++) put(&b, unit);
  put(&b, tail);
  return b.s;
}

static void expect(wl_status want, const char *head, const char *unit, int n, const char *tail) {
  char *sql = repeat(head, unit, n, tail);
  wl_status st = parse(sql, NULL);
  report(st == want, "%d times '%s' gives %d", n, unit, want);
  free(sql);
}

static void test_limits(void) {
  char message[480];
  char *sql = repeat("SELECT ", "(", 100000, "");
  wl_status st = parse_n(sql, strlen(sql), NULL, message);
  report(st == WL_ERROR && strcmp(message, "too deeply nested") == 0, "100000 parentheses");
  free(sql);
  expect(WL_OK, "SELECT a", "+a", 999, "");
  expect(WL_ERROR, "SELECT a", "+a", 1000, "");
  expect(WL_ERROR, "SELECT a", "+a", 100000, "");
  expect(WL_ERROR, "SELECT ", "NOT ", 100000, "a");
  expect(WL_ERROR, "SELECT ", "- ", 100000, "1");
  expect(WL_ERROR, "SELECT a", " COLLATE x", 100000, "");
  expect(WL_ERROR, "SELECT a", " ISNULL", 100000, "");
  expect(WL_ERROR, "SELECT ", "CASE WHEN ", 100000, "");
  expect(WL_ERROR, "", "SELECT (", 100000, "");
  expect(WL_ERROR, "", "SELECT * FROM (", 100000, "");
  expect(WL_ERROR, "SELECT * FROM ", "(", 100000, "");
  expect(WL_ERROR, "", "WITH a AS (", 100000, "");
  expect(WL_ERROR, "SELECT ", "f(", 100000, "");
  expect(WL_ERROR, "SELECT 1", " IN (SELECT 1", 100000, "");
  expect(WL_OK, "SELECT 1", " UNION SELECT 1", 499, "");
  expect(WL_ERROR, "SELECT 1", " UNION SELECT 1", 500, "");
  expect(WL_OK, "SELECT a", ", a", 100000, "");
  expect(WL_OK, "SELECT a IN (1", ", 1", 100000, ")");
  expect(WL_OK, "VALUES (1)", ", (1)", 100000, "");
  expect(WL_OK, "SELECT * FROM t", ", t", 100000, "");
}

static void test_garbage(int n) {
  for (int i = 0; i < N_FORMS; i++) {
    size_t len = strlen(forms[i][0]);
    for (size_t k = 0; k <= len; k++) (void)!parse_n(forms[i][0], k, NULL, NULL);
  }
  for (int i = 0; i < n; i++) {
    char bytes[200];
    size_t len = below(sizeof bytes);
    for (size_t k = 0; k < len; k++) bytes[k] = (char)below(256);
    if (len > 7 && below(2)) memcpy(bytes, "SELECT ", 7);
    (void)!parse_n(bytes, len, NULL, NULL);
    const char *s = forms[below(N_FORMS)][0];
    len = strlen(s);
    if (len > sizeof bytes) continue;
    memcpy(bytes, s, len);
    for (unsigned k = below(4); k && len; k--) bytes[below((unsigned)len)] = (char)below(256);
    (void)!parse_n(bytes, len, NULL, NULL);
  }
  report(true, "truncated and random text ends in a status");
}

/*
** Lets every allocation of each parse fail once: an arena that has only n_left bytes left
** and can get no more fails at the one that would pass them.
*/
static void test_memory(void) {
  enum { BLOCK = 16 * 1024 };
  int n_bad = 0, n_failures = 0;
  for (int i = 0; i < N_FORMS; i++) {
    for (long mem = 1; mem <= 2; mem++) { /* the parser's stack fails, or it is there */
      wl_status st = WL_NOMEM;
      for (size_t n_left = 0; n_left < BLOCK && st == WL_NOMEM; n_left += 16) {
        wl_arena arena;
        wl_stmt *s = NULL;
        wl_error err = {0};
        wl_arena_init(&arena);
        if (!wl_arena_alloc(&arena, BLOCK - n_left)) abort();
        wl_mem_fail_after(mem);
        st = wl_parse(&arena, forms[i][0], strlen(forms[i][0]), &s, &err);
        wl_mem_fail_after(0);
        wl_arena_close(&arena);
        if (st == WL_NOMEM && err.code != WL_NOMEM) n_bad++;
        n_failures += st == WL_NOMEM;
      }
      if (mem == 2 && st != (forms[i][1] ? WL_OK : WL_ERROR)) n_bad++;
    }
  }
  report(n_bad == 0 && n_failures > 10 * N_FORMS, "out of memory at %d places", n_failures);
}

/* ---- sqllogictest files */

static sqlite3 *slt_db;
static int slt_files, slt_queries, slt_bad;

static void slt_query(const char *sql) {
  if (!same_program(slt_db, sql, &slt_queries)) slt_bad++;
}

static int slt_file(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st;
  (void)ftw;
  size_t len = strlen(path);
  if (type != FTW_F || len < 5 || strcmp(path + len - 5, ".test") != 0) return 0;
  FILE *f = fopen(path, "r");
  if (!f) return 0;
  char line[8192];
  enum { OUTSIDE, QUERY, STATEMENT } in = OUTSIDE;
  unparse_buf sql = {0};
  sqlite3_open(":memory:", &slt_db);
  slt_files++;
  for (;;) {
    bool end = !fgets(line, sizeof line, f);
    if (end || line[0] == '\n' || line[0] == '\r' || strncmp(line, "----", 4) == 0) {
      if (in == QUERY && sql.n) slt_query(sql.s);
      if (in == STATEMENT && sql.n && strncasecmp(sql.s, "insert", 6) != 0)
        sqlite3_exec(slt_db, sql.s, NULL, NULL, NULL);
      in = OUTSIDE;
      sql.n = 0;
      if (end) break;
    } else if (in != OUTSIDE) {
      put(&sql, line);
    } else if (strncmp(line, "query ", 6) == 0) {
      in = QUERY;
    } else if (strncmp(line, "statement ", 10) == 0) {
      in = STATEMENT;
    }
  }
  free(sql.s);
  sqlite3_close(slt_db);
  fclose(f);
  return 0;
}

int main(int argc, char **argv) {
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
  sqlite3_exec(db,
               "CREATE TABLE a(a, b, c, d); CREATE TABLE b(a, b, e); CREATE TABLE t(a, b, x, y);",
               NULL, NULL, NULL);
  test_forms();
  test_statements();
  test_positions();
  test_params();
  test_keywords();
  test_mutations(20000);
  test_characters(20000);
  test_precedence(10000);
  test_limits();
  test_garbage(5000);
  test_memory();
  if (argc > 1) {
    if (nftw(argv[1], slt_file, 16, FTW_PHYS) != 0) slt_bad++;
    report(slt_bad == 0 && slt_queries > 0, "%d queries of %d sqllogictest files, %d bad",
           slt_queries, slt_files, slt_bad);
  }
  sqlite3_close(db);
  return n_failed != 0;
}
