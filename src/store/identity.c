/*
** See identity.h.
*/
#include "store/identity.h"
#include "base/authorizer.h"
#include "store/store_impl.h"
#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { LOCK_SHARED = 1, HEADER_BYTES = 100, FORMAT_AT = 18 };

/* The positions of the words in a key. The first ones are the family. */
enum {
  AT_DEVICE = 0,
  AT_INODE = 1,
  AT_NAME = 2,  /* two words */
  AT_TABLE = 4, /* two words */
  AT_VFS = 6,
  AT_END_OF_FAMILY = WL_SET_FAMILY_WORDS,
  AT_COOKIE = AT_END_OF_FAMILY,
  AT_SHAPE,
  AT_LIMIT,
  AT_MODE,
  AT_STATE,
  AT_TIMES,                 /* four words */
  AT_INDEX = AT_TIMES + 4,  /* six words: the header of the wal-index */
  AT_HEADER = AT_INDEX + 6, /* thirteen words: the header of the file */
  AT_END = AT_HEADER + 13
};

enum { MODE_STATE = 1, MODE_ROLLBACK, MODE_WAL };

static bool stays(wl_store *s, const char *schema) {
  int moved = 1;
  return sqlite3_file_control(s->db, schema, SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && !moved;
}

static bool locked_as_reader(wl_store *s, const char *schema) {
  int state = 0;
  return sqlite3_file_control(s->db, schema, SQLITE_FCNTL_LOCKSTATE, &state) == SQLITE_OK &&
         state == LOCK_SHARED;
}

static bool known_vfs(wl_store *s, const char *schema, wl_set_key *out) {
  sqlite3_vfs *vfs = NULL;
  if (sqlite3_file_control(s->db, schema, SQLITE_FCNTL_VFS_POINTER, &vfs) || !vfs) return false;
  out->words[AT_VFS] = (wl_u64)(size_t)vfs;
  return vfs->zName && strcmp(vfs->zName, "unix") == 0;
}

/* Sets the words for the file, except those for its version. */
static bool file_words(wl_store *s, const char *schema, struct stat *st, wl_set_key *out) {
  const char *name = sqlite3_db_filename(s->db, schema);
  if (!name || !*name || sqlite3_stricmp(schema, "temp") == 0) return false;
  if (sqlite3_uri_boolean(name, "immutable", 0) || sqlite3_uri_boolean(name, "nolock", 0))
    return false;
  if (!known_vfs(s, schema, out) || !locked_as_reader(s, schema)) return false;
  if (!stays(s, schema) || stat(name, st) || !S_ISREG(st->st_mode) || !stays(s, schema))
    return false;
  XXH128_hash_t h = XXH3_128bits(name, strlen(name));
  out->words[AT_DEVICE] = (wl_u64)st->st_dev;
  out->words[AT_INODE] = (wl_u64)st->st_ino;
  out->words[AT_NAME] = h.high64;
  out->words[AT_NAME + 1] = h.low64;
  return true;
}

/* Sets the words for the table. Its name in the schema is unique in the file. */
static bool table_words(wl_store *s, const wl_table *t, wl_set_key *out) {
  XXH3_state_t shape;
  XXH3_64bits_reset(&shape);
  for (int i = 0; i < t->n_cols; i++) {
    if (t->cols[i].computed) return false;
    XXH3_64bits_update(&shape, t->cols[i].name, strlen(t->cols[i].name) + 1);
    XXH3_64bits_update(&shape, t->cols[i].decl, strlen(t->cols[i].decl) + 1);
  }
  XXH128_hash_t h = XXH3_128bits(t->name, strlen(t->name));
  out->words[AT_TABLE] = h.high64;
  out->words[AT_TABLE + 1] = h.low64;
  out->words[AT_SHAPE] = XXH3_64bits_digest(&shape) + (wl_u64)t->n_cols;
  out->words[AT_COOKIE] = s->cookie;
  out->words[AT_LIMIT] = (wl_u64)sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, -1);
  return true;
}

static void time_words(const struct stat *st, wl_set_key *out) {
  out->words[AT_TIMES] = (wl_u64)st->st_mtim.tv_sec;
  out->words[AT_TIMES + 1] = (wl_u64)st->st_mtim.tv_nsec;
  out->words[AT_TIMES + 2] = (wl_u64)st->st_ctim.tv_sec;
  out->words[AT_TIMES + 3] = (wl_u64)st->st_ctim.tv_nsec;
}

/* Sets the words for the version of the file. */
static bool version_words(wl_store *s, const char *schema, const struct stat *st, wl_set_key *out) {
  sqlite3_file *file = s->file;
  wl_u8 header[HEADER_BYTES];
  bool wal, exclusive, no_frames = true;
  wl_dbfile *f = wl_store_file_of(s, schema);
  if (!f || !file || !file->pMethods) return false;
  if (file->pMethods->xRead(file, header, HEADER_BYTES, 0)) return false;
  if (!wl_store_pragma_is(s, &f->journal, schema, "journal_mode", "wal", &wal)) return false;
  if (!wl_store_pragma_is(s, &f->locking, schema, "locking_mode", "exclusive", &exclusive) ||
      exclusive)
    return false;
  wl_u8 format = wal ? 2 : 1;
  if (header[FORMAT_AT] != format || header[FORMAT_AT + 1] != format) return false;
  out->words[AT_MODE] = wal ? MODE_WAL : MODE_ROLLBACK;
  wl_u32 index[12];
  if (wal && !wl_wal_version(s, schema, file, index, &no_frames)) return false;
  if (wal) memcpy(&out->words[AT_INDEX], index, sizeof index);
  if (!no_frames) return true;
  memcpy(&out->words[AT_HEADER], header, sizeof header);
  time_words(st, out);
  return true;
}

bool wl_identity_key(wl_store *s, const wl_table *t, const wl_u64 *state, wl_set_key *out) {
  _Static_assert((int)AT_END <= (int)WL_SET_KEY_WORDS, "the words fit a key");
  struct stat st;
  memset(out, 0, sizeof *out);
  if (wl_authorizer_is_set(s->db)) return false;
  if (!table_words(s, t, out) || !file_words(s, t->schema, &st, out)) return false;
  if (state) {
    out->words[AT_MODE] = MODE_STATE;
    out->words[AT_STATE] = *state;
    return true;
  }
  return version_words(s, t->schema, &st, out);
}
