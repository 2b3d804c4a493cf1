/*
** The shapes of tables: what a name in FROM means, its columns, affinities and collations. All of
** it comes from SQLite itself, and is kept until a schema cookie changes.
*/
#include "store/store_impl.h"
#include "base/mem.h"
#include "store/kind.h"
#include "value/conv.h"
#include "value/collation.h"
#include <stdio.h>
#include <string.h>

void wl_stored_free(wl_stored *s) {
  wl_table *t = &s->shape;
  if (t->source) wl_cache_remove_user(&s->user);
  for (int i = 0; i < t->n_cols; i++) {
    wl_mem_free(t->cols[i].name);
    wl_mem_free(t->cols[i].decl);
  }
  wl_mem_free(t->cols);
  wl_mem_free(s->use);
  wl_mem_free(t->schema);
  wl_mem_free(t->name);
  wl_mem_free(t->refused);
  wl_mem_free(t->view_sql);
  wl_mem_free(t->key_index);
  wl_mem_free(s);
}

void wl_name_free(wl_name *n) {
  wl_mem_free(n->schema);
  wl_mem_free(n->name);
  wl_mem_free(n);
}

static char *dup_or_empty(const void *s) {
  return wl_mem_strdup(s ? (const char *)s : "");
}

/* Whether the text of a CREATE TABLE has options or a comment after its columns. */
static bool has_options(const char *sql) {
  const char *end = strrchr(sql, ')');
  for (const char *p = end ? end + 1 : sql; *p; p++)
    if (*p > ' ') return true;
  return false;
}

/*
** Reads the entry of a name from the schema table, which is fast. *sure: the entry says everything.
** Otherwise PRAGMA table_list is needed, which looks at every view.
*/
static wl_status look_in_schema(wl_store *s, const char *schema, const char *name, wl_table *t,
                                bool *found, bool *sure, wl_error *err) {
  sqlite3_stmt *q = NULL;
  *found = false;
  *sure = true;
  char *sql = sqlite3_mprintf("SELECT name, type, sql FROM \"%w\".sqlite_schema WHERE "
                              "name=%Q COLLATE NOCASE AND type IN ('table','view')",
                              schema, name);
  int rc = sql ? sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  wl_status st = WL_OK;
  if (rc || sqlite3_strnicmp(name, "sqlite_", 7) == 0) {
    *sure = false;
  } else if ((rc = sqlite3_step(q)) == SQLITE_ROW) {
    const char *type = (const char *)sqlite3_column_text(q, 1);
    const char *text = (const char *)sqlite3_column_text(q, 2);
    bool view = type && strcmp(type, "view") == 0;
    *sure = view || (text && sqlite3_strnicmp(text, "CREATE TABLE", 12) == 0 && !has_options(text));
    *found = *sure;
    if (*sure) {
      t->schema = dup_or_empty(schema);
      t->name = dup_or_empty(sqlite3_column_text(q, 0));
      if (view) t->view_sql = wl_mem_strdup("");
      if (!t->schema || !t->name || (view && !t->view_sql)) st = wl_nomem(err);
    }
  } else if (rc != SQLITE_DONE) {
    *sure = false;
  }
  sqlite3_finalize(q);
  return st;
}

/* The kind of a virtual table, or NULL. SQLite connects a virtual table when it prepares a statement
** that reads it. A text that SQLite does not prepare again may come here before that, after the
** schema has changed. */
static const struct wl_table_kind *kind_of(wl_store *s, const char *schema, const char *name) {
  const struct wl_table_kind *kind = wl_store_kind_of(s, schema, name);
  if (kind) return kind;
  sqlite3_stmt *connects = NULL;
  char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".\"%w\"", schema, name);
  if (sql) sqlite3_prepare_v2(s->db, sql, -1, &connects, NULL);
  sqlite3_free(sql);
  sqlite3_finalize(connects);
  return wl_store_kind_of(s, schema, name);
}

