/*
** A disk in memory for crash tests: a SQLite VFS whose files know what has been synced. At the
** k-th write, sync, truncation or deletion the power goes: that call and all I/O after it fail,
** and disk_save writes what the disk would hold then into real files. Instead of a crash a call
** can fail once, or the disk be full for a while.
**
** Invariants:
** 1. What was synced is in the saved files, byte for byte. Of the rest each piece of 512 bytes of
**    each write is there or not, by chance, later writes over earlier ones.
** 2. A new file may be missing until it is first synced. A deletion is sure if the directory was
**    synced with it, else the file may be back.
** 3. One connection, one thread: locks always succeed. Shared memory is plain memory, lost in a
**    crash.
** 4. Files without a name (statement journals, sorters) count where calls fail, not for crashes.
*/
#ifndef TEST_DISK_H
#define TEST_DISK_H

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../rng.h"

enum { DISK_SECTOR = 512, DISK_SHM = 16, DISK_MAX_FILES = 16 };

/* One thing that was done and not synced. n < 0: a truncation to off. */
typedef struct disk_op {
  sqlite3_int64 off;
  int n;
  unsigned char *data;
} disk_op;

typedef struct disk_file {
  char name[300]; /* "": a temporary one */
  bool exists, synced_exists;
  unsigned char *now, *safe;
  sqlite3_int64 n_now, cap_now, n_safe, cap_safe;
  disk_op *ops;
  int n_ops, cap_ops;
  void *shm[DISK_SHM];
} disk_file;

typedef struct disk_handle {
  sqlite3_file base;
  disk_file *f;
  bool at_close; /* delete on close */
} disk_handle;

typedef struct disk_state {
  disk_file files[DISK_MAX_FILES];
  rng r;
  long n_calls;  /* of those that count, since disk_arm */
  long crash_at; /* 0: never */
  bool crashed;
  long fail_at;   /* 0: never */
  int fail_code;  /* what it fails with */
  int fail_calls; /* so many calls from there on */
  bool failed;
  int keep; /* of unsynced pieces: percent that are kept */
} disk_state;

static disk_state disk;

static void *disk_must(void *p) {
  if (!p) abort();
  return p;
}

static void disk_grow(unsigned char **p, sqlite3_int64 *cap, sqlite3_int64 n) {
  if (n <= *cap) return;
  sqlite3_int64 more = n + n / 2 + 4096;
  *p = disk_must(realloc(*p, (size_t)more));
  *cap = more;
}

/* Sets the length of a file; what is new is zero. */
static void disk_resize(unsigned char **p, sqlite3_int64 *n, sqlite3_int64 *cap, sqlite3_int64 to) {
  disk_grow(p, cap, to);
  if (to > *n) memset(*p + *n, 0, (size_t)(to - *n));
  *n = to;
}

static void disk_put(unsigned char **p, sqlite3_int64 *n, sqlite3_int64 *cap, sqlite3_int64 off,
                     const void *data, int k) {
  if (off + k > *n) disk_resize(p, n, cap, off + k);
  memcpy(*p + off, data, (size_t)k);
}

static void disk_clear_ops(disk_file *f) {
  for (int i = 0; i < f->n_ops; i++) free(f->ops[i].data);
  f->n_ops = 0;
}

static void disk_log(disk_file *f, sqlite3_int64 off, const void *data, int n) {
  if (f->n_ops == f->cap_ops) {
    f->cap_ops = f->cap_ops ? 2 * f->cap_ops : 64;
    f->ops = disk_must(realloc(f->ops, (size_t)f->cap_ops * sizeof *f->ops));
  }
  disk_op *op = &f->ops[f->n_ops++];
  *op = (disk_op){.off = off, .n = n};
  if (n < 0) return;
  op->data = disk_must(malloc((size_t)n + 1));
  memcpy(op->data, data, (size_t)n);
}

static void disk_free_shm(disk_file *f) {
  for (int i = 0; i < DISK_SHM; i++) {
    free(f->shm[i]);
    f->shm[i] = NULL;
  }
}

static void disk_forget(disk_file *f) {
  disk_clear_ops(f);
  disk_free_shm(f);
  free(f->ops);
  free(f->now);
  free(f->safe);
  memset(f, 0, sizeof *f);
}

