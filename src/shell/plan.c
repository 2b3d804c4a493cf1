/*
** Prints EXPLAIN as a listing and EXPLAIN QUERY PLAN as a tree, in every output mode. For other
** statements output.c and table.c print the rows.
**
** Invariants:
** 1. warplite answers EXPLAIN with an ordinary statement. So a statement also counts as an EXPLAIN
**    if its text begins with that word and it has exactly the columns of an EXPLAIN.
** 2. The tree is printed when all its rows have been read. A row whose parent is unknown is left
**    out.
*/
#include "shell.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PROGRAM_COLS = 8, TREE_COLS = 4 };

static const char *const program_names[PROGRAM_COLS] = {"addr", "opcode", "p1", "p2",
                                                        "p3",   "p4",     "p5", "comment"};
static const int program_width[PROGRAM_COLS] = {4, 13, 4, 4, 4, 13, 2, 13};
static const char *const tree_names[TREE_COLS] = {"id", "parent", "notused", "detail"};

static bool has_columns(sqlite3_stmt *stmt, const char *const *names, int n) {
  if (sqlite3_column_count(stmt) != n) return false;
  for (int i = 0; i < n; i++)
    if (strcmp(sqlite3_column_name(stmt, i), names[i]) != 0) return false;
  return true;
}

wl_plan_kind wl_plan_of(sqlite3_stmt *stmt, const char *sql) {
  if (!sqlite3_stmt_isexplain(stmt) && strncasecmp(sql, "explain", 7) != 0) return PLAN_NONE;
  if (has_columns(stmt, program_names, PROGRAM_COLS)) return PLAN_PROGRAM;
  if (has_columns(stmt, tree_names, TREE_COLS)) return PLAN_TREE;
  return PLAN_NONE;
}

/* ---- the listing */

static bool is_one_of(const char *z, const char *const *names) {
  for (; *names; names++)
    if (strcmp(z, *names) == 0) return true;
  return false;
}

/*
** The indentation of each opcode: two more inside every loop. A loop is found by the jump that
** closes it. The caller frees the result; NULL if memory runs out.
*/
static int *find_indents(sqlite3_stmt *stmt, int *n_ops) {
  static const char *const closers[] = {"Next",       "Prev",   "VPrev", "VNext",
                                        "SorterNext", "Return", NULL};
  static const char *const openers[] = {"Yield", "SeekLT", "SeekGT", "RowSetRead", "Rewind", NULL};
  int *indent = NULL, n = 0, room = 0;
  bool *opens = NULL;
  while (sqlite3_step(stmt) == SQLITE_ROW) {
    const char *op = (const char *)sqlite3_column_text(stmt, 1);
    int p1 = sqlite3_column_int(stmt, 2), target = sqlite3_column_int(stmt, 3);
    /* The addresses of a subprogram begin at 0, so its jumps are relative to its start. */
    target += n - sqlite3_column_int(stmt, 0);
    if (!op) op = "";
    if (n == room) {
      room = room ? room * 2 : 128;
      int *bigger = realloc(indent, (size_t)room * sizeof *indent);
      if (bigger) indent = bigger;
      bool *more = realloc(opens, (size_t)room * sizeof *opens);
      if (more) opens = more;
      if (!bigger || !more) {
        free(indent);
        indent = NULL;
        break;
      }
    }
    indent[n] = 0;
    opens[n] = is_one_of(op, openers);
    bool closes = is_one_of(op, closers);
    if (strcmp(op, "Goto") == 0 && target >= 0 && target < n) closes = opens[target] || p1;
    if (closes)
      for (int i = target < 0 ? 0 : target; i < n; i++) indent[i] += 2;
    n++;
  }
  free(opens);
  sqlite3_reset(stmt);
  *n_ops = n;
  return indent;
}

static int n_chars(const char *z) {
  int n = 0;
  for (; *z; z++)
    if ((*z & 0xc0) != 0x80) n++;
  return n;
}

