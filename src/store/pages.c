#include "store/pages.h"
#include "base/mem.h"
#include "store/record.h"
#include <string.h>

static bool read_at(sqlite3_file *f, void *buf, size_t n, wl_i64 at) {
  return n <= 0x7fffffff && f->pMethods->xRead(f, buf, (int)n, at) == SQLITE_OK;
}

/* Checks the first 100 bytes of the file, which are the header of a database. */
static wl_status read_header(wl_pages *p, const wl_u8 h[100], wl_error *err) {
  static const char magic[16] = "SQLite format 3";
  wl_u32 size = (wl_u32)h[16] << 8 | h[17];
  if (size == 1) size = 65536;
  if (memcmp(h, magic, sizeof magic) != 0)
    return wl_not_taken(err, "the file has no SQLite header");
  if (size < 512 || size > 65536 || (size & (size - 1)))
    return wl_not_taken(err, "the header has an invalid page size");
  if (h[20] != 0) return wl_not_taken(err, "pages have reserved bytes");
  if (h[21] != 64 || h[22] != 32 || h[23] != 32)
    return wl_not_taken(err, "the header has invalid payload fractions");
  if (wl_be32(h + 44) < 1 || wl_be32(h + 44) > 4)
    return wl_not_taken(err, "the schema format is unknown");
  if (wl_be32(h + 56) != 1) return wl_not_taken(err, "its text is not UTF-8");
  if (memcmp(h + 24, h + 92, 4) != 0 || wl_be32(h + 28) == 0)
    return wl_not_taken(err, "the header does not say how many pages there are");
  p->page_size = size;
  p->n_pages = wl_be32(h + 28);
  p->auto_vacuum = wl_be32(h + 52) != 0;
  return WL_OK;
}

/* Whether several threads may read a file at once. In SQLite's own "unix" VFS they may, if it reads
** by pread(): a read that succeeds changes nothing in the file's object. */
static bool reads_at_once(wl_store *s, const char *schema) {
  sqlite3_vfs *vfs = NULL;
  if (sqlite3_file_control(s->db, schema, SQLITE_FCNTL_VFS_POINTER, &vfs) || !vfs) return false;
  if (strcmp(vfs->zName, "unix") != 0 || vfs->iVersion < 3) return false;
  return vfs->xGetSystemCall(vfs, "pread") || vfs->xGetSystemCall(vfs, "pread64");
}

wl_status wl_pages_open(wl_store *s, const char *schema, wl_pages *out, wl_error *err) {
  memset(out, 0, sizeof *out);
  pthread_mutex_init(&out->lock, NULL);
  wl_u8 h[100];
  /* A database without a name is in memory, or in a temporary file that lags behind its cache. */
  const char *name = sqlite3_db_filename(s->db, schema);
  if (!name || !*name || sqlite3_stricmp(schema, "temp") == 0)
    return wl_not_taken(err, "the database is not in a file");
  if (sqlite3_file_control(s->db, schema, SQLITE_FCNTL_FILE_POINTER, &out->file) || !out->file ||
      !out->file->pMethods || (void *)out->file != s->file)
    return wl_not_taken(err, "the database has no file handle");
  if (!read_at(out->file, h, sizeof h, 0)) return wl_not_taken(err, "the header cannot be read");
  out->at_once = reads_at_once(s, schema);
  if (h[18] != h[19] || h[18] < 1 || h[18] > 2)
    return wl_not_taken(err, "the header has invalid format versions");
  wl_status rc = wl_wal_view_open(s, schema, out->file, h[18] == 2, &out->wal, err);
  if (rc) return rc;
  wl_i64 at = wl_wal_find(&out->wal, 1);
  if (at >= 0 && !read_at(out->wal.file, h, sizeof h, at))
    return wl_not_taken(err, "the header cannot be read");
  rc = read_header(out, h, err);
  if (rc) return rc;
  if (out->wal.page_size && out->wal.page_size != out->page_size)
    return wl_not_taken(err, "the WAL has another page size");
  sqlite3_int64 n_bytes = 0;
  if (out->wal.n == 0 && (out->file->pMethods->xFileSize(out->file, &n_bytes) ||
                          n_bytes / out->page_size < out->n_pages))
    return wl_not_taken(err, "the file is shorter than its header says");
  return WL_OK;
}

void wl_pages_close(wl_pages *p) {
  wl_wal_view_close(&p->wal);
  pthread_mutex_destroy(&p->lock);
}

static bool read_pages(wl_pages *p, wl_u32 first, wl_u32 n, wl_u8 *buf) {
  wl_u32 from = 0, size = p->page_size; /* pages before first + from have been read */
  if (p->wal.n) {
    for (wl_u32 i = 0; i < n; i++) {
      wl_i64 at = wl_wal_find(&p->wal, first + i);
      if (at < 0) continue;
      if (from < i && !read_pages(&(wl_pages){.file = p->file, .page_size = size}, first + from,
                                  i - from, buf + (size_t)from * size))
        return false;
      if (!read_at(p->wal.file, buf + (size_t)i * size, size, at)) return false;
      from = i + 1;
    }
  }
  return from == n || read_at(p->file, buf + (size_t)from * size, (size_t)(n - from) * size,
                              (wl_i64)(first + from - 1) * size);
}

bool wl_pages_read(wl_pages *p, wl_u32 first, wl_u32 n, wl_u8 *buf) {
  if (first < 1 || first > p->n_pages || n > p->n_pages - first + 1) return false;
  if (p->at_once) return read_pages(p, first, n, buf);
  pthread_mutex_lock(&p->lock);
  bool ok = read_pages(p, first, n, buf);
  pthread_mutex_unlock(&p->lock);
  return ok;
}
