/*
** Loads a table in these steps. The interior pages of the b-tree give the list of leaves. Leaves
** are decoded in waves: each task decodes some leaves into a chunk. Then each task makes a segment
** of one tablet and column from the chunks. Rows that do not fill a tablet wait for the next wave.
**
** Invariants:
** 1. Chunks in the queue are in row order without gaps. Rows before `cut` are in segments.
** 2. Between waves only the caller's thread works. Only it calls SQLite.
*/
#include "store/btree.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "value/exchange.h"
#include "store/leaf.h"
#include <assert.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 19, WAVE = 8 /* chunks per thread */, MAX_DEPTH = 20 };

typedef struct load_worker {
  bool reads, stages; /* whether reader and stage are open */
  wl_leaf_reader reader;
  wl_stage stage;
} load_worker;

typedef struct btree_load {
  wl_store *s;
  wl_table *t;
  const int *cols;
  wl_pages pages;
  wl_leaf_plan plan;
  wl_u32 *leaves;
  wl_u32 n_leaves, size_leaves;
  wl_u8 *seen; /* a bit for each page */
  int n_threads;
  load_worker *workers;
  wl_val *defaults;    /* [n_out] values for short records; t is WL_T_DEFAULT until they are read */
  wl_u32 chunk_leaves; /* leaves of a chunk */
  wl_u32 max_run;      /* the most pages of one read */

  wl_chunk **queue; /* rows that are not in segments yet */
  int n_queue, size_queue;
  int n_ready; /* chunks of the queue that were decoded in earlier waves */
  wl_u32 wave_first;
  wl_chunk **spare;
  int n_spare, size_spare;
  wl_i64 cut, n_rows;
  wl_i64 high; /* the last rowid so far */

  wl_segment **segments; /* [n_out][size_segments] */
  int n_segments, size_segments, n_new;
  size_t limit;          /* bytes that this load may use; 0: no limit */
  size_t n_bytes;        /* bytes of the segments */
  _Atomic size_t n_heap; /* bytes of texts in the chunks of the queue */
} btree_load;

/* ---- the table's shape */

static wl_status sqlite_says_no(wl_error *err) {
  return wl_not_taken(err, "the schema cannot be read");
}

/* Finds the root page and the alias of the rowid. Refuses generated columns. */
static wl_status read_shape(btree_load *b, wl_u32 *root, int *alias, wl_error *err) {
  sqlite3 *db = b->s->db;
  wl_table *t = b->t;
  sqlite3_stmt *q = NULL;
  int n_cols = 0, n_pk = 0, pk = -1;
  bool own_index = false;
  wl_i64 page = 0;
  *alias = -1;
  char *sql = sqlite3_mprintf(
      "SELECT 0, rootpage, 0 FROM \"%w\".sqlite_master WHERE type='table' AND name=%Q"
      " UNION ALL SELECT 1, pk, hidden FROM pragma_table_xinfo(%Q, %Q)"
      " UNION ALL SELECT 2, origin='pk', 0 FROM pragma_index_list(%Q, %Q)",
      t->schema, t->name, t->name, t->schema, t->name, t->schema);
  int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  bool plain = true;
  while (rc == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW) {
    wl_i64 x = sqlite3_column_int64(q, 1);
    switch (sqlite3_column_int(q, 0)) {
    case 0:
      plain &= page == 0;
      page = x;
      break;
    case 1:
      plain &= sqlite3_column_int(q, 2) == 0;
      if (x) n_pk++, pk = n_cols;
      n_cols++;
      break;
    default: own_index |= x != 0;
    }
  }
  rc = sqlite3_finalize(q);
  if (rc) return sqlite_says_no(err);
  if (!plain) return wl_not_taken(err, "it has generated columns");
  if (n_cols != t->n_cols || page < 2 || page > b->pages.n_pages) return sqlite_says_no(err);
  /* A primary key without an index is the rowid. */
  if (n_pk == 1 && !own_index) {
    if (sqlite3_stricmp(t->cols[pk].decl, "INTEGER") != 0) return sqlite_says_no(err);
    *alias = pk;
  }
  *root = (wl_u32)page;
  return WL_OK;
}

