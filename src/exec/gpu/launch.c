/*
** One launch of the interpreter kernel (launch.h): allocates its memory, fills the argument block
** and waits for it.
*/
#include "exec/executed.h"
#include "base/clock.h"
#include "base/mem.h"
#include "exec/gpu/launch.h"
#include "exec/gpu/unmatched.h"
#include "value/rounding.h"
#include <string.h>

typedef wl_launch launch;

static size_t out_row_bytes(wl_reg r) {
  return 8 + (r.type >= WL_R_TEXT ? 12 : 0) + (r.nullable || r.type == WL_R_ANY ? 1 : 0);
}

/* The number of output columns: the results or, for a part that ends in an Expand, row numbers, and
** where each row's candidates start and how many there are. */
static int n_outs(const launch *l) {
  switch (l->low->part.kind) {
  case WL_PART_EXPAND: return l->low->n_outs + 2;
  case WL_PART_TEST: return 0;
  default: return l->e->p->n_results;
  }
}

static wl_status alloc_numbers(launch *l, wl_error *err) {
  const wl_lowered *low = l->low;
  wl_status rc = WL_OK;
  for (int k = 0; k < low->n_outs + 2 && !rc; k++) {
    wl_kout *o = &l->outs[k];
    o->operand = k < low->n_outs    ? low->planes[low->outs[k]]
                 : k == low->n_outs ? low->start
                                    : low->count;
    o->type = o->operand ? WL_K_OUT_PLANE : WL_K_OUT_SCAN;
    rc = wl_dev_alloc(l->d, (l->n_rows + 1) * 4, (void **)&o->n, err);
  }
  return rc;
}

static wl_status alloc_outs(launch *l, wl_error *err) {
  const wl_program *p = l->e->p;
  wl_status rc = WL_OK;
  if (l->low->part.kind == WL_PART_EXPAND) return alloc_numbers(l, err);
  if (l->low->part.kind == WL_PART_TEST) return WL_OK;
  for (int k = 0; k < p->n_results && !rc; k++) {
    wl_reg reg = wl_result_reg(&p->results[k]);
    wl_kout *o = &l->outs[k];
    o->type = reg.type;
    o->operand = WL_IS_CONST(p->results[k].operand) ? p->n_regs + WL_CONST_OF(p->results[k].operand)
                                                    : p->results[k].operand;
    rc = wl_dev_alloc(l->d, l->n_rows * 8, (void **)&o->v, err);
    if (!rc && reg.type >= WL_R_TEXT)
      rc = wl_dev_alloc(l->d, (l->n_rows + 1) * 4, (void **)&o->n, err);
    if (!rc && (reg.nullable || reg.type == WL_R_ANY))
      rc = wl_dev_alloc(l->d, l->n_rows, (void **)&o->t, err);
  }
  return rc;
}

/* Appends n bytes to the argument block and returns their device address. */
static void *blob_put(launch *l, size_t *at, const void *from, size_t n) {
  size_t place = *at;
  if (l->host && n) memcpy(l->host + place, from, n);
  *at = (place + n + 15) & ~(size_t)15;
  return l->blob ? l->blob + place : NULL;
}

/* Appends the bytes of a text, and writes the value that points to them on the device at
** `place`. */
static void put_text(launch *l, size_t *at, wl_val v, size_t place) {
  v.v = (wl_u64)(size_t)blob_put(l, at, wl_bytes(v), v.n);
  if (l->host) memcpy(l->host + place, &v, sizeof v);
}

