/*
** The dot commands that look at the schema: .tables, .indexes, .schema, .databases.
** They ask SQLite itself. The output mode does not matter.
**
** Invariants:
** 1. They include every attached database, in the order of PRAGMA database_list.
** 2. The output of .schema can be run again.
*/
#include "shell.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SCREEN_COLUMNS = 80, INDENT_FROM = 79 };

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static int database_error(wl_shell *sh) {
  fprintf(stderr, "Error: %s\n", sqlite3_errmsg(sh->db));
  return DOT_ERROR;
}

/*
** Makes one SELECT over the schema tables of all databases. per_db is a format; its arguments are
** the database's number, its name twice as a literal and once as an identifier. The caller frees
** the result. NULL: it has printed an error.
*/
static char *over_databases(wl_shell *sh, const char *per_db) {
  sqlite3_stmt *list = NULL;
  sqlite3_str *sql = sqlite3_str_new(sh->db);
  int rc = sqlite3_prepare_v2(sh->db, "PRAGMA database_list", -1, &list, NULL);
  while (rc == SQLITE_OK && sqlite3_step(list) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(list, 1);
    if (!name) continue;
    if (sqlite3_str_length(sql)) sqlite3_str_appendall(sql, " UNION ALL ");
    sqlite3_str_appendf(sql, per_db, sqlite3_column_int(list, 0), name, name, name);
  }
  if (rc == SQLITE_OK)
    rc = sqlite3_finalize(list);
  else
    sqlite3_finalize(list);
  char *z = sqlite3_str_finish(sql);
  if (rc == SQLITE_OK && z) return z;
  sqlite3_free(z);
  database_error(sh);
  return NULL;
}

/* ---- .tables, .indexes */

static void print_in_columns(char **names, int n) {
  int width = 0;
  for (int i = 0; i < n; i++) {
    int len = (int)strlen(names[i]);
    if (len > width) width = len;
  }
  int n_cols = SCREEN_COLUMNS / (width + 2);
  if (n_cols < 1) n_cols = 1;
  int n_lines = (n + n_cols - 1) / n_cols;
  for (int i = 0; i < n_lines; i++) {
    for (int j = i; j < n; j += n_lines) printf("%s%-*s", j < n_lines ? "" : "  ", width, names[j]);
    putchar('\n');
  }
}

int wl_schema_tables(wl_shell *sh, const char *pattern, bool indexes) {
  sqlite3_stmt *stmt = NULL;
  char **names = NULL;
  int n = 0, room = 0, result = DOT_ERROR;
  char *all, *sql = NULL;

  wl_shell_open(sh, false);
  all = over_databases(sh, indexes ? "SELECT %d AS db, %Q AS s, %Q AS s2, name "
                                     "FROM \"%w\".sqlite_schema WHERE type='index' AND "
                                     "tbl_name LIKE ?1"
                                   : "SELECT %d AS db, %Q AS s, %Q AS s2, name "
                                     "FROM \"%w\".sqlite_schema WHERE type IN ('table','view') "
                                     "AND name NOT LIKE 'sqlite_%%' AND name LIKE ?1");
  if (!all) goto done;
  sql = sqlite3_mprintf("SELECT iif(s='main', '', s||'.')||name FROM (%s) ORDER BY 1", all);
  if (!sql || sqlite3_prepare_v2(sh->db, sql, -1, &stmt, NULL) != SQLITE_OK) {
    database_error(sh);
    goto done;
  }
  sqlite3_bind_text(stmt, 1, pattern ? pattern : "%", -1, SQLITE_STATIC);
  while (sqlite3_step(stmt) == SQLITE_ROW) {
    if (n == room) {
      room = room ? room * 2 : 64;
      char **bigger = realloc(names, (size_t)room * sizeof *names);
      if (!bigger) goto done;
      names = bigger;
    }
    names[n] = strdup((const char *)sqlite3_column_text(stmt, 0));
    if (!names[n++]) goto done;
  }
  int rc = sqlite3_finalize(stmt);
  stmt = NULL;
  if (rc != SQLITE_OK) {
    database_error(sh);
    goto done;
  }
  if (n) print_in_columns(names, n);
  result = DOT_OK;
done:
  sqlite3_finalize(stmt);
  sqlite3_free(all);
  sqlite3_free(sql);
  for (int i = 0; i < n; i++) free(names[i]);
  free(names);
  return result;
}

/* ---- .schema */

static void append_name(sqlite3_str *out, const char *name) {
  sqlite3_str_appendf(out, wl_output_must_quote(name) ? "\"%w\"" : "%s", name);
}

