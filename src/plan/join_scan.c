/*
** The order of the rows of a join, read from SQLite's program; see scan.h.
**
** Invariants:
** 1. The program is loops inside each other, each over one table or one of its indexes. A row of
**    the outermost loop comes with all its rows of the inner loops before the next one, so the
**    orders of the loops, the outermost first, are the order of the join's rows.
** 2. Each source of the query is one table that the program opens, and each table is one source. A
**    table without a loop has at most one row for each row of the others.
** 3. SQLite's sorter for ORDER BY returns rows with equal keys in the order in which they came.
** 4. Loops that fill an automatic index or a Bloom filter visit no rows of the join. An automatic
**    index has the columns that are put into it as its keys.
*/
#include "plan/scan.h"
#include "plan/price/program.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_TREES = 16 };

/* A tree that the program opens, and the loop over it, if there is one. */
typedef struct join_tree {
  int cursor;
  int root;       /* 0: an automatic index */
  int filled;     /* of an automatic index: the step that puts a row into it */
  int of;         /* of an automatic index: the cursor of its table */
  int head, tail; /* addresses; 0: no loop */
  bool backwards;
  int source;        /* of the query */
  const char *index; /* NULL: the table itself */
} join_tree;

typedef struct join_trees {
  join_tree list[MAX_TREES];
  int n;
  bool grouped; /* subroutines handle groups */
  bool odd;     /* there is something that this file does not understand */
} join_trees;

static join_tree *tree_of(join_trees *t, int cursor) {
  for (int i = 0; i < t->n; i++)
    if (t->list[i].cursor == cursor) return &t->list[i];
  return NULL;
}

/* Whether a temporary table is the sorter of ORDER BY. */
static bool is_sorter(const wl_vdbe *v, int cursor) {
  for (int i = 0; i < v->n; i++)
    if ((v->steps[i].op == WL_VDBE_Sort || v->steps[i].op == WL_VDBE_SorterSort) &&
        v->steps[i].p1 == cursor)
      return true;
  return false;
}

/* Goto from the end of a LEFT JOIN to its body, for a row of NULLs. */
static bool is_null_row(const wl_vdbe *v, int at) {
  for (int i = at - 1; i > 0 && i >= at - 3; i--)
    if (v->steps[i].op == WL_VDBE_NullRow) return true;
  return false;
}

/* The end of the innermost loop around a step, or -1. */
static int end_of_loop(const wl_vdbe *v, int at) {
  for (int i = at + 1; i < v->n; i++)
    if ((v->steps[i].op == WL_VDBE_Next || v->steps[i].op == WL_VDBE_Prev) && v->steps[i].p2 <= at)
      return i;
  return -1;
}

/* Whether a loop only fills an automatic index or a Bloom filter. */
static bool only_fills(join_trees *t, const wl_vdbe *v, int tail) {
  for (int i = v->steps[tail].p2; i < tail; i++) {
    const join_tree *tree = v->steps[i].op == WL_VDBE_IdxInsert ? tree_of(t, v->steps[i].p1) : NULL;
    bool fills = v->steps[i].op == WL_VDBE_FilterAdd || (tree && !tree->root);
    if (fills && end_of_loop(v, i) == tail) return true;
  }
  return false;
}

/* An automatic index. Its rows come from the loop that follows. */
static void add_auto(join_trees *t, const wl_vdbe *v, int at) {
  int cursor = v->steps[at].p1, filled = at;
  while (filled < v->n &&
         !(v->steps[filled].op == WL_VDBE_IdxInsert && v->steps[filled].p1 == cursor))
    filled++;
  int end = end_of_loop(v, filled);
  if (t->n == MAX_TREES || tree_of(t, cursor) || end < 0)
    t->odd = true;
  else
    t->list[t->n++] =
        (join_tree){.cursor = cursor, .filled = filled, .of = v->steps[end].p1, .source = -1};
}

