#include "store/leaf.h"
#include "base/mem.h"
#include "store/record.h"
#include <string.h>

enum {
  MIN_ROWS = 1024,
  MAX_HEADER = 98307,
  FEW_CELLS = 16,  /* fewer usual cells in a row do not pay for the attempt */
  PAGES_LEFT = 31, /* so many pages follow without one */
  BLOCK = 64,      /* cells that are found at once */
  COPY = 64,       /* bytes that copy_short() may read and write */
  SLACK = 96       /* bytes after a buffer, so that they can be read at its last byte */
};

/* ---- chunks */

wl_chunk *wl_chunk_open(int n_out) {
  size_t n = (size_t)n_out + 1;
  wl_chunk *c = wl_mem_zalloc(sizeof *c);
  if (!c) return NULL;
  c->n_out = n_out;
  c->v = wl_mem_zalloc(n * sizeof *c->v);
  c->t = wl_mem_zalloc(n * sizeof *c->t);
  c->heap = wl_mem_zalloc(n * sizeof *c->heap);
  c->has_default = wl_mem_zalloc(n * sizeof *c->has_default);
  c->default_rowid = wl_mem_zalloc(n * sizeof *c->default_rowid);
  if (c->v && c->t && c->heap && c->has_default && c->default_rowid) return c;
  wl_chunk_close(c);
  return NULL;
}

void wl_chunk_close(wl_chunk *c) {
  if (!c) return;
  for (int i = 0; i < c->n_out; i++) {
    if (c->v) wl_mem_free(c->v[i]);
    if (c->t) wl_mem_free(c->t[i]);
    if (c->heap) wl_stage_close(&c->heap[i]);
  }
  wl_mem_free(c->v);
  wl_mem_free(c->t);
  wl_mem_free(c->heap);
  wl_mem_free(c->has_default);
  wl_mem_free(c->default_rowid);
  wl_mem_free(c);
}

void wl_chunk_clear(wl_chunk *c) {
  c->status = WL_OK;
  c->n = 0;
  for (int i = 0; i < c->n_out; i++) {
    if (c->heap[i].size_heap > (size_t)1 << 20) wl_stage_close(&c->heap[i]);
    c->heap[i].n_heap = 0;
    c->has_default[i] = false;
  }
}

size_t wl_chunk_heap_bytes(const wl_chunk *c) {
  size_t n = 0;
  for (int i = 0; i < c->n_out; i++) n += c->heap[i].n_heap;
  return n;
}

static wl_status chunk_room(wl_chunk *c, wl_i32 n_more) {
  if (c->n + n_more <= c->size) return WL_OK;
  wl_i32 size = c->size ? c->size * 2 : MIN_ROWS;
  while (size < c->n + n_more) size *= 2;
  for (int i = 0; i < c->n_out; i++) {
    wl_u64 *v = wl_mem_realloc(c->v[i], (size_t)c->n * sizeof *v, (size_t)size * sizeof *v);
    if (!v) return WL_NOMEM;
    c->v[i] = v;
    wl_u8 *t = wl_mem_realloc(c->t[i], (size_t)c->n, (size_t)size);
    if (!t) return WL_NOMEM;
    c->t[i] = t;
  }
  c->size = size;
  return WL_OK;
}

/* ---- reading */

wl_status wl_leaf_reader_open(wl_leaf_reader *r, wl_pages *p, wl_u32 n_pages) {
  memset(r, 0, sizeof *r);
  r->pages = p;
  r->max_run = n_pages;
  r->buf = wl_mem_alloc((size_t)n_pages * p->page_size + SLACK);
  r->page = wl_mem_alloc(p->page_size);
  if (p->auto_vacuum) r->map = wl_mem_alloc(p->page_size);
  if (r->buf && r->page && (r->map || !p->auto_vacuum)) return WL_OK;
  wl_leaf_reader_close(r);
  return WL_NOMEM;
}

void wl_leaf_reader_close(wl_leaf_reader *r) {
  wl_mem_free(r->buf);
  wl_mem_free(r->page);
  wl_mem_free(r->map);
  wl_mem_free(r->payload);
  memset(r, 0, sizeof *r);
}

