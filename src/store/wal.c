#include "store/store_impl.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

/*
** The wal-index begins with two copies of its header, in the byte order of the machine:
**   word 0 version, 2 change counter, 3 flags and page size, 4 last frame, 5 pages in the
**   database, 6-7 checksum of the last frame, 8-9 salts, 10-11 checksum of words 0-9;
** after the two copies, word 24 is the number of frames that were copied into the file.
*/
enum { HEADER_WORDS = 12, COPIED_WORD = 24, INDEX_BYTES = 32768, MAX_FRAMES = 1 << 18 };

typedef struct wal_index {
  wl_u32 header[HEADER_WORDS];
  wl_u32 n_copied;
} wal_index;

static wl_u32 last_frame(const wl_u32 *header) {
  return header[4];
}

static wl_u32 page_size_of(const wl_u32 *header) {
  wl_u16 size;
  memcpy(&size, (const wl_u8 *)header + 14, sizeof size);
  return size == 1 ? 65536 : size;
}

/* Must be called inside a read transaction in WAL mode, when SQLite has mapped the index. */
static bool read_index(sqlite3_file *f, wal_index *out) {
  const sqlite3_io_methods *m = f->pMethods;
  void volatile *map = NULL;
  if (m->iVersion < 2 || !m->xShmMap || !m->xShmBarrier) return false;
  if (m->xShmMap(f, 0, INDEX_BYTES, 0, &map) || !map) return false;
  const volatile wl_u32 *w = map;
  wl_u32 second[HEADER_WORDS], sum[2] = {0, 0};
  for (int i = 0; i < HEADER_WORDS; i++) out->header[i] = w[i];
  m->xShmBarrier(f);
  for (int i = 0; i < HEADER_WORDS; i++) second[i] = w[HEADER_WORDS + i];
  m->xShmBarrier(f);
  out->n_copied = w[COPIED_WORD];
  m->xShmBarrier(f);
  /* A restart of the log writes a new header and then sets the number to 0. If the header is still
  ** the same, the number belongs to it. While the header stays, the number only grows. */
  bool same = true;
  for (int i = 0; i < HEADER_WORDS; i++) same &= w[i] == out->header[i];
  if (!same || memcmp(out->header, second, sizeof second) != 0) return false;
  for (int i = 0; i < 10; i += 2) {
    sum[0] += second[i] + sum[1];
    sum[1] += second[i + 1] + sum[0];
  }
  const wl_u8 *flags = (const wl_u8 *)&second[3];
  return second[0] == 3007000 && flags[0] == 1 && sum[0] == second[10] && sum[1] == second[11];
}

bool wl_store_pragma_is(wl_store *s, sqlite3_stmt **keep, const char *schema, const char *pragma,
                        const char *word, bool *out) {
  if (!*keep) {
    char *sql = sqlite3_mprintf("PRAGMA \"%w\".%s", schema, pragma);
    int rc = sql ? sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, keep, NULL) : 1;
    sqlite3_free(sql);
    if (rc) return false;
  }
  const char *is = NULL;
  if (sqlite3_step(*keep) == SQLITE_ROW) is = (const char *)sqlite3_column_text(*keep, 0);
  if (is) *out = sqlite3_stricmp(is, word) == 0;
  return sqlite3_reset(*keep) == SQLITE_OK && is;
}

/* Whether the pin belongs to the open transaction. */
static bool pin_holds(const wl_store *s, const wl_wal_pin *pin) {
  return pin->set && pin->version == s->version && pin->file == s->file &&
         pin->reprepares == s->reprepares;
}

static int by_number(const void *a, const void *b) {
  wl_u64 x = *(const wl_u64 *)a, y = *(const wl_u64 *)b;
  return x < y ? -1 : x > y;
}

static wl_i64 frame_at(const wl_wal_view *v, wl_u32 frame) {
  return 32 + (wl_i64)(frame - 1) * (24 + (wl_i64)v->page_size);
}