/* Looks a name up in one database. *found: it is there. */
static wl_status look_up(wl_store *s, const char *schema, const char *name, wl_table *t,
                         bool *strict, bool *found, wl_error *err) {
  sqlite3_stmt *q = NULL;
  bool sure;
  wl_status early = look_in_schema(s, schema, name, t, found, &sure, err);
  if (early || sure) return early;
  *found = false;
  char *sql = sqlite3_mprintf("PRAGMA \"%w\".table_list(\"%w\")", schema, name);
  int rc = sql ? sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (rc) return wl_store_sqlite_error(s, rc, err);
  wl_status st = WL_OK;
  rc = sqlite3_step(q);
  if (rc == SQLITE_ROW) {
    *found = true;
    t->schema = dup_or_empty(sqlite3_column_text(q, 0));
    t->name = dup_or_empty(sqlite3_column_text(q, 1));
    const char *type = (const char *)sqlite3_column_text(q, 2);
    t->without_rowid = sqlite3_column_int(q, 4);
    *strict = sqlite3_column_int(q, 5);
    char why[80] = "";
    if (type && strcmp(type, "view") == 0)
      t->view_sql = wl_mem_strdup("");
    else if (type && strcmp(type, "virtual") == 0 && t->schema && t->name &&
             (wl_stored_of(t)->kind = kind_of(s, t->schema, t->name)))
      ;
    else if (!type || strcmp(type, "table") != 0)
      snprintf(why, sizeof why, "it is a %s table", type ? type : "thing unknown");
    else if (t->name && sqlite3_strnicmp(t->name, "sqlite_", 7) == 0)
      snprintf(why, sizeof why, "it is a table of SQLite itself");
    if (*why) t->refused = wl_mem_strdup(why);
    if (!t->schema || !t->name || (*why && !t->refused)) st = wl_nomem(err);
  } else if (rc != SQLITE_DONE) {
    st = wl_store_sqlite_error(s, rc, err);
  }
  sqlite3_finalize(q);
  return st;
}

static wl_status read_key(wl_store *s, const char *schema, wl_u32 key[2], wl_error *err) {
  wl_status rc = wl_store_read_cookie(s, schema, err);
  if (rc) return rc;
  key[0] = s->cookie;
  key[1] = (wl_u32)s->reprepares;
  wl_store_end(s);
  return WL_OK;
}

/* temp is opened with the first temporary table. Before that it is empty. */
static bool temp_in_use(wl_store *s) {
  return sqlite3_db_filename(s->db, "temp") != NULL;
}

/*
** Reads what the meaning of a name without schema depends on: the schemas in which a new table of
** that name would come first. The schema of the table's own database is checked with the table.
*/
static wl_status read_name_key(wl_store *s, const char *schema, wl_u32 key[5], wl_error *err) {
  memset(key, 0, 5 * sizeof *key);
  if (schema) return WL_OK; /* the name has a schema */
  wl_status rc = temp_in_use(s) ? read_key(s, "temp", key, err) : WL_OK;
  return rc ? rc : read_key(s, "main", key + 2, err);
}

/*
** Walks the attached databases. With t, looks the name up in each until one has it. Without t,
** stops at the database named last. Folds the keys of the databases before it into *key.
*/
static wl_status walk_attached(wl_store *s, const char *name, const char *last, wl_table *t,
                               bool *strict, bool *found, wl_u32 *key, wl_error *err) {
  wl_status st = WL_OK;
  bool end = false;
  int rc = SQLITE_OK;
  if (!s->databases)
    rc = sqlite3_prepare_v3(s->db, "PRAGMA database_list", -1, SQLITE_PREPARE_PERSISTENT,
                            &s->databases, NULL);
  sqlite3_stmt *q = s->databases;
  while (!rc && !st && !end && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    const char *schema = (const char *)sqlite3_column_text(q, 1);
    rc = schema ? SQLITE_OK : SQLITE_NOMEM;
    if (rc || sqlite3_column_int(q, 0) < 2) continue;
    wl_u32 own[2];
    if (last && strcmp(schema, last) == 0) break;
    st = read_key(s, schema, own, err);
    if (!st && t) st = look_up(s, schema, name, t, strict, found, err);
    end = t && *found;
    if (!st && !end) *key = ((*key * 31 + own[0]) * 31 + own[1]) * 31 + 1;
  }
  if (!st && rc && rc != SQLITE_DONE) st = wl_store_sqlite_error(s, rc, err);
  sqlite3_reset(q);
  return st;
}

