/*
** Changing a tablet table's shadow tables so that every checksum is right again: segments,
** parts of dictionaries, rows of the directory and their sum in t_info. docs/format.md has the
** layout. For hostile.c.
*/
#ifndef TEST_HOSTILE_FILE_H
#define TEST_HOSTILE_FILE_H

#include <stdint.h>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "changes.h"

enum {
  HEADER = 96, /* bytes of a blob's header … */
  AT_FLAGS = 7,
  AT_PAYLOAD = 72,
  AT_STORED = 80,
  AT_SUM = 88,
  ZSTD_FLAG = 4,
  ZONE = 72, /* … and of a column in t_tablet.head */
  MOST_BLOB = 64 << 20
};

/* Bytes that can grow. */
typedef struct bytes {
  uint8_t *p;
  size_t n;
} bytes;

static void resize(bytes *b, size_t n) {
  if (n > MOST_BLOB) n = MOST_BLOB;
  b->p = realloc(b->p, n + 1);
  if (!b->p) abort();
  if (n > b->n) memset(b->p + b->n, 0, n - b->n);
  b->n = n;
}

static uint64_t get_u64(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

/* Numbers that are often the wrong ones. */
static uint64_t odd_number(rng *r) {
  static const uint64_t list[] = {0,
                                  1,
                                  2,
                                  7,
                                  8,
                                  127,
                                  128,
                                  255,
                                  256,
                                  4095,
                                  65535,
                                  65536,
                                  65537,
                                  0x7fffffff,
                                  0x80000000u,
                                  0xffffffffu,
                                  (uint64_t)1 << 32,
                                  (uint64_t)1 << 50,
                                  ((uint64_t)1 << 50) + 1,
                                  (uint64_t)1 << 62,
                                  INT64_MAX,
                                  (uint64_t)INT64_MIN,
                                  (uint64_t)INT64_MIN + 1,
                                  (uint64_t)-1,
                                  (uint64_t)-2,
                                  0x7ff0000000000000u, /* infinity, */
                                  0xfff0000000000000u,
                                  0x7ff8000000000000u}; /* NaN */
  uint64_t v = list[rng_below(r, sizeof list / sizeof *list)];
  if (rng_chance(r, 15)) v += (uint64_t)rng_below(r, 5) - 2;
  return rng_chance(r, 10) ? rng_next(r) : v;
}

/* Changes a few bytes of a range: odd numbers of 1, 2, 4 or 8 bytes, or a bit. */
static void spoil(rng *r, uint8_t *p, size_t n) {
  for (int k = 1 + rng_below(r, 3); k > 0 && n > 0; k--) {
    size_t at = rng_next(r) % n, width = (size_t)1 << rng_below(r, 4);
    uint64_t v = odd_number(r);
    if (rng_chance(r, 50)) at -= at % width;
    if (rng_chance(r, 25))
      p[at] ^= (uint8_t)(1 << rng_below(r, 8));
    else
      memcpy(p + at, &v, at + width <= n ? width : n - at);
  }
}

/* A blob with its payload as it was before compression. */
static void expand(bytes *b) {
  if (b->n < HEADER || !(b->p[AT_FLAGS] & ZSTD_FLAG)) return;
  uint64_t n = get_u64(b->p + AT_PAYLOAD);
  if (n > MOST_BLOB) return;
  uint8_t *out = malloc(HEADER + n + 1);
  if (!out) abort();
  memcpy(out, b->p, HEADER);
  size_t got = ZSTD_decompress(out + HEADER, n, b->p + HEADER, b->n - HEADER);
  if (ZSTD_isError(got) || got != n) {
    free(out);
    return;
  }
  out[AT_FLAGS] &= (uint8_t)~ZSTD_FLAG;
  free(b->p);
  b->p = out;
  b->n = HEADER + n;
}

/* Sizes that fit the blob, and its checksum. */
static void seal_blob(rng *r, bytes *b) {
  if (b->n < HEADER) return;
  uint64_t n = b->n - HEADER;
  if (!rng_chance(r, 5)) memcpy(b->p + AT_STORED, &n, 8);
  if (!(b->p[AT_FLAGS] & ZSTD_FLAG) && !rng_chance(r, 5)) memcpy(b->p + AT_PAYLOAD, &n, 8);
  uint64_t sum = XXH3_64bits_withSeed(b->p + HEADER, n, XXH3_64bits(b->p, AT_SUM));
  memcpy(b->p + AT_SUM, &sum, 8);
}

/* Changes a blob somewhere behind its checksum. */
static void spoil_blob(rng *r, bytes *b) {
  if (!rng_chance(r, 15)) expand(b);
  int kind = rng_below(r, 100);
  if (b->n < HEADER) return;
  if (kind < 45 && b->n > HEADER)
    spoil(r, b->p + HEADER, b->n - HEADER);
  else if (kind < 55 && b->n > HEADER) /* its beginning: bitmaps, lengths, tags, first values */
    spoil(r, b->p + HEADER, b->n - HEADER < 64 ? b->n - HEADER : 64);
  else if (kind < 85)
    spoil(r, b->p + 4, AT_SUM - 4);
  else if (kind < 90)
    resize(b, HEADER + rng_next(r) % (b->n - HEADER + 1));
  else if (kind < 95)
    resize(b, b->n + 1 + (size_t)rng_below(r, 5000));
  else
    for (size_t i = HEADER; i < b->n; i++) b->p[i] = (uint8_t)rng_next(r);
  seal_blob(r, b);
}

/* Changes a patch, which is in a directory row behind the zone maps: its numbers, its rows or its
** values. at: where the patches begin. */
static void spoil_patch(rng *r, bytes *b, size_t at) {
  enum { RECORD = 16 };
  uint32_t record[4] = {0};
  for (int k = rng_below(r, 4); at + RECORD <= b->n; k--) {
    memcpy(record, b->p + at, RECORD);
    size_t n = RECORD + (size_t)record[1] * 2 + record[2];
    if (k <= 0 || at + n + RECORD > b->n) break;
    at += n;
  }
  size_t values = at + RECORD + (size_t)record[1] * 2;
  int kind = rng_below(r, 100);
  if (values + record[2] > b->n || record[2] < HEADER) {
    resize(b, b->n + 1 + (size_t)rng_below(r, 300)); /* there is none */
  } else if (kind < 20) {
    spoil(r, b->p + at, RECORD);
  } else if (kind < 40) {
    spoil(r, b->p + at + RECORD, (size_t)record[1] * 2);
  } else if (kind < 50) {
    resize(b, at + (size_t)rng_below(r, (int)(b->n - at)));
  } else {
    bytes blob = {NULL, 0};
    resize(&blob, record[2]);
    memcpy(blob.p, b->p + values, record[2]);
    spoil_blob(r, &blob);
    if (blob.n == record[2]) memcpy(b->p + values, blob.p, blob.n);
    free(blob.p);
  }
}

/* ---- rows of the shadow tables */

/* Runs a text with up to one blob as ?1. */
static int put(sqlite3 *db, char *sql, const bytes *b) {
  sqlite3_stmt *q = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
  if (!rc && b) sqlite3_bind_blob64(q, 1, b->n ? (void *)b->p : "", b->n, SQLITE_TRANSIENT);
  if (!rc) sqlite3_step(q);
  rc = sqlite3_finalize(q);
  sqlite3_free(sql);
  return rc;
}

/* A random integer of those a query gives; 0: there is none. */
static sqlite3_int64 pick(rng *r, sqlite3 *db, char *sql) {
  sqlite3_stmt *q = NULL;
  sqlite3_int64 out = 0;
  int n = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK)
    while (sqlite3_step(q) == SQLITE_ROW)
      if (rng_below(r, ++n) == 0) out = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  sqlite3_free(sql);
  return out;
}

