/*
** xBestIndex: decides which constraints of a statement a tablet table uses, and estimates the cost.
** See vtab_impl.h for how it passes the plan to xFilter.
*/
#include "tablet/vtab/vtab_impl.h"
#include "value/collation.h"

static char op_letter(int op) {
  switch (op) {
  case SQLITE_INDEX_CONSTRAINT_EQ: return '=';
  case SQLITE_INDEX_CONSTRAINT_LT: return '<';
  case SQLITE_INDEX_CONSTRAINT_LE: return 'l';
  case SQLITE_INDEX_CONSTRAINT_GT: return '>';
  case SQLITE_INDEX_CONSTRAINT_GE: return 'g';
  default: return 0;
  }
}

/* col IN (SELECT ...) compares with the affinities of both sides. If SQLite passes us the values
** one by one, it forgets the affinity of the SELECT, which matters if the column has no affinity or
** TEXT. So such a constraint is not used. */
static bool loses_affinity(const wl_tablets *t, const sqlite3_index_info *info, int i) {
  int col = info->aConstraint[i].iColumn;
  return !wl_tablets_is_rowid(t, col) && col < t->n_cols && t->decl->cols[col].affinity < 'C' &&
         sqlite3_vtab_in((sqlite3_index_info *)info, i, -1);
}

