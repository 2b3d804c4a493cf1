/*
** See tree.h.
*/
#include "store/tree.h"
#include "base/mem.h"
#include "store/record.h"

enum {
  SAMPLES = 6, /* leaves that are read to measure a tree */
  SLACK = 8,   /* bytes after a page, so that eight bytes can be read at its last byte */
  MAX_HEADER = 1000
};

/* ---- the database */

wl_status wl_trees_begin(wl_store *s, const char *schema, wl_trees *out, wl_error *err) {
  memset(out, 0, sizeof *out);
  out->store = s;
  wl_status rc = wl_store_not_loading(s, err);
  if (rc) return rc;
  if (sqlite3_txn_state(s->db, schema) == SQLITE_TXN_WRITE && !wl_store_untouched(s, schema))
    return wl_not_taken(err, "inside a write transaction on %s", schema);
  rc = wl_store_read_version(s, schema, err);
  if (rc) return rc;
  sqlite3_mutex_enter(sqlite3_db_mutex(s->db));
  out->locked = true;
  if (!s->n_scopes) wl_wal_pin_make(s, schema); /* a scope begins with it */
  out->open = true;
  rc = s->n_scopes || s->active ? wl_pages_open(s, schema, &out->pages, err)
                                : wl_not_taken(err, "the database cannot be read now");
  if (rc) return rc;
  out->page = wl_mem_zalloc((size_t)out->pages.page_size + SLACK);
  return out->page ? WL_OK : wl_nomem(err);
}

void wl_trees_end(wl_trees *t) {
  if (t->open) wl_pages_close(&t->pages);
  if (t->locked) sqlite3_mutex_leave(sqlite3_db_mutex(t->store->db));
  wl_store_end(t->store);
  wl_mem_free(t->page);
  memset(t, 0, sizeof *t);
}

/* ---- pages and cells */

typedef struct tree_page {
  const wl_u8 *bytes;
  wl_u32 size, n; /* n: cells */
  bool leaf;
} tree_page;

/* Reads a page of a tree and checks its kind. */
static bool read_page(wl_trees *in, const wl_tree *t, wl_u32 number, tree_page *out) {
  if (number < 2 || !wl_pages_read(&in->pages, number, 1, in->page)) return false;
  wl_u8 kind = in->page[0], leaf = t->of_table ? 0x0d : 0x0a;
  if (kind != leaf && kind != (t->of_table ? 0x05 : 0x02)) return false;
  out->bytes = in->page;
  out->size = in->pages.page_size;
  out->leaf = kind == leaf;
  out->n = wl_be16(in->page + 3);
  return out->n <= (out->size - 8) / 4;
}

/* The bytes of a cell after the page number of its child. NULL: out of bounds. */
static const wl_u8 *cell(const tree_page *p, wl_u32 i, wl_u32 *child) {
  wl_u32 header = p->leaf ? 8 : 12, at = wl_be16(p->bytes + header + 2 * i);
  if (at < header + 2 * p->n || at + (p->leaf ? 1 : 5) > p->size) return NULL;
  if (p->leaf) return p->bytes + at;
  *child = wl_be32(p->bytes + at);
  return p->bytes + at + 4;
}

/* The page of child i. The last child is in the header of the page. 0: out of bounds. */
static wl_u32 child_of(const tree_page *p, wl_u32 i) {
  wl_u32 child = 0;
  if (i == p->n) return wl_be32(p->bytes + 8);
  return cell(p, i, &child) ? child : 0;
}

static bool cell_rowid(const tree_page *p, wl_u32 i, wl_i64 *out) {
  const wl_u8 *end = p->bytes + p->size;
  wl_u32 child;
  wl_u64 x;
  const wl_u8 *at = cell(p, i, &child);
  if (at && p->leaf) at = wl_varint(at, end, &x); /* the length of the payload */
  if (!at || !wl_varint(at, end, &x)) return false;
  *out = (wl_i64)x;
  return true;
}

/* A value of a record. The type is not 10 or 11, and eight bytes can be read. */
static wl_val record_value(wl_u64 type, const wl_u8 *p) {
  static const wl_u8 shifts[7] = {0, 56, 48, 40, 32, 16, 0};
  if (type == 0) return wl_null();
  if (type <= 6) return wl_int((wl_i64)wl_be64(p) >> shifts[type]);
  if (type == 7) return wl_real(wl_as_f64(wl_be64(p)));
  if (type <= 9) return wl_int((wl_i64)type - 8);
  return wl_val_make(type & 1 ? WL_T_TEXT : WL_T_BLOB, (wl_u64)(size_t)p,
                     (wl_u32)((type - 12) >> 1));
}