/* Reads the list of the frames first..last from the log, and keeps the newest of each page. */
static wl_status read_frames(wl_wal_view *v, const wl_u32 *header, wl_u32 first, wl_u32 last,
                             wl_error *err) {
  wl_u8 h[32];
  const sqlite3_io_methods *m = v->file->pMethods;
  if (last - first >= MAX_FRAMES) return wl_not_taken(err, "the WAL is too long");
  if (m->xRead(v->file, h, 32, 0) || memcmp(h + 16, &header[8], 8) != 0)
    return wl_not_taken(err, "the WAL does not match its index");
  v->frames = wl_mem_alloc(((size_t)(last - first) + 1) * sizeof *v->frames);
  if (!v->frames) return wl_nomem(err);
  for (wl_u32 f = first; f <= last; f++) {
    if (m->xRead(v->file, h, 24, frame_at(v, f)) || memcmp(h + 8, &header[8], 8) != 0)
      return wl_not_taken(err, "the WAL does not match its index");
    wl_u64 page = (wl_u32)h[0] << 24 | (wl_u32)h[1] << 16 | (wl_u32)h[2] << 8 | h[3];
    v->frames[v->n++] = page << 32 | f;
  }
  qsort(v->frames, v->n, sizeof *v->frames, by_number);
  wl_u32 n = 0;
  for (wl_u32 i = 0; i < v->n; i++) {
    if (i + 1 < v->n && v->frames[i] >> 32 == v->frames[i + 1] >> 32) continue;
    v->frames[n++] = v->frames[i];
  }
  v->n = n;
  return WL_OK;
}

wl_status wl_wal_view_open(wl_store *s, const char *schema, sqlite3_file *file, bool wal,
                           wl_wal_view *out, wl_error *err) {
  wl_dbfile *f = wl_store_file_of(s, schema);
  bool is_wal, exclusive;
  wal_index now;
  if (!f) return wl_nomem(err);
  if (!wl_store_pragma_is(s, &f->journal, schema, "journal_mode", "wal", &is_wal) || is_wal != wal)
    return wl_not_taken(err, "the journal mode is not that of the file");
  if (!wal) return WL_OK;
  if (!wl_store_pragma_is(s, &f->locking, schema, "locking_mode", "exclusive", &exclusive) ||
      exclusive)
    return wl_not_taken(err, "the wal-index is not shared");
  if (!read_index(file, &now)) return wl_not_taken(err, "the wal-index cannot be read");
  if (now.n_copied == last_frame(now.header)) return WL_OK; /* the first proof */
  const wl_wal_pin *pin = &f->pin;
  if (!pin_holds(s, pin))
    return wl_not_taken(err, "the WAL has frames and the snapshot is not known");
  wl_u32 last = last_frame(pin->header);
  if (memcmp(&pin->header[8], &now.header[8], 8) != 0 || now.n_copied >= last ||
      pin->n_copied > now.n_copied)
    return wl_not_taken(err, "the WAL was restarted");
  out->page_size = page_size_of(pin->header);
  if (sqlite3_file_control(s->db, schema, SQLITE_FCNTL_JOURNAL_POINTER, &out->file) || !out->file ||
      !out->file->pMethods)
    return wl_not_taken(err, "the WAL has no file handle");
  return read_frames(out, pin->header, pin->n_copied + 1, last, err);
}

bool wl_wal_version(wl_store *s, const char *schema, sqlite3_file *file, wl_u32 *header,
                    bool *no_frames) {
  wal_index now;
  const wl_dbfile *f = wl_store_file_of(s, schema);
  if (!f || !read_index(file, &now)) return false;
  const wl_u32 *found = now.n_copied == last_frame(now.header) ? now.header
                        : pin_holds(s, &f->pin)                ? f->pin.header
                                                               : NULL;
  if (!found) return false;
  memcpy(header, found, sizeof now.header);
  *no_frames = last_frame(found) == 0;
  return true;
}

void wl_wal_view_close(wl_wal_view *v) {
  wl_mem_free(v->frames);
  memset(v, 0, sizeof *v);
}

