/*
** Columnar output modes: column, table, markdown and box. All rows are read before the first is
** printed, because a column is as wide as its longest cell.
**
** Invariants:
** 1. Widths count characters, that is UTF-8 sequences, as sqlite3 counts them.
** 2. cells has lines of n_col cells. Line 0 is the header. A row may take several lines;
**    last_of_row marks the last line of each row.
*/
#include "shell.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct table {
  char **cells; /* n_lines * n_col, owned, each by malloc */
  bool *last_of_row;
  size_t n_lines, room; /* lines in use, and lines allocated */
  int n_col;
  int *width;
  bool multi_line; /* a row has more than one line, so there are rules between rows */
  bool no_memory;
} table;

/* How a mode is drawn. A rule has a left end, a stroke, a crossing and a right end. */
typedef struct style {
  const char *left, *between, *right;
  const char *top[4], *middle[4], *bottom[4];
} style;

static const style box_style = {
    "│ ", " │ ", " │\n", {"┌", "─", "┬", "┐\n"}, {"├", "─", "┼", "┤\n"}, {"└", "─", "┴", "┘\n"},
};
static const style table_style = {
    "| ", " | ", " |\n", {"+", "-", "+", "+\n"}, {"+", "-", "+", "+\n"}, {"+", "-", "+", "+\n"},
};
static const style markdown_style = {
    "| ", " | ", " |\n", {NULL}, {"|", "-", "|", "|\n"}, {NULL},
};

static void put(const char *z) {
  fputs_unlocked(z, stdout);
}

static void put_spaces(int n) {
  while (n-- > 0) putc_unlocked(' ', stdout);
}

static bool continues(char c) {
  return (c & 0xc0) == 0x80;
}

static int n_chars(const char *z) {
  int n = 0;
  for (; *z; z++)
    if (!continues(*z)) n++;
  return n;
}

/* Where to break z between words, if only end bytes fit. Returns end if there is no such place. */
static size_t word_break(const char *z, size_t end) {
  size_t k;
  for (k = end; k > end / 2; k--)
    if (isspace((unsigned char)z[k - 1])) return k;
  for (k = end; k > end / 2; k--)
    if (!isalnum((unsigned char)z[k - 1]) != !isalnum((unsigned char)z[k]) && !continues(z[k]))
      return k;
  return end;
}

/*
** The first line of a cell's text: up to a control character or max_width characters, with tabs as
** spaces. The caller frees it. *rest is the text after it, or NULL.
*/
static char *first_line(const char *z, const char **rest, int max_width, bool wordwrap) {
  size_t i = 0, n_out = 0;
  int n = 0;
  if (max_width <= 0) max_width = 1000000;
  while (n < max_width) {
    if ((unsigned char)z[i] >= ' ') {
      n++;
      do {
        i++;
        n_out++;
      } while (continues(z[i]));
    } else if (z[i] == '\t') {
      do {
        n++;
        n_out++;
      } while (n % 8 && n < max_width);
      i++;
    } else {
      break;
    }
  }
  size_t end = i;
  if (n >= max_width && wordwrap) {
    end = word_break(z, i);
    if (end < i || (end > 0 && isspace((unsigned char)z[end - 1]))) {
      i = end;
      while (z[i] == ' ') i++;
    }
  }
  if (n >= max_width && (unsigned char)z[i] >= ' ')
    *rest = z + i;
  else if (z[i] == '\r' && z[i + 1] == '\n')
    *rest = z[i + 2] ? z + i + 2 : NULL;
  else
    *rest = z[i] && z[i + 1] ? z + i + 1 : NULL;

  char *out = malloc(n_out + 1);
  if (!out) return NULL;
  size_t j = 0;
  n = 0;
  for (i = 0; i < end;) {
    if (z[i] == '\t') {
      do {
        n++;
        out[j++] = ' ';
      } while (n % 8 && n < max_width);
      i++;
    } else {
      n++;
      do out[j++] = z[i++];
      while (continues(z[i]));
    }
  }
  out[j] = 0;
  return out;
}

/* Adds a line of cells, which are NULL. */
static bool add_line(table *t) {
  if (t->n_lines == t->room) {
    size_t room = t->room ? t->room * 2 : 64;
    char **cells = realloc(t->cells, room * (size_t)t->n_col * sizeof *cells);
    if (cells) t->cells = cells;
    bool *last = realloc(t->last_of_row, room * sizeof *last);
    if (last) t->last_of_row = last;
    if (!cells || !last) {
      t->no_memory = true;
      return false;
    }
    t->room = room;
  }
  for (int i = 0; i < t->n_col; i++) t->cells[t->n_lines * (size_t)t->n_col + (size_t)i] = NULL;
  t->last_of_row[t->n_lines++] = true;
  return true;
}

static void set_cell(table *t, int col, char *z) {
  if (!z) {
    t->no_memory = true;
    return;
  }
  t->cells[(t->n_lines - 1) * (size_t)t->n_col + (size_t)col] = z;
  int n = n_chars(z);
  if (n > t->width[col]) t->width[col] = n;
}