static disk_file *disk_find(const char *name) {
  for (int i = 0; i < DISK_MAX_FILES; i++)
    if (disk.files[i].name[0] && strcmp(disk.files[i].name, name) == 0) return &disk.files[i];
  return NULL;
}

/* ---- trouble. What a call is to do: 0 go on, else fail with the code. */

static int disk_trouble(const disk_file *f, int code) {
  if (disk.crashed) return code;
  bool temp = !f->name[0];
  if (temp && disk.crash_at) return SQLITE_OK;
  disk.n_calls++;
  if (disk.crash_at && disk.n_calls >= disk.crash_at) {
    disk.crashed = true;
    return code;
  }
  if (disk.fail_at && disk.n_calls >= disk.fail_at &&
      disk.n_calls < disk.fail_at + disk.fail_calls) {
    disk.failed = true;
    /* a full disk takes what does not make the file longer */
    if (disk.fail_code == SQLITE_FULL) return code == SQLITE_IOERR_WRITE ? SQLITE_FULL : SQLITE_OK;
    return code;
  }
  return SQLITE_OK;
}

/* ---- the methods of a file */

static int disk_close(sqlite3_file *h) {
  disk_handle *d = (disk_handle *)h;
  if (!d->f->name[0]) {
    disk_forget(d->f);
    free(d->f);
  } else if (d->at_close && !disk.crashed) {
    d->f->exists = d->f->synced_exists = false;
  }
  return SQLITE_OK;
}

static int disk_read(sqlite3_file *h, void *out, int n, sqlite3_int64 off) {
  disk_file *f = ((disk_handle *)h)->f;
  if (disk.crashed) return SQLITE_IOERR_READ;
  sqlite3_int64 have = f->n_now - off;
  if (have < 0) have = 0;
  if (have > n) have = n;
  if (have) memcpy(out, f->now + off, (size_t)have);
  if (have == n) return SQLITE_OK;
  memset((char *)out + have, 0, (size_t)(n - have));
  return SQLITE_IOERR_SHORT_READ;
}

static int disk_write(sqlite3_file *h, const void *data, int n, sqlite3_int64 off) {
  disk_file *f = ((disk_handle *)h)->f;
  bool before = disk.crashed;
  int rc = disk_trouble(f, SQLITE_IOERR_WRITE);
  if (rc == SQLITE_FULL && off + n <= f->n_now) rc = SQLITE_OK;
  /* the write during which the power goes is as unsure as the others */
  if (f->name[0] && !before && (rc == SQLITE_OK || disk.crashed)) disk_log(f, off, data, n);
  if (rc) return rc;
  disk_put(&f->now, &f->n_now, &f->cap_now, off, data, n);
  return SQLITE_OK;
}

static int disk_truncate(sqlite3_file *h, sqlite3_int64 to) {
  disk_file *f = ((disk_handle *)h)->f;
  int rc = disk_trouble(f, SQLITE_IOERR_TRUNCATE);
  if (rc) return rc;
  if (f->name[0]) disk_log(f, to, NULL, -1);
  if (to < f->n_now) f->n_now = to;
  return SQLITE_OK;
}

static void disk_apply(disk_file *f, bool by_chance) {
  for (int i = 0; i < f->n_ops; i++) {
    disk_op *op = &f->ops[i];
    if (op->n < 0) {
      if (by_chance && !rng_chance(&disk.r, disk.keep)) continue;
      if (op->off < f->n_safe) disk_resize(&f->safe, &f->n_safe, &f->cap_safe, op->off);
      continue;
    }
    for (int at = 0; at < op->n;) {
      int k = DISK_SECTOR - (int)((op->off + at) % DISK_SECTOR);
      if (k > op->n - at) k = op->n - at;
      if (!by_chance || rng_chance(&disk.r, disk.keep))
        disk_put(&f->safe, &f->n_safe, &f->cap_safe, op->off + at, op->data + at, k);
      at += k;
    }
  }
  disk_clear_ops(f);
}

static int disk_sync(sqlite3_file *h, int flags) {
  (void)flags;
  disk_file *f = ((disk_handle *)h)->f;
  int rc = disk_trouble(f, SQLITE_IOERR_FSYNC);
  if (rc) return rc;
  disk_apply(f, false);
  f->synced_exists = true;
  return SQLITE_OK;
}

