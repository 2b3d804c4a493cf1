/*
** Output modes that print each row at once: all except the columnar ones, which are in table.c.
**
** Invariants:
** 1. List, csv and json mode allocate nothing per row.
** 2. A text ends at its first NUL byte, as in sqlite3. List and csv mode print blobs as texts.
** 3. Only this thread uses stdout, so the unlocked functions of stdio are safe.
*/
#include "shell.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  bool columnar;
} modes[] = {
    [MODE_LINE] = {"line", false},        [MODE_COLUMN] = {"column", true},
    [MODE_LIST] = {"list", false},        [MODE_HTML] = {"html", false},
    [MODE_INSERT] = {"insert", false},    [MODE_QUOTE] = {"quote", false},
    [MODE_TCL] = {"tcl", false},          [MODE_CSV] = {"csv", false},
    [MODE_ASCII] = {"ascii", false},      [MODE_JSON] = {"json", false},
    [MODE_MARKDOWN] = {"markdown", true}, [MODE_TABLE] = {"table", true},
    [MODE_BOX] = {"box", true},           [MODE_COUNT] = {"count", false},
    [MODE_OFF] = {"off", false},
};

const char *wl_output_mode_name(wl_mode mode) {
  return modes[mode].name;
}

bool wl_output_is_columnar(wl_mode mode) {
  return modes[mode].columnar;
}

static void put(const char *z) {
  fputs_unlocked(z, stdout);
}

static void put_char(int c) {
  putc_unlocked(c, stdout);
}

static void put_int(sqlite3_int64 v) {
  char buf[24], *z = buf + sizeof buf;
  sqlite3_uint64 u = v < 0 ? 0 - (sqlite3_uint64)v : (sqlite3_uint64)v;
  do {
    *--z = (char)('0' + u % 10);
    u /= 10;
  } while (u);
  if (v < 0) *--z = '-';
  fwrite_unlocked(z, 1, (size_t)(buf + sizeof buf - z), stdout);
}

/* A value as text; NULL for an SQL NULL. */
static const char *value_text(sqlite3_stmt *stmt, int col) {
  return (const char *)sqlite3_column_text(stmt, col);
}

/* ---- list, ascii */

static void list_row(wl_shell *sh, sqlite3_stmt *stmt, int n_col) {
  for (int i = 0; i < n_col; i++) {
    if (i) put(sh->col_sep);
    if (sqlite3_column_type(stmt, i) == SQLITE_INTEGER) {
      put_int(sqlite3_column_int64(stmt, i));
    } else {
      const char *z = value_text(stmt, i);
      put(z ? z : sh->null_value);
    }
  }
  put(sh->row_sep);
}

static void list_header(wl_shell *sh, sqlite3_stmt *stmt, int n_col) {
  for (int i = 0; i < n_col; i++) {
    if (i) put(sh->col_sep);
    put(sqlite3_column_name(stmt, i));
  }
  put(sh->row_sep);
}

/* ---- csv */

static bool csv_plain(unsigned char c) {
  return c > ' ' && c < 0x7f && c != '"' && c != '\'';
}

static void csv_value(wl_shell *sh, const char *z) {
  if (!z) {
    put(sh->null_value);
    return;
  }
  const char *end = z;
  while (csv_plain((unsigned char)*end)) end++;
  if (end != z && !*end && !strstr(z, sh->col_sep)) {
    put(z);
    return;
  }
  put_char('"');
  for (; *z; z++) {
    if (*z == '"') put_char('"');
    put_char(*z);
  }
  put_char('"');
}

static void csv_row(wl_shell *sh, sqlite3_stmt *stmt, int n_col) {
  for (int i = 0; i < n_col; i++) {
    if (i) put(sh->col_sep);
    csv_value(sh, value_text(stmt, i));
  }
  put(sh->row_sep);
}

