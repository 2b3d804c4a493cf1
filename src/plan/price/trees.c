/*
** Finds the trees that SQLite's program opens, by their root pages.
*/
#include "plan/price/price_impl.h"
#include "value/collation.h"
#include <string.h>

/* The names of the databases, by SQLite's numbers. */
static const char *schema_name(sqlite3 *db, int number, wl_arena *arena) {
  sqlite3_stmt *q = NULL;
  const char *out = NULL;
  if (number == 0) return "main";
  if (number == 1) return "temp";
  if (sqlite3_prepare_v2(db, "PRAGMA database_list", -1, &q, NULL)) return NULL;
  while (!out && sqlite3_step(q) == SQLITE_ROW)
    if (sqlite3_column_int(q, 0) == number)
      out = wl_arena_printf(arena, "%s", (const char *)sqlite3_column_text(q, 1));
  sqlite3_finalize(q);
  return out;
}

/* Reads the name of the tree at a root page, and of its table. */
static bool read_names(sqlite3 *db, wl_priced_tree *t, bool has_records, wl_arena *arena) {
  sqlite3_stmt *q = NULL;
  bool found = false;
  char *sql = sqlite3_mprintf(
      "SELECT tbl_name, CASE WHEN type = 'index' THEN name WHEN %d THEN"
      " (SELECT l.name FROM pragma_index_list(s.name, %Q) AS l WHERE l.origin = 'pk') END"
      " FROM \"%w\".sqlite_schema AS s WHERE rootpage = %u",
      has_records, t->schema, t->schema, t->root);
  if (sql && sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW) {
    const char *table = (const char *)sqlite3_column_text(q, 0);
    const char *index = (const char *)sqlite3_column_text(q, 1);
    if (table) t->table = wl_arena_printf(arena, "%s", table);
    if (index) t->index = wl_arena_printf(arena, "%s", index);
    found = t->table && (t->index || !has_records);
  }
  sqlite3_finalize(q);
  sqlite3_free(sql);
  return found;
}

/* Reads the columns of an index, as far as their order is known. */
static bool read_columns(sqlite3 *db, const wl_store *store, wl_priced_tree *t, wl_arena *arena) {
  sqlite3_stmt *q = NULL;
  bool known = true;
  char *sql = sqlite3_mprintf("PRAGMA \"%w\".index_xinfo(\"%w\")", t->schema, t->index);
  t->cols = WL_NEW_N(arena, const char *, WL_TREE_COLS);
  if (!t->cols || !sql || sqlite3_prepare_v2(db, sql, -1, &q, NULL)) known = false;
  while (known && t->tree.n_cols < WL_TREE_COLS && sqlite3_step(q) == SQLITE_ROW) {
    int k = t->tree.n_cols, coll = wl_collation_find((const char *)sqlite3_column_text(q, 4));
    const char *name = (const char *)sqlite3_column_text(q, 2);
    if (coll < 0 || !wl_store_collation(store, coll)) break; /* the application's order */
    t->tree.coll[k] = (wl_u8)coll;
    t->tree.desc[k] = sqlite3_column_int(q, 3) != 0;
    t->cols[k] = name ? wl_arena_printf(arena, "%s", name) : NULL;
    t->tree.n_cols++;
  }
  sqlite3_finalize(q);
  sqlite3_free(sql);
  return known;
}

static bool add_tree(sqlite3 *db, const wl_store *store, const wl_vdbe_step *s, wl_arena *arena,
                     wl_priced *out) {
  bool has_records = s->p4[0] == 'k' && s->p4[1] == '(';
  for (int i = 0; i < out->n_trees; i++)
    if (out->trees[i].db == s->p3 && out->trees[i].root == (wl_u32)s->p2) return true;
  wl_priced_tree *t = &out->trees[out->n_trees];
  memset(t, 0, sizeof *t);
  t->db = s->p3;
  t->root = t->tree.root = (wl_u32)s->p2;
  t->tree.of_table = !has_records;
  t->schema = schema_name(db, s->p3, arena);
  if (!t->schema || !read_names(db, t, has_records, arena)) return false;
  if (has_records && !read_columns(db, store, t, arena)) return false;
  out->n_trees++;
  return true;
}

static bool opens_tree(const wl_vdbe_step *s) {
  return s->op == WL_VDBE_OpenRead || s->op == WL_VDBE_ReopenIdx;
}

wl_status wl_priced_read(sqlite3 *db, const wl_store *store, const char *sql, size_t n,
                         wl_arena *arena, wl_priced *out, wl_error *err) {
  int n_opens = 0;
  memset(out, 0, sizeof *out);
  wl_status rc = wl_vdbe_read(db, sql, n, arena, &out->program, err);
  if (rc) return rc;
  for (int i = 0; i < out->program.n; i++) n_opens += opens_tree(&out->program.steps[i]);
  out->trees = WL_NEW_N(arena, wl_priced_tree, n_opens + 1);
  if (!out->trees) return wl_nomem(err);
  for (int i = 0; i < out->program.n; i++)
    if (opens_tree(&out->program.steps[i]) &&
        !add_tree(db, store, &out->program.steps[i], arena, out))
      return arena->failed ? wl_nomem(err) : wl_not_taken(err, "SQLite's plan cannot be read");
  return WL_OK;
}

void wl_priced_table(const wl_priced *p, int i, const char **schema, const char **table) {
  *schema = p->trees[i].schema;
  *table = p->trees[i].table;
}