static wl_status make_plan(btree_load *b, int n, int alias, wl_error *err) {
  wl_leaf_plan *p = &b->plan;
  p->slot = wl_mem_alloc(((size_t)b->t->n_cols + 1) * sizeof *p->slot);
  p->real = wl_mem_zalloc((size_t)n * sizeof *p->real);
  b->defaults = wl_mem_zalloc((size_t)n * sizeof *b->defaults);
  if (!p->slot || !p->real || !b->defaults) return wl_nomem(err);
  p->max_length = (wl_u32)sqlite3_limit(b->s->db, SQLITE_LIMIT_LENGTH, -1);
  for (int i = 0; i < b->t->n_cols; i++) p->slot[i] = WL_SLOT_SKIP;
  for (int i = 0; i < n; i++) {
    int c = b->cols[i];
    b->defaults[i].t = WL_T_DEFAULT;
    if (c < 0 || c == alias) {
      if (p->n_rowid == 2) return wl_not_taken(err, "a column is wanted twice");
      p->rowid_slot[p->n_rowid++] = i;
      if (c < 0) continue;
    } else if (p->slot[c] != WL_SLOT_SKIP) {
      return wl_not_taken(err, "a column is wanted twice");
    } else {
      p->real[i] = b->t->cols[c].affinity == 'E';
    }
    p->slot[c] = c == alias ? WL_SLOT_ALIAS : i;
    if (c >= p->n_record) p->n_record = c + 1;
  }
  int n_bytes = p->n_record + 1; /* with the length of the header */
  /* Texts of the usual form have at most 57 bytes, so they need no check of the limit. */
  if (n_bytes > 8 * WL_SHORT_WORDS || p->max_length < 58) return WL_OK;
  for (int at = 0; at < n_bytes; at += 8) {
    int n = n_bytes - at < 8 ? n_bytes - at : 8;
    p->long_types[p->n_short++] = 0x8080808080808080 << (64 - 8 * n);
  }
  return WL_OK;
}

/* ---- the list of leaves */

static wl_status add_leaf(btree_load *b, wl_u32 page, wl_error *err) {
  if (b->n_leaves == b->size_leaves) {
    wl_u32 size = b->size_leaves ? b->size_leaves * 2 : 256;
    wl_u32 *p =
        wl_mem_realloc(b->leaves, (size_t)b->n_leaves * sizeof *p, (size_t)size * sizeof *p);
    if (!p) return wl_nomem(err);
    b->leaves = p;
    b->size_leaves = size;
  }
  b->leaves[b->n_leaves++] = page;
  return WL_OK;
}

static wl_status bad_page(wl_error *err) {
  return wl_not_taken(err, "a page cannot be decoded");
}

/* Child i of an interior page. The last child is in the page's header. 0: out of bounds. */
static wl_u32 child_page(const btree_load *b, const wl_u8 *page, wl_u32 i) {
  wl_u32 n = (wl_u32)page[3] << 8 | page[4], at = 8;
  if (i < n) at = (wl_u32)page[12 + 2 * i] << 8 | page[13 + 2 * i];
  if (i < n && (at < 12 + 2 * n || at + 5 > b->pages.page_size)) return 0;
  const wl_u8 *p = page + at;
  return (wl_u32)p[0] << 24 | (wl_u32)p[1] << 16 | (wl_u32)p[2] << 8 | p[3];
}

/* Marks a page as seen. Fails if it does not exist or was seen before. */
static wl_status mark_page(btree_load *b, wl_u32 page, wl_error *err) {
  if (page < 2 || page > b->pages.n_pages || b->seen[page >> 3] >> (page & 7) & 1)
    return bad_page(err);
  b->seen[page >> 3] |= (wl_u8)(1 << (page & 7));
  return WL_OK;
}