/* Whether a subroutine returns the rows of the sorter. SQLite calls it for each block of rows if
** they come in the order of the first terms of ORDER BY. */
static bool returns_rows(const wl_vdbe *v, int at) {
  while (at > 0 && at < v->n && v->steps[at].op != WL_VDBE_Return) {
    if (v->steps[at].op == WL_VDBE_Sort || v->steps[at].op == WL_VDBE_SorterSort) return true;
    at++;
  }
  return false;
}

/* Whether a step moves a cursor on to the next value of the first columns of its index. */
static bool skips_on(join_trees *t, const wl_vdbe *v, int at) {
  const wl_vdbe_step *s = &v->steps[at];
  return (s->op == WL_VDBE_SeekGT || s->op == WL_VDBE_SeekLT) && tree_of(t, s->p1);
}

static void add_loop_end(join_trees *t, const wl_vdbe *v, int at) {
  const wl_vdbe_step *s = &v->steps[at];
  join_tree *tree = tree_of(t, s->p1);
  if (tree && only_fills(t, v, at)) return;
  if (tree ? tree->tail != 0 : !is_sorter(v, s->p1)) t->odd = true;
  if (!tree) return;
  tree->head = s->p2;
  tree->tail = at;
  tree->backwards = s->op == WL_VDBE_Prev;
}

static void read_step(join_trees *t, const wl_vdbe *v, int at) {
  const wl_vdbe_step *s = &v->steps[at];
  switch (s->op) {
  case WL_VDBE_OpenRead:
    if (t->n == MAX_TREES || tree_of(t, s->p1) || s->p3 != 0)
      t->odd = true;
    else
      t->list[t->n++] = (join_tree){.cursor = s->p1, .root = s->p2, .source = -1};
    break;
  case WL_VDBE_OpenAutoindex: add_auto(t, v, at); break;
  case WL_VDBE_Next:
  case WL_VDBE_Prev: add_loop_end(t, v, at); break;
  case WL_VDBE_OpenEphemeral: t->odd |= !is_sorter(v, s->p1); break;
  case WL_VDBE_Gosub: t->odd |= !t->grouped && !returns_rows(v, s->p2); break;
  case WL_VDBE_Goto:
    t->odd |= s->p2 <= at && s->p2 > 1 && !is_null_row(v, at) && !skips_on(t, v, s->p2);
    break;
  case WL_VDBE_BeginSubrtn:
  case WL_VDBE_InitCoroutine:
  case WL_VDBE_OpenDup:
  case WL_VDBE_ReopenIdx:
  case WL_VDBE_RowSetAdd:
  case WL_VDBE_RowSetTest:
  case WL_VDBE_VOpen: t->odd = true; break;
  default: break;
  }
}

static int by_head(const void *a, const void *b) {
  return ((const join_tree *)a)->head - ((const join_tree *)b)->head;
}

/* Whether the loops are inside each other. Sorts the trees: those without a loop first, then the
** outermost one. */
static bool are_nested(join_trees *t) {
  const join_tree *outer = NULL;
  qsort(t->list, (size_t)t->n, sizeof *t->list, by_head);
  for (int i = 0; i < t->n; i++) {
    if (!t->list[i].tail) continue;
    if (outer && (t->list[i].head <= outer->head || t->list[i].tail >= outer->tail)) return false;
    outer = &t->list[i];
  }
  return true;
}

/* The only source that is this table, or -1. */
static int source_of(const wl_query *q, const char *table) {
  int found = -1;
  for (int s = 0; s < q->n_sources; s++) {
    if (sqlite3_stricmp(q->sources[s].table, table) != 0) continue;
    if (found >= 0) return -1;
    found = s;
  }
  return found;
}

