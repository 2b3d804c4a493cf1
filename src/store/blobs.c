/*
** Reads blobs from pages; see blobs.h.
*/
#include "store/blobs.h"
#include "base/mem.h"
#include <string.h>

enum { CACHED = 16, MAX_DEPTH = 20, MAX_RUN = 96 };

struct wl_blobs {
  wl_pages *pages;
  wl_u32 root;
  wl_u32 numbers[CACHED]; /* the numbers of the cached pages; 0: none */
  wl_u8 *cache;           /* [CACHED] pages of the tree */
  wl_u8 *run;             /* [MAX_RUN] pages of a chain */
  wl_u32 max_run;         /* pages to read at once; adapts to how long recent runs were */
};

static wl_u32 be32(const wl_u8 *p) {
  return (wl_u32)p[0] << 24 | (wl_u32)p[1] << 16 | (wl_u32)p[2] << 8 | p[3];
}

static wl_u32 be16(const wl_u8 *p) {
  return (wl_u32)p[0] << 8 | p[1];
}

/* Reads one of SQLite's varints. Returns the byte after it, or NULL if it does not end before
** end. */
static const wl_u8 *varint(const wl_u8 *p, const wl_u8 *end, wl_u64 *out) {
  wl_u64 v = 0;
  for (int i = 0; i < 9 && p < end; i++) {
    wl_u8 byte = *p++;
    if (i == 8) {
      *out = v << 8 | byte;
      return p;
    }
    v = v << 7 | (byte & 0x7f);
    if (byte < 0x80) {
      *out = v;
      return p;
    }
  }
  return NULL;
}

wl_status wl_blobs_open(wl_pages *p, wl_u32 root, wl_blobs **out, wl_error *err) {
  wl_blobs *b = *out = wl_mem_zalloc(sizeof *b);
  if (!b) return wl_nomem(err);
  b->pages = p;
  b->root = root;
  b->max_run = MAX_RUN;
  b->cache = wl_mem_alloc((size_t)CACHED * p->page_size);
  b->run = wl_mem_alloc((size_t)MAX_RUN * p->page_size);
  if (b->cache && b->run) return WL_OK;
  wl_blobs_close(b);
  *out = NULL;
  return wl_nomem(err);
}

void wl_blobs_close(wl_blobs *b) {
  if (!b) return;
  wl_mem_free(b->cache);
  wl_mem_free(b->run);
  wl_mem_free(b);
}

/* Reads a page of the tree, through a small cache. NULL: it cannot be read. */
static const wl_u8 *tree_page(wl_blobs *b, wl_u32 number) {
  wl_u32 at = number % CACHED;
  wl_u8 *page = b->cache + (size_t)at * b->pages->page_size;
  if (b->numbers[at] == number) return page;
  b->numbers[at] = 0;
  if (number < 2 || !wl_pages_read(b->pages, number, 1, page)) return NULL;
  b->numbers[at] = number;
  return page;
}

/* Cell i of a page whose cell pointers begin at `first`; NULL if it lies outside the page. */
static const wl_u8 *cell_at(const wl_blobs *b, const wl_u8 *page, wl_u32 first, wl_u32 i) {
  wl_u32 at = first + 2 * i;
  if (at + 2 > b->pages->page_size) return NULL;
  wl_u32 place = be16(page + at);
  return place < first || place + 5 > b->pages->page_size ? NULL : page + place;
}

/* Finds the cell of a row, or NULL. *page is the leaf that has it. */
static const wl_u8 *find_row(wl_blobs *b, wl_i64 rowid, const wl_u8 **page) {
  wl_u32 number = b->root;
  for (int depth = 0; depth < MAX_DEPTH; depth++) {
    const wl_u8 *p = *page = tree_page(b, number), *cell;
    if (!p || (p[0] != 5 && p[0] != 13)) return NULL;
    bool leaf = p[0] == 13;
    const wl_u8 *end = p + b->pages->page_size;
    wl_u32 lo = 0, hi = be16(p + 3), first = leaf ? 8 : 12;
    wl_u64 key = 0, size;
    while (lo < hi) { /* bisects for the first cell whose key is not less than rowid */
      wl_u32 mid = (lo + hi) / 2;
      cell = cell_at(b, p, first, mid);
      const wl_u8 *at = cell && leaf ? varint(cell, end, &size) : cell ? cell + 4 : NULL;
      if (!at || !varint(at, end, &key)) return NULL;
      if ((wl_i64)key < rowid)
        lo = mid + 1;
      else
        hi = mid;
    }
    cell = lo < be16(p + 3) ? cell_at(b, p, first, lo) : NULL;
    if (leaf) {
      const wl_u8 *at = cell ? varint(cell, end, &size) : NULL;
      return at && varint(at, end, &key) && (wl_i64)key == rowid ? cell : NULL;
    }
    if (lo < be16(p + 3) && !cell) return NULL;
    number = be32(cell ? cell : p + 8);
  }
  return NULL;
}

/* Reads n bytes from the overflow chain that begins at page `number`. */
static bool read_chain(wl_blobs *b, wl_u32 number, wl_u8 *out, size_t n) {
  size_t unit = b->pages->page_size - 4;
  while (n) {
    size_t want = (n + unit - 1) / unit;
    wl_u32 k = want < b->max_run ? (wl_u32)want : b->max_run, i = 0, next = number;
    if (number < 2 || number > b->pages->n_pages) return false;
    if (k > b->pages->n_pages - number + 1) k = b->pages->n_pages - number + 1;
    if (!wl_pages_read(b->pages, number, k, b->run)) return false;
    for (; i < k && next == number + i; i++) {
      const wl_u8 *page = b->run + (size_t)i * b->pages->page_size;
      size_t m = n < unit ? n : unit;
      next = be32(page);
      memcpy(out, page + 4, m);
      out += m;
      n -= m;
    }
    b->max_run = i == k ? (b->max_run * 2 < MAX_RUN ? b->max_run * 2 : MAX_RUN) : i + 1;
    number = next;
  }
  return true;
}

bool wl_blobs_read(wl_blobs *b, wl_i64 rowid, wl_u8 *out, size_t n) {
  const wl_u8 *page, *p = find_row(b, rowid, &page);
  wl_u64 size = 0, key, header, type, blob = 0;
  wl_u64 u = b->pages->page_size;
  if (!p) return false;
  const wl_u8 *end = page + u;
  p = varint(p, end, &size);
  p = p ? varint(p, end, &key) : NULL;
  if (!p || size > 0x7fffffff) return false;
  wl_u64 least = (u - 12) * 32 / 255 - 23, local = size;
  if (size > u - 35) {
    local = least + (size - least) % (u - 4);
    if (local > u - 35) local = least;
  }
  if (local > (wl_u64)(end - p) || (local < size && local + 4 > (wl_u64)(end - p))) return false;
  /* The record's header must have the types of two columns: NULL, for the alias of the rowid, and
  ** a blob of n bytes. */
  const wl_u8 *h = varint(p, p + local, &header);
  h = h ? varint(h, p + local, &type) : NULL;
  h = h && type == 0 ? varint(h, p + local, &blob) : NULL;
  if (!h || header != (wl_u64)(h - p) || header > local || blob != 12 + 2 * (wl_u64)n ||
      size != header + n)
    return false;
  memcpy(out, p + header, (size_t)(local - header));
  if (local == size) return true;
  return read_chain(b, be32(p + local), out + (local - header), n - (size_t)(local - header));
}