/* Lists the leaves, depth first. All leaves have the same depth. A page at that depth that is not a
** leaf fails when it is decoded. */
static wl_status list_leaves(btree_load *b, wl_u32 root, wl_error *err) {
  wl_u32 size = b->pages.page_size, at[MAX_DEPTH], page = root;
  wl_u8 *path = wl_mem_alloc((size_t)MAX_DEPTH * size);
  int depth = 0, leaf_depth = -1;
  wl_status rc = WL_OK;
  b->seen = wl_mem_zalloc((size_t)b->pages.n_pages / 8 + 1);
  if (!path || !b->seen) rc = wl_nomem(err);
  while (!rc) {
    wl_u8 *p = path + (size_t)depth * size;
    bool is_leaf = depth == leaf_depth;
    rc = mark_page(b, page, err);
    if (!rc && !is_leaf && !wl_pages_read(&b->pages, page, 1, p)) rc = bad_page(err);
    if (!rc && leaf_depth < 0 && p[0] == 0x0d) {
      leaf_depth = depth;
      is_leaf = true;
    }
    if (!rc && is_leaf) rc = add_leaf(b, page, err);
    if (!rc && !is_leaf) {
      wl_u32 n = (wl_u32)p[3] << 8 | p[4];
      if (p[0] != 0x05 || n < 1 || n > (size - 8) / 6 || depth + 1 == MAX_DEPTH) rc = bad_page(err);
      at[depth++] = 0;
    } else {
      while (depth > 0 && at[depth - 1] > ((wl_u32)path[(size_t)(depth - 1) * size + 3] << 8 |
                                           path[(size_t)(depth - 1) * size + 4]))
        depth--;
      if (depth == 0) break;
    }
    if (!rc) page = child_page(b, path + (size_t)(depth - 1) * size, at[depth - 1]++);
  }
  wl_mem_free(path);
  return rc;
}

/* ---- decoding */

static wl_status decode_task(void *arg, int w, long k, wl_error *err) {
  btree_load *b = arg;
  load_worker *me = &b->workers[w];
  wl_chunk *c = b->queue[b->n_ready + k];
  wl_u32 first = b->wave_first + (wl_u32)k * b->chunk_leaves, n = b->n_leaves - first;
  if (n > b->chunk_leaves) n = b->chunk_leaves;
  wl_status rc = WL_OK;
  if (!me->reads) {
    rc = wl_leaf_reader_open(&me->reader, &b->pages, b->max_run);
    me->reads = rc == WL_OK;
  }
  if (!rc) rc = wl_leaf_decode(&b->plan, &me->reader, b->leaves + first, n, c);
  size_t heap = wl_chunk_heap_bytes(c);
  heap += atomic_fetch_add(&b->n_heap, heap);
  if (!rc && b->limit && b->n_bytes + heap > b->limit) rc = WL_FULL;
  return rc == WL_NOT_TAKEN ? bad_page(err) : rc;
}

static wl_status reserve_chunk(wl_chunk ***list, int n, int *size) {
  if (n < *size) return WL_OK;
  int more = *size ? *size * 2 : 64;
  wl_chunk **p = wl_mem_realloc(*list, (size_t)n * sizeof *p, (size_t)more * sizeof *p);
  if (!p) return WL_NOMEM;
  *list = p;
  *size = more;
  return WL_OK;
}

static wl_status add_chunk(btree_load *b) {
  if (reserve_chunk(&b->queue, b->n_queue, &b->size_queue)) return WL_NOMEM;
  wl_chunk *c = b->n_spare ? b->spare[--b->n_spare] : wl_chunk_open(b->plan.n_out);
  if (!c) return WL_NOMEM;
  b->queue[b->n_queue++] = c;
  return WL_OK;
}

/* ---- defaults: asks SQLite for the value of a column that a short record does not have */