static bytes blob_of(sqlite3 *db, char *sql) {
  sqlite3_stmt *q = NULL;
  bytes b = {0};
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW) {
    size_t n = (size_t)sqlite3_column_bytes(q, 0);
    const void *p = sqlite3_column_blob(q, 0);
    resize(&b, n);
    if (n) memcpy(b.p, p, n);
  }
  sqlite3_finalize(q);
  sqlite3_free(sql);
  return b;
}

/* The sum of each row of the directory, and that of all in t_info, as they would be. */
static void seal_directory(sqlite3 *db, const char *t) {
  sqlite3_stmt *q = NULL;
  uint64_t sums = 0;
  char *sql =
      sqlite3_mprintf("SELECT rowid, lo, hi, n_rows, n_dead, head, dead FROM \"%w_tablet\"", t);
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK)
    while (sqlite3_step(q) == SQLITE_ROW) {
      XXH3_state_t *s = XXH3_createState();
      XXH3_64bits_reset(s);
      for (int i = 0; i < 5; i++) {
        sqlite3_int64 v = sqlite3_column_int64(q, i);
        if (i >= 3) v = (int)v;
        XXH3_64bits_update(s, &v, 8);
      }
      for (int i = 5; i < 7; i++)
        if (sqlite3_column_bytes(q, i))
          XXH3_64bits_update(s, sqlite3_column_blob(q, i), (size_t)sqlite3_column_bytes(q, i));
      uint64_t sum = XXH3_64bits_digest(s);
      XXH3_freeState(s);
      sums += sum;
      put(db,
          sqlite3_mprintf("UPDATE \"%w_tablet\" SET sum=%lld WHERE rowid=%lld", t,
                          (sqlite3_int64)sum, sqlite3_column_int64(q, 0)),
          NULL);
    }
  sqlite3_finalize(q);
  sqlite3_free(sql);
  put(db,
      sqlite3_mprintf("UPDATE \"%w_info\" SET v=%lld WHERE k='tablets'", t, (sqlite3_int64)sums),
      NULL);
}

/* The directory's entry of a segment becomes that of its blob: all of it, or what knows it. */
static void tell_directory(rng *r, sqlite3 *db, const char *t, sqlite3_int64 id, const bytes *b) {
  size_t at = (size_t)(id & 4095) * ZONE;
  bytes head =
      blob_of(db, sqlite3_mprintf("SELECT head FROM \"%w_tablet\" WHERE id=%lld", t, id >> 12));
  if (b->n >= HEADER && at + ZONE <= head.n) {
    uint32_t n = (uint32_t)b->n;
    memcpy(head.p + at, b->p + AT_SUM, 8);
    memcpy(head.p + at + 8, &n, 4);
    if (!rng_chance(r, 15)) {
      memcpy(head.p + at + 12, b->p + 12, 4);
      head.p[at + 16] = b->p[16];
      head.p[at + 17] = (b->p[AT_FLAGS] & 2) != 0;
      memcpy(head.p + at + 24, b->p + 24, 48);
    }
    put(db, sqlite3_mprintf("UPDATE \"%w_tablet\" SET head=?1 WHERE id=%lld", t, id >> 12), &head);
  }
  free(head.p);
}

#endif