/*
** Fills the argument block: counters, code, operands, constants and their text, columns, maps,
** joins, outputs, accumulators. Called twice: first to measure the size, then to fill it.
*/
static void blob_fill(launch *l) {
  const wl_program *p = l->e->p;
  const wl_lowered *low = l->low;
  wl_kargs *a = &l->args;
  size_t at = 0;
  wl_u64 zero[COUNTERS] = {0};
  wl_kmap maps[WL_GPU_MAX_MAPS];
  wl_kset sets[WL_GPU_MAX_MAPS];
  wl_kjoin joins[WL_GPU_MAX_JOINS];
  wl_u64 *counters = blob_put(l, &at, zero, sizeof zero);
  a->code = blob_put(l, &at, low->code, low->n_code * sizeof *low->code);
  a->opnds = blob_put(l, &at, low->opnds, low->n_opnds * sizeof *low->opnds);
  a->ranges = blob_put(l, &at, low->ranges, low->n_ranges * sizeof *low->ranges);
  size_t consts = at;
  a->consts = blob_put(l, &at, p->consts, (size_t)p->n_consts * sizeof *p->consts);
  for (int k = 0; k < p->n_consts; k++) {
    if (p->consts[k].t >= WL_T_TEXT)
      put_text(l, &at, p->consts[k], consts + (size_t)k * sizeof *p->consts);
  }
  for (int k = 0; k < p->n_columns; k++) {
    const wl_column *c = l->e->cols[k];
    wl_kcol kc = wl_join_inputs_has(l->e, k)              ? wl_join_inputs_column(l, k)
                 : wl_column_source(p, k) == WL_NO_SOURCE ? (wl_kcol){0}
                 : l->s->resident
                     ? wl_devcol_from(wl_devcol_find(l->d, c, wl_launch_mapped(l->s)), l->first)
                 : l->cols ? l->cols[k].k
                           : (wl_kcol){0};
    wl_kcol *where = blob_put(l, &at, &kc, sizeof kc);
    if (k == 0) a->cols = where;
  }
  for (int k = 0; k < p->n_maps; k++) {
    const wl_map *m = &p->maps[k];
    size_t rows = (size_t)m->n + 1;
    wl_kmap km = {.base = m->base, .n = m->n};
    km.t = blob_put(l, &at, m->t, rows);
    if (m->v) km.v = blob_put(l, &at, m->v, rows * sizeof *m->v);
    if (m->len) km.len = blob_put(l, &at, m->len, rows * sizeof *m->len);
    if (m->len) km.heap = blob_put(l, &at, m->heap, m->n_heap);
    maps[k] = km;
  }
  a->maps = blob_put(l, &at, maps, (size_t)p->n_maps * sizeof *maps);
  for (int k = 0; k < p->n_insets; k++) {
    const wl_inset *q = &p->insets[k];
    size_t place = at;
    sets[k] = (wl_kset){.n = q->n, .coll = q->coll, .has_null = q->has_null};
    sets[k].v = blob_put(l, &at, q->v, (size_t)q->n * sizeof *q->v);
    for (wl_i64 i = 0; i < q->n; i++)
      if (q->v[i].t >= WL_T_TEXT) put_text(l, &at, q->v[i], place + (size_t)i * sizeof *q->v);
  }
  a->sets = blob_put(l, &at, sets, (size_t)p->n_insets * sizeof *sets);
  for (int k = 0; k < p->n_joins; k++) {
    wl_key_part parts[WL_LOOKUP_KEYS];
    joins[k] = wl_join_inputs_join(l, k, parts);
    joins[k].parts = blob_put(l, &at, parts, joins[k].n_keys * sizeof *parts);
  }
  a->joins = blob_put(l, &at, joins, (size_t)p->n_joins * sizeof *joins);
  wl_klist own[WL_K_LISTS];
  bool unmatched = p->source == WL_SOURCE_UNMATCHED && !l->combined;
  int n_lists = unmatched ? wl_unmatched_lists(l, own) : l->n_lists;
  a->lists = blob_put(l, &at, unmatched ? own : l->lists, (size_t)n_lists * sizeof *own);
  a->outs = blob_put(l, &at, l->outs, sizeof l->outs);
  a->accs = blob_put(l, &at, low->accs, (size_t)p->n_accs * sizeof *low->accs);
  l->n_blob = at;
  if (!l->blob) return;
  a->n_code = low->n_code;
  a->n_cuts = low->n_cuts;
  memcpy(a->cuts, low->cuts, sizeof a->cuts);
  a->n_opnds = low->n_opnds;
  a->n_regs = (wl_u32)p->n_regs;
  a->n_consts = low->n_consts;
  a->n_outs = (wl_u32)n_outs(l);
  a->n_lists = (wl_u32)n_lists;
  a->passed = l->passed;
  a->row0 = l->row0;
  a->n_accs = (wl_u32)p->n_accs;
  a->n_slots = low->n_slots;
  a->const_offset = low->const_offset;
  a->code_offset = low->code_offset;
  a->count_offset = low->count_offset;
  a->plane_offset = low->plane_offset;
  a->acc_offset = low->acc_offset;
  a->n_rows = l->n_rows;
  a->n_tiles = l->n_tiles;
  if (l->e->live && !l->combined)
    a->live = (const wl_u32 *)(const void *)wl_devcol_find(l->d, l->e->live, false)->k.data +
              l->row0 / 32;
  a->ticket = counters + C_TICKET;
  a->n_out = counters + C_OUT;
  a->tiles = l->tiles;
  a->ctx.text = l->text;
  a->ctx.used = counters + C_TEXT;
  a->has_long = low->has_long;
  a->only_numbers = low->only_numbers;
  a->ctx.size = low->makes_text ? l->s->text_room : 0;
  a->ctx.max_text = l->e->max_text;
  a->ctx.rounding = (wl_u32)wl_rounding_get();
  a->ctx.fault = (wl_u32 *)(void *)(counters + C_FAULT);
}

