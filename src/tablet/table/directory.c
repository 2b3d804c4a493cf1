/*
** The rows of a tablet table's directory, one per tablet: reading, checking and writing them. See
** table_impl.h.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include "value/conv.h"
#include <assert.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
  ZONE_BYTES = 72, /* the size of a column's zone map in a directory row */
  MOST_BLOB = 0x7fffffff
};
static const wl_i64 MOST_ID = (wl_i64)1 << 50; /* a segment's id is the tablet's and 12 more bits */

void wl_directory_free(wl_tablets *t) {
  for (int i = 0; i < t->n_tablets; i++) {
    wl_mem_free(t->tablets[i].dead);
    wl_mem_free(t->tablets[i].zones);
    wl_patches_free(&t->tablets[i]);
  }
  t->n_tablets = 0;
}

static void write64(wl_u8 *p, wl_u64 v) {
  memcpy(p, &v, 8);
}
static wl_u64 read64(const wl_u8 *p) {
  wl_u64 v;
  memcpy(&v, p, 8);
  return v;
}

static wl_u64 directory_sum(const wl_tablet *a, const wl_u8 *head, size_t n_head) {
  XXH3_state_t s;
  wl_u64 first[5] = {(wl_u64)a->id, (wl_u64)a->lo, (wl_u64)a->hi, (wl_u64)a->n_rows,
                     (wl_u64)a->n_dead};
  XXH3_64bits_reset(&s);
  XXH3_64bits_update(&s, first, sizeof first);
  XXH3_64bits_update(&s, head, n_head);
  if (a->dead) XXH3_64bits_update(&s, a->dead, (size_t)(a->n_rows + 7) / 8);
  return XXH3_64bits_digest(&s);
}

static void write_zone(const wl_zone *z, wl_u8 *p) {
  wl_u32 small[2] = {z->n_bytes, (wl_u32)z->n_nulls};
  memset(p, 0, ZONE_BYTES);
  write64(p, z->sum);
  memcpy(p + 8, small, 8);
  p[16] = z->domain.mask;
  p[17] = z->coded;
  write64(p + 24, (wl_u64)z->domain.lo);
  write64(p + 32, (wl_u64)z->domain.hi);
  write64(p + 40, wl_f64_bits(z->domain.flo));
  write64(p + 48, wl_f64_bits(z->domain.fhi));
  write64(p + 56, z->t_lo);
  write64(p + 64, z->t_hi);
}

static void read_zone(const wl_u8 *p, wl_zone *z) {
  wl_u32 small[2];
  memset(z, 0, sizeof *z);
  z->sum = read64(p);
  memcpy(small, p + 8, 8);
  z->n_bytes = small[0];
  z->n_nulls = (wl_i32)small[1];
  z->domain.mask = p[16];
  z->coded = p[17] != 0;
  z->domain.lo = (wl_i64)read64(p + 24);
  z->domain.hi = (wl_i64)read64(p + 32);
  z->domain.flo = wl_as_f64(read64(p + 40));
  z->domain.fhi = wl_as_f64(read64(p + 48));
  z->t_lo = read64(p + 56);
  z->t_hi = read64(p + 64);
}

static wl_status set_info(wl_tablets *t, const char *key, wl_i64 v, wl_error *err) {
  sqlite3_stmt *s;
  wl_status rc = wl_tablets_stmt(t, WL_SH_INFO_SET, &s, err);
  if (rc) return rc;
  sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
  sqlite3_bind_int64(s, 2, v);
  return wl_tablets_run(t, s, err);
}

wl_status wl_tablet_set_sum(wl_tablets *t, wl_tablet *a, wl_u64 sum, wl_error *err) {
  t->sums += sum - a->sum;
  a->sum = sum;
  return t->defer_sums ? WL_OK : set_info(t, "tablets", (wl_i64)t->sums, err);
}

wl_status wl_tablets_write_sums(wl_tablets *t, wl_error *err) {
  t->defer_sums = false;
  return set_info(t, "tablets", (wl_i64)t->sums, err);
}

/* A file with patches has a newer format, which older readers refuse. */
static wl_status note_patches(wl_tablets *t, wl_error *err) {
  if (t->format >= WL_FORMAT_PATCHES) return WL_OK;
  wl_status rc = set_info(t, "format", WL_FORMAT_PATCHES, err);
  if (!rc) t->format = WL_FORMAT_PATCHES;
  return rc;
}

wl_status wl_tablet_write_entry(wl_tablets *t, wl_tablet *a, wl_error *err) {
  assert(a->n_rows >= 1 && a->n_rows <= WL_TABLET_ROWS && a->n_dead <= a->n_rows);
  sqlite3_stmt *s;
  size_t n_zones = ((size_t)t->n_cols + 1) * ZONE_BYTES, n_head = n_zones + wl_patches_bytes(a);
  wl_u8 *head = wl_mem_alloc(n_head);
  if (!head) return wl_nomem(err);
  for (int i = 0; i <= t->n_cols; i++) write_zone(&a->zones[i], head + (size_t)i * ZONE_BYTES);
  wl_patches_write(a, head + n_zones);
  wl_status rc = a->n_patches ? note_patches(t, err) : WL_OK;
  if (!rc) rc = wl_tablets_stmt(t, WL_SH_TABLET_PUT, &s, err);
  if (!rc) {
    sqlite3_bind_int64(s, 1, a->id);
    sqlite3_bind_int64(s, 2, a->lo);
    sqlite3_bind_int64(s, 3, a->hi);
    sqlite3_bind_int(s, 4, a->n_rows);
    sqlite3_bind_int(s, 5, a->n_dead);
    int st = sqlite3_bind_blob64(s, 6, head, n_head, SQLITE_STATIC);
    if (a->dead)
      sqlite3_bind_blob64(s, 7, a->dead, (sqlite3_uint64)(a->n_rows + 7) / 8, SQLITE_STATIC);
    else
      sqlite3_bind_null(s, 7);
    wl_u64 sum = directory_sum(a, head, n_head);
    sqlite3_bind_int64(s, 8, (wl_i64)sum);
    rc = st ? wl_tablets_error(t, st, err) : wl_tablets_run(t, s, err);
    sqlite3_clear_bindings(s);
    if (!rc) rc = wl_tablet_set_sum(t, a, sum, err);
  }
  wl_mem_free(head);
  return rc;
}