/* A constraint that column col of a key equals a value, or -1. */
static int key_constraint(const wl_tablets *t, const sqlite3_index_info *info, int col, int coll) {
  for (int i = 0; i < info->nConstraint; i++) {
    if (!info->aConstraint[i].usable || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
      continue;
    if (loses_affinity(t, info, i)) continue;
    int c = info->aConstraint[i].iColumn;
    if (c != col && !(c < 0 && col == t->decl->rowid_col)) continue;
    const char *name = sqlite3_vtab_collation((sqlite3_index_info *)info, i);
    if (wl_collation_is(name, coll)) return i;
  }
  return -1;
}

static int find_whole_key(const wl_tablets *t, const sqlite3_index_info *info) {
  for (int k = 0; k < t->decl->n_keys; k++) {
    const wl_decl_key *key = &t->decl->keys[k];
    int n = 0;
    while (n < key->n && key_constraint(t, info, key->cols[n], key->colls[n]) >= 0) n++;
    if (n == key->n) return k;
  }
  return -1;
}

static bool is_literal(sqlite3_index_info *info, int i) {
  sqlite3_value *v = NULL;
  return sqlite3_vtab_rhs_value(info, i, &v) == SQLITE_OK && v;
}

/* The letter of an inequality that a walk along the key can use, or 0. It must be on the key's
** first column, with the key's collation. */
static char walk_letter(const wl_tablets *t, const sqlite3_index_info *info, int i, int key) {
  const wl_decl_key *k = &t->decl->keys[key];
  char op = op_letter(info->aConstraint[i].op);
  if (!op || op == '=' || !info->aConstraint[i].usable) return 0;
  if (info->aConstraint[i].iColumn != k->cols[0]) return 0;
  const char *name = sqlite3_vtab_collation((sqlite3_index_info *)info, i);
  return wl_collation_is(name, k->colls[0]) ? op : 0;
}

/* A key with one column that is worth a walk, or -1. It must be bounded, and the query must ask for
** its order or bound it from both sides. */
static int find_walk_key(const wl_tablets *t, const sqlite3_index_info *info, bool *ordered) {
  for (int k = 0; k < t->decl->n_keys; k++) {
    const wl_decl_key *key = &t->decl->keys[k];
    int col = key->cols[0], n_low = 0, n_high = 0;
    if (key->n != 1 || col == t->decl->rowid_col) continue;
    for (int i = 0; i < info->nConstraint; i++) {
      char op = walk_letter(t, info, i, k);
      n_low += op == '>' || op == 'g';
      n_high += op == '<' || op == 'l';
    }
    *ordered = info->nOrderBy == 1 && info->aOrderBy[0].iColumn == col &&
               key->colls[0] == t->decl->cols[col].coll;
    if (n_low + n_high && (*ordered || (n_low && n_high))) return k;
  }
  return -1;
}

wl_i64 wl_tablets_rows_about(const wl_tablets *t) {
  wl_i64 n = t->n_delta;
  for (int i = 0; i < t->n_tablets; i++) n += t->tablets[i].n_rows - t->tablets[i].n_dead;
  return n > 1 ? n : t->loaded ? 1 : 1000000;
}

int wl_tablet_best_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  const wl_tablets *t = ((wl_tablet_table *)v)->t;
  sqlite3_str *s = sqlite3_str_new(t->db);
  int n = 0;
  bool one = false;
  ((wl_tablet_table *)v)->t->n_planned++;
  double rows = (double)wl_tablets_rows_about(t);
  for (int i = 0; i < info->nConstraint; i++) {
    char op = op_letter(info->aConstraint[i].op);
    if (!op || !info->aConstraint[i].usable ||
        !wl_tablets_is_rowid(t, info->aConstraint[i].iColumn))
      continue;
    info->aConstraintUsage[i].argvIndex = ++n;
    sqlite3_str_appendf(s, "r%c", op);
    one |= op == '=';
    rows = op == '=' ? 1 : rows / 4 + 1;
  }
  int key = one ? -1 : find_whole_key(t, info);
  info->idxNum = key + 1;
  if (key >= 0) {
    const wl_decl_key *k = &t->decl->keys[key];
    for (int i = 0; i < k->n; i++) {
      int at = key_constraint(t, info, k->cols[i], k->colls[i]);
      if (info->aConstraintUsage[at].argvIndex) continue; /* the rowid is part of the key */
      info->aConstraintUsage[at].argvIndex = ++n;
      sqlite3_str_appendf(s, "k%d;", k->cols[i]);
    }
    rows = 1;
  }
  double touched = rows;
  bool ordered = false;
  int walk = one || key >= 0 ? -1 : find_walk_key(t, info, &ordered);
  if (walk >= 0) info->idxNum = -(walk + 1);
  for (int i = 0; i < info->nConstraint && walk >= 0; i++) {
    char op = walk_letter(t, info, i, walk);
    if (!op) continue;
    info->aConstraintUsage[i].argvIndex = ++n;
    sqlite3_str_appendf(s, "%c%c%d;", is_literal(info, i) ? 'W' : 'w', op,
                        t->decl->keys[walk].cols[0]);
    touched = touched / 4 + 1;
  }
  for (int i = 0; i < info->nConstraint && rows > 1; i++) {
    char op = op_letter(info->aConstraint[i].op);
    int col = info->aConstraint[i].iColumn;
    if (!op || !info->aConstraint[i].usable || col < 0 || col >= t->n_cols ||
        info->aConstraintUsage[i].argvIndex)
      continue;
    if (sqlite3_vtab_in(info, i, -1)) continue; /* would scan the table for each value */
    const char *coll = sqlite3_vtab_collation(info, i);
    if (t->decl->cols[col].affinity == 'B' && !wl_collation_is(coll, WL_COLL_BINARY))
      continue;
    info->aConstraintUsage[i].argvIndex = ++n;
    sqlite3_str_appendf(s, "%c%c%d;", is_literal(info, i) ? 'Z' : 'z', op, col);
    touched = touched / (op == '=' ? 4 : 2) + 1;
  }
  int rc = sqlite3_str_errcode(s);
  char *list = sqlite3_str_finish(s);
  info->idxStr = !ordered || walk < 0
                     ? list
                     : sqlite3_mprintf("%s%z", info->aOrderBy[0].desc ? "d" : "o", list);
  info->needToFreeIdxStr = 1;
  if (rc) return rc;
  if (ordered && walk >= 0) {
    if (!info->idxStr) return SQLITE_NOMEM;
    info->orderByConsumed = 1;
  }
  /* Zone maps make a scan cheaper, but two scans must cost more than one full scan. Otherwise
  ** SQLite would run the parts of an OR as separate scans, and rows would not come in order of
  ** rowid. */
  info->estimatedCost = rows <= 1 ? 3 : rows * 1.5 + touched * 0.5 + 10;
  info->estimatedRows = (sqlite3_int64)touched;
  /* A value that is compared with an affinity may equal several keys; xFilter then scans. */
  bool numeric = key >= 0;
  for (int i = 0; numeric && i < t->decl->keys[key].n; i++)
    numeric = t->decl->cols[t->decl->keys[key].cols[i]].affinity >= 'C';
  if (one || numeric) info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
  if (info->nOrderBy == 1 && wl_tablets_is_rowid(t, info->aOrderBy[0].iColumn) &&
      !info->aOrderBy[0].desc)
    info->orderByConsumed = 1;
  return SQLITE_OK;
}