static unsigned grid_size(const launch *l) {
  wl_u64 each = (wl_u64)l->d->max_shared / (l->low->n_shared + 1024);
  if (each < 1) each = 1;
  if (each > (wl_u64)l->d->blocks_each) each = (wl_u64)l->d->blocks_each;
  wl_u64 most = each * (wl_u64)l->d->n_processors;
  return (unsigned)(l->n_tiles < most ? l->n_tiles : most);
}

/* Copies this launch's rows of the columns that are not resident. */
static wl_status copy_columns(launch *l, wl_error *err) {
  wl_pipe *e = l->e;
  double start = wl_clock_ns();
  wl_status rc = WL_OK;
  l->cols = wl_mem_zalloc((size_t)e->p->n_columns * sizeof *l->cols + 1);
  if (!l->cols) return wl_nomem(err);
  for (int k = 0; k < e->p->n_columns && !rc; k++)
    if (wl_launch_scans(e, k))
      rc = wl_devcol_copy(l->d, e->cols[k], l->first, l->end, wl_launch_way(e, l->s), e->threads,
                          &l->cols[k], err);
  if (!rc && l->s->mode == WL_TRANSFER_SERIAL) rc = l->d->finish(l->d, err);
  wl_launch_took(l->s, WL_TIME_DATA, start);
  return rc;
}

/* Whether all rows that there can be are copied with the counters, before it is known how many
** there are: then the host waits once. */
static bool is_small(const launch *l) {
  bool pinned = l->e->transfer.pinned && !wl_launch_mapped(l->s);
  if (l->e->p->sink != WL_SINK_ROWS || l->low->part.kind != WL_PART_LAST || !pinned || l->e->made ||
      l->e->stays)
    return false;
  for (int k = 0; k < n_outs(l); k++)
    if (l->outs[k].type >= WL_R_TEXT) return false;
  return l->n_rows * wl_launch_row_bytes(l) <= wl_results_few(l->d);
}

/* Whether the kernel reads host memory, which is not freed in the order of the queue. */
static bool reads_host(const launch *l) {
  const wl_program *p = l->e->p;
  bool far = wl_launch_mapped(l->s);
  for (int k = 0; k < p->n_columns + p->n_joins && l->s->far; k++) far |= l->s->far[k];
  return far;
}

/* Whether the host need not wait for the launch: it fills a lookup whose counts nobody needs, or
** groups that the device finishes, and nothing in it can fail. What reads them comes later in the
** same queue. */
static bool is_unwatched(const launch *l) {
  const wl_pipe *e = l->e;
  const wl_device_state *s = l->s;
  bool whole = l->first == 0 && l->end == e->n_rows && !l->queue && !l->combined;
  bool uncounted =
      e->build ? e->build->uncounted : s->groups_stay && !e->tally && wl_dgroups_is_sure(s->groups);
  return uncounted && whole && !s->parts && s->resident && !reads_host(l) && l->low->only_numbers &&
         !l->low->makes_text && l->low->part.kind == WL_PART_LAST;
}