/*
** Finds what a name means: without a schema, the first of temp, main and the attached databases
** that has it. It searches no further than necessary, because searching takes a lock. The schema
** tables are not listed, but each database has them.
*/
static wl_status resolve(wl_store *s, wl_name *n, wl_table *t, bool *strict, wl_error *err) {
  bool found = false;
  wl_status st = read_name_key(s, n->schema, n->key, err);
  if (!st && n->schema) st = look_up(s, n->schema, n->name, t, strict, &found, err);
  if (!st && !n->schema && temp_in_use(s)) st = look_up(s, "temp", n->name, t, strict, &found, err);
  if (!st && !n->schema && !found) st = look_up(s, "main", n->name, t, strict, &found, err);
  bool own = sqlite3_strnicmp(n->name, "sqlite_", 7) == 0;
  if (!st && !n->schema && !found && !own)
    st = walk_attached(s, n->name, NULL, t, strict, &found, &n->key[4], err);
  return st || found ? st : wl_not_taken(err, "the schema has no table %s", n->name);
}

/* Adds what only sqlite3_table_column_metadata() tells about a column. */
static void describe(wl_store *s, const wl_table *t, wl_table_column *c, bool *known) {
  const char *coll = NULL, *type = NULL;
  *known = true;
  c->coll = WL_COLL_BINARY;
  if (sqlite3_table_column_metadata(s->db, t->schema, t->name, c->name, &type, &coll, NULL, NULL,
                                    NULL))
    return;
  if (type && !*type) c->affinity = 'C'; /* the type name is empty but present: "" */
  if (!coll) return;
  int k = wl_collation_find(coll);
  *known = k >= 0;
  if (*known) c->coll = (wl_u8)k;
}

static wl_status read_columns(wl_store *s, wl_table *t, bool strict, wl_error *err) {
  sqlite3_stmt *q = NULL;
  char *sql = sqlite3_mprintf("PRAGMA \"%w\".table_xinfo(\"%w\")", t->schema, t->name);
  if (!sql) return wl_nomem(err);
  int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
  sqlite3_free(sql);
  if (rc) return wl_store_sqlite_error(s, rc, err);
  int size = 0, n_keys = 0;
  wl_status st = WL_OK;
  while (!st && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    if (t->n_cols == size) {
      int more = size ? size * 2 : 16;
      wl_table_column *p =
          wl_mem_realloc(t->cols, (size_t)size * sizeof *p, (size_t)more * sizeof *p);
      if (!p) {
        st = wl_nomem(err);
        break;
      }
      t->cols = p;
      size = more;
    }
    wl_table_column *c = &t->cols[t->n_cols];
    memset(c, 0, sizeof *c);
    c->name = dup_or_empty(sqlite3_column_text(q, 1));
    c->decl = dup_or_empty(sqlite3_column_text(q, 2));
    t->n_cols++;
    if (!c->name || !c->decl) {
      st = wl_nomem(err);
      break;
    }
    c->not_null = sqlite3_column_int(q, 3) != 0;
    c->hidden = sqlite3_column_int(q, 6) == 1;
    c->computed = sqlite3_column_int(q, 6) == 2;
    int key = sqlite3_column_int(q, 5); /* its position in the primary key */
    n_keys += key > 0;
    c->rowid = key == 1 && !t->without_rowid && sqlite3_stricmp(c->decl, "INTEGER") == 0;
    c->affinity = wl_affinity_of_type(c->decl);
    if (strict && sqlite3_stricmp(c->decl, "ANY") == 0) c->affinity = 'A';
    bool known;
    describe(s, t, c, &known);
    known = known && wl_store_collation(s, c->coll) && wl_store_collation(s, WL_COLL_BINARY);
    if (!known && !t->refused) {
      t->refused = wl_mem_strdup("it has a column with a collation that the application defines");
      if (!t->refused) st = wl_nomem(err);
    }
  }
  if (!st && rc != SQLITE_DONE) st = wl_store_sqlite_error(s, rc, err);
  sqlite3_finalize(q);
  if (st) return st;
  for (int i = 0; i < t->n_cols && n_keys > 1; i++) t->cols[i].rowid = false;
  if (wl_stored_of(t)->kind) wl_stored_of(t)->kind->describe(s->db, t);
  static const char *const names[] = {"rowid", "_rowid_", "oid"};
  for (int k = 0; k < 3 && !t->rowid_name && !t->without_rowid; k++) {
    bool hidden = false;
    for (int i = 0; i < t->n_cols; i++) hidden |= sqlite3_stricmp(t->cols[i].name, names[k]) == 0;
    if (!hidden) t->rowid_name = names[k];
  }
  wl_use *use = wl_stored_of(t)->use = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof *use);
  return use ? WL_OK : wl_nomem(err);
}

static bool same_name(const char *a, const char *b) {
  return a == b || (a && b && sqlite3_stricmp(a, b) == 0);
}