/* ---- records */

static wl_status write_bytes(const wl_leaf_plan *plan, wl_chunk *c, int slot, wl_i32 row,
                             wl_u64 type, const wl_u8 *p) {
  wl_u64 n = (type - 12) >> 1;
  wl_stage *h = &c->heap[slot];
  if (n > plan->max_length) return WL_NOT_TAKEN; /* SQLite reports the error */
  if (h->n_heap + n > h->size_heap) {
    wl_status rc = wl_stage_room(h, n);
    if (rc) return rc;
  }
  if (n) memcpy(h->heap + h->n_heap, p, n);
  c->v[slot][row] = (wl_u64)h->n_heap | n << 32;
  c->t[slot][row] = type & 1 ? WL_T_TEXT : WL_T_BLOB;
  h->n_heap += n;
  return WL_OK;
}

/*
** How to get a value of a type below 10 from eight bytes that are read as a big-endian integer:
** arithmetic shift right, mask, add a constant. This needs no branch on the type, which would be
** mispredicted, because types change from row to row.
*/
static const struct {
  _Alignas(32) wl_i64 mask;
  wl_i64 add;
  wl_u8 shift, tag;
} number_types[10] = {{0, 0, 0, WL_T_NULL},  {-1, 0, 56, WL_T_INT}, {-1, 0, 48, WL_T_INT},
                      {-1, 0, 40, WL_T_INT}, {-1, 0, 32, WL_T_INT}, {-1, 0, 16, WL_T_INT},
                      {-1, 0, 0, WL_T_INT},  {-1, 0, 0, WL_T_REAL}, {0, 0, 0, WL_T_INT},
                      {0, 1, 0, WL_T_INT}};

/* Decodes the number at p. Its bytes are inside the record, and eight bytes may be read. */
static inline void write_number(wl_u64 *v, wl_u8 *t, bool real, wl_u64 type, const wl_u8 *p) {
  wl_i64 x = ((wl_i64)wl_be64(p) >> number_types[type].shift & number_types[type].mask) +
             number_types[type].add;
  wl_u8 tag = number_types[type].tag;
  if (real && tag == WL_T_INT) {
    x = (wl_i64)wl_f64_bits((double)x);
    tag = WL_T_REAL;
  } else if (tag == WL_T_REAL && wl_as_f64((wl_u64)x) != wl_as_f64((wl_u64)x)) {
    x = 0;
    tag = WL_T_NULL;
  }
  *v = (wl_u64)x;
  *t = tag;
}

/* Marks the columns from k on as defaults, because the record ends before them. */
static wl_status write_defaults(const wl_leaf_plan *plan, wl_chunk *c, int k, wl_i64 rowid) {
  for (; k < plan->n_record; k++) {
    int slot = plan->slot[k];
    if (slot == WL_SLOT_ALIAS) return WL_NOT_TAKEN;
    if (slot < 0) continue;
    c->v[slot][c->n] = 0;
    c->t[slot][c->n] = WL_T_DEFAULT;
    c->has_default[slot] = true;
    c->default_rowid[slot] = rowid;
  }
  return WL_OK;
}