static void csv_header(wl_shell *sh, sqlite3_stmt *stmt, int n_col) {
  for (int i = 0; i < n_col; i++) {
    if (i) put(sh->col_sep);
    csv_value(sh, sqlite3_column_name(stmt, i));
  }
  put(sh->row_sep);
}

/* ---- json */

static void json_string(const char *z, size_t n) {
  static const char letters[] = "\bb\ff\nn\rr\tt\"\"\\\\";
  put_char('"');
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)z[i];
    if (c >= ' ' && c != '"' && c != '\\') {
      put_char(c);
      continue;
    }
    put_char('\\');
    const char *l = letters;
    while (*l && (unsigned char)*l != c) l += 2;
    if (*l)
      put_char(l[1]);
    else
      fprintf(stdout, "u%04x", c);
  }
  put_char('"');
}

/* Writes a REAL with all its digits. z has at least 50 bytes. */
static void exact_real(char *z, double r) {
  if (isinf(r))
    strcpy(z, r < 0 ? "-1e999" : "1e999");
  else
    sqlite3_snprintf(50, z, "%!.20g", r);
}

static void json_row(sqlite3_stmt *stmt, int n_col, sqlite3_int64 i_row) {
  char real[50];
  put(i_row ? ",\n{" : "[{");
  for (int i = 0; i < n_col; i++) {
    const char *name = sqlite3_column_name(stmt, i), *z;
    if (i) put_char(',');
    json_string(name, strlen(name));
    put_char(':');
    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_NULL: put("null"); break;
    case SQLITE_INTEGER: put_int(sqlite3_column_int64(stmt, i)); break;
    case SQLITE_FLOAT:
      exact_real(real, sqlite3_column_double(stmt, i));
      put(real);
      break;
    case SQLITE_BLOB:
      z = sqlite3_column_blob(stmt, i);
      json_string(z, (size_t)sqlite3_column_bytes(stmt, i));
      break;
    default: z = value_text(stmt, i); json_string(z ? z : "", z ? strlen(z) : 0);
    }
  }
  put_char('}');
}

/* ---- SQL literals: quote, insert */

static void sql_string(const char *z) {
  put_char('\'');
  for (; *z; z++) {
    if (*z == '\'') put_char('\'');
    put_char(*z);
  }
  put_char('\'');
}

static void sql_blob(sqlite3_stmt *stmt, int col) {
  const unsigned char *p = sqlite3_column_blob(stmt, col);
  int n = sqlite3_column_bytes(stmt, col);
  put("X'");
  for (int i = 0; i < n; i++) {
    put_char("0123456789abcdef"[p[i] >> 4]);
    put_char("0123456789abcdef"[p[i] & 15]);
  }
  put_char('\'');
}

/* A text that does not occur in z, to replace line ends in it. */
static const char *stand_in(const char *z, const char *first, const char *second, char buf[20]) {
  if (!strstr(z, first)) return first;
  if (!strstr(z, second)) return second;
  for (unsigned i = 0;; i++) {
    snprintf(buf, 20, "(%s%u)", first, i);
    if (!strstr(z, buf)) return buf;
  }
}

/* Writes a string literal on one line. Line ends become other texts, which replace() turns back. */
static void sql_string_one_line(const char *z) {
  char buf_nl[20], buf_cr[20];
  if (!strpbrk(z, "\r\n")) {
    sql_string(z);
    return;
  }
  const char *nl = strchr(z, '\n') ? stand_in(z, "\\n", "\\012", buf_nl) : NULL;
  const char *cr = strchr(z, '\r') ? stand_in(z, "\\r", "\\015", buf_cr) : NULL;
  if (nl) put("replace(");
  if (cr) put("replace(");
  put_char('\'');
  for (; *z; z++) {
    if (*z == '\n') {
      put(nl);
    } else if (*z == '\r') {
      put(cr);
    } else {
      if (*z == '\'') put_char('\'');
      put_char(*z);
    }
  }
  put_char('\'');
  if (cr) fprintf(stdout, ",'%s',char(13))", cr);
  if (nl) fprintf(stdout, ",'%s',char(10))", nl);
}

