/*
** Pipelines on a device: processes blocks of rows on the CUDA device or the simulator.
**
** Invariants:
** 1. The device is locked during a wave. Between waves it holds nothing of the pipeline except
**    resident columns, a part of a lookup and, for aggregates, the groups.
** 2. WL_NOT_TAKEN leaves the pipeline where it was, so that the CPU can continue from there. With
**    aggregates, or if a lookup is divided, the CPU starts from the beginning.
** 3. Each launch has its own queue of the device. Blocks are launched, and their results taken, in
**    row order. e->next_row advances when they are taken.
*/
#include "exec/gpu/join_parts.h"
#include "exec/gpu/unmatched.h"
#include "base/clock.h"
#include "base/mem.h"
#include "exec/zone.h"
#include <string.h>

/* LAUNCH_MOST: the most rows in a launch, because row numbers have 32 bits. SCAN_BLOCKS: a scan
** whose rows go to the user is cut into so many launches. */
enum { BLOCK_BYTES = 64 << 20, WAVE_BLOCKS = 16, LAUNCH_MOST = 1 << 30, SCAN_BLOCKS = 4 };
/* How many staging buffers (wl_device.n_stage) the rows of a block of such a scan take at most, and
** those of a wave about. More would stay pinned until the user has read them. */
enum { BLOCK_STAGES = 4, WAVE_STAGES = 16 };

typedef wl_launch launch;

/* ---- blocks */

/* Device bytes that a block of up to a tablet needs, with or without its columns. */
static wl_i64 block_bytes(const wl_pipe *e, const wl_device_state *s, wl_i64 rows, bool columns) {
  wl_i64 all = e->n_rows < WL_TABLET_ROWS ? e->n_rows : WL_TABLET_ROWS;
  wl_i64 n = 4096 + 6 * WL_DEV_ALIGN * (wl_i64)(e->p->n_columns + e->p->n_results);
  if (rows > all) rows = all;
  for (int k = 0; k < e->p->n_columns && columns; k++) {
    const wl_column *c = e->cols[k];
    wl_i64 most = 0;
    for (int t = 0; t < c->n_tablets && wl_launch_scans(e, k); t++) {
      wl_i64 b = (wl_i64)wl_devcol_bytes(c, (wl_i64)t << WL_TABLET_SHIFT,
                                         ((wl_i64)t + 1) << WL_TABLET_SHIFT);
      if (b > most) most = b;
    }
    n += most * rows / all;
  }
  n += rows * (wl_i64)wl_launch_given_bytes(e, s);
  return n + (rows / (wl_i64)wl_tile_rows(&s->low) + 1) * 8;
}

/* Copies the columns to the device if they are not there, and keeps them there for this wave. */
static void hold_residents(wl_pipe *e, wl_device_state *s) {
  wl_device *d = e->device;
  wl_error why;
  double start = wl_clock_ns();
  wl_i64 before = d->n_in;
  for (int k = 0; k < e->p->n_columns && s->resident; k++) {
    wl_devcol *c;
    if (!wl_launch_scans(e, k)) continue;
    if (wl_devcol_resident(d, e->cols[k], wl_launch_way(e, s), e->threads, &c, &why))
      s->resident = false;
  }
  /* wait, so that this time does not count as the kernel's */
  if (d->n_in != before && d->finish(d, &why)) s->resident = false;
  wl_launch_took(s, WL_TIME_DATA, start);
}

/* Keeps the bits of the rows that count on the device for this wave. They may have been evicted. */
static wl_status hold_live(wl_pipe *e, wl_error *err) {
  wl_devcol *c;
  wl_error why;
  if (!e->live || !wl_devcol_resident(e->device, e->live, WL_WAY_DIRECT, e->threads, &c, &why))
    return WL_OK;
  return wl_not_taken(err, "the groups do not fit on the device");
}

static wl_status hold_join_inputs(wl_pipe *e, wl_device_state *s, wl_error *err) {
  double start = wl_clock_ns();
  wl_status rc = e->p->n_joins ? wl_join_inputs_hold(e, s, err) : WL_OK;
  wl_launch_took(s, WL_TIME_DATA, start);
  return rc;
}

