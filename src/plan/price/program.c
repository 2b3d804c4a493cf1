/*
** See program.h.
*/
#include "plan/price/program.h"
#include <string.h>

static const char *const names[] = {
#define WL_VDBE(name, ns, jumps) #name,
#include "plan/price/opcodes.def"
#undef WL_VDBE
};

static wl_vdbe_op find_op(const char *name) {
  int lo = 0, hi = WL_VDBE_OTHER;
  while (lo < hi) {
    int mid = (lo + hi) / 2, c = strcmp(names[mid], name);
    if (c == 0) return (wl_vdbe_op)mid;
    if (c < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return WL_VDBE_OTHER;
}

static bool add_step(wl_arena *arena, wl_vdbe *out, int *size, sqlite3_stmt *q) {
  const char *op = (const char *)sqlite3_column_text(q, 1);
  const char *p4 = (const char *)sqlite3_column_text(q, 5);
  if (out->n == *size) {
    int more = *size ? *size * 2 : 64;
    wl_vdbe_step *p = WL_NEW_N(arena, wl_vdbe_step, more);
    if (!p) return false;
    if (out->n) memcpy(p, out->steps, (size_t)out->n * sizeof *p);
    out->steps = p;
    *size = more;
  }
  wl_vdbe_step *s = &out->steps[out->n++];
  *s = (wl_vdbe_step){.op = op ? find_op(op) : WL_VDBE_OTHER,
                      .p1 = sqlite3_column_int(q, 2),
                      .p2 = sqlite3_column_int(q, 3),
                      .p3 = sqlite3_column_int(q, 4),
                      .p5 = sqlite3_column_int(q, 6),
                      .p4 = ""};
  if (p4 && *p4) s->p4 = wl_arena_printf(arena, "%s", p4);
  return s->p4 != NULL;
}

wl_status wl_vdbe_read(sqlite3 *db, const char *sql, size_t n, wl_arena *arena, wl_vdbe *out,
                       wl_error *err) {
  sqlite3_stmt *q = NULL;
  int size = 0;
  bool room = true;
  memset(out, 0, sizeof *out);
  char *text = sqlite3_mprintf("EXPLAIN %.*s", (int)n, sql);
  if (!text) return wl_nomem(err);
  int rc = sqlite3_prepare_v2(db, text, -1, &q, NULL);
  sqlite3_free(text);
  while (!rc && room && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    room = add_step(arena, out, &size, q);
    rc = SQLITE_OK;
  }
  sqlite3_finalize(q);
  if (!room || rc == SQLITE_NOMEM) return wl_nomem(err);
  return rc == SQLITE_DONE ? WL_OK : wl_not_taken(err, "SQLite does not explain it");
}