static void quote_row(wl_shell *sh, sqlite3_stmt *stmt, int n_col) {
  char real[50];
  for (int i = 0; i < n_col; i++) {
    if (i) put(sh->col_sep);
    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_NULL: put("NULL"); break;
    case SQLITE_INTEGER: put_int(sqlite3_column_int64(stmt, i)); break;
    case SQLITE_FLOAT:
      sqlite3_snprintf(sizeof real, real, "%!.20g", sqlite3_column_double(stmt, i));
      put(real);
      break;
    case SQLITE_BLOB: sql_blob(stmt, i); break;
    default: sql_string(value_text(stmt, i));
    }
  }
  put(sh->row_sep);
}

static void quote_header(wl_shell *sh, sqlite3_stmt *stmt, int n_col) {
  for (int i = 0; i < n_col; i++) {
    if (i) put(sh->col_sep);
    sql_string(sqlite3_column_name(stmt, i));
  }
  put(sh->row_sep);
}

static void insert_row(wl_shell *sh, sqlite3_stmt *stmt, int n_col) {
  char real[50];
  fprintf(stdout, "INSERT INTO %s", sh->insert_table);
  if (sh->headers) {
    put_char('(');
    for (int i = 0; i < n_col; i++) {
      const char *name = sqlite3_column_name(stmt, i);
      if (i) put_char(',');
      if (wl_output_must_quote(name)) {
        char *z = sqlite3_mprintf("\"%w\"", name);
        put(z ? z : name);
        sqlite3_free(z);
      } else {
        put(name);
      }
    }
    put_char(')');
  }
  for (int i = 0; i < n_col; i++) {
    put(i ? "," : " VALUES(");
    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_NULL: put("NULL"); break;
    case SQLITE_INTEGER: put_int(sqlite3_column_int64(stmt, i)); break;
    case SQLITE_FLOAT:
      exact_real(real, sqlite3_column_double(stmt, i));
      put(real);
      break;
    case SQLITE_BLOB: sql_blob(stmt, i); break;
    default: sql_string_one_line(value_text(stmt, i));
    }
  }
  put(");\n");
}

bool wl_output_must_quote(const char *name) {
  if (!isalpha((unsigned char)*name) && *name != '_') return true;
  for (const char *z = name; *z; z++)
    if (!isalnum((unsigned char)*z) && *z != '_') return true;
  return sqlite3_keyword_check(name, (int)strlen(name)) != 0;
}

char *wl_output_literal(sqlite3_stmt *stmt, int col) {
  switch (sqlite3_column_type(stmt, col)) {
  case SQLITE_NULL: return sqlite3_mprintf("NULL");
  case SQLITE_INTEGER:
  case SQLITE_FLOAT: return sqlite3_mprintf("%s", value_text(stmt, col));
  case SQLITE_TEXT: return sqlite3_mprintf("%Q", value_text(stmt, col));
  }
  const unsigned char *p = sqlite3_column_blob(stmt, col);
  int n = sqlite3_column_bytes(stmt, col);
  char *hex = sqlite3_malloc64((sqlite3_uint64)n * 2 + 4);
  if (!hex) return NULL;
  char *z = hex;
  *z++ = 'x';
  *z++ = '\'';
  for (int i = 0; i < n; i++) {
    *z++ = "0123456789abcdef"[p[i] >> 4];
    *z++ = "0123456789abcdef"[p[i] & 15];
  }
  *z++ = '\'';
  *z = 0;
  return hex;
}

/* ---- line, html, tcl */