/*
** Decodes one record of n_payload bytes, of which the first n_here are at p. Sets *need to the
** number of bytes that the columns take, or the header alone if it is not complete at p. A dry run
** writes nothing. A run that is not dry must have all the bytes.
*/
static inline wl_status decode_record(const wl_leaf_plan *plan, wl_chunk *c, const wl_u8 *p,
                                      wl_u64 n_here, wl_u64 n_payload, wl_i64 rowid, wl_u64 *need,
                                      const bool dry) {
  wl_u64 n_header, at;
  int k = 0;
  const wl_u8 *h = wl_varint(p, p + n_here, &n_header);
  if (!h || n_header > n_payload || n_header > MAX_HEADER || n_header < (wl_u64)(h - p))
    return WL_NOT_TAKEN;
  *need = at = n_header;
  if (n_header > n_here) return WL_OK;
  const wl_u8 *end = p + n_header;
  wl_u64 *const *v = c->v; /* read once, because writing a tag (a byte) may alias anything in C */
  wl_u8 *const *t = c->t;
  wl_i32 row = c->n;
  const int *slots = plan->slot;
  int n_record = plan->n_record;
  if (h == end && plan->n_record) return WL_NOT_TAKEN; /* every record has a column */
  for (; k < n_record && h < end; k++) {
    wl_u64 type;
    h = wl_varint(h, end, &type);
    if (!h) return WL_NOT_TAKEN;
    wl_u64 n = wl_record_length(type);
    if (n > n_payload - at || type == 10 || type == 11) return WL_NOT_TAKEN;
    int slot = slots[k];
    if (slot >= 0) {
      if (dry) {
        *need = at + n;
      } else {
        if (at + n > n_here) return WL_NOT_TAKEN;
        if (type < 10) {
          write_number(v[slot] + row, t[slot] + row, plan->real[slot], type, p + at);
        } else {
          wl_status rc = write_bytes(plan, c, slot, row, type, p + at);
          if (rc) return rc;
        }
      }
    } else if (slot == WL_SLOT_ALIAS && type != 0) {
      return WL_NOT_TAKEN;
    }
    at += n;
  }
  if (h == end && at != n_payload) return WL_NOT_TAKEN;
  return k < plan->n_record && !dry ? write_defaults(plan, c, k, rowid) : WL_OK;
}

/* ---- overflow chains */

/*
** Whether the pointer map agrees with an overflow chain. With auto_vacuum SQLite follows a chain by
** the pointer map: if the entry of the next page says that it continues this page, SQLite believes
** it and does not read the chain. So the two must agree, or SQLite would read other bytes.
*/
static bool map_agrees(wl_leaf_reader *r, wl_u32 page, wl_u32 next) {
  wl_u32 size = r->pages->page_size, step = size / 5 + 1, lock = 0x40000000 / size + 1;
  wl_u32 guess = page + 1, map;
  for (;; guess++) {
    map = (guess - 2) / step * step + 2;
    if (map == lock) map++;
    if (guess != map && guess != lock) break;
  }
  if (guess > r->pages->n_pages) return true;
  wl_u64 at = 5 * ((wl_u64)guess - map - 1);
  if (guess < map || at + 5 > size) return false;
  if (r->map_page != map) {
    r->map_page = 0;
    if (!wl_pages_read(r->pages, map, 1, r->map)) return false;
    r->map_page = map;
  }
  wl_u8 kind = r->map[at];
  if (kind < 1 || kind > 5) return false;
  return kind != 4 || wl_be32(r->map + at + 1) != page || next == guess;
}

/* Copies the first `need` bytes of a payload to r->payload: n_local bytes at p, then the chain. */
static wl_status read_chain(wl_leaf_reader *r, const wl_u8 *p, wl_u64 n_local, wl_u64 need) {
  wl_u32 usable = r->pages->page_size, page = wl_be32(p + n_local);
  if (need > (wl_u64)usable * r->pages->n_pages) return WL_NOT_TAKEN; /* the chain has a loop */
  if (need > r->size_payload) {
    size_t size = r->size_payload ? r->size_payload : 65536;
    while (size < need) size *= 2;
    wl_mem_free(r->payload);
    r->size_payload = 0;
    r->payload = wl_mem_alloc(size + SLACK);
    if (!r->payload) return WL_NOMEM;
    r->size_payload = size;
  }
  memcpy(r->payload, p, n_local);
  for (wl_u64 at = n_local; at < need;) {
    const wl_u8 *from = r->page;
    if (page < 2) return WL_NOT_TAKEN;
    if (page >= r->run_first && page - r->run_first < r->run_n)
      from = r->buf + (size_t)(page - r->run_first) * usable;
    else if (!wl_pages_read(r->pages, page, 1, r->page))
      return WL_NOT_TAKEN;
    wl_u64 n = need - at < usable - 4 ? need - at : usable - 4;
    memcpy(r->payload + at, from + 4, n);
    at += n;
    if (r->map && at < need && !map_agrees(r, page, wl_be32(from))) return WL_NOT_TAKEN;
    page = wl_be32(from);
  }
  return WL_OK;
}