/* NOT INDEXED does not prevent SQLite from using other indexes here, but naming the table's own
** does. */
static wl_status read_key_index(wl_store *s, wl_table *t, wl_error *err) {
  sqlite3_stmt *q = NULL;
  char *sql = sqlite3_mprintf("SELECT name FROM pragma_index_list(%Q, %Q) WHERE origin='pk'",
                              t->name, t->schema);
  int rc = sql ? sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    t->key_index = dup_or_empty(sqlite3_column_text(q, 0));
    rc = t->key_index ? SQLITE_OK : SQLITE_NOMEM;
  }
  sqlite3_finalize(q);
  if (rc == SQLITE_DONE) return wl_not_taken(err, "SQLite does not list the key of %s", t->name);
  return rc ? wl_store_sqlite_error(s, rc, err) : WL_OK;
}

/* Reads the text of a view. */
static wl_status read_view_text(wl_store *s, const wl_table *t, char **out, wl_error *err) {
  sqlite3_stmt *q = NULL;
  char *sql = sqlite3_mprintf("SELECT sql FROM \"%w\".sqlite_schema WHERE type='view' AND name=%Q",
                              t->schema, t->name);
  int rc = sql ? sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    *out = dup_or_empty(sqlite3_column_text(q, 0));
    rc = *out ? SQLITE_OK : SQLITE_NOMEM;
  }
  sqlite3_finalize(q);
  if (rc == SQLITE_DONE) return wl_not_taken(err, "SQLite does not list the view %s", t->name);
  return rc ? wl_store_sqlite_error(s, rc, err) : WL_OK;
}

static wl_status read_view(wl_store *s, wl_table *t, wl_error *err) {
  char *text = NULL;
  wl_status rc = read_view_text(s, t, &text, err);
  if (rc) return rc;
  wl_mem_free(t->view_sql);
  t->view_sql = text;
  return WL_OK;
}

/* Whether a table is a view of temp whose text has changed. ALTER TABLE of a table in another
** database changes it, and the cookie of temp stays the same. */
static wl_status view_changed(wl_store *s, const wl_table *t, bool *out, wl_error *err) {
  char *text = NULL;
  *out = false;
  if (!t->view_sql || strcmp(t->schema, "temp") != 0) return WL_OK;
  wl_status rc = read_view_text(s, t, &text, err);
  *out = rc == WL_NOT_TAKEN || (!rc && strcmp(text, t->view_sql) != 0);
  wl_mem_free(text);
  return rc == WL_NOT_TAKEN ? WL_OK : rc;
}

static wl_status read_indexes(wl_store *s, wl_table *t, wl_error *err) {
  sqlite3_stmt *q = NULL;
  char *sql = sqlite3_mprintf("SELECT count(*) FROM pragma_index_list(%Q, %Q)", t->name, t->schema);
  int rc = sql ? sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  t->indexed = true;
  if (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    t->indexed = sqlite3_column_int(q, 0) > t->without_rowid;
    rc = SQLITE_OK;
  }
  sqlite3_finalize(q);
  return rc == SQLITE_NOMEM ? wl_store_sqlite_error(s, rc, err) : WL_OK;
}

/* Refuses other encodings: we keep text as UTF-8, and SQLite compares and cuts text in its
** encoding. */
static wl_status check_encoding(const wl_store *s, wl_table *t, wl_error *err) {
  char why[64];
  if (strcmp(s->encoding, "UTF-8") == 0 || t->refused) return WL_OK;
  snprintf(why, sizeof why, "its database is encoded in %s, not UTF-8", s->encoding);
  t->refused = wl_mem_strdup(why);
  return t->refused ? WL_OK : wl_nomem(err);
}

/* Removes a table and every name that refers to it. */
static void forget(wl_store *s, wl_stored *t) {
  for (wl_name **at = &s->names; *at;) {
    wl_name *n = *at;
    if (n->table == t) {
      *at = n->next;
      wl_name_free(n);
    } else {
      at = &n->next;
    }
  }
  for (wl_stored **at = &s->tables; *at; at = &(*at)->next) {
    if (*at == t) {
      *at = t->next;
      break;
    }
  }
  wl_stored_free(t);
}