/* Appends "db.name(column, ...)" of a view or virtual table as a comment, if it has columns. */
static void append_columns(wl_shell *sh, sqlite3_str *out, const char *db_name, const char *name) {
  sqlite3_stmt *stmt = NULL;
  int n = 0;
  char *sql = sqlite3_mprintf("PRAGMA \"%w\".table_info=%Q", db_name, name);
  if (sql && sqlite3_prepare_v2(sh->db, sql, -1, &stmt, NULL) == SQLITE_OK) {
    while (sqlite3_step(stmt) == SQLITE_ROW) {
      if (n++ == 0) {
        sqlite3_str_appendall(out, sqlite3_str_length(out) ? "\n/* " : "/* ");
        if (sqlite3_stricmp(db_name, "main") != 0) {
          append_name(out, db_name);
          sqlite3_str_appendall(out, ".");
        }
        append_name(out, name);
        sqlite3_str_appendall(out, "(");
      } else {
        sqlite3_str_appendall(out, ",");
      }
      append_name(out, (const char *)sqlite3_column_text(stmt, 1));
    }
    if (n) sqlite3_str_appendall(out, ") */");
  }
  sqlite3_finalize(stmt);
  sqlite3_free(sql);
}

/*
** A CREATE statement with the name of its database and its columns. If sql is empty, because the
** table exists without a CREATE statement, only its columns.
*/
static char *full_statement(wl_shell *sh, const char *sql, const char *db_name, const char *name) {
  static const char *const kinds[] = {"TABLE", "INDEX",   "UNIQUE INDEX",
                                      "VIEW",  "TRIGGER", "VIRTUAL TABLE"};
  sqlite3_str *out = sqlite3_str_new(sh->db);
  size_t n_head = 0;
  char first = 0;
  if (strncmp(sql, "CREATE ", 7) == 0) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
      size_t n = strlen(kinds[i]);
      if (strncmp(sql + 7, kinds[i], n) != 0 || sql[7 + n] != ' ') continue;
      n_head = 7 + n;
      first = kinds[i][0];
    }
  }
  if (n_head && sqlite3_stricmp(db_name, "main") != 0) {
    bool quoted = wl_output_must_quote(db_name) && sqlite3_stricmp(db_name, "temp") != 0;
    sqlite3_str_append(out, sql, (int)n_head);
    sqlite3_str_appendf(out, quoted ? " \"%w\"." : " %s.", db_name);
    sqlite3_str_appendall(out, sql + n_head + 1);
  } else {
    sqlite3_str_appendall(out, sql);
  }
  if (first == 'V' || !*sql) append_columns(sh, out, db_name, name);
  return sqlite3_str_finish(out);
}

/* Prints n bytes of a statement, and then `after`. Closes a comment that is still open. */
static void print_piece(const char *z, int n, const char *after) {
  static const char *const closers[] = {"", "*/", "\n"};
  const char *closer = "";
  char *piece = sqlite3_mprintf("%.*s", n, z);
  if (!piece) return;
  if (*after == ';' && (strstr(piece, "/*") || strstr(piece, "--"))) {
    for (int i = 0; i < 3; i++) {
      char *whole = sqlite3_mprintf("%s%s;", piece, closers[i]);
      bool complete = whole && sqlite3_complete(whole);
      sqlite3_free(whole);
      if (!complete) continue;
      closer = closers[i];
      break;
    }
  }
  /* A quoted name may be a shadow table, which its virtual table creates before. */
  if (sqlite3_strglob("CREATE TABLE ['\"]*", piece) == 0)
    printf("CREATE TABLE IF NOT EXISTS %s%s%s", piece + 13, closer, after);
  else
    printf("%s%s%s", piece, closer, after);
  sqlite3_free(piece);
}

/* Removes spaces from z that do not separate words. */
static int squeeze(char *z) {
  int n = 0;
  const char *from = z;
  while (is_space(*from)) from++;
  for (; *from; from++) {
    if (is_space(*from)) {
      if (n && z[n - 1] == '\r') z[n - 1] = '\n';
      if (n && (is_space(z[n - 1]) || z[n - 1] == '(')) continue;
    } else if ((*from == '(' || *from == ')') && n && is_space(z[n - 1])) {
      n--;
    }
    z[n++] = *from;
  }
  while (n && is_space(z[n - 1])) n--;
  z[n] = 0;
  return n;
}

static bool only_comment_follows(const char *z) {
  while (*z && *z != '\n' && is_space(*z)) z++;
  return !*z || *z == '\n' || (z[0] == '-' && z[1] == '-');
}

/* .schema --indent: prints a long statement with one column definition per line. */
static void print_indented(char *z) {
  int depth = 0, n_lines = 0;
  char until = 0;
  if (sqlite3_strlike("CREATE VIEW%", z, 0) == 0 || sqlite3_strlike("CREATE TRIG%", z, 0) == 0) {
    printf("%s;\n", z);
    return;
  }
  const char *start = z;
  if (squeeze(z) >= INDENT_FROM) {
    for (char *c = z; *c; c++) {
      if (*c == until) {
        until = 0;
      } else if (*c == '"' || *c == '\'' || *c == '`') {
        until = *c;
      } else if (*c == '[') {
        until = ']';
      } else if (c[0] == '-' && c[1] == '-') {
        until = '\n';
      } else if (*c == '(') {
        depth++;
      } else if (*c == ')') {
        depth--;
        if (n_lines && depth == 0 && c > start) {
          print_piece(start, (int)(c - start), "\n");
          start = c;
        }
      }
      if (depth == 1 && !until &&
          (*c == '(' || *c == '\n' || (*c == ',' && !only_comment_follows(c + 1)))) {
        print_piece(start, (int)(c - start) + (*c == '\n' ? 0 : 1), "\n  ");
        n_lines++;
        while (is_space(c[1])) c++;
        start = c + 1;
      }
    }
  }
  print_piece(start, (int)strlen(start), ";\n");
}

