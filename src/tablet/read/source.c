/*
** Tablet tables as a kind of table of the store; see store/kind.h. Besides its columns, a set has
** the table's image.
*/
#include "base/mem.h"
#include "store/kind.h"
#include "store/pages.h"
#include "tablet/read/image.h"

static bool owns(sqlite3 *db, const char *schema, const char *name) {
  return wl_tablets_find(db, schema, name) != NULL;
}

/* The column for commands is not in the declaration. */
static void describe(sqlite3 *db, wl_table *t) {
  const wl_tablets *x = wl_tablets_find(db, t->schema, t->name);
  if (t->n_cols && t->cols[t->n_cols - 1].hidden) {
    t->n_cols--;
    wl_mem_free(t->cols[t->n_cols].name);
    wl_mem_free(t->cols[t->n_cols].decl);
  }
  for (int i = 0; i < t->n_cols; i++) t->cols[i].rowid = x && i == wl_tablets_decl(x)->rowid_col;
}

static wl_status find(const wl_store *s, const wl_table *t, wl_tablets **out, wl_error *err) {
  *out = wl_tablets_find(s->db, t->schema, t->name);
  return *out ? WL_OK : wl_not_taken(err, "the tablet table %s is not open", t->name);
}

static wl_status version(wl_store *s, const wl_table *t, wl_kind_version *out, wl_error *err) {
  wl_tablets *x;
  wl_status rc = find(s, t, &x, err);
  if (!rc) rc = wl_tablets_refresh(x, err);
  if (rc) return rc;
  out->own = wl_tablets_version(x);
  out->settled = wl_tablets_state(x, &out->shared);
  return WL_OK;
}

static wl_i64 about(wl_store *s, const wl_table *t) {
  const wl_tablets *x = wl_tablets_find(s->db, t->schema, t->name);
  return x ? wl_tablets_about(x) : 0;
}

/* ---- the image of a set */

static void close_image(void *image) {
  wl_image_close(image);
}

static void shed(void *image, void (*give)(void *arg, wl_column *c), void *arg) {
  wl_image_shed(image, give, arg);
}

static size_t bytes(const void *image) {
  return wl_image_bytes(image);
}

static void lend(void *to, const wl_column_set *from) {
  if (!from->extra.data) return;
  for (int i = 0; i <= from->n_cols; i++)
    wl_image_lend(from->extra.data, i, from->slots[i].column, to);
}

static wl_status open_image(wl_store *s, const wl_table *t, const wl_cache_user *before,
                            wl_set_extra *out, wl_error *err) {
  wl_tablets *x;
  wl_image *im = NULL;
  wl_status rc = find(s, t, &x, err);
  if (!rc) rc = wl_image_open(x, t->n_cols, &im, err);
  if (rc) return rc;
  wl_cache_look(before, lend, im);
  *out = (wl_set_extra){.data = im,
                        .close = close_image,
                        .shed = shed,
                        .bytes = bytes,
                        .live = wl_image_live_column(im),
                        .n_rows = wl_image_slots(im),
                        .n_live = wl_image_live(im)};
  return WL_OK;
}

/* ---- loading */

typedef struct loading {
  wl_store *s;
  const wl_table *t;
  wl_i64 n_rows;
} loading;

static void tell(void *arg, wl_i64 done, wl_i64 total) {
  const loading *x = arg;
  double share = total ? (double)done / (double)total : 0;
  wl_store_tell(x->s, x->t, (wl_i64)(share * (double)x->n_rows), x->n_rows);
}

static wl_status check(void *arg, wl_error *err) {
  const loading *x = arg;
  return wl_store_check(x->s, x->t, err);
}

/* The root page of the table of segments. 0: it is not known. */
static wl_u32 segments_root(wl_store *s, const wl_table *t) {
  sqlite3_stmt *q = NULL;
  wl_i64 root = 0;
  char *sql = sqlite3_mprintf("SELECT rootpage FROM \"%w\".sqlite_schema WHERE type='table' AND "
                              "name='%q_segment' COLLATE NOCASE",
                              t->schema, t->name);
  if (sql && sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW)
    root = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  sqlite3_free(sql);
  return root > 1 && root <= 0xffffffffLL ? (wl_u32)root : 0;
}

static wl_status load(wl_store *s, const wl_table *t, void *image, const int *cols, int n,
                      size_t limit, wl_column **out, wl_error *err) {
  wl_tablets *x;
  loading l = {s, t, wl_image_slots(image)};
  wl_image_how how = {.n_threads = s->threads,
                      .limit = limit,
                      .check = check,
                      .check_arg = &l,
                      .tell = s->progress ? tell : NULL,
                      .tell_arg = &l};
  wl_pages pages;
  wl_error ignored;
  wl_status rc = find(s, t, &x, err);
  if (rc || n == 0) return rc;
  sqlite3_mutex *m = sqlite3_db_mutex(s->db);
  sqlite3_mutex_enter(m);
  /* Pages that this transaction has written may be only in SQLite's cache. */
  bool direct =
      sqlite3_txn_state(s->db, t->schema) != SQLITE_TXN_WRITE || wl_store_untouched(s, t->schema);
  if (direct && wl_pages_open(s, t->schema, &pages, &ignored) == WL_OK)
    how.root = segments_root(s, t);
  if (how.root) how.pages = &pages;
  rc = wl_image_load(image, x, cols, n, &how, out, err);
  if (direct) wl_pages_close(&pages);
  sqlite3_mutex_leave(m);
  return rc;
}

static const wl_table_kind kind = {.loaded_from = "from tablets",
                                   .in_segments = true,
                                   .rowid_order_only = true,
                                   .owns = owns,
                                   .describe = describe,
                                   .version = version,
                                   .about = about,
                                   .open = open_image,
                                   .load = load};

__attribute__((constructor)) static void register_kind(void) {
  wl_store_add_kind(&kind);
}