/* How many rows a launch should have, so that the rows of one leave while the next one runs; 0:
** any number. Rows that the device needs together must not leave so. If few rows pass, the launches
** cost little: the host prepares one while another runs. */
static wl_i64 rows_to_leave(const wl_pipe *e, const wl_device_state *s) {
  const wl_device *d = e->device;
  bool rows = e->p->source == WL_SOURCE_TABLE && e->p->sink == WL_SINK_ROWS && e->streams;
  if (!rows || e->made || e->stays || e->build || e->needed >= 0 || !s->resident) return 0;
  if (s->mode != WL_TRANSFER_CACHED || e->transfer.stream_blocks < 2) return 0;
  int n_tablets = (int)((e->n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
  int blocks = n_tablets / d->least_tablets;
  if (blocks > SCAN_BLOCKS) blocks = SCAN_BLOCKS;
  int n = blocks > 1 ? (n_tablets + blocks - 1) / blocks : n_tablets;
  size_t most = BLOCK_STAGES * d->n_stage / (wl_launch_given_bytes(e, s) << WL_TABLET_SHIFT);
  if ((size_t)n > most) n = most > 1 ? (int)most : 1;
  return n < n_tablets ? (wl_i64)n << WL_TABLET_SHIFT : 0;
}

/* Chooses how many launches are in progress at once, and the size of blocks. room: device memory
** for all of them. fixed: what a block needs whatever its size. */
static wl_status plan_blocks(wl_pipe *e, wl_device_state *s, wl_i64 room, wl_i64 fixed,
                             wl_error *err) {
  bool there = s->resident || wl_launch_mapped(s);
  wl_i64 full = block_bytes(e, s, WL_TABLET_ROWS, true);
  wl_i64 each = there ? block_bytes(e, s, WL_TABLET_ROWS, false) : full, n = 0;
  wl_i64 leaves = rows_to_leave(e, s);
  s->depth = s->mode == WL_TRANSFER_STREAM || leaves ? e->transfer.stream_blocks : 1;
  while ((n = (room / s->depth - fixed) / each) < 1 && s->depth > 1) s->depth--;
  if (n >= 1 && !s->resident && s->mode != WL_TRANSFER_SERIAL) {
    /* blocks large enough to keep the copies busy, and enough blocks to overlap */
    wl_i64 most = BLOCK_BYTES / full, share = (e->n_rows >> WL_TABLET_SHIFT) / (2 * s->depth);
    if (s->depth > 1 && share < most) most = share;
    if (n > most) n = most > 1 ? most : 1;
  }
  wl_i64 rows = n < LAUNCH_MOST >> WL_TABLET_SHIFT ? n << WL_TABLET_SHIFT : LAUNCH_MOST;
  if (n < 1)
    for (rows = WL_TABLET_ROWS / 2; block_bytes(e, s, rows, !there) + fixed > room; rows /= 2)
      if (rows == WL_BLOCK_LEAST)
        return wl_not_taken(err,
                            "a block of %d rows needs %lld bytes of device memory, but only %lld are "
                            "left (device_budget is %lld)",
                            (int)WL_BLOCK_LEAST, block_bytes(e, s, rows, !there) + fixed,
                            room > 0 ? room : 0, e->device->budget);
  if (leaves && rows > leaves) rows = leaves;
  s->block = s->most = rows;
  if (e->needed >= 0 && s->block > 4 * WL_TABLET_ROWS) s->block = 4 * WL_TABLET_ROWS;
  return WL_OK;
}

/* Chooses the transfer mode, residency and blocks. */
static wl_status plan_transfer(wl_pipe *e, wl_device_state *s, wl_error *err) {
  wl_device *d = e->device;
  const wl_transfer *want = &e->transfer;
  wl_i64 n_bytes = 0, bare = block_bytes(e, s, WL_TABLET_ROWS, false), fixed = 1 << 16;
  for (int k = 0; k < e->p->n_columns; k++)
    if (wl_launch_scans(e, k)) n_bytes += (wl_i64)wl_devcol_bytes(e->cols[k], 0, e->n_rows);
  s->text_room = wl_launch_text_room(d, s->low.makes_text);
  fixed += (wl_i64)s->text_room;
  wl_i64 held = s->n_join_bytes + (s->groups ? wl_dgroups_bytes(s->groups) : 0) +
                (e->build ? e->build->n_bytes : 0);
  for (int k = 0; k < e->p->n_maps; k++) { /* they are copied with the arguments */
    const wl_map *m = &e->p->maps[k];
    fixed += (m->n + 1) * (m->len ? 13 : m->v ? 9 : 1) + (wl_i64)(m->len ? m->n_heap : 0);
  }
  bool fits = n_bytes + bare + fixed + held <= d->budget;
  /* auto leaves a quarter for results: otherwise resident columns would force many small blocks */
  if (want->mode == WL_TRANSFER_AUTO && n_bytes + s->n_join_bytes > d->budget / 4 * 3) fits = false;
  s->mode = want->mode;
  for (int k = 0; k < e->p->n_columns; k++) /* what only the device has is not copied again */
    if (wl_launch_scans(e, k) && wl_column_is_remote(e->cols[k])) {
      s->mode = WL_TRANSFER_CACHED;
      fits = true;
    }
  if (s->mode == WL_TRANSFER_AUTO || s->mode == WL_TRANSFER_CACHED)
    s->mode = fits ? WL_TRANSFER_CACHED : WL_TRANSFER_STREAM;
  s->resident =
      s->mode == WL_TRANSFER_CACHED || (wl_launch_mapped(s) && n_bytes <= d->mapped_budget);
  hold_residents(e, s);
  if (!s->resident && s->mode == WL_TRANSFER_CACHED) s->mode = WL_TRANSFER_STREAM;
  return plan_blocks(e, s, d->budget - held - (s->mode == WL_TRANSFER_CACHED ? n_bytes : 0), fixed,
                     err);
}

/* The most rows that groups may be made from. The number of joined rows is unknown, so this allows
** for many. */
static wl_i64 rows_at_most(const wl_pipe *e, const wl_device_state *s) {
  return s->expansion ? 16 * e->n_rows + (1 << 24) : e->n_rows;
}

static wl_status open_state(wl_pipe *e, wl_error *err) {
  wl_device_state *s = wl_mem_zalloc(sizeof *s);
  if (!s) return wl_nomem(err);
  e->state = s;
  wl_collected_init(&s->ready, "rows of a device", NULL);
  wl_arena_init(&s->arena);
  s->ring = wl_mem_zalloc(WL_STREAM_BLOCKS_MOST * sizeof *s->ring);
  if (!s->ring) return wl_nomem(err);
  wl_status rc = wl_lower(&s->arena, e->p, e->device, e->transfer.block_threads,
                          wl_parts_count(e->p) - 1, &s->low, err);
  if (!rc && wl_parts_count(e->p) > 1) rc = wl_expansion_open(e, s, err);
  for (int k = 0; k < e->p->n_columns && !rc; k++)
    wl_devcol_use(e->device, e->cols[k],
                  e->transfer.mode == WL_TRANSFER_MAPPED && wl_launch_scans(e, k));
  if (!rc) rc = hold_join_inputs(e, s, err);
  if (!rc) rc = wl_unmatched_open(e, s, err);
  s->order = wl_dorder_plan(e->p);
  if (!rc && e->p->grouped)
    rc = wl_dgroups_open(e->p, e->device, rows_at_most(e, s), &s->low, &s->groups, err);
  s->groups_stay = !rc && e->p->grouped && wl_gather_stays(e);
  return rc || s->expansion ? rc : plan_transfer(e, s, err);
}

void wl_device_end(wl_pipe *e) {
  wl_device_state *s = e->state;
  if (!s) return;
  if (s->groups) {
    wl_device_lock(e->device);
    wl_dgroups_close(s->groups);
    wl_device_unlock(e->device);
  }
  if (s->expansion) {
    wl_device_lock(e->device);
    wl_expansion_close(e, s);
    wl_device_unlock(e->device);
  }
  if (s->parts) {
    wl_device_lock(e->device);
    wl_join_parts_close(e, s);
    wl_device_unlock(e->device);
  }
  if (s->marks) {
    wl_device_lock(e->device);
    wl_unmatched_close(e, s);
    wl_device_unlock(e->device);
  }
  wl_arena_close(&s->arena);
  wl_mem_free(s->ring);
  wl_mem_free(s);
  e->state = NULL;
}

/* Whether a block that begins at a row can leave its tablet out. */
static bool skips(const wl_pipe *e, wl_i64 row) {
  return row % WL_TABLET_ROWS == 0 && wl_zone_skips(e->p, e->cols, (int)(row >> WL_TABLET_SHIFT));
}

/*
** The next block, rows [*first, *end), from `from` on. If the columns must be copied, tablets that
** their zone maps rule out are skipped, unless only a few lie between others.
*/
static void next_block(const wl_pipe *e, const wl_device_state *s, wl_i64 from, wl_i64 *first,
                       wl_i64 *end) {
  enum { FEW = 4 };
  int skipped = 0;
  *first = from;
  bool skip = !s->resident && e->p->source != WL_SOURCE_UNMATCHED;
  while (skip && e->n_rows - *first > WL_TABLET_ROWS && skips(e, *first)) *first += WL_TABLET_ROWS;
  wl_i64 last = wl_block_end(e, *first, s->block);
  for (*end = *first; skip && *end < last; *end += WL_TABLET_ROWS) {
    skipped = skips(e, *end) ? skipped + 1 : 0;
    if (skipped < FEW) continue;
    *end -= (FEW - 1) * WL_TABLET_ROWS;
    return;
  }
  *end = last;
}

/*
** Runs a wave: up to n blocks, s->depth of them at once. With three at once, one block's columns
** are copied while the previous block runs and the rows of the one before that come back. After
** WL_FULL, a smaller block or *text_room may help.
*/
static wl_status run_blocks(wl_pipe *e, wl_device_state *s, int n, wl_u64 *text_room,
                            wl_error *err) {
  int opened = 0, done = 0, depth = s->depth;
  wl_i64 next = e->next_row;
  int running = depth > 2 ? depth - 1 : depth; /* leave one place for rows that come back */
  launch *coming = NULL;
  wl_status rc = WL_OK;
  size_t most = e->streams ? WAVE_STAGES * e->device->n_stage : SIZE_MAX;
  while (!rc) {
    int n_running = opened - done - (coming != NULL);
    bool more = opened < n && next < e->n_rows && s->n_ready < most;
    if (more && opened - done < depth && n_running < running) {
      launch *l = &s->ring[opened % depth];
      memset(l, 0, sizeof *l);
      l->e = e;
      l->d = e->device;
      l->s = s;
      l->low = &s->low;
      l->queue = depth > 1 ? 1 + opened % depth : 0;
      l->n_fetch = e->p->n_results;
      next_block(e, s, next, &l->first, &l->end);
      l->whole = l->first == 0 && l->end == e->n_rows && !s->parts;
      next = l->end;
      opened++;
      rc = wl_launch_open(l, err);
      if (rc == WL_FULL && opened - done > 1) { /* no more fit at once: continue with those that
                                                ** do */
        wl_launch_close(l);
        n = --opened;
        s->depth = depth - 1;
        rc = WL_OK;
      }
    } else if (coming) {
      rc = wl_launch_take(coming, err);
      if (rc) break;
      wl_launch_close(coming);
      coming = NULL;
      done++;
    } else if (done < opened) {
      coming = &s->ring[done % depth];
      rc = wl_launch_finish(coming, text_room, err);
    } else {
      break;
    }
  }
  for (; done < opened; done++) wl_launch_close(&s->ring[done % depth]);
  e->device->queue = 0;
  return rc;
}

/* Runs a wave, and repeats it with smaller blocks as long as that may help. */
static wl_status one_wave(wl_pipe *e, wl_device_state *s, wl_error *err) {
  for (;;) {
    bool limited = e->needed >= 0;
    int n = s->depth == 1 ? 1 : limited ? s->depth : WAVE_BLOCKS;
    wl_i64 from = e->next_row, last = wl_block_end(e, from, s->block) - from;
    wl_u64 text_room = 0;
    wl_status rc = run_blocks(e, s, n, &text_room, err);
    if (rc == WL_FULL && e->build) return WL_NOT_TAKEN; /* rows that it has must not come again */
    if (rc == WL_FULL && s->groups && wl_gather_restart(e, s, err)) return WL_NOT_TAKEN;
    if (!rc && limited) s->block = s->block < s->most / 2 ? 2 * s->block : s->most;
    if (rc != WL_FULL) return rc;
    if (e->next_row > from) return WL_OK; /* the next wave will try it again */
    if (text_room)
      s->text_room = text_room;
    else if (s->depth > 1)
      s->depth = 1;
    else if (last > WL_BLOCK_LEAST)
      s->block = s->most = wl_block_rows(last / 2);
    else
      return WL_NOT_TAKEN; /* err says why */
  }
}

/* Adds what a wave has moved. The mode is that of the pipeline over a table. */
static void note_moved(wl_pipe *e, wl_device_state *s, wl_i64 n_in, wl_i64 n_out) {
  wl_moved *m = e->moved;
  if (!m->mode || e->p->source == WL_SOURCE_TABLE) {
    m->mode = wl_transfer_name(s->mode);
    m->staged = wl_launch_mapped(s) && !s->resident;
  }
  m->n_in += n_in;
  m->n_out += n_out;
  for (int k = 0; k < WL_TIMES; k++) m->ns[k] += s->ns[k];
  memset(s->ns, 0, sizeof s->ns);
}

/* Gives the rows of a wave to the sink. rc: how the wave ended; rows before a WL_NOT_TAKEN count.
** If the sink refuses one batch, those after it are lost. */
static wl_status give_ready(wl_pipe *e, wl_device_state *s, wl_status rc, wl_error *err) {
  wl_error other;
  wl_sink *to = s->ordered ? e->results : e->sink;
  wl_status bad = WL_OK;
  if (!rc || (rc == WL_NOT_TAKEN && !s->restarts))
    bad = wl_collected_give(&s->ready, to, rc ? &other : err);
  wl_collected_clear(&s->ready);
  s->n_ready = 0;
  if (s->restarts) e->sink->clear(e->sink);
  if (bad && rc) *err = other;
  e->refused |= bad != WL_OK;
  return bad ? bad : rc;
}

/* Gives the marks to the run, if the pipeline has ended or the CPU takes over. rc: how the wave
** ended. If marks are lost, the CPU starts again: the run has kept the rows (wl_run.holds_back). It
** cannot start the pipelines before again, so then SQLite runs the statement. */
static wl_status keep_marks(wl_pipe *e, wl_status rc, wl_error *err) {
  wl_error other;
  bool ends = rc == WL_NOT_TAKEN || (!rc && e->next_row >= e->n_rows);
  wl_status bad = ends && e->state ? wl_unmatched_fetch(e, e->state, &other) : WL_OK;
  if (!bad || (rc && e->next_row == 0)) return rc;
  *err = other;
  if (e->p->source == WL_SOURCE_UNMATCHED)
    e->refused = true;
  else if (e->p->grouped)
    wl_gather_forget(e);
  else
    e->state->restarts = true;
  e->next_row = 0;
  return WL_NOT_TAKEN;
}

void wl_device_allow(wl_device *d, wl_i64 budget, wl_i64 mapped_budget) {
  d->budget = budget ? budget : d->free_memory;
  d->mapped_budget = mapped_budget;
}

wl_status wl_device_wave(wl_pipe *e, wl_error *err) {
  wl_device *d = e->device;
  wl_device_lock(d);
  wl_status rc = WL_OK;
  wl_i64 n_in = d->n_in, n_out = d->n_out;
  wl_device_allow(d, e->device_budget, e->mapped_budget);
  wl_devcol_tick(d);
  if (!e->state) {
    rc = open_state(e, err);
  } else {
    wl_device_state *s = e->state;
    bool was = s->resident;
    rc = hold_join_inputs(e, s, err);
    if (!rc && !s->expansion) hold_residents(e, s);
    if (!rc && was && !s->resident) rc = plan_transfer(e, s, err);
  }
  wl_device_state *s = e->state;
  if (!rc) rc = hold_live(e, err);
  if (!rc) rc = s->expansion ? wl_expansion_wave(e, s, err) : one_wave(e, s, err);
  if (!rc && s->groups)
    rc = wl_gather_wave(e, s, err);
  else if (!rc && e->next_row == e->n_rows)
    (void)wl_join_parts_next(e, s);
  if (rc == WL_NOT_TAKEN && s && s->expansion) wl_expansion_leave(e, s);
  if (rc == WL_NOT_TAKEN && e->p->grouped) {
    wl_gather_forget(e);
  } else if (rc == WL_NOT_TAKEN && s && s->parts) {
    s->restarts = true;
    wl_join_parts_restart(e, s);
  }
  rc = keep_marks(e, rc, err);
  if (!rc) {
    note_moved(e, s, d->n_in - n_in, d->n_out - n_out);
  }
  wl_device_unlock(d);
  return s ? give_ready(e, s, rc, err) : rc;
}