/* Finds the source and the index of each tree, by root pages. False: there is something else. */
static bool name_trees(sqlite3 *db, const wl_query *q, wl_arena *arena, join_trees *t) {
  sqlite3_stmt *rows = NULL;
  int n_named = 0, n_trees = 0;
  sqlite3_str *sql = sqlite3_str_new(db);
  sqlite3_str_appendall(sql, "SELECT rootpage, type, name, tbl_name FROM main.sqlite_schema"
                             " WHERE rootpage IN (0");
  for (int i = 0; i < t->n; i++) {
    if (t->list[i].root) sqlite3_str_appendf(sql, ",%d", t->list[i].root);
    n_trees += t->list[i].root != 0;
  }
  sqlite3_str_appendall(sql, ")");
  char *text = sqlite3_str_finish(sql);
  bool ok = text && sqlite3_prepare_v2(db, text, -1, &rows, NULL) == SQLITE_OK;
  sqlite3_free(text);
  while (ok && sqlite3_step(rows) == SQLITE_ROW) {
    int root = sqlite3_column_int(rows, 0);
    const char *type = (const char *)sqlite3_column_text(rows, 1);
    const char *name = (const char *)sqlite3_column_text(rows, 2);
    const char *table = (const char *)sqlite3_column_text(rows, 3);
    for (int i = 0; ok && root && i < t->n; i++) {
      join_tree *tree = &t->list[i];
      if (tree->root != root) continue;
      tree->source = type && name && table ? source_of(q, table) : -1;
      if (tree->source < 0) ok = false;
      if (ok && strcmp(type, "index") == 0) tree->index = wl_arena_printf(arena, "%s", name);
      n_named++;
    }
  }
  sqlite3_finalize(rows);
  for (int i = 0; ok && i < t->n; i++) {
    const join_tree *of = t->list[i].root ? NULL : tree_of(t, t->list[i].of);
    if (of && of->root && !of->index) t->list[i].source = of->source;
    ok = t->list[i].source >= 0;
  }
  return ok && n_named == n_trees && !arena->failed;
}

/* Invariant 2: each source is there, with at most one loop. */
static bool covers(const wl_query *q, const join_trees *t) {
  for (int s = 0; s < q->n_sources; s++) {
    int n_trees = 0, n_loops = 0;
    for (int i = 0; i < t->n; i++) {
      n_trees += t->list[i].source == s;
      n_loops += t->list[i].source == s && t->list[i].tail;
    }
    if (n_trees == 0 || n_loops > 1) return false;
  }
  return true;
}

static bool is_simple_join(wl_store *store, const wl_query *q) {
  for (int s = 0; s < q->n_sources; s++) {
    const wl_bsource *src = &q->sources[s];
    wl_table *t;
    wl_error ignored;
    if (!src->table || src->single || (src->how != WL_HOW_INNER && src->how != WL_HOW_LEFT) ||
        wl_store_table(store, src->schema, src->table, &t, &ignored) ||
        strcmp(t->schema, "main") != 0)
      return false;
  }
  return q->n_sources > 1 && !q->combines && !q->n_subs && q->aggregate == q->grouped &&
         !q->distinct && !q->like_param;
}

/* Whether ORDER BY contains this key of a source. */
static bool is_ordered(const wl_query *q, int source, const wl_scan *scan, const wl_scan_key *key) {
  bool number = key->column < 0 || key->column == scan->alias;
  for (int k = 0; k < q->n_order; k++) {
    const wl_bexpr *e = q->order[k].expr;
    if (e->kind != WL_B_COLUMN || q->cols[e->slot].source != source) continue;
    int column = q->cols[e->slot].column;
    if (number ? column < 0 || column == scan->alias
               : column == key->column && wl_bexpr_coll(e) == key->coll)
      return true;
  }
  return false;
}

