/*
** The shadow tables of a tablet table: their columns, and every statement on them.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include "value/collation.h"

typedef struct shadow_table {
  const char *suffix, *columns; /* columns NULL: they depend on the declaration */
} shadow_table;

static const shadow_table shadows[] = {
    {"info", ""}, /* created with its rows: see create_info */
    {"tablet", "id INTEGER PRIMARY KEY, lo INTEGER, hi INTEGER, n_rows INTEGER, n_dead INTEGER,"
               " head BLOB, dead BLOB, sum INTEGER)"},
    {"segment", "id INTEGER PRIMARY KEY, data BLOB)"},
    {"dict", "id INTEGER PRIMARY KEY, sum INTEGER, data BLOB)"},
    {"gone", "id INTEGER PRIMARY KEY)"},
    {"delta", NULL},
};
enum { N_SHADOWS = sizeof shadows / sizeof *shadows };

bool wl_tablets_shadow_name(const char *suffix) {
  for (int i = 0; i < N_SHADOWS; i++)
    if (sqlite3_stricmp(suffix, shadows[i].suffix) == 0) return true;
  if (sqlite3_strnicmp(suffix, "key", 3) != 0 || !suffix[3]) return false;
  for (const char *p = suffix + 3; *p; p++)
    if (*p < '0' || *p > '9') return false;
  return true;
}

/* The SQL of each statement: the text before the table's name, its suffix, and the text after it.
 */
static const char *const statement_texts[WL_SH_N][3] = {
    [WL_SH_INFO_GET] = {"SELECT v FROM", "info", "WHERE k = ?1"},
    [WL_SH_INFO_SET] = {"UPDATE", "info", "SET v = ?2 WHERE k = ?1"},
    [WL_SH_INFO_ADD] = {"INSERT INTO", "info", "VALUES(?1, ?2)"},
    [WL_SH_RECOUNT] = {"REPLACE INTO", "info",
                       "(rowid, k, v) SELECT ?4, ?1, ?2 FROM (WITH RECURSIVE n(i) AS (SELECT 1 "
                       "WHERE ?3 > 0 UNION "
                       "ALL SELECT i + 1 FROM n WHERE i < ?3) SELECT i FROM n)"},
    [WL_SH_INFO_PLACE] = {"SELECT rowid FROM", "info", "WHERE k = ?1"},
    [WL_SH_TABLETS] = {"SELECT id, lo, hi, n_rows, n_dead, head, dead, sum FROM", "tablet",
                       "ORDER BY lo"},
    [WL_SH_TABLET_PUT] = {"REPLACE INTO", "tablet", "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"},
    [WL_SH_TABLET_DELETE] = {"DELETE FROM", "tablet", "WHERE id = ?1"},
    [WL_SH_SEGMENT_GET] = {"SELECT data FROM", "segment", "WHERE id = ?1"},
    [WL_SH_SEGMENT_PUT] = {"REPLACE INTO", "segment", "VALUES(?1, ?2)"},
    [WL_SH_SEGMENT_DELETE] = {"DELETE FROM", "segment", "WHERE id BETWEEN ?1 AND ?2"},
    [WL_SH_DICT_LIST] = {"SELECT id, sum FROM", "dict", "ORDER BY id"},
    [WL_SH_DICT_GET] = {"SELECT sum, data FROM", "dict", "WHERE id BETWEEN ?1 AND ?2 ORDER BY id"},
    [WL_SH_DICT_PUT] = {"REPLACE INTO", "dict", "VALUES(?1, ?2, ?3)"},
    [WL_SH_DICT_CLEAR] = {"DELETE FROM", "dict", "WHERE id BETWEEN ?1 AND ?2"},
    [WL_SH_DELTA_HAS] = {"SELECT 1 FROM", "delta", "WHERE id = ?1"},
    [WL_SH_DELTA_GET] = {"SELECT * FROM", "delta", "WHERE id = ?1"},
    [WL_SH_DELTA_PUT] = {"REPLACE INTO", "delta", NULL}, /* VALUES for all columns */
    [WL_SH_DELTA_DELETE] = {"DELETE FROM", "delta", "WHERE id = ?1"},
    [WL_SH_DELTA_CLEAR] = {"DELETE FROM", "delta", "WHERE id BETWEEN ?1 AND ?2"},
    [WL_SH_DELTA_COUNT] = {"SELECT count(*) FROM", "delta", ""},
    [WL_SH_DELTA_MAX] = {"SELECT max(id) FROM", "delta", ""},
    [WL_SH_DELTA_RANGE] = {"SELECT count(*), min(id), max(id) FROM", "delta",
                           "WHERE id BETWEEN ?1 AND ?2"},
    [WL_SH_DELTA_SCAN] = {"SELECT * FROM", "delta", "WHERE id BETWEEN ?1 AND ?2 ORDER BY id"},
    [WL_SH_GONE_HAS] = {"SELECT 1 FROM", "gone", "WHERE id = ?1"},
    [WL_SH_GONE_PUT] = {"REPLACE INTO", "gone", "VALUES(?1)"},
    [WL_SH_GONE_DELETE] = {"DELETE FROM", "gone", "WHERE id = ?1"},
    [WL_SH_GONE_CLEAR] = {"DELETE FROM", "gone", "WHERE id BETWEEN ?1 AND ?2"},
    [WL_SH_GONE_COUNT] = {"SELECT count(*) FROM", "gone", ""},
    [WL_SH_GONE_RANGE] = {"SELECT count(*), min(id), max(id) FROM", "gone",
                          "WHERE id BETWEEN ?1 AND ?2"},
    [WL_SH_GONE_SCAN] = {"SELECT id FROM", "gone", "WHERE id BETWEEN ?1 AND ?2 ORDER BY id"},
};