/* Adds the current row of the statement, on as many lines as it needs. */
static void add_row(const wl_shell *sh, table *t, sqlite3_stmt *stmt, const char **rest,
                    char **literals) {
  for (int i = 0; i < t->n_col; i++) {
    if (sh->quote) {
      sqlite3_free(literals[i]);
      rest[i] = literals[i] = wl_output_literal(stmt, i);
    } else {
      rest[i] = (const char *)sqlite3_column_text(stmt, i);
    }
    if (!rest[i]) rest[i] = sh->null_value;
  }
  bool more = true;
  while (more && add_line(t)) {
    more = false;
    for (int i = 0; i < t->n_col && !t->no_memory; i++) {
      set_cell(t, i, first_line(rest[i] ? rest[i] : "", &rest[i], sh->wrap, sh->wordwrap));
      if (rest[i]) more = true;
    }
    if (more) {
      t->multi_line = true;
      t->last_of_row[t->n_lines - 1] = false;
    }
  }
}

static void put_rule(const table *t, const char *const rule[4]) {
  if (!rule[0]) return;
  for (int i = 0; i < t->n_col; i++) {
    put(rule[i ? 2 : 0]);
    for (int k = 0; k < t->width[i] + 2; k++) put(rule[1]);
  }
  put(rule[3]);
}

static void print_framed(const table *t, const style *s) {
  put_rule(t, s->top);
  put(s->left);
  for (int i = 0; i < t->n_col; i++) {
    int space = t->width[i] - n_chars(t->cells[i]);
    put_spaces(space / 2);
    put(t->cells[i]);
    put_spaces((space + 1) / 2);
    put(i == t->n_col - 1 ? s->right : s->between);
  }
  put_rule(t, s->middle);
  for (size_t line = 1; line < t->n_lines && !wl_input_interrupts(); line++) {
    char **cells = t->cells + line * (size_t)t->n_col;
    put(s->left);
    for (int i = 0; i < t->n_col; i++) {
      put(cells[i]);
      put_spaces(t->width[i] - n_chars(cells[i]));
      put(i == t->n_col - 1 ? s->right : s->between);
    }
    /* Markdown has no rules between rows. */
    if (t->multi_line && t->last_of_row[line] && line + 1 < t->n_lines && s->top[0])
      put_rule(t, s->middle);
  }
  if (!wl_input_interrupts()) put_rule(t, s->bottom);
}

static void print_columns(const table *t, bool header) {
  for (size_t line = header ? 0 : 1; line < t->n_lines && !wl_input_interrupts(); line++) {
    char **cells = t->cells + line * (size_t)t->n_col;
    for (int i = 0; i < t->n_col; i++) {
      put(cells[i]);
      put_spaces(t->width[i] - n_chars(cells[i]));
      put(i == t->n_col - 1 ? "\n" : "  ");
    }
    if (line == 0) {
      for (int i = 0; i < t->n_col; i++) {
        for (int k = 0; k < t->width[i]; k++) putc_unlocked('-', stdout);
        put(i == t->n_col - 1 ? "\n" : "  ");
      }
    } else if (t->multi_line && t->last_of_row[line] && line + 1 < t->n_lines) {
      putc_unlocked('\n', stdout);
    }
  }
}

void wl_table_print(wl_shell *sh, sqlite3_stmt *stmt, int n_col) {
  table t = {.n_col = n_col};
  const char **rest = NULL;
  char **literals = NULL;
  if (sqlite3_step(stmt) != SQLITE_ROW) return;

  t.width = calloc((size_t)n_col, sizeof *t.width);
  rest = calloc((size_t)n_col, sizeof *rest);
  literals = calloc((size_t)n_col, sizeof *literals);
  t.no_memory = !t.width || !rest || !literals || !add_line(&t);
  for (int i = 0; i < n_col && !t.no_memory; i++)
    set_cell(&t, i, first_line(sqlite3_column_name(stmt, i), &rest[i], sh->wrap, sh->wordwrap));
  while (!t.no_memory) {
    add_row(sh, &t, stmt, rest, literals);
    if (sqlite3_step(stmt) != SQLITE_ROW) break;
  }

  if (t.no_memory)
    fputs("Error: out of memory\n", stderr);
  else if (!wl_input_interrupts()) {
    switch (sh->mode) {
    case MODE_COLUMN: print_columns(&t, sh->headers); break;
    case MODE_TABLE: print_framed(&t, &table_style); break;
    case MODE_MARKDOWN: print_framed(&t, &markdown_style); break;
    default: print_framed(&t, &box_style);
    }
  }
  if (wl_input_interrupts()) put("Interrupt\n");

  for (size_t i = 0; i < t.n_lines * (size_t)n_col; i++) free(t.cells[i]);
  if (literals)
    for (int i = 0; i < n_col; i++) sqlite3_free(literals[i]);
  free(t.cells);
  free(t.last_of_row);
  free(t.width);
  free(rest);
  free(literals);
}