/* Decodes the first n columns of the record of an index cell. False also if a column continues on
** another page. */
static bool cell_record(const tree_page *p, wl_u32 i, wl_val *out, int n) {
  const wl_u8 *end = p->bytes + p->size;
  wl_u32 child;
  wl_u64 n_payload, n_header, type;
  const wl_u8 *at = cell(p, i, &child);
  if (at) at = wl_varint(at, end, &n_payload);
  if (!at || n_payload > 0x7fffffff) return false;
  wl_u64 most = (p->size - 12) * 64 / 255 - 23, least = (p->size - 12) * 32 / 255 - 23;
  wl_u64 here = n_payload;
  if (n_payload > most) {
    here = least + (n_payload - least) % (p->size - 4);
    if (here > most) here = least;
  }
  if (here > (wl_u64)(end - at)) return false;
  const wl_u8 *record = at, *h = wl_varint(at, at + here, &n_header);
  if (!h || n_header > here || n_header > MAX_HEADER || n_header < (wl_u64)(h - at)) return false;
  wl_u64 body = n_header;
  for (int k = 0; k < n; k++) {
    h = wl_varint(h, record + n_header, &type);
    if (!h || type == 10 || type == 11) return false;
    wl_u64 length = wl_record_length(type);
    if (length > here - body) return false;
    out[k] = record_value(type, record + body);
    body += length;
  }
  return true;
}

/* Compares a cell with a bound: < 0 if the cell comes first. */
static bool compare_cell(const tree_page *p, const wl_tree *t, wl_u32 i, const wl_tree_bound *b,
                         int *out) {
  wl_val have[WL_TREE_COLS];
  wl_i64 rowid;
  *out = 0;
  if (t->of_table) {
    if (!cell_rowid(p, i, &rowid)) return false;
    *out = wl_cmp_val(wl_int(rowid), b->key[0], WL_COLL_BINARY);
    return true;
  }
  if (!cell_record(p, i, have, b->n)) return false;
  for (int k = 0; k < b->n && *out == 0; k++) {
    *out = wl_cmp_val(have[k], b->key[k], t->coll[k]);
    if (t->desc[k]) *out = -*out;
  }
  return true;
}

/* ---- paths */

/* The way from the root to a place in a leaf. at[l] is the child that is taken at level l, and at
** the last level the number of cells before the place. n[l] is the number of cells. */
typedef struct tree_path {
  int depth;
  wl_u32 at[WL_TREE_DEPTH], n[WL_TREE_DEPTH];
} tree_path;

/* The number of cells of a page that are before a bound. */
static bool search_page(const tree_page *p, const wl_tree *t, const wl_tree_bound *b, wl_u32 *out) {
  wl_u32 lo = 0, hi = p->n;
  while (lo < hi) {
    wl_u32 mid = lo + (hi - lo) / 2;
    int c;
    if (!compare_cell(p, t, mid, b, &c)) return false;
    if (c < 0 || (c == 0 && b->after))
      lo = mid + 1;
    else
      hi = mid;
  }
  *out = lo;
  return true;
}

/* Finds a place. With no bound, the first place, or if last is set the last one. */
static bool find_path(wl_trees *in, const wl_tree *t, const wl_tree_bound *b, bool last,
                      tree_path *out) {
  wl_u32 number = t->root;
  tree_page p;
  for (int l = 0; l < WL_TREE_DEPTH; l++) {
    if (!read_page(in, t, number, &p)) return false;
    out->n[l] = p.n;
    out->at[l] = last ? p.n : 0;
    if (b && !search_page(&p, t, b, &out->at[l])) return false;
    out->depth = l + 1;
    if (p.leaf) return true;
    number = child_of(&p, out->at[l]);
  }
  return false;
}