static wl_status prepare(wl_tablets *t, char *sql, sqlite3_stmt **out, wl_error *err) {
  if (!sql) return wl_nomem(err);
  int rc = sqlite3_prepare_v3(t->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
  sqlite3_free(sql);
  if (rc == SQLITE_OK) return WL_OK;
  wl_status st = wl_tablets_error(t, rc, err);
  wl_error why = {0};
  if (rc != SQLITE_ERROR || wl_tablets_check_shapes(t, &why) != WL_CORRUPT) return st;
  *err = why; /* this message tells more */
  return WL_CORRUPT;
}

/* The steps in progress on this thread, the innermost first. */
typedef struct step_frame {
  struct step_frame *outer;
  const sqlite3 *db;
} step_frame;
static _Thread_local const step_frame *steps;

bool wl_tablets_inside_step(const wl_tablets *t) {
  const step_frame *f = steps;
  while (f && f->db != t->db) f = f->outer;
  return f != NULL;
}

int wl_tablets_step(wl_tablets *t, sqlite3_stmt *s) {
  if (wl_tablets_inside_step(t)) return WL_REENTERED;
  step_frame f = {(step_frame *)steps, t->db};
  steps = &f;
  int rc = sqlite3_step(s);
  steps = f.outer;
  return rc;
}

wl_status wl_tablets_reentered(wl_tablets *t, wl_error *err) {
  return wl_tablets_corrupt(t, -1, -1, err,
                            "one of its shadow tables reads or writes it again: shadow tables must "
                            "be ordinary tables without triggers");
}

static char *shadow_sql(const wl_tablets *t, wl_shadow which) {
  const char *const *x = statement_texts[which];
  sqlite3_str *s = sqlite3_str_new(t->db);
  bool rows = which == WL_SH_DELTA_GET || which == WL_SH_DELTA_SCAN;
  if (rows) { /* by name, so that a delta with other columns fails instead of giving wrong values */
    sqlite3_str_appendall(s, "SELECT id");
    for (int i = 0; i < t->n_cols; i++) sqlite3_str_appendf(s, ", c%d", i);
  }
  sqlite3_str_appendf(s, "%s \"%w\".\"%w_%s\" ", rows ? " FROM" : x[0], t->schema, t->name, x[1]);
  if (x[2]) {
    sqlite3_str_appendall(s, x[2]);
  } else {
    sqlite3_str_appendall(s, "VALUES(?1");
    for (int i = 0; i < t->n_cols; i++) sqlite3_str_appendf(s, ",?%d", i + 2);
    sqlite3_str_appendall(s, ")");
  }
  return sqlite3_str_finish(s);
}

wl_status wl_tablets_stmt(wl_tablets *t, wl_shadow which, sqlite3_stmt **out, wl_error *err) {
  sqlite3_stmt **s = &t->stmts[which];
  wl_status rc = *s ? WL_OK : prepare(t, shadow_sql(t, which), s, err);
  *out = *s;
  if (!rc) sqlite3_reset(*s);
  return rc;
}

wl_status wl_tablets_scan(wl_tablets *t, wl_shadow which, wl_i64 lo, wl_i64 hi, sqlite3_stmt **out,
                          wl_error *err) {
  *out = t->idle[which];
  t->idle[which] = NULL;
  wl_status rc = *out ? WL_OK : prepare(t, shadow_sql(t, which), out, err);
  if (rc) return rc;
  sqlite3_bind_int64(*out, 1, lo);
  sqlite3_bind_int64(*out, 2, hi);
  return WL_OK;
}

void wl_tablets_unscan(wl_tablets *t, wl_shadow which, sqlite3_stmt *s, wl_u32 epoch) {
  if (s && epoch == t->epoch && !t->idle[which]) {
    sqlite3_reset(s);
    t->idle[which] = s;
  } else {
    sqlite3_finalize(s);
  }
}

wl_status wl_tablets_key_stmt(wl_tablets *t, int key, int which, sqlite3_stmt **out,
                              wl_error *err) {
  sqlite3_stmt **st = &t->keys[key * WL_KEY_N + which];
  wl_status rc = WL_OK;
  if (!*st) {
    const wl_decl_key *k = &t->decl->keys[key];
    static const char *const begin[] = {"SELECT id FROM", "INSERT INTO", "DELETE FROM",
                                        "SELECT 1 FROM", "SELECT 1 FROM"};
    sqlite3_str *s = sqlite3_str_new(t->db);
    sqlite3_str_appendf(s, "%s \"%w\".\"%w_key%d\" ", begin[which], t->schema, t->name, key);
    sqlite3_str_appendall(s, which == WL_KEY_PUT ? "VALUES(" : "WHERE ");
    if (which >= WL_KEY_TEXTS)
      sqlite3_str_appendall(s, which == WL_KEY_TEXTS ? "k0 >= '' AND k0 < x''" : "k0 < ''");
    for (int i = 0; i < k->n && which < WL_KEY_TEXTS; i++)
      sqlite3_str_appendf(s,
                          which == WL_KEY_PUT ? "?%d,"
                          : i                 ? " AND k%d = ?%d"
                                              : "k%d = ?%d",
                          which == WL_KEY_PUT ? i + 1 : i, i + 1);
    if (which == WL_KEY_PUT) sqlite3_str_appendf(s, "?%d)", k->n + 1);
    rc = prepare(t, sqlite3_str_finish(s), st, err);
  }
  *out = *st;
  if (!rc) sqlite3_reset(*st);
  return rc;
}

wl_status wl_tablets_run(wl_tablets *t, sqlite3_stmt *s, wl_error *err) {
  wl_spill_write(t);
  int rc = wl_tablets_step(t, s);
  wl_status st = rc == SQLITE_DONE || rc == SQLITE_ROW ? WL_OK : wl_tablets_error(t, rc, err);
  sqlite3_reset(s);
  if (st) t->stale = true;
  return st;
}

void wl_tablets_quiet(wl_tablets *t) {
  for (int i = 0; i < WL_SH_N; i++) {
    sqlite3_finalize(t->stmts[i]);
    sqlite3_finalize(t->idle[i]);
    t->stmts[i] = t->idle[i] = NULL;
  }
  for (int i = 0; t->walks && i < t->decl->n_keys * WL_WALK_N; i++) {
    sqlite3_finalize(t->walks[i]);
    t->walks[i] = NULL;
  }
  t->epoch++;
  for (int i = 0; t->keys && i < t->decl->n_keys * WL_KEY_N; i++) {
    sqlite3_finalize(t->keys[i]);
    t->keys[i] = NULL;
  }
  sqlite3_finalize(t->uncommitted);
  t->uncommitted = NULL;
  t->shapes_at = 0;
  t->reading = false;
}

static wl_status run_sql(wl_tablets *t, char *sql, wl_error *err) {
  if (!sql) return wl_nomem(err);
  int rc = sqlite3_exec(t->db, sql, NULL, NULL, NULL);
  sqlite3_free(sql);
  return rc ? wl_tablets_error(t, rc, err) : WL_OK;
}

/* Creates t_info with its rows in one statement, because changes() does not count those rows. */
static wl_status create_info(wl_tablets *t, wl_error *err) {
  sqlite3_randomness((int)sizeof t->id, &t->id);
  return run_sql(t,
                 sqlite3_mprintf("CREATE TABLE \"%w\".\"%w_info\" AS SELECT 'format' AS k, %d AS v"
                                 " UNION ALL SELECT 'state', random() UNION ALL SELECT 'id', %lld"
                                 " UNION ALL SELECT 'tablets', 0",
                                 t->schema, t->name, 1, t->id),
                 err);
}

wl_status wl_tablets_create(wl_tablets *t, wl_error *err) {
  wl_status rc = create_info(t, err);
  for (int i = 1; i < N_SHADOWS && !rc; i++) {
    sqlite3_str *s = sqlite3_str_new(t->db);
    sqlite3_str_appendf(s, "CREATE TABLE \"%w\".\"%w_%s\"(", t->schema, t->name, shadows[i].suffix);
    if (shadows[i].columns) {
      sqlite3_str_appendall(s, shadows[i].columns);
    } else {
      sqlite3_str_appendall(s, "id INTEGER PRIMARY KEY");
      for (int k = 0; k < t->n_cols; k++) sqlite3_str_appendf(s, ", c%d", k);
      sqlite3_str_appendall(s, ")");
    }
    rc = run_sql(t, sqlite3_str_finish(s), err);
  }
  for (int k = 0; k < t->decl->n_keys && !rc; k++) {
    const wl_decl_key *key = &t->decl->keys[k];
    sqlite3_str *s = sqlite3_str_new(t->db);
    sqlite3_str_appendf(s, "CREATE TABLE \"%w\".\"%w_key%d\"(", t->schema, t->name, k);
    for (int i = 0; i < key->n; i++)
      sqlite3_str_appendf(s, "k%d COLLATE %s, ", i, wl_collation_name(key->colls[i]));
    sqlite3_str_appendall(s, "id INTEGER, PRIMARY KEY(");
    for (int i = 0; i < key->n; i++) sqlite3_str_appendf(s, i ? ",k%d" : "k%d", i);
    sqlite3_str_appendall(s, ")) WITHOUT ROWID");
    rc = run_sql(t, sqlite3_str_finish(s), err);
  }
  return rc;
}

/* Drops a shadow table, unless it is missing or a view has taken its place. Frees name. */
static wl_status drop_shadow(wl_tablets *t, char *name, wl_error *err) {
  sqlite3_stmt *s = NULL;
  char *sql =
      sqlite3_mprintf("SELECT 1 FROM \"%w\".sqlite_schema WHERE type = 'table' AND name = %Q "
                      "COLLATE NOCASE",
                      t->schema, name);
  wl_status rc = name ? prepare(t, sql, &s, err) : wl_nomem(err);
  int st = rc ? SQLITE_DONE : sqlite3_step(s);
  sqlite3_finalize(s);
  if (st != SQLITE_ROW && st != SQLITE_DONE) rc = wl_tablets_error(t, st, err);
  if (!rc && st == SQLITE_ROW)
    rc = run_sql(t, sqlite3_mprintf("DROP TABLE \"%w\".\"%w\"", t->schema, name), err);
  sqlite3_free(name);
  return rc;
}

wl_status wl_tablets_destroy(wl_tablets *t, wl_error *err) {
  wl_status rc = WL_OK;
  wl_tablets_quiet(t);
  t->stale = true;
  for (int i = 0; i < N_SHADOWS && !rc; i++)
    rc = drop_shadow(t, sqlite3_mprintf("%s_%s", t->name, shadows[i].suffix), err);
  for (int k = 0; k < t->decl->n_keys && !rc; k++)
    rc = drop_shadow(t, sqlite3_mprintf("%s_key%d", t->name, k), err);
  return rc;
}

wl_status wl_tablets_rename(wl_tablets *t, const char *name, wl_error *err) {
  wl_status rc = WL_OK;
  for (int i = 0; i < t->n_cols; i++) /* the hidden column for commands has the table's name */
    if (sqlite3_stricmp(t->decl->cols[i].name, name) == 0)
      return wl_fail(err, WL_ERROR,
                     "a column of a tablet table cannot have the name of the table: %.100s", name);
  char *copy = wl_mem_strdup(name);
  if (!copy) return wl_nomem(err);
  wl_tablets_quiet(t);
  for (int i = 0; i < N_SHADOWS && !rc; i++)
    rc = run_sql(t,
                 sqlite3_mprintf("ALTER TABLE \"%w\".\"%w_%s\" RENAME TO \"%w_%s\"", t->schema,
                                 t->name, shadows[i].suffix, name, shadows[i].suffix),
                 err);
  for (int k = 0; k < t->decl->n_keys && !rc; k++)
    rc = run_sql(t,
                 sqlite3_mprintf("ALTER TABLE \"%w\".\"%w_key%d\" RENAME TO \"%w_key%d\"",
                                 t->schema, t->name, k, name, k),
                 err);
  if (rc) {
    wl_mem_free(copy);
    return rc;
  }
  wl_tablets_set_name(t, copy);
  t->stale = true;
  return WL_OK;
}