/* The schema tables have no entry of their own. They are printed under the name asked for. */
static void print_schema_tables(const char *pattern) {
  static const char *const names[] = {"sqlite_master", "sqlite_schema", "sqlite_temp_master",
                                      "sqlite_temp_schema"};
  for (int i = 0; i < 4; i++) {
    if (sqlite3_strlike(pattern, names[i], '\\') != 0) continue;
    printf("CREATE TABLE %s (\n  type text,\n  name text,\n  tbl_name text,\n"
           "  rootpage integer,\n  sql text\n);\n",
           pattern);
    return;
  }
}

int wl_schema_show(wl_shell *sh, const char *pattern, bool indent, bool no_system) {
  sqlite3_stmt *stmt = NULL;
  int result = DOT_ERROR;
  wl_shell_open(sh, false);
  char *all = over_databases(sh, "SELECT sql, type, tbl_name, name, rowid AS r, %d AS db, %Q AS s, "
                                 "%Q AS s2 FROM \"%w\".sqlite_schema");
  if (!all) return DOT_ERROR;
  sqlite3_str *sql = sqlite3_str_new(sh->db);
  sqlite3_str_appendf(sql, "SELECT sql, s, name FROM (%s", all);
  /* Tables of modules, which no CREATE made, are shown only if a pattern asks for them. */
  if (pattern)
    sqlite3_str_appendall(sql, " UNION ALL SELECT '', 'table', name, name, name, 9e99, 'main', '' "
                               "FROM pragma_module_list");
  sqlite3_str_appendall(sql, ") WHERE ");
  if (pattern) {
    bool glob = strpbrk(pattern, "*?[") != NULL;
    print_schema_tables(pattern);
    sqlite3_str_appendall(sql, strchr(pattern, '.') ? "lower(printf('%s.%s', s, tbl_name))"
                                                    : "lower(tbl_name)");
    sqlite3_str_appendf(sql, glob ? " GLOB %Q" : " LIKE %Q ESCAPE '\\'", pattern);
    sqlite3_str_appendall(sql, " AND ");
  }
  if (no_system) sqlite3_str_appendall(sql, "name NOT LIKE 'sqlite_%' AND ");
  sqlite3_str_appendall(sql, "sql IS NOT NULL ORDER BY db, r");
  char *text = sqlite3_str_finish(sql);
  if (!text || sqlite3_prepare_v2(sh->db, text, -1, &stmt, NULL) != SQLITE_OK) {
    database_error(sh);
    goto done;
  }
  while (sqlite3_step(stmt) == SQLITE_ROW) {
    char *z = full_statement(sh, (const char *)sqlite3_column_text(stmt, 0),
                             (const char *)sqlite3_column_text(stmt, 1),
                             (const char *)sqlite3_column_text(stmt, 2));
    if (!z || !*z) { /* a module without a table */
      sqlite3_free(z);
      continue;
    }
    if (indent)
      print_indented(z);
    else
      print_piece(z, (int)strlen(z), ";\n");
    sqlite3_free(z);
  }
  int rc = sqlite3_finalize(stmt);
  stmt = NULL;
  if (rc == SQLITE_OK)
    result = DOT_OK;
  else
    database_error(sh);
done:
  sqlite3_finalize(stmt);
  sqlite3_free(text);
  sqlite3_free(all);
  return result;
}

/* ---- .databases */

int wl_schema_databases(wl_shell *sh) {
  static const char *const states[] = {"", " read-txn", " write-txn"};
  sqlite3_stmt *stmt = NULL;
  wl_shell_open(sh, false);
  if (sqlite3_prepare_v2(sh->db, "PRAGMA database_list", -1, &stmt, NULL) != SQLITE_OK)
    return database_error(sh);
  while (sqlite3_step(stmt) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(stmt, 1);
    const char *file = (const char *)sqlite3_column_text(stmt, 2);
    if (!name) continue;
    int state = sqlite3_txn_state(sh->db, name);
    printf("%s: %s %s%s\n", name, file && *file ? file : "\"\"",
           sqlite3_db_readonly(sh->db, name) == 1 ? "r/o" : "r/w",
           state > 0 && state < 3 ? states[state] : "");
  }
  return sqlite3_finalize(stmt) == SQLITE_OK ? DOT_OK : database_error(sh);
}
