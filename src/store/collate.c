/*
** How SQLite treats text on this connection: its encoding, and whether its three collations are the
** built-in ones. An application may replace one, often NOCASE by a Unicode-aware one, and SQLite
** lists only names. So we test them: SQLite and we compare every pair of some selected strings.
** schema.c refuses tables by the result, the binder refuses COLLATE, and statements without tables
** are refused too.
**
** Invariants:
** 1. Replacing a collation or setting the encoding expires SQLite's statements, so the probe is
**    prepared again. One test for each value of that count is enough.
** 2. The probe reads no database, so it waits for no lock. It does not make SQLite read a schema
**    either, because from then on the encoding of a file would be fixed.
*/
#include "store/store_impl.h"
#include <string.h>

static int try_collations(wl_store *s, bool own[3]) {
  static const char sql[] = "WITH s(x) AS (VALUES(''),(' '),('a'),('A'),('a '),('a  "
                            "'),('b'),('B'),('Z'),('[a'),('_'),('10'),('9'),"
                            "('\xc3\xa9'),('\xc3\x89'),('\xd1\x8f'),('\xd0\xaf'),('aa'))"
                            " SELECT l.x, r.x, l.x < r.x COLLATE binary, l.x < r.x COLLATE nocase, "
                            "l.x < r.x COLLATE rtrim"
                            " FROM s AS l, s AS r";
  sqlite3_stmt *q = NULL;
  int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    const wl_u8 *l = sqlite3_column_text(q, 0), *r = sqlite3_column_text(q, 1);
    rc = l && r ? SQLITE_OK : SQLITE_NOMEM;
    wl_u32 n_l = (wl_u32)sqlite3_column_bytes(q, 0), n_r = (wl_u32)sqlite3_column_bytes(q, 1);
    for (int k = 0; k < 3 && !rc; k++)
      if ((wl_cmp_text(l, n_l, r, n_r, k) < 0) != (sqlite3_column_int(q, 2 + k) != 0))
        own[k] = false;
  }
  sqlite3_finalize(q);
  return rc;
}

/* Steps the probe, which returns 'a' as SQLite stores it in memory. *count: how often it was
** prepared again. */
static int step_probe(wl_store *s, const char **encoding, int *count) {
  int rc = SQLITE_OK;
  if (!s->probe) rc = sqlite3_prepare_v2(s->db, "SELECT CAST(?1 AS BLOB)", -1, &s->probe, NULL);
  if (!rc) rc = sqlite3_bind_text(s->probe, 1, "a", 1, SQLITE_STATIC);
  if (!rc && sqlite3_step(s->probe) == SQLITE_ROW) {
    const char *a = sqlite3_column_blob(s->probe, 0);
    int n = sqlite3_column_bytes(s->probe, 0);
    *encoding = n == 1 ? "UTF-8" : a && *a ? "UTF-16le" : "UTF-16be";
    *count = sqlite3_stmt_status(s->probe, SQLITE_STMTSTATUS_REPREPARE, 0);
  }
  return rc ? rc : sqlite3_reset(s->probe);
}

wl_status wl_store_try_text(wl_store *s, wl_error *err) {
  int count = -1;
  const char *encoding = NULL;
  bool own[3] = {true, true, true};
  int rc = step_probe(s, &encoding, &count);
  if (!rc && s->tried && s->tried_at == count && s->encoding == encoding) return WL_OK;
  /* In another encoding the order differs even with the built-in collations. */
  if (!rc && strcmp(encoding, "UTF-8") == 0) {
    rc = try_collations(s, own);
    if (rc == SQLITE_DONE) rc = SQLITE_OK;
  }
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  if (rc)
    return wl_not_taken(err, "SQLite's collations cannot be tested: %.300s", sqlite3_errmsg(s->db));
  if (memcmp(own, s->own_coll, sizeof own) != 0) s->n_text_changes++;
  memcpy(s->own_coll, own, sizeof own);
  s->encoding = encoding;
  s->tried = true;
  s->tried_at = count;
  return WL_OK;
}

wl_status wl_store_text_like_ours(wl_store *s, wl_u32 *n_changes, wl_error *err) {
  wl_status rc = wl_store_try_text(s, err);
  *n_changes = s->n_text_changes;
  if (rc || strcmp(s->encoding, "UTF-8") == 0) return rc;
  return wl_not_taken(err, "the database is encoded in %s, not UTF-8", s->encoding);
}

bool wl_store_collation(const wl_store *s, int coll) {
  return s->own_coll[coll];
}