/* Queues allocations, copies of columns, and the kernel. Does not wait for any of them. */
wl_status wl_launch_open(launch *l, wl_error *err) {
  wl_pipe *e = l->e;
  wl_device_state *s = l->s;
  if (!l->combined) {
    l->n_rows = (wl_u64)(l->end - l->first);
    l->row0 = (wl_u64)l->first;
  }
  l->n_tiles = (l->n_rows + wl_tile_rows(l->low) - 1) / wl_tile_rows(l->low);
  l->grid = grid_size(l);
  l->d->queue = l->queue;
  wl_status rc = l->queue ? l->d->follow(l->d, 0, err) : WL_OK; /* what they read was made there */
  if (rc) return rc;
  for (wl_u32 k = 0; k < l->low->n_code; k++)
    if (l->low->code[k].op < WL_N_OPCODES) wl_executed_opcode(WL_ON_DEVICE, l->low->code[k].op);
  wl_executed_pipeline(WL_ON_DEVICE, e->p);
  rc = s->resident || s->expansion ? WL_OK : copy_columns(l, err);
  for (int k = 0; k < e->p->n_columns && wl_launch_mapped(s); k++) /* the kernel reads it
                                                                   ** directly */
    if (wl_launch_scans(e, k)) l->d->n_in += (wl_i64)wl_devcol_bytes(e->cols[k], l->first, l->end);
  if (!rc) rc = alloc_outs(l, err);
  if (!rc && n_outs(l)) rc = wl_dev_alloc(l->d, l->n_tiles * 8, (void **)&l->tiles, err);
  if (!rc && n_outs(l)) rc = l->d->fill(l->d, l->tiles, 0, l->n_tiles * 8, err);
  if (!rc && l->low->makes_text) rc = wl_dev_alloc(l->d, s->text_room, (void **)&l->text, err);
  if (rc) return rc;
  blob_fill(l);
  rc = wl_dev_alloc(l->d, l->n_blob, (void **)&l->blob, err);
  if (!rc) rc = l->d->host_alloc(l->d, l->n_blob, (void **)&l->host, err);
  if (rc) return rc;
  blob_fill(l);
  l->counters = (wl_u64 *)(void *)l->host;
  l->d->n_in += (wl_i64)l->n_blob;
  rc = l->d->copy_in_later(l->d, l->blob, l->host, l->n_blob, err);
  double start = wl_clock_ns();
  if (!rc && s->groups && l->low->part.kind == WL_PART_LAST)
    rc = wl_dgroups_launch(s->groups, &l->args, (wl_i64)l->row0, l->grid, l->low->threads,
                           l->low->n_shared, err);
  else if (!rc)
    rc = l->d->launch(l->d, wl_launch_kernel(&l->args), &l->args, sizeof l->args, l->grid,
                      l->low->threads, l->low->n_shared, err);
  wl_launch_took(s, WL_TIME_KERNEL, start); /* the simulator runs the kernel here, CUDA in
                                            ** launch_wait */
  l->unwatched = !rc && is_unwatched(l);
  if (!rc && !l->unwatched)
    rc = l->d->copy_out_later(l->d, l->counters, l->blob, COUNTERS * sizeof *l->counters, err);
  return rc || !is_small(l) ? rc : wl_results_fetch(l, l->n_rows, false, err);
}

static wl_status launch_wait(launch *l, wl_error *err) {
  double start = wl_clock_ns();
  l->d->queue = l->queue;
  wl_status rc = l->d->finish(l->d, err);
  l->idle = !rc;
  wl_launch_took(l->s, WL_TIME_KERNEL, start);
  return rc;
}

void wl_launch_close(launch *l) {
  wl_device *d = l->d;
  wl_error ignored;
  d->queue = l->queue;
  if (!l->idle && !l->unwatched && d->finish(d, &ignored)) { /* whatever went wrong, nothing is
                                                             ** running now */
  }
  for (int k = 0; l->cols && k < l->e->p->n_columns; k++)
    if (l->cols[k].memory) wl_devcol_free(&l->cols[k]);
  wl_mem_free(l->cols);
  for (int k = 0; k < WL_GPU_MAX_RESULTS; k++) {
    wl_dev_free(d, l->outs[k].v, l->n_rows * 8);
    wl_dev_free(d, l->outs[k].n, (l->n_rows + 1) * 4);
    wl_dev_free(d, l->outs[k].t, l->n_rows);
  }
  wl_dev_free(d, l->tiles, l->n_tiles * 8);
  wl_dev_free(d, l->text, l->s->text_room);
  wl_dev_free(d, l->blob, l->n_blob);
  wl_device_rows_forget(l);
  if (l->host) (l->unwatched ? d->host_free_later : d->host_free)(d, l->host);
  wl_results_drop(l->results);
  memset(l, 0, sizeof *l);
}

/* ---- results */