bool wl_tree_range(wl_trees *in, const wl_tree *t, const wl_tree_shape *shape,
                   const wl_tree_bound *low, const wl_tree_bound *high, double *out) {
  tree_path a, z;
  double own = t->of_table ? 0 : 1; /* the cells of interior pages of an index are entries too */
  if (!find_path(in, t, low, false, &a) || !find_path(in, t, high, true, &z)) return false;
  if (a.depth != shape->depth || z.depth != shape->depth) return false;
  int l = 0, leaf = shape->depth - 1;
  while (l < leaf && a.at[l] == z.at[l]) l++;
  *out = 0;
  if (a.at[l] >= z.at[l]) return true; /* the range is empty */
  if (l == leaf) {
    *out = z.at[l] - a.at[l];
    return true;
  }
  *out = (z.at[l] - a.at[l] - 1) * shape->entries[l + 1] + (z.at[l] - a.at[l]) * own;
  for (int k = l + 1; k < leaf; k++)
    *out += (a.n[k] - a.at[k] + z.at[k]) * (shape->entries[k + 1] + own);
  *out += (a.n[leaf] - a.at[leaf]) + z.at[leaf];
  return true;
}

/* Follows the path that is a share of the way through the tree. Calls see for each page. */
static bool sample_path(wl_trees *in, const wl_tree *t, double share,
                        bool (*see)(void *arg, const tree_page *p, int level), void *arg) {
  wl_u32 number = t->root;
  tree_page p;
  for (int l = 0; l < WL_TREE_DEPTH; l++) {
    if (!read_page(in, t, number, &p) || !see(arg, &p, l)) return false;
    if (p.leaf) return true;
    double at = share * (p.n + 1);
    wl_u32 child = (wl_u32)at > p.n ? p.n : (wl_u32)at;
    number = child_of(&p, child);
    share = at - child; /* the place within the child */
    share += l * 0.618;
    share -= (int)share;
  }
  return false;
}

typedef struct level_sums {
  const wl_tree *tree;
  int depth, n_cols;
  double pages[WL_TREE_DEPTH], cells[WL_TREE_DEPTH], changes[WL_TREE_DEPTH];
} level_sums;

static bool count_cells(void *arg, const tree_page *p, int level) {
  level_sums *s = arg;
  if (p->leaf && s->depth && s->depth != level + 1) return false; /* leaves have the same depth */
  if (p->leaf) s->depth = level + 1;
  s->pages[level]++;
  s->cells[level] += p->n;
  return true;
}

bool wl_tree_measure(wl_trees *in, const wl_tree *t, wl_tree_shape *out) {
  level_sums s = {.tree = t};
  memset(out, 0, sizeof *out);
  for (int i = 0; i < SAMPLES; i++) {
    if (!sample_path(in, t, (i + 0.5) / SAMPLES, count_cells, &s)) return false;
    if (s.depth == 1) break; /* the root is the only page */
  }
  out->depth = s.depth;
  out->n_leaves = 1;
  for (int l = s.depth - 1; l >= 0; l--) {
    double cells = out->cells[l] = s.cells[l] / s.pages[l];
    bool leaf = l == s.depth - 1;
    out->entries[l] = leaf ? cells : (cells + 1) * out->entries[l + 1] + (t->of_table ? 0 : cells);
    if (!leaf) out->n_leaves *= cells + 1;
  }
  return true;
}

/* Counts the cells of a page that differ from the cell before them. */
static bool count_changes(void *arg, const tree_page *p, int level) {
  level_sums *s = arg;
  wl_tree_bound before = {.n = s->n_cols};
  if (!count_cells(arg, p, level)) return false;
  for (wl_u32 i = 0; i < p->n; i++) {
    int c = 0;
    if (i && !compare_cell(p, s->tree, i, &before, &c)) return false;
    s->changes[level] += c != 0;
    if ((i == 0 || c) && !cell_record(p, i, before.key, s->n_cols)) return false;
  }
  return true;
}

/* The lowest level at which keys change tells how many entries a key has. If they change often in
** the leaves, that is exact for the sample. */
bool wl_tree_per_key(wl_trees *in, const wl_tree *t, const wl_tree_shape *shape, int n,
                     double *out) {
  level_sums s = {.tree = t, .n_cols = n};
  *out = 1;
  if (t->of_table || shape->entries[0] < 1) return true;
  if (n > t->n_cols) return false;
  for (int i = 0; i < SAMPLES; i++) {
    if (!sample_path(in, t, (i + 0.5) / SAMPLES, count_changes, &s)) return false;
    if (s.depth == 1) break;
  }
  *out = shape->entries[0];
  for (int l = s.depth - 1; l >= 0; l--) {
    double below = l == s.depth - 1 ? 1 : shape->entries[l + 1] + 1;
    if (s.changes[l] < 1) continue;
    double per_key = s.cells[l] / s.changes[l] * below;
    if (per_key < *out) *out = per_key;
    break;
  }
  return true;
}