static wl_status decode_overflow(const wl_leaf_plan *plan, wl_leaf_reader *r, wl_chunk *c,
                                 const wl_u8 *local, wl_u64 n_local, wl_u64 n_payload,
                                 wl_i64 rowid) {
  const wl_u8 *p = local;
  wl_u64 n_here = n_local, need = 0;
  for (int round = 0; round < 3;
       round++) { /* may need the chain for the header, then for columns */
    wl_status rc = decode_record(plan, c, p, n_here, n_payload, rowid, &need, true);
    if (rc) return rc;
    if (need <= n_here) return decode_record(plan, c, p, n_here, n_payload, rowid, &need, false);
    rc = read_chain(r, local, n_local, need);
    if (rc) return rc;
    p = r->payload;
    n_here = need;
  }
  return WL_NOT_TAKEN;
}

/* ---- cells of any form */

/* Decodes a cell of any form as row c->n. */
static __attribute__((noinline)) wl_status decode_cell(const wl_leaf_plan *plan, wl_leaf_reader *r,
                                                       const wl_u8 *cell, const wl_u8 *end,
                                                       wl_chunk *c) {
  wl_u32 usable = r->pages->page_size;
  wl_u32 max_local = usable - 35, min_local = (usable - 12) * 32 / 255 - 23;
  wl_u64 n_payload, rowid, need;
  wl_status rc;
  const wl_u8 *p = wl_varint(cell, end, &n_payload);
  if (p) p = wl_varint(p, end, &rowid);
  if (!p || n_payload > 0x7fffffff) return WL_NOT_TAKEN;
  if (n_payload <= max_local) {
    if (n_payload > (wl_u64)(end - p)) return WL_NOT_TAKEN;
    rc = decode_record(plan, c, p, n_payload, n_payload, (wl_i64)rowid, &need, false);
  } else {
    wl_u64 n_local = min_local + (n_payload - min_local) % (usable - 4);
    if (n_local > max_local) n_local = min_local;
    if (n_local + 4 > (wl_u64)(end - p)) return WL_NOT_TAKEN;
    rc = decode_overflow(plan, r, c, p, n_local, n_payload, (wl_i64)rowid);
  }
  if (rc) return rc;
  if (c->n == 0)
    c->low = (wl_i64)rowid;
  else if ((wl_i64)rowid <= c->high)
    return WL_NOT_TAKEN;
  c->high = (wl_i64)rowid;
  for (int k = 0; k < plan->n_rowid; k++) {
    c->v[plan->rowid_slot[k]][c->n] = rowid;
    c->t[plan->rowid_slot[k]][c->n] = WL_T_INT;
  }
  c->n++;
  return WL_OK;
}

/* ---- cells of the usual form: all lengths are known from a few bytes */

/* The lengths of the types below 128. Types 10 and 11 are longer than any page. */
#define TWO(n) (n), (n)
#define TEN(n) TWO(n), TWO((n) + 1), TWO((n) + 2), TWO((n) + 3), TWO((n) + 4)
static const wl_u16 short_lengths[128] = {
    0,       1,       2,       3,       4,       6,       8,       8,       0,
    0,       65535,   65535,   TEN(0),  TEN(5),  TEN(10), TEN(15), TEN(20), TEN(25),
    TEN(30), TEN(35), TEN(40), TEN(45), TEN(50), TWO(55), TWO(56), TWO(57)};

/* Appends a text or blob of a type below 128. Bytes after it may be read. False: out of memory. */
static inline bool copy_short(wl_stage *h, wl_u64 *v, wl_u8 *t, wl_u64 type, wl_u64 n,
                              const wl_u8 *p) {
  if (h->n_heap + COPY > h->size_heap && wl_stage_room(h, COPY)) return false;
  wl_u8 *to = (wl_u8 *)h->heap + h->n_heap;
  memcpy(to, p, 16);
  if (n > 16) memcpy(to + 16, p + 16, COPY - 16);
  *v = (wl_u64)h->n_heap | n << 32;
  *t = type & 1 ? WL_T_TEXT : WL_T_BLOB;
  h->n_heap += n;
  return true;
}

