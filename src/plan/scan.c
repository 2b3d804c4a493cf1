/*
** The order of SQLite's scan, read from its program; see scan.h.
**
** Invariants:
** 1. The loop is found in the opcodes of EXPLAIN: the one cursor on the table or an index
**    that Next or Prev moves. Names do not matter, only root pages.
** 2. An index gives its rows ordered by all of its columns, including the rowid or primary key at
**    its end, each with the index's collation and direction. IN lists, ranges and partial indexes
**    leave out rows but keep this order: SQLite first sorts an IN list in the order of the index.
*/
#include "plan/scan.h"
#include "plan/price/program.h"
#include "value/collation.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_CURSORS = 8 };

typedef struct cursor {
  int number, root;
  bool next, prev;
} cursor;

typedef struct loops {
  cursor cursors[MAX_CURSORS];
  int n_cursors;
  bool others; /* there are loops over something else: the values of IN */
  bool odd;    /* there is something that this file does not understand */
} loops;

static cursor *cursor_of(loops *l, int number) {
  for (int i = 0; i < l->n_cursors; i++)
    if (l->cursors[i].number == number) return &l->cursors[i];
  return NULL;
}

static void read_step(loops *l, const wl_vdbe_step *s) {
  switch (s->op) {
  case WL_VDBE_OpenRead:
    if (l->n_cursors == MAX_CURSORS || cursor_of(l, s->p1))
      l->odd = true;
    else
      l->cursors[l->n_cursors++] = (cursor){.number = s->p1, .root = s->p2};
    break;
  case WL_VDBE_Next:
  case WL_VDBE_Prev: {
    cursor *c = cursor_of(l, s->p1);
    if (!c)
      l->others = true;
    else if (s->op == WL_VDBE_Next)
      c->next = true;
    else
      c->prev = true;
    break;
  }
  case WL_VDBE_ReopenIdx:
  case WL_VDBE_OpenAutoindex:
  case WL_VDBE_VOpen:
  case WL_VDBE_RowSetTest: l->odd = true; break;
  default: break;
  }
}

static wl_status read_program(sqlite3 *db, const char *sql, size_t n, wl_arena *arena, loops *out,
                              wl_error *err) {
  wl_vdbe program;
  memset(out, 0, sizeof *out);
  wl_status rc = wl_vdbe_read(db, sql, n, arena, &program, err);
  for (int i = 0; i < program.n && !rc; i++) read_step(out, &program.steps[i]);
  return rc;
}

/* The name of the index with this root page, or NULL if it is the table itself. */
static wl_status index_at(sqlite3 *db, const wl_table *t, int root, wl_arena *arena,
                          const char **out, wl_error *err) {
  sqlite3_stmt *q = NULL;
  bool found = false;
  *out = NULL;
  char *sql = sqlite3_mprintf("SELECT type, name FROM \"%w\".sqlite_schema WHERE rootpage=%d "
                              "AND tbl_name=%Q",
                              t->schema, root, t->name);
  int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (!rc && sqlite3_step(q) == SQLITE_ROW) {
    const char *type = (const char *)sqlite3_column_text(q, 0);
    const char *name = (const char *)sqlite3_column_text(q, 1);
    found = type && name;
    if (found && strcmp(type, "index") == 0) *out = wl_arena_printf(arena, "%s", name);
  }
  sqlite3_finalize(q);
  if (rc == SQLITE_NOMEM || arena->failed) return wl_nomem(err);
  return found ? WL_OK : wl_not_taken(err, "SQLite would scan something unknown");
}

static wl_status add_key(wl_arena *arena, wl_scan *s, wl_scan_key key, wl_error *err) {
  if ((s->n_keys & (s->n_keys - 1)) == 0) { /* full at 0, 1, 2, 4, … */
    wl_scan_key *more = WL_NEW_N(arena, wl_scan_key, s->n_keys ? 2 * s->n_keys : 1);
    if (!more) return wl_nomem(err);
    if (s->n_keys) memcpy(more, s->keys, (size_t)s->n_keys * sizeof *more);
    s->keys = more;
  }
  s->keys[s->n_keys++] = key;
  return WL_OK;
}