wl_i64 wl_wal_find(const wl_wal_view *v, wl_u32 page) {
  wl_u32 lo = 0, hi = v->n;
  while (lo < hi) {
    wl_u32 mid = lo + (hi - lo) / 2;
    if (v->frames[mid] >> 32 < page)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == v->n || v->frames[lo] >> 32 != page) return -1;
  return frame_at(v, (wl_u32)v->frames[lo]) + 24;
}

/* Whether the connection has the log open, and its index mapped. */
static bool has_index(wl_store *s, wl_dbfile *f, const char *schema) {
  bool is_wal, exclusive;
  return wl_store_pragma_is(s, &f->journal, schema, "journal_mode", "wal", &is_wal) && is_wal &&
         wl_store_pragma_is(s, &f->locking, schema, "locking_mode", "exclusive", &exclusive) &&
         !exclusive;
}

static void set_pin(const wl_store *s, wl_wal_pin *pin, wl_u32 version, void *file,
                    const wal_index *index) {
  pin->version = version;
  pin->file = file;
  pin->reprepares = s->reprepares;
  memcpy(pin->header, index->header, sizeof pin->header);
  pin->n_copied = index->n_copied;
  pin->set = true;
}

void wl_wal_watch_begin(wl_store *s, const char *schema, wl_wal_watch *w) {
  wal_index index;
  w->on = false;
  if (sqlite3_get_autocommit(s->db) || sqlite3_txn_state(s->db, schema) != SQLITE_TXN_NONE) return;
  wl_dbfile *f = wl_store_file_of(s, schema);
  if (!f || !has_index(s, f, schema) || sqlite3_txn_state(s->db, schema) != SQLITE_TXN_NONE) return;
  w->file = NULL;
  if (sqlite3_file_control(s->db, schema, SQLITE_FCNTL_FILE_POINTER, &w->file) || !w->file ||
      !w->file->pMethods || !read_index(w->file, &index))
    return;
  memcpy(w->header, index.header, sizeof w->header);
  w->on = true;
}

void wl_wal_watch_end(wl_store *s, const char *schema, const wl_wal_watch *w) {
  wal_index index;
  wl_u32 version = 0;
  sqlite3_file *file = NULL;
  if (!w->on || sqlite3_txn_state(s->db, schema) != SQLITE_TXN_READ) return;
  wl_dbfile *f = wl_store_file_of(s, schema);
  if (!f || sqlite3_file_control(s->db, schema, SQLITE_FCNTL_DATA_VERSION, &version) ||
      sqlite3_file_control(s->db, schema, SQLITE_FCNTL_FILE_POINTER, &file) || file != w->file)
    return;
  if (!has_index(s, f, schema) || !read_index(file, &index) ||
      memcmp(index.header, w->header, sizeof w->header) != 0)
    return;
  set_pin(s, &f->pin, version, file, &index);
}

void wl_wal_pin_make(wl_store *s, const char *schema) {
  wl_dbfile *f = wl_store_file_of(s, schema);
  sqlite3_file *file = s->file;
  wl_u8 formats[2];
  wal_index before, after;
  wl_error ignored;
  bool is_wal, exclusive;
  if (!f || !file || !file->pMethods) return;
  if (pin_holds(s, &f->pin)) return;
  f->pin.set = false;
  if (file->pMethods->xRead(file, formats, 2, 18) || formats[0] != 2 || formats[1] != 2) return;
  if (!wl_store_pragma_is(s, &f->journal, schema, "journal_mode", "wal", &is_wal) || !is_wal)
    return;
  if (!wl_store_pragma_is(s, &f->locking, schema, "locking_mode", "exclusive", &exclusive) ||
      exclusive)
    return;
  if (!read_index(file, &before) || before.n_copied == last_frame(before.header)) return;
  wl_store_end(s);
  bool alone = sqlite3_txn_state(s->db, schema) == SQLITE_TXN_NONE;
  if (wl_store_reopen(s, schema, &ignored) || !alone || s->file != file) return;
  if (!wl_store_pragma_is(s, &f->journal, schema, "journal_mode", "wal", &is_wal) || !is_wal)
    return;
  if (!read_index(file, &after) || memcmp(before.header, after.header, sizeof after.header) != 0)
    return;
  set_pin(s, &f->pin, s->version, file, &after);
}