/* Cells whose records have been found. */
typedef struct found_cells {
  wl_u64 rowid[BLOCK];       /* see wl_varint_value() */
  const wl_u8 *start[BLOCK]; /* of the record */
  wl_u32 n_bytes[BLOCK];
} found_cells;

/*
** Finds the records of the cells from `first` on, at most BLOCK. Stops at a cell whose payload is
** not in the page, or has a length of more than two bytes, and at a rowid that is not above `high`,
** or has nine bytes, or more bytes than it needs. Returns how many it found.
*/
static WL_CLONES int find_cells(const wl_u8 *page, wl_u32 usable, wl_u32 first, wl_u64 high,
                                found_cells *out) {
  const wl_u8 *cells = page + 8 + 2 * first;
  const wl_u32 n_cells = wl_be16(page + 3), low = 8 + 2 * n_cells, span = usable - low;
  const wl_u32 most = n_cells - first < BLOCK ? n_cells - first : BLOCK;
  wl_u32 i = 0;
  for (; i < most; i++) {
    wl_u32 at = wl_be16(cells + 2 * i);
    if (at - low >= span) break;
    wl_u32 n = page[at++];
    if (n >= 0x80) {
      n = (n & 0x7f) << 7 | page[at];
      if (page[at++] >= 0x80 || n > usable - 35) break;
    }
    wl_u64 id = wl_be64(page + at), ends = ~id & 0x8080808080808080;
    if (!ends || id >> 56 == 0x80) break;
    int n_more = __builtin_clzll(ends) & 56; /* bits after the first byte */
    id >>= 56 - n_more;
    at += ((wl_u32)n_more >> 3) + 1;
    if (id <= high || at + n > usable) break;
    out->rowid[i] = high = id;
    out->start[i] = page + at;
    out->n_bytes[i] = n;
  }
  return (int)i;
}

/* Decodes column k of n records. used: where the column starts in each, then where it ends. Returns
** how many it decoded; the next one is damaged, or there is no room for a text. */
static inline int decode_column(const found_cells *cells, wl_u32 *used, int n, wl_u32 k, bool real,
                                wl_stage *heap, wl_u64 *v, wl_u8 *t) {
  for (int i = 0; i < n; i++) {
    const wl_u8 *p = cells->start[i];
    wl_u32 type = p[k + 1], n_type = short_lengths[type], from = used[i];
    used[i] = from + n_type;
    if (used[i] > cells->n_bytes[i]) return i;
    if (type < 10)
      write_number(v + i, t + i, real, type, p + from);
    else if (!copy_short(heap, v + i, t + i, type, n_type, p + from))
      return i;
  }
  return n;
}

/* Decodes records whose types take one byte each, as far as they are needed. Stops at any other
** record, and at damage. Returns how many it decoded, as rows c->n and on. */
static WL_CLONES int decode_short(const wl_leaf_plan *plan, const found_cells *cells, int n,
                                  wl_chunk *c) {
  const wl_u32 n_record = (wl_u32)plan->n_record;
  wl_u32 used[BLOCK];
  for (int i = 0; i < n; i++) {
    const wl_u8 *header = cells->start[i];
    wl_u64 is_long = 0;
    for (int k = 0; k < plan->n_short; k++)
      is_long |= wl_be64(header + 8 * k) & plan->long_types[k];
    used[i] = header[0];
    if (is_long || used[i] <= n_record) n = i;
  }
  for (wl_u32 k = 0; k < n_record; k++) {
    int slot = plan->slot[k];
    if (slot == WL_SLOT_SKIP) {
      for (int i = 0; i < n; i++) used[i] += short_lengths[cells->start[i][k + 1]];
    } else if (slot == WL_SLOT_ALIAS) {
      for (int i = 0; i < n; i++)
        if (cells->start[i][k + 1]) n = i;
    } else {
      n = decode_column(cells, used, n, k, plan->real[slot], &c->heap[slot], c->v[slot] + c->n,
                        c->t[slot] + c->n);
    }
  }
  for (int i = 0; i < n; i++) {
    bool all = cells->start[i][0] == n_record + 1;
    if (used[i] > cells->n_bytes[i] || (all && used[i] != cells->n_bytes[i])) n = i;
  }
  return n;
}

