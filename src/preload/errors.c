/*
** The error of a connection. A native step sets it without SQLite's knowledge, so the functions
** that read it answer from wl_last_result, until a call of SQLite's sets it again.
*/
#include "preload/preload.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

atomic_int wl_n_results;

static void count_results(int change) {
  atomic_fetch_add(&wl_n_results, change);
  atomic_fetch_add(&wl_n_awake, change);
}

int wl_set_result(wl_connection *c, int code, const char *message) {
  c->result.message[0] = 0;
  if (message) snprintf(c->result.message, sizeof c->result.message, "%s", message);
  if (atomic_exchange(&c->result.code, code) == WL_NO_RESULT) count_results(1);
  return c->extended_codes || code <= 0xff ? code : code & 0xff;
}

void wl_forget_result(sqlite3 *db) {
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (c) wl_connection_forget_result(c);
}

void wl_connection_forget_result(wl_connection *c) {
  if (atomic_load_explicit(&c->result.code, memory_order_relaxed) != WL_NO_RESULT &&
      atomic_exchange(&c->result.code, WL_NO_RESULT) != WL_NO_RESULT)
    count_results(-1);
}

static const wl_connection *with_result(sqlite3 *db) {
  if (WL_LIKELY(!wl_is_awake())) return NULL;
  const wl_connection *c = db ? wl_connection_of(db) : NULL;
  return c && c->result.code != WL_NO_RESULT ? c : NULL;
}

static const char *result_text(const wl_connection *c) {
  return *c->result.message ? c->result.message : c->real->api.errstr(c->result.code);
}

WL_EXPORT int sqlite3_errcode(sqlite3 *db) {
  const wl_connection *c = with_result(db);
  if (!c) return WL_REAL()->errcode(db);
  return c->extended_codes ? c->result.code : c->result.code & 0xff;
}

WL_EXPORT int sqlite3_extended_errcode(sqlite3 *db) {
  const wl_connection *c = with_result(db);
  return c ? c->result.code : WL_REAL()->extended_errcode(db);
}

WL_EXPORT const char *sqlite3_errmsg(sqlite3 *db) {
  const wl_connection *c = with_result(db);
  return c ? result_text(c) : WL_REAL()->errmsg(db);
}

/* Writes text as UTF-16. The bytes are SQLite's or warplite's own messages. */
static void widen(const char *from, uint16_t *to, size_t n) {
  const unsigned char *p = (const unsigned char *)from;
  while (*p && n > 2) {
    uint32_t u = *p++;
    int more = u >= 0xf0 ? 3 : u >= 0xe0 ? 2 : u >= 0xc0 ? 1 : 0;
    if (more) u &= 0x3fu >> more;
    while (more-- > 0 && (*p & 0xc0) == 0x80) u = u << 6 | (*p++ & 0x3f);
    if (u >= 0x10000) {
      *to++ = (uint16_t)(0xd800 + ((u - 0x10000) >> 10));
      n--;
      u = 0xdc00 + ((u - 0x10000) & 0x3ff);
    }
    *to++ = (uint16_t)u;
    n--;
  }
  *to = 0;
}

WL_EXPORT const void *sqlite3_errmsg16(sqlite3 *db) {
  static _Thread_local uint16_t text[WL_NATIVE_TEXT];
  const wl_connection *c = with_result(db);
  if (!c) return WL_REAL()->errmsg16(db);
  widen(result_text(c), text, WL_NATIVE_TEXT);
  return text;
}

WL_EXPORT int sqlite3_error_offset(sqlite3 *db) {
  const sqlite3_api_routines *real = WL_REAL();
  return with_result(db) || !real->error_offset ? -1 : real->error_offset(db);
}

/* ---- calls that set the error and have no other business here */

WL_EXPORT int sqlite3_wal_checkpoint(sqlite3 *db, const char *schema) {
  wl_forget_result_if(db);
  return WL_REAL()->wal_checkpoint(db, schema);
}
WL_EXPORT int sqlite3_wal_checkpoint_v2(sqlite3 *db, const char *schema, int mode, int *n_log,
                                        int *n_done) {
  wl_forget_result_if(db);
  return WL_REAL()->wal_checkpoint_v2(db, schema, mode, n_log, n_done);
}
WL_EXPORT int sqlite3_table_column_metadata(sqlite3 *db, const char *schema, const char *table,
                                            const char *column, char const **type,
                                            char const **collation, int *not_null, int *key,
                                            int *increments) {
  wl_forget_result_if(db);
  return WL_REAL()->table_column_metadata(db, schema, table, column, type, collation, not_null, key,
                                          increments);
}
WL_EXPORT int sqlite3_load_extension(sqlite3 *db, const char *file, const char *entry,
                                     char **message) {
  wl_forget_result_if(db);
  return WL_REAL()->load_extension(db, file, entry, message);
}

/* ---- blobs and backups */

static wl_handles owners; /* the connection whose error the functions of a blob or a backup set */

static void own(void *handle, sqlite3 *db) {
  wl_handles_remove(&owners, handle);
  wl_handles_set(&owners, handle, db);
}

static void unsay_owner(const void *handle) {
  if (WL_UNLIKELY(wl_is_awake())) wl_forget_result(wl_handles_find(&owners, handle));
}

WL_EXPORT int sqlite3_blob_open(sqlite3 *db, const char *schema, const char *table,
                                const char *column, sqlite3_int64 row, int flags,
                                sqlite3_blob **out) {
  wl_forget_result_if(db);
  int rc = WL_REAL()->blob_open(db, schema, table, column, row, flags, out);
  if (rc == SQLITE_OK) own(*out, db);
  return rc;
}
WL_EXPORT int sqlite3_blob_reopen(sqlite3_blob *blob, sqlite3_int64 row) {
  const sqlite3_api_routines *real = WL_REAL();
  int rc = real->blob_reopen(blob, row);
  sqlite3 *db = rc == SQLITE_OK ? NULL : wl_handles_find(&owners, blob);
  /* It sets no error if it succeeds, nor if the blob was no longer valid before the call. */
  if (db && (rc != SQLITE_ABORT || real->errcode(db) == rc)) wl_forget_result_if(db);
  return rc;
}
WL_EXPORT int sqlite3_blob_read(sqlite3_blob *blob, void *out, int n, int at) {
  unsay_owner(blob);
  return WL_REAL()->blob_read(blob, out, n, at);
}
WL_EXPORT int sqlite3_blob_write(sqlite3_blob *blob, const void *bytes, int n, int at) {
  unsay_owner(blob);
  return WL_REAL()->blob_write(blob, bytes, n, at);
}
WL_EXPORT int sqlite3_blob_close(sqlite3_blob *blob) {
  wl_handles_remove(&owners, blob);
  return WL_REAL()->blob_close(blob);
}

WL_EXPORT sqlite3_backup *sqlite3_backup_init(sqlite3 *to, const char *to_name, sqlite3 *from,
                                              const char *from_name) {
  sqlite3_backup *backup = WL_REAL()->backup_init(to, to_name, from, from_name);
  if (backup)
    own(backup, to);
  else
    wl_forget_result_if(to); /* otherwise it leaves the error as it is */
  return backup;
}
WL_EXPORT int sqlite3_backup_finish(sqlite3_backup *backup) {
  unsay_owner(backup);
  wl_handles_remove(&owners, backup);
  return WL_REAL()->backup_finish(backup);
}