/* Finds the table of a new name: one that is known under another name, or a new one. */
static wl_status read_shape(wl_store *s, wl_name *n, wl_error *err) {
  wl_stored *stored = wl_mem_zalloc(sizeof *stored);
  if (!stored) return wl_nomem(err);
  wl_table *t = &stored->shape;
  bool strict = false;
  s->n_shapes++;
  wl_status rc = resolve(s, n, t, &strict, err);
  if (!rc) rc = read_key(s, t->schema, stored->key, err);
  if (!rc) rc = wl_store_try_text(s, err);
  wl_stored *known = rc ? NULL : s->tables;
  while (known &&
         (strcmp(known->shape.schema, t->schema) != 0 || strcmp(known->shape.name, t->name) != 0))
    known = known->next;
  if (known && memcmp(known->key, stored->key, sizeof stored->key) == 0) {
    wl_stored_free(stored);
    n->table = known;
    return WL_OK;
  }
  if (known) forget(s, known);
  if (!rc) rc = read_columns(s, t, strict, err);
  if (!rc && t->without_rowid && !t->view_sql) rc = read_key_index(s, t, err);
  if (!rc) rc = t->view_sql ? read_view(s, t, err) : read_indexes(s, t, err);
  if (!rc) rc = check_encoding(s, t, err);
  if (rc) {
    wl_stored_free(stored);
    return rc;
  }
  t->id = ++s->last_id;
  wl_stored_open(s, stored);
  stored->next = s->tables;
  s->tables = stored;
  n->table = stored;
  return WL_OK;
}

/* Finds the table that a known name still means. NULL: something changed, and it was forgotten. */
static wl_status recall(wl_store *s, const char *schema, const char *name, wl_table **out,
                        wl_error *err) {
  *out = NULL;
  for (wl_name **at = &s->names; *at; at = &(*at)->next) {
    wl_name *n = *at;
    if (!same_name(n->schema, schema) || !same_name(n->name, name)) continue;
    wl_u32 key[5], own[2];
    const char *at_home = n->table->shape.schema;
    bool attached = strcmp(at_home, "temp") != 0 && strcmp(at_home, "main") != 0;
    wl_status rc = read_name_key(s, schema, key, err);
    if (!rc && !schema && attached)
      rc = walk_attached(s, name, at_home, NULL, NULL, NULL, &key[4], err);
    if (!rc && !schema && strcmp(at_home, "main") == 0)
      memcpy(own, key + 2, sizeof own);
    else if (!rc)
      rc = read_key(s, at_home, own, err);
    bool rewritten = false;
    if (!rc) rc = view_changed(s, &n->table->shape, &rewritten, err);
    if (rc || rewritten || memcmp(own, n->table->key, sizeof own) != 0) {
      forget(s, n->table);
    } else if (memcmp(key, n->key, sizeof key) != 0) {
      *at = n->next;
      wl_name_free(n);
    } else {
      *out = &n->table->shape;
    }
    return rc;
  }
  return WL_OK;
}

wl_i64 wl_store_n_shapes(const wl_store *s) {
  return s->n_shapes;
}

wl_status wl_store_table(wl_store *s, const char *schema, const char *name, wl_table **out,
                         wl_error *err) {
  wl_status rc = wl_store_named(s, schema, name, out, err);
  return !rc && (*out)->view_sql ? wl_not_taken(err, "%s: it is a view", name) : rc;
}

wl_status wl_store_named(wl_store *s, const char *schema, const char *name, wl_table **out,
                         wl_error *err) {
  wl_status rc = wl_store_not_loading(s, err);
  if (!rc) rc = recall(s, schema, name, out, err);
  if (rc == WL_NOMEM || s->loading) return rc;
  if (!*out) {
    wl_name *n = wl_mem_zalloc(sizeof *n);
    if (!n) return wl_nomem(err);
    n->name = wl_mem_strdup(name);
    if (schema) n->schema = wl_mem_strdup(schema);
    rc = n->name && (!schema || n->schema) ? read_shape(s, n, err) : wl_nomem(err);
    if (rc) {
      wl_name_free(n);
      return rc;
    }
    n->next = s->names;
    s->names = n;
    *out = &n->table->shape;
  }
  return (*out)->refused ? wl_not_taken(err, "%s: %s", name, (*out)->refused) : WL_OK;
}

static wl_status catalog_find(void *of, const char *schema, const char *name, wl_table **out,
                              wl_error *err) {
  return wl_store_named(of, schema, name, out, err);
}

static bool catalog_collation(void *of, int coll) {
  return wl_store_collation(of, coll);
}

wl_catalog wl_store_catalog(wl_store *s) {
  return (wl_catalog){.find = catalog_find, .own_collation = catalog_collation, .of = s};
}