wl_status wl_tablet_insert(wl_tablets *t, int i, wl_error *err) {
  assert(i >= 0 && i <= t->n_tablets);
  if (t->n_tablets == t->size_tablets) {
    int size = t->size_tablets ? t->size_tablets * 2 : 16;
    wl_tablet *p =
        wl_mem_realloc(t->tablets, (size_t)t->n_tablets * sizeof *p, (size_t)size * sizeof *p);
    if (!p) return wl_nomem(err);
    t->tablets = p;
    t->size_tablets = size;
  }
  wl_zone *zones = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof *zones);
  if (!zones) return wl_nomem(err);
  memmove(&t->tablets[i + 1], &t->tablets[i], (size_t)(t->n_tablets - i) * sizeof *t->tablets);
  memset(&t->tablets[i], 0, sizeof *t->tablets);
  t->tablets[i].zones = zones;
  t->n_tablets++;
  return WL_OK;
}

static int bits_set(const wl_u8 *p, size_t n) {
  int k = 0;
  for (size_t i = 0; i < n; i++) k += __builtin_popcount(p[i]);
  return k;
}

/* Reads and checks one row of t_tablet. */
static wl_status read_tablet(wl_tablets *t, sqlite3_stmt *s, wl_error *err) {
  int i = t->n_tablets;
  wl_status rc = wl_tablet_insert(t, i, err);
  if (rc) return rc;
  wl_tablet *a = &t->tablets[i];
  a->id = sqlite3_column_int64(s, 0);
  a->lo = sqlite3_column_int64(s, 1);
  a->hi = sqlite3_column_int64(s, 2);
  wl_i64 rows = sqlite3_column_int64(s, 3), gone = sqlite3_column_int64(s, 4);
  const wl_u8 *head = sqlite3_column_blob(s, 5);
  size_t n_head = (size_t)sqlite3_column_bytes(s, 5);
  size_t n_zones = ((size_t)t->n_cols + 1) * ZONE_BYTES;
  const wl_u8 *dead = sqlite3_column_blob(s, 6);
  size_t n_dead = (size_t)sqlite3_column_bytes(s, 6);
  if (n_head < n_zones || !head || rows < 1 || rows > WL_TABLET_ROWS || gone < 0 || gone > rows ||
      a->lo > a->hi || (wl_u64)a->hi - (wl_u64)a->lo < (wl_u64)rows - 1 ||
      (i && t->tablets[i - 1].hi >= a->lo) || a->id < 1 || a->id > MOST_ID ||
      n_dead != (gone ? (size_t)(rows + 7) / 8 : 0))
    return wl_tablets_corrupt(t, -1, a->id, err, "its directory row is inconsistent");
  a->n_rows = (wl_i32)rows;
  a->n_dead = (wl_i32)gone;
  if (dead) {
    a->dead = wl_mem_alloc(n_dead);
    if (!a->dead) return wl_nomem(err);
    memcpy(a->dead, dead, n_dead);
  }
  a->sum = (wl_u64)sqlite3_column_int64(s, 7);
  t->sums += a->sum;
  if (directory_sum(a, head, n_head) != a->sum)
    return wl_tablets_corrupt(t, -1, a->id, err, "the checksum of its directory row is wrong");
  if (dead && bits_set(dead, n_dead) != a->n_dead)
    return wl_tablets_corrupt(
        t, -1, a->id, err,
        "its delete bitmap does not have as many bits set as its directory row says");
  for (int k = 0; k <= t->n_cols; k++) {
    read_zone(head + (size_t)k * ZONE_BYTES, &a->zones[k]);
    if (a->zones[k].n_bytes > MOST_BLOB) /* so much memory may be allocated before it is read */
      return wl_tablets_corrupt(t, k, a->id, err,
                                "its segment is longer than SQLite's longest blob");
  }
  if (a->id > t->last_id) t->last_id = a->id;
  return wl_patches_read(t, a, head + n_zones, n_head - n_zones, err);
}

wl_status wl_directory_read(wl_tablets *t, wl_error *err) {
  sqlite3_stmt *s;
  int st;
  wl_status rc = wl_tablets_stmt(t, WL_SH_TABLETS, &s, err);
  if (rc) return rc;
  wl_i64 sums;
  wl_directory_free(t);
  t->last_id = 0;
  t->sums = 0;
  while (!rc && (st = wl_tablets_step(t, s)) == SQLITE_ROW) rc = read_tablet(t, s, err);
  if (!rc && st != SQLITE_DONE) rc = wl_tablets_error(t, st, err);
  sqlite3_reset(s);
  if (!rc) rc = wl_tablets_read_info(t, "tablets", &sums, err);
  if (!rc && (wl_u64)sums != t->sums)
    rc = wl_tablets_corrupt(t, -1, -1, err, "a tablet is missing or duplicated");
  return rc;
}