static void put_padded(const char *z, int width, const char *after) {
  printf("%s%*s%s", z, n_chars(z) < width ? width - n_chars(z) : 0, "", after);
}

static void print_program(sqlite3_stmt *stmt) {
  int n_ops = 0, *indent = NULL;
  bool headed = false;
  if (sqlite3_stmt_isexplain(stmt)) indent = find_indents(stmt, &n_ops);
  for (int row = 0; sqlite3_step(stmt) == SQLITE_ROW; row++) {
    if (!headed) {
      headed = true;
      for (int i = 0; i < PROGRAM_COLS; i++)
        put_padded(program_names[i], program_width[i], i == PROGRAM_COLS - 1 ? "\n" : "  ");
      for (int i = 0; i < PROGRAM_COLS; i++)
        printf("%.*s%s", program_width[i], "-------------", i == PROGRAM_COLS - 1 ? "\n" : "  ");
    }
    for (int i = 0; i < PROGRAM_COLS; i++) {
      const char *z = (const char *)sqlite3_column_text(stmt, i);
      bool last = i == PROGRAM_COLS - 1;
      if (i == 1 && indent && row < n_ops) printf("%*s", indent[row], "");
      put_padded(z ? z : "", last ? 0 : program_width[i], last ? "\n" : "  ");
    }
  }
  free(indent);
}

/* ---- the tree */

typedef struct node {
  struct node *next;
  int id, parent;
  char text[];
} node;

static node *next_child(node *from, int parent) {
  while (from && from->parent != parent) from = from->next;
  return from;
}

static void print_children(node *all, int parent, char *prefix, size_t size) {
  size_t n = strlen(prefix);
  node *next;
  for (node *child = next_child(all, parent); child; child = next) {
    next = next_child(child->next, parent);
    printf("%s%s%s\n", prefix, next ? "|--" : "`--", child->text);
    if (n + 4 < size) {
      memcpy(prefix + n, next ? "|  " : "   ", 4);
      print_children(all, child->id, prefix, size);
      prefix[n] = 0;
    }
  }
}

static void free_nodes(node *all) {
  while (all) {
    node *next = all->next;
    free(all);
    all = next;
  }
}

/* Prints the tree. If the first row is a headline ("-- ..."), it replaces the title. */
static void print_tree_nodes(node *all) {
  char prefix[100] = "";
  const char *title = "QUERY PLAN";
  if (!all) return;
  if (all->text[0] == '-') {
    if (!all->next) {
      printf("%s\n", all->text + (strlen(all->text) > 3 ? 3 : strlen(all->text)));
      return;
    }
    title = all->text + (strlen(all->text) > 3 ? 3 : strlen(all->text));
    all = all->next;
  }
  printf("%s\n", title);
  print_children(all, 0, prefix, sizeof prefix);
}

static void print_tree(sqlite3_stmt *stmt) {
  node *all = NULL, **end = &all;
  while (sqlite3_step(stmt) == SQLITE_ROW) {
    const char *z = (const char *)sqlite3_column_text(stmt, 3);
    if (!z) z = "";
    if (z[0] == '-') { /* a new plan begins, for example that of a trigger */
      print_tree_nodes(all);
      free_nodes(all);
      all = NULL;
      end = &all;
    }
    size_t n = strlen(z) + 1;
    node *row = malloc(sizeof *row + n);
    if (!row) break;
    row->next = NULL;
    row->id = sqlite3_column_int(stmt, 0);
    row->parent = sqlite3_column_int(stmt, 1);
    memcpy(row->text, z, n);
    *end = row;
    end = &row->next;
  }
  print_tree_nodes(all);
  free_nodes(all);
}

void wl_plan_print(sqlite3_stmt *stmt, wl_plan_kind kind) {
  if (kind == PLAN_PROGRAM)
    print_program(stmt);
  else
    print_tree(stmt);
}