static wl_status read_default(btree_load *b, int slot, wl_i64 rowid, wl_error *err) {
  const wl_table *t = b->t;
  sqlite3_stmt *q = NULL;
  wl_val *d = &b->defaults[slot];
  if (!t->rowid_name) return wl_not_taken(err, "the rowid has no name");
  char *sql = sqlite3_mprintf("SELECT \"%w\" FROM \"%w\".\"%w\" NOT INDEXED WHERE \"%w\"=?1",
                              t->cols[b->cols[slot]].name, t->schema, t->name, t->rowid_name);
  int rc = sql ? sqlite3_prepare_v2(b->s->db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  wl_status st = rc ? sqlite_says_no(err) : WL_OK;
  if (!st) sqlite3_bind_int64(q, 1, rowid);
  if (!st && sqlite3_step(q) != SQLITE_ROW) st = sqlite_says_no(err);
  if (!st) {
    *d = wl_sqlite_column(q, 0);
    wl_u8 *p = d->t >= WL_T_TEXT ? wl_mem_alloc(d->n) : NULL; /* owned by the load */
    if (d->t >= WL_T_TEXT && (!p || wl_sqlite_lost(*d))) {
      wl_mem_free(p);
      *d = wl_null();
      st = wl_nomem(err);
    } else if (p) {
      if (d->n) memcpy(p, wl_bytes(*d), d->n);
      d->v = (wl_u64)(size_t)p;
    }
  }
  sqlite3_finalize(q);
  return st;
}

/* ---- tablets */

/* Appends the rows [from, to) of a chunk's column to the stage. */
static wl_status stage_rows(const btree_load *b, wl_stage *st, const wl_chunk *c, int slot,
                            wl_i32 from, wl_i32 to) {
  wl_u64 *v = st->v + st->n;
  wl_u8 *t = st->t + st->n;
  const wl_stage *h = &c->heap[slot];
  size_t n = (size_t)(to - from);
  memcpy(v, c->v[slot] + from, n * sizeof *v);
  memcpy(t, c->t[slot] + from, n);
  st->n += to - from;
  if (h->n_heap) {
    /* Texts follow one another in the heap in row order. */
    wl_u64 first = h->n_heap, last = 0;
    for (size_t i = 0; i < n && first == h->n_heap; i++)
      if (t[i] == WL_T_TEXT || t[i] == WL_T_BLOB) first = (wl_u32)v[i];
    for (size_t i = n; i > 0 && last == 0; i--)
      if (t[i - 1] == WL_T_TEXT || t[i - 1] == WL_T_BLOB)
        last = (wl_u64)(wl_u32)v[i - 1] + (v[i - 1] >> 32);
    if (first < last) {
      wl_status rc = wl_stage_room(st, last - first);
      if (rc) return rc;
      memcpy(st->heap + st->n_heap, h->heap + first, last - first);
    } else {
      last = first;
    }
    wl_u64 move = st->n_heap - first;
    for (size_t i = 0; i < n; i++)
      if (t[i] == WL_T_TEXT || t[i] == WL_T_BLOB)
        v[i] = (v[i] & ~(wl_u64)0xffffffff) | (wl_u32)((wl_u32)v[i] + move);
    st->n_heap += last - first;
  }
  if (c->has_default[slot]) {
    wl_val d = b->defaults[slot];
    wl_u64 value = d.v;
    if (d.t >= WL_T_TEXT) { /* copied once; all rows of this piece share it */
      wl_status rc = wl_stage_room(st, d.n);
      if (rc) return rc;
      if (d.n) memcpy(st->heap + st->n_heap, wl_bytes(d), d.n);
      value = (wl_u64)st->n_heap | (wl_u64)d.n << 32;
      st->n_heap += d.n;
    }
    for (size_t i = 0; i < n; i++) {
      if (t[i] != WL_T_DEFAULT) continue;
      v[i] = value;
      t[i] = d.t;
    }
  }
  return WL_OK;
}

static wl_status tablet_task(void *arg, int w, long k, wl_error *err) {
  btree_load *b = arg;
  load_worker *me = &b->workers[w];
  int slot = (int)(k % b->plan.n_out), tablet = (int)(k / b->plan.n_out);
  wl_segment *out = &b->segments[slot][b->n_segments + tablet];
  wl_i64 from = b->cut + (wl_i64)tablet * WL_TABLET_ROWS, to = from + WL_TABLET_ROWS;
  if (to > b->n_rows) to = b->n_rows;
  wl_status rc = WL_OK;
  (void)err;
  if (!me->stages) {
    rc = wl_stage_open(&me->stage);
    me->stages = rc == WL_OK;
  }
  me->stage.n = 0;
  me->stage.n_heap = 0;
  for (int i = 0; i < b->n_queue && !rc; i++) {
    const wl_chunk *c = b->queue[i];
    wl_i64 lo = from > c->first_row ? from - c->first_row : 0;
    wl_i64 hi = to < c->first_row + c->n ? to - c->first_row : c->n;
    if (lo < hi) rc = stage_rows(b, &me->stage, c, slot, (wl_i32)lo, (wl_i32)hi);
  }
  return rc ? rc : wl_segment_make(&me->stage, out);
}

/* Makes segments of all full tablets, and at the end also of the last rows. */
static wl_status make_tablets(btree_load *b, bool end, wl_error *err) {
  wl_i64 n = b->n_rows - b->cut;
  for (int i = 1; i < b->n_queue; i++)
    assert(b->queue[i]->first_row == b->queue[i - 1]->first_row + b->queue[i - 1]->n);
  int n_new = (int)(n / WL_TABLET_ROWS) + (end && n % WL_TABLET_ROWS != 0);
  if (n_new && b->n_segments + n_new > b->size_segments) {
    int size = b->n_segments + n_new + b->size_segments;
    for (int i = 0; i < b->plan.n_out; i++) {
      wl_segment *p = wl_mem_realloc(b->segments[i], (size_t)b->n_segments * sizeof *p,
                                     (size_t)size * sizeof *p);
      if (!p) return WL_NOMEM;
      b->segments[i] = p;
    }
    b->size_segments = size;
  }
  for (int i = 0; i < b->plan.n_out && n_new; i++)
    memset(&b->segments[i][b->n_segments], 0, (size_t)n_new * sizeof **b->segments);
  wl_tasks tasks = {b->n_threads, (long)n_new * b->plan.n_out, tablet_task, b, NULL};
  wl_status rc = wl_tasks_run(&tasks, NULL, err);
  b->n_segments += n_new; /* segments that failed are empty and are freed with the others */
  if (rc) return rc;
  b->cut += (wl_i64)n_new * WL_TABLET_ROWS;
  for (int i = 0; i < b->plan.n_out; i++)
    for (int k = b->n_segments - n_new; k < b->n_segments; k++)
      b->n_bytes += wl_segment_bytes(&b->segments[i][k]);
  /* Chunks whose rows are all in segments can be used again. */
  int used = 0;
  while (used < b->n_queue && b->queue[used]->first_row + b->queue[used]->n <= b->cut) used++;
  for (int i = 0; i < used; i++) {
    wl_chunk *c = b->queue[i];
    atomic_fetch_sub(&b->n_heap, wl_chunk_heap_bytes(c));
    wl_chunk_clear(c);
    if (b->n_spare < b->n_threads * WAVE && !reserve_chunk(&b->spare, b->n_spare, &b->size_spare))
      b->spare[b->n_spare++] = c;
    else
      wl_chunk_close(c);
  }
  b->n_queue -= used;
  memmove(b->queue, b->queue + used, (size_t)b->n_queue * sizeof *b->queue);
  return b->limit && b->n_bytes > b->limit ? WL_FULL : WL_OK;
}

static wl_status run_wave(btree_load *b, wl_error *err) {
  wl_status rc = WL_OK;
  long n = (long)((b->n_leaves - b->wave_first + b->chunk_leaves - 1) / b->chunk_leaves);
  if (n > (long)b->n_threads * WAVE) n = (long)b->n_threads * WAVE;
  b->n_ready = b->n_queue;
  for (long i = 0; i < n && !rc; i++) rc = add_chunk(b);
  if (rc) return rc;
  wl_tasks tasks = {b->n_threads, n, decode_task, b, NULL};
  rc = wl_tasks_run(&tasks, NULL, err);
  if (rc) return rc;
  for (int i = b->n_ready; i < b->n_queue; i++) {
    wl_chunk *c = b->queue[i];
    c->first_row = b->n_rows;
    if (c->n && b->n_rows && c->low <= b->high) return bad_page(err);
    if (c->n) b->high = c->high;
    b->n_rows += c->n;
    for (int k = 0; k < b->plan.n_out && !rc; k++)
      if (c->has_default[k] && b->defaults[k].t == WL_T_DEFAULT)
        rc = read_default(b, k, c->default_rowid[k], err);
  }
  if (rc) return rc;
  wl_u32 done = (wl_u32)n * b->chunk_leaves;
  b->wave_first = b->n_leaves - b->wave_first > done ? b->wave_first + done : b->n_leaves;
  return make_tablets(b, b->wave_first == b->n_leaves, err);
}

/* ---- the whole */

static void close_load(btree_load *b) {
  for (int i = 0; i < b->n_queue; i++) wl_chunk_close(b->queue[i]);
  for (int i = 0; i < b->n_spare; i++) wl_chunk_close(b->spare[i]);
  wl_mem_free(b->queue);
  wl_mem_free(b->spare);
  for (int i = 0; b->segments && i < b->plan.n_out; i++) {
    for (int k = 0; b->segments[i] && k < b->n_segments; k++) wl_segment_free(&b->segments[i][k]);
    wl_mem_free(b->segments[i]);
  }
  wl_mem_free(b->segments);
  for (int i = 0; b->workers && i < b->n_threads; i++) {
    wl_leaf_reader_close(&b->workers[i].reader);
    wl_stage_close(&b->workers[i].stage);
  }
  wl_mem_free(b->workers);
  for (int i = 0; b->defaults && i < b->plan.n_out; i++)
    if (b->defaults[i].t == WL_T_TEXT || b->defaults[i].t == WL_T_BLOB)
      wl_mem_free((void *)(size_t)b->defaults[i].v);
  wl_mem_free(b->defaults);
  wl_mem_free(b->plan.slot);
  wl_mem_free(b->plan.real);
  wl_mem_free(b->leaves);
  wl_mem_free(b->seen);
  wl_pages_close(&b->pages);
}

static wl_status load_columns(btree_load *b, wl_column **out, wl_error *err) {
  wl_status rc = WL_OK;
  int n = b->plan.n_out;
  b->chunk_leaves = CHUNK_BYTES / b->pages.page_size;
  b->max_run = b->chunk_leaves;
  if (b->max_run / WL_MAX_GAP > b->n_leaves) b->max_run = b->n_leaves * WL_MAX_GAP;
  b->plan.one_leaf = b->n_leaves == 1;
  b->n_threads = b->s->threads;
  if ((wl_u32)b->n_threads > b->n_leaves) b->n_threads = (int)b->n_leaves;
  b->workers = wl_mem_zalloc((size_t)b->n_threads * sizeof *b->workers);
  b->segments = wl_mem_zalloc((size_t)n * sizeof *b->segments);
  if (!b->workers || !b->segments) return wl_nomem(err);
  while (!rc && b->wave_first < b->n_leaves) {
    rc = run_wave(b, err);
    wl_store_tell(b->s, b->t, b->wave_first, (wl_i64)b->n_leaves + 1);
    if (!rc) rc = wl_store_check(b->s, b->t, err);
  }
  for (int i = 0; i < n && !rc; i++) {
    wl_segment *segments = b->segments[i];
    b->segments[i] = NULL;
    rc = wl_column_make(segments, b->n_segments, b->n_threads, true, &out[i], err);
  }
  for (int i = 0; i < n && rc; i++) {
    wl_column_drop(out[i]);
    out[i] = NULL;
  }
  return rc;
}

wl_status wl_btree_load(wl_store *s, wl_table *t, const int *cols, int n, size_t limit,
                        wl_column **out, wl_i64 *n_rows, wl_error *err) {
  btree_load b = {.s = s, .t = t, .cols = cols, .limit = limit, .plan = {.n_out = n}};
  wl_u32 root = 0;
  int alias = -1;
  memset(out, 0, (size_t)n * sizeof *out);
  if (t->without_rowid) return wl_not_taken(err, "it is a WITHOUT ROWID table");
  /* The mutex keeps others from using the file handle meanwhile. */
  sqlite3_mutex *m = sqlite3_db_mutex(s->db);
  sqlite3_mutex_enter(m);
  wl_status rc = wl_pages_open(s, t->schema, &b.pages, err);
  if (!rc) rc = read_shape(&b, &root, &alias, err);
  if (!rc) rc = make_plan(&b, n, alias, err);
  if (!rc) rc = list_leaves(&b, root, err);
  if (!rc) rc = load_columns(&b, out, err);
  *n_rows = b.n_rows;
  close_load(&b);
  sqlite3_mutex_leave(m);
  return rc == WL_NOMEM ? wl_nomem(err) : rc;
}