static int disk_size(sqlite3_file *h, sqlite3_int64 *out) {
  *out = ((disk_handle *)h)->f->n_now;
  return disk.crashed ? SQLITE_IOERR_FSTAT : SQLITE_OK;
}

static int disk_lock(sqlite3_file *h, int level) {
  (void)h, (void)level;
  return SQLITE_OK;
}

static int disk_reserved(sqlite3_file *h, int *out) {
  (void)h;
  *out = 0;
  return SQLITE_OK;
}

static int disk_control(sqlite3_file *h, int op, void *arg) {
  (void)h, (void)op, (void)arg;
  return SQLITE_NOTFOUND;
}

static int disk_sector(sqlite3_file *h) {
  (void)h;
  return DISK_SECTOR;
}

static int disk_traits(sqlite3_file *h) {
  (void)h;
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int disk_shm_map(sqlite3_file *h, int region, int size, int extend, void volatile **out) {
  disk_file *f = ((disk_handle *)h)->f;
  *out = NULL;
  if (disk.crashed || region >= DISK_SHM) return SQLITE_IOERR_SHMMAP;
  if (!f->shm[region] && extend) f->shm[region] = disk_must(calloc(1, (size_t)size));
  *out = f->shm[region];
  return SQLITE_OK;
}

static int disk_shm_lock(sqlite3_file *h, int offset, int n, int flags) {
  (void)h, (void)offset, (void)n, (void)flags;
  return SQLITE_OK;
}

static void disk_shm_barrier(sqlite3_file *h) {
  (void)h;
}

static int disk_shm_unmap(sqlite3_file *h, int gone) {
  if (gone) disk_free_shm(((disk_handle *)h)->f);
  return SQLITE_OK;
}

static const sqlite3_io_methods disk_methods = {
    2,           disk_close,   disk_read,     disk_write,       disk_truncate,  disk_sync,
    disk_size,   disk_lock,    disk_lock,     disk_reserved,    disk_control,   disk_sector,
    disk_traits, disk_shm_map, disk_shm_lock, disk_shm_barrier, disk_shm_unmap, NULL,
    NULL};

/* ---- the methods of the VFS */

static int disk_open(sqlite3_vfs *v, const char *name, sqlite3_file *h, int flags, int *out) {
  (void)v;
  disk_handle *d = (disk_handle *)h;
  d->base.pMethods = NULL;
  if (out) *out = flags;
  if (disk.crashed) return SQLITE_CANTOPEN;
  if (!name) {
    d->f = disk_must(calloc(1, sizeof *d->f));
  } else {
    d->f = disk_find(name);
    if (!(flags & SQLITE_OPEN_CREATE) && (!d->f || !d->f->exists)) return SQLITE_CANTOPEN;
    for (int i = 0; !d->f && i < DISK_MAX_FILES; i++)
      if (!disk.files[i].name[0]) d->f = &disk.files[i];
    if (!d->f || strlen(name) >= sizeof d->f->name) return SQLITE_CANTOPEN;
    strcpy(d->f->name, name);
    if (!d->f->exists) { /* made anew: what was deleted does not come back */
      d->f->n_now = d->f->n_safe = 0;
      disk_clear_ops(d->f);
      d->f->exists = true;
      d->f->synced_exists = false;
    }
  }
  d->at_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  d->base.pMethods = &disk_methods;
  return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *v, const char *name, int sync_dir) {
  (void)v;
  disk_file *f = disk_find(name);
  if (!f || !f->exists) return disk.crashed ? SQLITE_IOERR_DELETE : SQLITE_IOERR_DELETE_NOENT;
  int rc = disk_trouble(f, SQLITE_IOERR_DELETE);
  if (rc) return rc;
  f->exists = false;
  f->n_now = 0;
  disk_clear_ops(f);
  if (sync_dir) f->synced_exists = false;
  return SQLITE_OK;
}

static int disk_access(sqlite3_vfs *v, const char *name, int flags, int *out) {
  (void)v, (void)flags;
  disk_file *f = disk_find(name);
  *out = f && f->exists;
  return disk.crashed ? SQLITE_IOERR_ACCESS : SQLITE_OK;
}

static int disk_path(sqlite3_vfs *v, const char *name, int n, char *out) {
  (void)v;
  snprintf(out, (size_t)n, "%s", name);
  return SQLITE_OK;
}

static sqlite3_vfs *disk_under; /* the default, for time and chance */

static int disk_random(sqlite3_vfs *v, int n, char *out) {
  (void)v;
  return disk_under->xRandomness(disk_under, n, out);
}

static int disk_sleep(sqlite3_vfs *v, int us) {
  (void)v;
  return us;
}

static int disk_time(sqlite3_vfs *v, double *out) {
  (void)v;
  return disk_under->xCurrentTime(disk_under, out);
}

static int disk_time64(sqlite3_vfs *v, sqlite3_int64 *out) {
  (void)v;
  return disk_under->xCurrentTimeInt64(disk_under, out);
}

static int disk_last_error(sqlite3_vfs *v, int n, char *out) {
  (void)v;
  if (n > 0) out[0] = 0;
  return 0;
}

static sqlite3_vfs disk_vfs = {.iVersion = 2,
                               .szOsFile = sizeof(disk_handle),
                               .mxPathname = 256,
                               .zName = "disk",
                               .xOpen = disk_open,
                               .xDelete = disk_delete,
                               .xAccess = disk_access,
                               .xFullPathname = disk_path,
                               .xRandomness = disk_random,
                               .xSleep = disk_sleep,
                               .xCurrentTime = disk_time,
                               .xGetLastError = disk_last_error,
                               .xCurrentTimeInt64 = disk_time64};

/* ---- for the test */

static void disk_register(void) {
  disk_under = sqlite3_vfs_find(NULL);
  sqlite3_vfs_register(&disk_vfs, 0);
}

static void disk_disarm(void) {
  disk.crash_at = disk.fail_at = disk.n_calls = 0;
  disk.failed = disk.crashed = false;
}

static void disk_wipe(void) {
  for (int i = 0; i < DISK_MAX_FILES; i++) disk_forget(&disk.files[i]);
  disk_disarm();
}

static inline void disk_crash_at(long call, uint64_t seed, int keep) {
  disk_disarm();
  disk.r.s = seed;
  disk.crash_at = call;
  disk.keep = keep;
}

static inline void disk_fail_at(long call, int code, int calls) {
  disk_disarm();
  disk.fail_at = call;
  disk.fail_code = code;
  disk.fail_calls = calls;
}

/* Puts a real file on the disk, synced. */
static bool disk_load(const char *path, const char *name) {
  FILE *in = fopen(path, "rb");
  if (!in) return false;
  disk_file *f = disk_find(name);
  for (int i = 0; !f && i < DISK_MAX_FILES; i++)
    if (!disk.files[i].name[0]) f = &disk.files[i];
  if (f) disk_forget(f);
  bool ok = f && fseek(in, 0, SEEK_END) == 0;
  long n = ok ? ftell(in) : -1;
  rewind(in);
  if (ok && n >= 0) {
    snprintf(f->name, sizeof f->name, "%s", name);
    disk_resize(&f->now, &f->n_now, &f->cap_now, n);
    disk_resize(&f->safe, &f->n_safe, &f->cap_safe, n);
    ok = fread(f->now, 1, (size_t)n, in) == (size_t)n;
    memcpy(f->safe, f->now, (size_t)n);
    f->exists = f->synced_exists = true;
  }
  fclose(in);
  return ok && n >= 0;
}

/* Writes what is left after the crash: name, name-journal and name-wal become files of path. */
static bool disk_save(const char *name, const char *path) {
  static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};
  bool ok = true;
  for (int i = 0; i < 4; i++) {
    char from[400], to[500];
    snprintf(from, sizeof from, "%s%s", name, suffixes[i]);
    snprintf(to, sizeof to, "%s%s", path, suffixes[i]);
    unlink(to);
    disk_file *f = disk_find(from);
    if (!f || (!f->exists && !f->synced_exists)) continue;
    if (f->exists != f->synced_exists && !rng_chance(&disk.r, disk.keep)) continue;
    disk_apply(f, true);
    FILE *out = fopen(to, "wb");
    size_t n = (size_t)f->n_safe;
    ok = ok && out && (n == 0 || fwrite(f->safe, 1, n, out) == n);
    if (out) ok = fclose(out) == 0 && ok;
  }
  return ok;
}

#endif