static bool known_collation(const wl_store *store, const char *name, wl_u8 *out) {
  int coll = wl_collation_find(name);
  if (coll < 0) return false;
  *out = (wl_u8)coll;
  return wl_store_collation(store, coll);
}

/* Adds the columns of an index as keys. key_only: the index is the table itself (WITHOUT ROWID), so
** only the columns of its key. */
static wl_status index_keys(sqlite3 *db, const wl_store *store, const wl_table *t,
                            const char *index, bool key_only, wl_arena *arena, wl_scan *s,
                            wl_error *err) {
  sqlite3_stmt *q = NULL;
  wl_status st = WL_OK;
  char *sql = sqlite3_mprintf("PRAGMA \"%w\".index_xinfo(\"%w\")", t->schema, index);
  int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  while (!rc && !st && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    wl_scan_key key = {.column = sqlite3_column_int(q, 1), .desc = sqlite3_column_int(q, 3)};
    rc = SQLITE_OK;
    if (key_only && !sqlite3_column_int(q, 5)) continue;
    if (key.column < -1 || key.column >= t->n_cols)
      st = wl_not_taken(err, "SQLite would scan in the order of an index on an expression");
    else if (!known_collation(store, (const char *)sqlite3_column_text(q, 4), &key.coll))
      st = wl_not_taken(err, "SQLite would scan an index with a collation that is not built in");
    else
      st = add_key(arena, s, key, err);
  }
  sqlite3_finalize(q);
  if (st) return st;
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  return rc == SQLITE_DONE && s->n_keys ? WL_OK : wl_not_taken(err, "SQLite lists no such index");
}

/* Finds the INTEGER PRIMARY KEY column, which is another name for the rowid. */
static wl_status read_alias(sqlite3 *db, const wl_table *t, int *out, wl_error *err) {
  sqlite3_stmt *q = NULL;
  *out = -1;
  if (t->without_rowid) return WL_OK;
  char *sql = sqlite3_mprintf("SELECT cid FROM pragma_table_xinfo(%Q, %Q) WHERE pk AND type = "
                              "'INTEGER' COLLATE NOCASE AND NOT EXISTS (SELECT 1 FROM "
                              "pragma_index_list(%Q, %Q) WHERE origin = 'pk')",
                              t->name, t->schema, t->name, t->schema);
  int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) *out = sqlite3_column_int(q, 0);
  sqlite3_finalize(q);
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  return rc == SQLITE_ROW || rc == SQLITE_DONE
             ? WL_OK
             : wl_not_taken(err, "SQLite does not list the table's key");
}

wl_status wl_scan_rowids(const wl_table *t, wl_arena *arena, wl_scan *out, wl_error *err) {
  memset(out, 0, sizeof *out);
  out->storage = true;
  out->alias = -1;
  for (int i = 0; i < t->n_cols; i++)
    if (t->cols[i].rowid) out->alias = i;
  return add_key(arena, out, (wl_scan_key){.column = -1, .coll = WL_COLL_BINARY}, err);
}

wl_status wl_scan_of_tree(sqlite3 *db, const wl_store *store, const wl_table *t, const char *index,
                          bool backwards, wl_arena *arena, wl_scan *out, wl_error *err) {
  wl_status rc;
  memset(out, 0, sizeof *out);
  if (index)
    rc = index_keys(db, store, t, index, false, arena, out, err);
  else if (t->without_rowid)
    rc = index_keys(db, store, t, t->key_index, true, arena, out, err);
  else
    rc = add_key(arena, out, (wl_scan_key){.column = -1, .coll = WL_COLL_BINARY}, err);
  if (rc) return rc;
  rc = read_alias(db, t, &out->alias, err);
  out->storage = !index && !backwards;
  for (int k = 0; k < out->n_keys; k++) out->keys[k].desc ^= backwards;
  return rc;
}