static void line_row(wl_shell *sh, sqlite3_stmt *stmt, int n_col, sqlite3_int64 i_row) {
  int width = 5;
  for (int i = 0; i < n_col; i++) {
    int n = (int)strlen(sqlite3_column_name(stmt, i));
    if (n > width) width = n;
  }
  if (i_row) put(sh->row_sep);
  for (int i = 0; i < n_col; i++) {
    const char *z = value_text(stmt, i);
    fprintf(stdout, "%*s = ", width, sqlite3_column_name(stmt, i));
    put(z ? z : sh->null_value);
    put(sh->row_sep);
  }
}

static void html_text(const char *z) {
  for (; *z; z++) {
    switch (*z) {
    case '<': put("&lt;"); break;
    case '&': put("&amp;"); break;
    case '>': put("&gt;"); break;
    case '"': put("&quot;"); break;
    case '\'': put("&#39;"); break;
    default: put_char(*z);
    }
  }
}

static void html_row(wl_shell *sh, sqlite3_stmt *stmt, int n_col, bool header) {
  put("<TR>");
  for (int i = 0; i < n_col; i++) {
    const char *z = header ? sqlite3_column_name(stmt, i) : value_text(stmt, i);
    put(header ? "<TH>" : "<TD>");
    html_text(z ? z : sh->null_value);
    put(header ? "</TH>\n" : "</TD>\n");
  }
  put("</TR>\n");
}

void wl_output_c_string(FILE *out, const char *z) {
  putc('"', out);
  for (; *z; z++) {
    unsigned char c = (unsigned char)*z;
    switch (c) {
    case '\\': fputs("\\\\", out); break;
    case '"': fputs("\\\"", out); break;
    case '\t': fputs("\\t", out); break;
    case '\n': fputs("\\n", out); break;
    case '\r': fputs("\\r", out); break;
    default:
      if (c < ' ' || c >= 0x7f)
        fprintf(out, "\\%03o", c);
      else
        putc(c, out);
    }
  }
  putc('"', out);
}

static void tcl_row(wl_shell *sh, sqlite3_stmt *stmt, int n_col, bool header) {
  for (int i = 0; i < n_col; i++) {
    const char *z = header ? sqlite3_column_name(stmt, i) : value_text(stmt, i);
    if (i) put(sh->col_sep);
    wl_output_c_string(stdout, z ? z : sh->null_value);
  }
  put(sh->row_sep);
}

/* ---- all modes */

void wl_output_row(wl_shell *sh, sqlite3_stmt *stmt, int n_col, sqlite3_int64 i_row) {
  bool header = sh->headers && i_row == 0;
  switch (sh->mode) {
  case MODE_LIST:
  case MODE_ASCII:
    if (header) list_header(sh, stmt, n_col);
    list_row(sh, stmt, n_col);
    break;
  case MODE_CSV:
    if (header) csv_header(sh, stmt, n_col);
    csv_row(sh, stmt, n_col);
    break;
  case MODE_JSON: json_row(stmt, n_col, i_row); break;
  case MODE_QUOTE:
    if (header) quote_header(sh, stmt, n_col);
    quote_row(sh, stmt, n_col);
    break;
  case MODE_INSERT: insert_row(sh, stmt, n_col); break;
  case MODE_LINE: line_row(sh, stmt, n_col, i_row); break;
  case MODE_HTML:
    if (header) html_row(sh, stmt, n_col, true);
    html_row(sh, stmt, n_col, false);
    break;
  case MODE_TCL:
    if (header) tcl_row(sh, stmt, n_col, true);
    tcl_row(sh, stmt, n_col, false);
    break;
  case MODE_COUNT:
  case MODE_OFF:
  default: break; /* table.c prints the columnar modes */
  }
}

void wl_output_end(wl_shell *sh, sqlite3_int64 n_rows) {
  if (sh->mode == MODE_JSON && n_rows) put("]\n");
  if (sh->mode == MODE_COUNT && n_rows)
    printf("%lld row%s\n", (long long)n_rows, n_rows == 1 ? "" : "s");
}