/* Decodes cells from *next on, as long as they have the usual form. Anything else, and any damage,
** is left to decode_cell(). */
static void decode_usual(const wl_leaf_plan *plan, wl_u32 usable, const wl_u8 *page, wl_u32 *next,
                         wl_chunk *c) {
  found_cells cells;
  int n_found, n;
  do {
    wl_u64 high = c->high < 0 ? 0 : c->high >> 56 ? UINT64_MAX : wl_varint_raw((wl_u64)c->high);
    n_found = find_cells(page, usable, *next, high, &cells);
    n = decode_short(plan, &cells, n_found, c);
    for (int k = 0; k < plan->n_rowid; k++) {
      wl_u64 *v = c->v[plan->rowid_slot[k]] + c->n;
      for (int i = 0; i < n; i++) v[i] = wl_varint_value(cells.rowid[i]);
      memset(c->t[plan->rowid_slot[k]] + c->n, WL_T_INT, (size_t)n);
    }
    if (n) c->high = (wl_i64)wl_varint_value(cells.rowid[n - 1]);
    c->n += n;
    *next += (wl_u32)n;
  } while (n == BLOCK);
}

/* ---- pages */

static wl_status decode_leaf(const wl_leaf_plan *plan, wl_leaf_reader *r, const wl_u8 *page,
                             wl_chunk *c) {
  wl_u32 usable = r->pages->page_size, n_cells = wl_be16(page + 3);
  if (page[0] != 0x0d || n_cells > (usable - 8) / 6 || (!n_cells && !plan->one_leaf))
    return WL_NOT_TAKEN;
  wl_status rc = chunk_room(c, (wl_i32)n_cells);
  bool usual = plan->n_short && r->n_pages_left == 0;
  if (r->n_pages_left) r->n_pages_left--;
  for (wl_u32 i = 0; i < n_cells && !rc; i++) {
    wl_u32 from = i;
    if (usual && c->n) decode_usual(plan, usable, page, &i, c);
    if (i == n_cells) break;
    if (usual && c->n && i - from < FEW_CELLS) { /* the attempt does not pay here */
      usual = false;
      r->n_pages_left = PAGES_LEFT;
    }
    wl_u32 at = wl_be16(page + 8 + 2 * i);
    if (at < 8 + 2 * n_cells || at >= usable) return WL_NOT_TAKEN;
    rc = decode_cell(plan, r, page + at, page + usable, c);
  }
  return rc;
}

wl_status wl_leaf_decode(const wl_leaf_plan *plan, wl_leaf_reader *r, const wl_u32 *leaves,
                         wl_u32 n, wl_chunk *out) {
  wl_status rc = WL_OK;
  for (wl_u32 i = 0; i < n && !rc;) {
    wl_u32 k = i + 1; /* leaves i..k-1 are close together and are read at once */
    while (k < n && leaves[k] > leaves[k - 1] && leaves[k] - leaves[k - 1] <= WL_MAX_GAP &&
           leaves[k] - leaves[i] < r->max_run)
      k++;
    r->run_n = 0;
    if (!wl_pages_read(r->pages, leaves[i], leaves[k - 1] - leaves[i] + 1, r->buf))
      return WL_NOT_TAKEN;
    r->run_first = leaves[i];
    r->run_n = leaves[k - 1] - leaves[i] + 1;
    for (; i < k && !rc; i++)
      rc = decode_leaf(plan, r, r->buf + (size_t)(leaves[i] - r->run_first) * r->pages->page_size,
                       out);
  }
  return rc;
}