wl_status wl_plan_scan(sqlite3 *db, const char *sql, size_t n, const wl_store *store,
                       const wl_table *t, wl_arena *arena, wl_scan *out, wl_error *err) {
  loops l;
  const cursor *scan = NULL;
  const char *index;
  memset(out, 0, sizeof *out);
  out->alias = -1;
  wl_status rc = read_program(db, sql, n, arena, &l, err);
  if (rc) return rc;
  for (int i = 0; i < l.n_cursors; i++) {
    const cursor *c = &l.cursors[i];
    if (!c->next && !c->prev) continue;
    if (scan || (c->next && c->prev)) l.odd = true;
    scan = c;
  }
  if (l.odd || (!scan && l.others))
    return wl_not_taken(err, "SQLite would scan in an order that is not known");
  if (!scan) {
    out->storage = true;
    return WL_OK;
  }
  rc = index_at(db, t, scan->root, arena, &index, err);
  return rc ? rc : wl_scan_of_tree(db, store, t, index, scan->prev, arena, out, err);
}

/* Makes a column expression for a key of the scan of a source. Adds the column to those the query
** reads. */
static wl_bexpr *scan_column(wl_arena *arena, const wl_table *t, int source, const wl_scan_key *key,
                             wl_query *q) {
  wl_bexpr *x = WL_NEW(arena, wl_bexpr);
  if (!x) return NULL;
  x->kind = WL_B_COLUMN;
  x->id = q->n_exprs++;
  x->index = key->column;
  x->source = source;
  x->affinity = key->column < 0 ? 'D' : t->cols[key->column].affinity;
  x->coll = key->coll;
  x->has_coll = true;
  int k = 0;
  while (k < q->n_cols && (q->cols[k].column != key->column || q->cols[k].source != source)) k++;
  x->slot = k;
  if (k < q->n_cols) return x;
  wl_bcol *more = WL_NEW_N(arena, wl_bcol, q->n_cols + 1);
  if (!more) return NULL;
  if (q->n_cols) memcpy(more, q->cols, (size_t)q->n_cols * sizeof *more);
  more[q->n_cols++] = (wl_bcol){source, key->column};
  q->cols = more;
  return x;
}

wl_status wl_scan_add(wl_arena *arena, const wl_table *t, int source, const wl_scan_key *key,
                      wl_query *q, wl_error *err) {
  wl_bexpr *x = scan_column(arena, t, source, key, q);
  if (!x) return wl_nomem(err);
  q->scan[q->n_scan++] = (wl_border){.expr = x, .desc = key->desc, .nulls_last = key->desc};
  return WL_OK;
}

/* Whether a group key is a scan key. Collations must agree, unless the key is the rowid. */
static bool is_column(const wl_scan *s, const wl_bexpr *e, const wl_scan_key *key) {
  bool number = key->column < 0 || key->column == s->alias; /* collations do not matter */
  if (!number && e->coll != key->coll) return false;
  while (e->kind == WL_B_CAST && e->op == WL_OP_POS) e = e->a;
  if (e->kind != WL_B_COLUMN) return false;
  return e->index == key->column || (number && (e->index < 0 || e->index == s->alias));
}

wl_status wl_scan_apply(wl_arena *arena, const wl_table *t, const wl_scan *s, wl_query *q,
                        wl_error *err) {
  q->scan = WL_NEW_N(arena, wl_border, s->n_keys + 1);
  if (!q->scan) return wl_nomem(err);
  q->scan_known = true;
  for (int i = 0; i < s->n_keys; i++) {
    const wl_scan_key *key = &s->keys[i];
    wl_border *to = &q->scan[q->n_scan];
    to->expr = NULL;
    bool known = false;
    for (int k = 0; k < q->n_order && !known; k++) {
      const wl_bexpr *e = q->order[k].expr;
      known = e->kind == WL_B_COLUMN && e->index == key->column && e->coll == key->coll;
    }
    if (known) continue;
    if (q->grouped) {
      /* The scan gives whole groups, so only group keys affect their order. */
      for (int k = 0; k < q->n_groups; k++)
        if (is_column(s, q->groups[k], key)) to->expr = q->groups[k];
      if (!to->expr) continue;
    } else if (key->column < 0 && !key->desc && i == s->n_keys - 1) {
      continue; /* sorting is stable, and rows are stored in rowid order */
    } else {
      to->expr = scan_column(arena, t, 0, key, q);
      if (!to->expr) return wl_nomem(err);
    }
    to->desc = to->nulls_last = key->desc;
    q->n_scan++;
  }
  return WL_OK;
}