/* The order of an automatic index, from the registers that are put into it. */
static wl_status auto_scan(const wl_vdbe *v, const join_tree *tree, const wl_table *t,
                           wl_arena *arena, wl_scan *out, wl_error *err) {
  int made = tree->filled;
  while (made > 0 && v->steps[made].op != WL_VDBE_MakeRecord) made--;
  int first = v->steps[made].p1, n = v->steps[made].p2, end = end_of_loop(v, tree->filled);
  const wl_status unknown = wl_not_taken(err, "an automatic index in an unknown order");
  *out = (wl_scan){.alias = -1};
  out->keys = WL_NEW_N(arena, wl_scan_key, n + 1);
  if (!out->keys) return wl_nomem(err);
  if (t->without_rowid || end < 0 || made < v->steps[end].p2) return unknown;
  for (int c = 0; c < t->n_cols; c++) {
    if (t->cols[c].computed) return unknown; /* columns are numbered otherwise */
    if (t->cols[c].rowid) out->alias = c;
  }
  for (int k = 0; k < n; k++) {
    int at = made - 1;
    for (; at >= v->steps[end].p2; at--) {
      const wl_vdbe_step *s = &v->steps[at];
      if (s->op == WL_VDBE_Column && s->p1 == tree->of && s->p3 == first + k) break;
      if (s->op == WL_VDBE_Rowid && s->p1 == tree->of && s->p2 == first + k) break;
    }
    if (at < v->steps[end].p2) return unknown;
    int column = v->steps[at].op == WL_VDBE_Rowid ? -1 : v->steps[at].p2;
    if (column >= t->n_cols) return unknown;
    out->keys[out->n_keys++] =
        (wl_scan_key){.column = column, .coll = WL_COLL_BINARY, .desc = tree->backwards};
  }
  return WL_OK;
}

/* Whether all collations of an automatic index are BINARY: k(3,B,,). */
static bool is_binary(const wl_vdbe *v, int cursor) {
  for (int i = 0; i < v->n; i++)
    if (v->steps[i].op == WL_VDBE_OpenAutoindex && v->steps[i].p1 == cursor) {
      const char *list = strchr(v->steps[i].p4, ',');
      return list && strspn(list, ",B)") == strlen(list);
    }
  return false;
}

static wl_status scan_of(sqlite3 *db, const wl_vdbe *v, wl_store *store, wl_arena *arena,
                         const join_tree *tree, const wl_table *t, wl_scan *out, wl_error *err) {
  if (tree->root)
    return wl_scan_of_tree(db, store, t, tree->index, tree->backwards, arena, out, err);
  if (!is_binary(v, tree->cursor)) return wl_not_taken(err, "an automatic index with a collation");
  return auto_scan(v, tree, t, arena, out, err);
}

/* Makes room for more keys. */
static wl_status make_room(wl_arena *arena, wl_query *q, int n, wl_error *err) {
  wl_border *more = WL_NEW_N(arena, wl_border, q->n_scan + n + 1);
  if (!more) return wl_nomem(err);
  if (q->n_scan) memcpy(more, q->scan, (size_t)q->n_scan * sizeof *more);
  q->scan = more;
  return WL_OK;
}

/* Adds the order of a loop. If ORDER BY contains the rowid, rows that it treats as equal have the
** same row of this table. */
static wl_status add_loop(wl_arena *arena, const wl_table *t, int source, const wl_scan *scan,
                          wl_query *q, wl_error *err) {
  const wl_scan_key rowid = {.column = -1};
  if (!t->without_rowid && is_ordered(q, source, scan, &rowid)) return WL_OK;
  wl_status rc = make_room(arena, q, scan->n_keys, err);
  for (int i = 0; i < scan->n_keys && !rc; i++)
    if (!is_ordered(q, source, scan, &scan->keys[i]))
      rc = wl_scan_add(arena, t, source, &scan->keys[i], q, err);
  return rc;
}

