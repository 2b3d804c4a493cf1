/*
** See collect.h.
*/
#include "api/collect.h"
#include "base/mem.h"
#include "exec/cpu/evaluate.h"
#include "program/compile.h"
#include "value/exchange.h"

wl_status wl_collect(wl_answer *a, wl_error *err) {
  int n = a->n_cols;
  wl_status rc = WL_OK;
  wl_builder **builders = wl_mem_zalloc((size_t)n * sizeof *builders);
  wl_snapshot snap = {0};
  wl_arena arena;
  wl_arena_init(&arena);
  snap.cols = wl_mem_zalloc((size_t)n * sizeof *snap.cols);
  if (!builders || !snap.cols) rc = wl_nomem(err);
  for (int i = 0; i < n && !rc; i++) rc = wl_builder_open(&builders[i], err);
  int step = SQLITE_DONE;
  while (!rc && (step = wl_text_step(a->stmt)) == SQLITE_ROW) {
    snap.n_rows++;
    for (int i = 0; i < n && !rc; i++) {
      wl_val v = wl_sqlite_column(a->stmt, i);
      rc = wl_sqlite_lost(v) ? WL_NOMEM : wl_builder_add(builders[i], v);
      if (rc == WL_TOOBIG)
        rc = wl_fail(err, rc, "65,536 rows of a result column hold more than 2 GiB of text");
      else if (rc)
        rc = wl_nomem(err);
    }
  }
  if (!rc && step != SQLITE_DONE) {
    wl_status failed = wl_fail(err, (wl_status)step, "%s", sqlite3_errmsg(a->conn->db));
    if (snap.n_rows)
      a->over.late = *err; /* raised after the rows */
    else
      rc = failed;
  }
  for (int i = 0; i < n; i++) {
    if (!rc) rc = wl_builder_finish(builders[i], &snap.cols[i], err);
    if (!rc) snap.n_cols++;
    if (builders) wl_builder_close(builders[i]);
  }
  wl_mem_free(builders);
  /* Selects every collected column. */
  wl_bsource one = {.name = "the result"};
  wl_query q = {.table = one.name,
                .sources = &one,
                .n_sources = 1,
                .n_cols = n,
                .n_results = n,
                .n_exprs = n};
  q.cols = WL_NEW_N(&arena, wl_bcol, n);
  q.results = WL_NEW_N(&arena, wl_bexpr *, n);
  wl_bexpr *nodes = WL_NEW_N(&arena, wl_bexpr, n);
  if (!rc && arena.failed) rc = wl_nomem(err);
  for (int i = 0; i < n && !rc; i++) {
    q.cols[i] = (wl_bcol){0, i};
    q.results[i] = &nodes[i];
    nodes[i].kind = WL_B_COLUMN;
    nodes[i].index = nodes[i].id = nodes[i].slot = i;
  }
  wl_compile_in in = {.query = &q,
                      .n_rows = snap.n_rows,
                      .source_rows = &snap.n_rows,
                      .cols = snap.cols,
                      .rowid_order = true,
                      .evaluate = wl_cpu_evaluate,
                      .max_text = WL_MAX_TEXT};
  wl_program *p = NULL;
  if (!rc) rc = wl_compile(&arena, &in, &p, err);
  wl_run_config config = {.threads = a->conn->set.threads,
                          .max_text = WL_MAX_TEXT,
                          .check = wl_conn_check,
                          .check_arg = a->conn};
  if (!rc) return wl_run_open(&config, &arena, p, &snap, &a->run, err);
  wl_snapshot_release(&snap);
  wl_arena_close(&arena);
  return rc;
}
