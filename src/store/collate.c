/*
** Whether SQLite's three collations are still its own. An application may put another one in
** the place of NOCASE (a Unicode-aware one, often) and SQLite lists only names, so they are
** tried: every pair of some telling strings is compared, by SQLite and by us.
** Stands behind schema.c, which refuses tables by it, and the binder, which refuses COLLATE.
**
** Invariants:
** 1. Replacing a collation expires SQLite's statements, so the helpers are prepared again,
**    so every shape is read again: one trial per value of that count is enough.
*/
#include "store/store_impl.h"
#include <string.h>

wl_status wl_store_try_collations(wl_store *s, const char *schema, wl_u32 count, wl_error *err) {
  static const char sql[] = "WITH s(x) AS (VALUES(''),(' '),('a'),('A'),('a '),('a  "
                            "'),('b'),('B'),('Z'),('[a'),('_'),('10'),('9'),"
                            "('\xc3\xa9'),('\xc3\x89'),('\xd1\x8f'),('\xd0\xaf'),('aa'))"
                            " SELECT l.x, r.x, l.x < r.x COLLATE binary, l.x < r.x COLLATE nocase, "
                            "l.x < r.x COLLATE rtrim"
                            " FROM s AS l, s AS r";
  if (s->tried && s->tried_at == count && strcmp(s->tried_schema, schema) == 0) return WL_OK;
  sqlite3_stmt *q = NULL;
  bool own[3] = {true, true, true};
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
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  if (rc != SQLITE_DONE)
    return wl_not_taken(err, "SQLite's collations cannot be tried: %.300s", sqlite3_errmsg(s->db));
  memcpy(s->own_coll, own, sizeof own);
  s->tried = strlen(schema) < sizeof s->tried_schema; /* else again next time */
  if (s->tried) strcpy(s->tried_schema, schema);
  s->tried_at = count;
  return WL_OK;
}

bool wl_store_collation(const wl_store *s, int coll) {
  return s->own_coll[coll];
}