/* Checks the kernel's counters. *text_room: run the same block again, with this room for text; 0:
** that would not help. The kernel stops when the room is full, so `need` is not all that it needs:
** the room at least doubles. */
static wl_status judge(launch *l, wl_u64 *text_room, wl_error *err) {
  wl_device_state *s = l->s;
  wl_u32 fault = (wl_u32)l->counters[C_FAULT];
  if (fault == WL_FAULT_TOOBIG) return wl_fail(err, WL_TOOBIG, "string or blob too big");
  if (fault == WL_FAULT_DATE) return wl_not_taken(err, "a date that only the CPU can compute");
  if (fault == WL_FAULT_NUMBER)
    return wl_not_taken(err, "a text whose number only SQLite can compute");
  if (fault == WL_FAULT_ROOM) {
    wl_u64 need = l->counters[C_TEXT];
    wl_u64 most = (wl_u64)l->d->budget / 4 / (wl_u64)s->depth, twice = 2 * s->text_room;
    if (need > s->text_room && need < most)
      *text_room = need > twice ? need : twice < most ? twice : most;
    return wl_fail(err, WL_FULL, "text results need %llu bytes on the device", need);
  }
  return WL_OK;
}

/* Leaves out rows behind the last one that LIMIT still needs. The rows are in row order. */
static void cut_rows(launch *l) {
  wl_i64 needed = l->e->p->sink == WL_SINK_ROWS ? l->e->needed : -1;
  wl_u64 *n = &l->counters[C_OUT];
  if (needed >= 0 && *n > (wl_u64)needed) *n = (wl_u64)needed;
}

/* Ends the kernel's part of a launch: starts copying the rows back. Groups stay on the device. */
wl_status wl_launch_finish(launch *l, wl_u64 *text_room, wl_error *err) {
  if (l->unwatched) {
    *(l->e->build ? &l->e->build->unwatched : &l->s->unwatched) = true;
    return WL_OK;
  }
  wl_status rc = launch_wait(l, err);
  if (!rc) rc = judge(l, text_room, err);
  if (rc || l->low->part.kind != WL_PART_LAST) return rc; /* its output stays on the device */
  for (int k = 0; k < WL_K_BUILT && l->e->build; k++)
    l->e->build->built[k] += l->counters[C_BUILT + k];
  double start = wl_clock_ns();
  if (l->e->p->sink == WL_SINK_GROUPS) l->e->next_row = l->end;
  wl_sink_kind sink = l->e->p->sink;
  if (sink == WL_SINK_DISTINCT || sink == WL_SINK_SORT) rc = wl_gather_order(l, err);
  if (!rc && wl_rows_can_stay(l)) {
    wl_error ignored;
    if (!wl_rows_keep(l, &ignored)) { /* else there is no memory for them: the host gets them */
      wl_launch_took(l->s, WL_TIME_RESULTS, start);
      return WL_OK;
    }
  }
  if (!rc && wl_device_rows_can_keep(l)) {
    wl_error why;
    if (!wl_device_rows_keep(l, &why)) {
      wl_launch_took(l->s, WL_TIME_RESULTS, start);
      return WL_OK;
    }
    wl_device_rows_refuse(l->e->stays, why.text);
  }
  if (!rc) cut_rows(l);
  if (!rc && wl_sink_takes_rows(sink) && l->counters[C_OUT] && !l->results) {
    l->idle = false;
    rc = wl_results_fetch(l, l->counters[C_OUT], true, err);
  }
  wl_launch_took(l->s, WL_TIME_RESULTS, start);
  return rc;
}

/* The rows have arrived. Moves them to the run and finishes the block. */
wl_status wl_launch_take(launch *l, wl_error *err) {
  double start = wl_clock_ns();
  l->d->queue = l->queue;
  wl_status rc = l->results ? wl_results_unpack(l, err) : WL_OK;
  if (!rc && !l->idle && !l->unwatched) rc = l->d->finish(l->d, err);
  l->idle = !rc && !l->unwatched;
  if (!rc && l->results) rc = wl_results_push(l, err);
  if (!rc) wl_device_rows_add(l);
  wl_launch_took(l->s, WL_TIME_RESULTS, start);
  if (!rc) l->e->next_row = l->end;
  if (!rc && l->ordered) l->s->ordered = true;
  return rc;
}

/* ---- sizes */

size_t wl_launch_given_bytes(const wl_pipe *e, const wl_device_state *s) {
  size_t n = wl_dorder_row_bytes(&s->order);
  for (int k = 0; k < e->p->n_results; k++) n += out_row_bytes(wl_result_reg(&e->p->results[k]));
  return n;
}

size_t wl_launch_row_bytes(const launch *l) {
  bool last = l->low->part.kind == WL_PART_LAST;
  return last ? wl_launch_given_bytes(l->e, l->s) : 4 * (size_t)n_outs(l);
}