/* Adds the order of groups that SQLite does not sort, if it is that of the first keys of the
** outermost loop. Other group keys that are columns of its table depend on its rowid. */
static wl_status add_groups(wl_arena *arena, int source, const wl_scan *scan, wl_query *q,
                            wl_error *err) {
  int n_found = 0, n_of_table = 0;
  bool whole_row = false;
  for (int k = 0; k < q->n_groups; k++)
    n_of_table += q->groups[k]->kind == WL_B_COLUMN && q->cols[q->groups[k]->slot].source == source;
  wl_status rc = make_room(arena, q, scan->n_keys, err);
  for (int i = 0; i < scan->n_keys && !rc && n_found < q->n_groups && !whole_row; i++) {
    const wl_scan_key *key = &scan->keys[i];
    bool number = key->column < 0 || key->column == scan->alias, found = false;
    for (int k = 0; k < q->n_groups && !found; k++) {
      wl_bexpr *e = q->groups[k];
      if (e->kind != WL_B_COLUMN || q->cols[e->slot].source != source) continue;
      int column = q->cols[e->slot].column;
      found = number ? column < 0 || column == scan->alias
                     : column == key->column && wl_bexpr_coll(e) == key->coll;
      if (found)
        q->scan[q->n_scan++] = (wl_border){.expr = e, .desc = key->desc, .nulls_last = key->desc};
    }
    n_found += found;
    whole_row = found && number;
    if (!found) break;
  }
  bool known = n_found == q->n_groups || (whole_row && n_of_table == q->n_groups);
  return rc || known ? rc : wl_not_taken(err, "the groups have another order");
}

static wl_status add_orders(sqlite3 *db, const wl_vdbe *v, wl_store *store, wl_arena *arena,
                            const join_trees *trees, wl_query *q, wl_error *err) {
  wl_status rc = WL_OK;
  bool outermost = true;
  for (int i = 0; i < trees->n && !rc; i++) {
    const join_tree *tree = &trees->list[i];
    const wl_bsource *src = &q->sources[tree->source];
    wl_table *t;
    wl_scan scan;
    if (!tree->tail || (q->grouped && !outermost)) continue;
    rc = wl_store_table(store, src->schema, src->table, &t, err);
    if (!rc) rc = scan_of(db, v, store, arena, tree, t, &scan, err);
    if (!rc)
      rc = q->grouped ? add_groups(arena, tree->source, &scan, q, err)
                      : add_loop(arena, t, tree->source, &scan, q, err);
    outermost = false;
  }
  if (!rc && q->grouped && outermost) return wl_not_taken(err, "there is no loop");
  return rc;
}

wl_status wl_join_scan_apply(sqlite3 *db, const char *sql, size_t n, wl_store *store,
                             wl_arena *arena, wl_query *q, wl_error *err) {
  wl_vdbe program;
  join_trees trees = {.grouped = q->grouped};
  if (!is_simple_join(store, q)) return WL_OK;
  wl_status rc = wl_vdbe_read(db, sql, n, arena, &program, err);
  if (rc) return rc == WL_NOT_TAKEN ? WL_OK : rc;
  for (int i = 0; i < program.n && !trees.odd; i++) read_step(&trees, &program, i);
  if (trees.odd || !are_nested(&trees) || !name_trees(db, q, arena, &trees) || !covers(q, &trees))
    return arena->failed ? wl_nomem(err) : WL_OK;
  wl_query before = *q;
  rc = add_orders(db, &program, store, arena, &trees, q, err);
  if (rc) *q = before;
  q->scan_known = !rc;
  return rc == WL_NOT_TAKEN ? WL_OK : rc;
}

wl_status wl_join_groups_apply(wl_arena *arena, wl_query *q, wl_error *err) {
  q->scan = WL_NEW_N(arena, wl_border, q->n_groups + 1);
  if (!q->scan) return wl_nomem(err);
  for (int k = 0; k < q->n_groups; k++) {
    /* as in SQLite: if ORDER BY has as many terms, the groups use their directions */
    bool desc = q->n_order == q->n_groups && q->order[k].desc;
    q->scan[q->n_scan++] = (wl_border){.expr = q->groups[k], .desc = desc, .nulls_last = desc};
  }
  q->scan_known = true;
  return WL_OK;
}
