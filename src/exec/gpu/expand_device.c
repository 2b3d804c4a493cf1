/*
** Blocks with Expands on a device: joins that find several rows, or all rows. The block is split
** at its Expands (lower.h). The first part scans rows and produces tuples. A tuple holds the row
** numbers of the sources so far, and the range of its candidates in the next source. A piece of all
** combinations of tuples and candidates becomes lists of row numbers, and the next part runs over
** these lists. That part produces tuples again, unless it is the last one, whose rows and
** aggregates go to the sink. Called by run_device.c, under the device's lock.
**
** If the candidates are tested (parts.h), this comes first, in rounds: each round tests the next
** few candidates of the tuples for which none has passed, in pieces. Then each tuple has its range
** of candidates, or goes.
**
** Invariants:
** 1. Depth first: a piece is finished, through all later parts, before the next piece is made. So
**    rows come in the order of the nested loops, and each part has one set of tuples at a time.
** 2. A launch covers at most CHUNK_MOST combinations, and a wave takes little longer than WAVE_NS,
**    so that the runner can check whether to go on. Tuples stay on the device between waves.
** 3. wl_expansion_leave can stop at any point between launches. Then the CPU can go on at
**    e->next_row: rows of this block that were already emitted will be skipped, and other
**    sinks start again.
** 4. A launch that adds rows to the groups does not run twice. If it fails half-way, the groups are
**    cleared, and the scan begins again at the first row (gather.c).
*/
#include "exec/gpu/join_parts.h"
#include "exec/gpu/launch.h"
#include "base/clock.h"
#include "base/mem.h"
#include <string.h>

enum {
  CHUNK_FIRST = 1 << 16,
  CHUNK_MOST = 2000000,
  CHUNK_LEAST = 1 << 10,
  BLOCK_MOST = 64 * WL_TABLET_ROWS
};
/* The first chunk if rows are sorted: a launch that makes all of them can sort them. */
enum { CHUNK_SORTED = 1 << 20 };
/* Candidates of a tuple in the first round of a test, and how many times more in each round. */
enum { ROUND_FIRST = 8, ROUND_GROWTH = 4, ROUND_MOST = 1 << 30 };
static const double WAVE_NS = 20e6;

/* The tuples that a part produced; all zero if there are none. */
typedef struct tuples {
  wl_u32 *cols[WL_GPU_MAX_RESULTS]; /* the part's outs: row numbers, then start and count */
  int n_cols;
  wl_u64 n, room;   /* number of tuples, and how many fit in the columns */
  wl_u64 *places;   /* [n + 1]: number of each tuple's first combination */
  wl_u64 at, total; /* combinations done, and combinations in total */
  /* While their candidates are tested; then NULL. The combinations are those of a round. */
  wl_u32 *passed, *now; /* [n]: see wl_kround */
  wl_u64 skip, most;
} tuples;

struct wl_expansion {
  int n_parts;
  wl_lowered *lows;  /* [n_parts - 1]: all parts but the last */
  tuples *levels;    /* [n_parts - 1]: the tuples of all parts but the last */
  bool open;         /* rows e->next_row to `end` are in progress */
  wl_i64 end, block; /* `block`: how many rows to scan next */
  wl_u64 chunk;      /* combinations in the next launch */
  wl_u64 most;       /* combinations in a launch at most */
  wl_u64 n_combined; /* combinations that the last part has processed */
  wl_i64 n_given;    /* rows of the block in progress that the run already has */
  wl_error why;      /* if set, the CPU must take over at the next wave */
};
typedef struct wl_expansion expansion;

wl_status wl_expansion_open(wl_pipe *e, wl_device_state *s, wl_error *err) {
  int n = wl_parts_count(e->p);
  expansion *x = s->expansion = wl_mem_zalloc(sizeof *x);
  if (!x) return wl_nomem(err);
  x->n_parts = n;
  bool sorts = e->p->sink == WL_SINK_SORT || e->p->sink == WL_SINK_DISTINCT;
  x->chunk = sorts ? CHUNK_SORTED : CHUNK_FIRST;
  x->most = CHUNK_MOST;
  x->block = BLOCK_MOST;
  x->lows = WL_NEW_N(&s->arena, wl_lowered, n);
  x->levels = WL_NEW_N(&s->arena, tuples, n);
  if (s->arena.failed) return wl_nomem(err);
  wl_status rc = WL_OK;
  bool makes_text = s->low.makes_text;
  for (int k = 0; k < n - 1 && !rc; k++) {
    rc = wl_lower(&s->arena, e->p, e->device, e->transfer.block_threads, k, &x->lows[k], err);
    makes_text |= x->lows[k].makes_text;
  }
  s->text_room = wl_launch_text_room(e->device, makes_text);
  s->mode = WL_TRANSFER_CACHED;
  s->depth = 1;
  return rc;
}

static const wl_lowered *low_of(const wl_device_state *s, int part) {
  const expansion *x = s->expansion;
  return part == x->n_parts - 1 ? &s->low : &x->lows[part];
}

/* Whether the candidates of a part's tuples are tested by the part after it. */
static bool has_test(const wl_device_state *s, int part) {
  return low_of(s, part + 1)->part.kind == WL_PART_TEST;
}

static void drop_test(wl_device *d, tuples *t) {
  wl_dev_free(d, t->passed, t->n * 4);
  wl_dev_free(d, t->now, t->n * 4);
  t->passed = t->now = NULL;
}

static void drop_tuples(wl_device *d, tuples *t) {
  for (int k = 0; k < t->n_cols; k++) wl_dev_free(d, t->cols[k], (t->room + 1) * 4);
  wl_dev_free(d, t->places, (t->n + 1) * 8);
  drop_test(d, t);
  memset(t, 0, sizeof *t);
}

void wl_expansion_forget(wl_pipe *e, wl_device_state *s) {
  expansion *x = s->expansion;
  for (int k = 0; x->levels && k < x->n_parts - 1; k++) drop_tuples(e->device, &x->levels[k]);
  x->open = false;
  x->n_combined = 0;
}

void wl_expansion_close(wl_pipe *e, wl_device_state *s) {
  wl_expansion_forget(e, s);
  wl_mem_free(s->expansion);
  s->expansion = NULL;
}

/* ---- launches */

/* Runs a part and waits for it. If the room for text was too small, runs it again with more. Sets
** *restart if the groups must be cleared before that. */
static wl_status run_part(wl_launch *l, bool *restart, wl_error *err) {
  for (;;) {
    wl_launch again = *l;
    wl_u64 text_room = 0;
    wl_status rc = wl_launch_open(l, err);
    bool began = !rc;
    if (!rc) rc = wl_launch_finish(l, &text_room, err);
    *restart = began && rc == WL_FULL && l->s->groups && l->low->part.kind == WL_PART_LAST;
    bool larger = rc == WL_FULL && text_room > l->s->text_room;
    if (!larger) return rc;
    wl_launch_close(l); /* needs the old size */
    *l = again;
    l->s->text_room = text_room;
    if (*restart) return WL_OK;
  }
}

/* Numbers the combinations. counts: how many each tuple has. */
static wl_status number_combinations(wl_device *d, tuples *t, const wl_u32 *counts, wl_error *err) {
  t->at = 0;
  wl_status rc = d->scan(d, counts, t->places, (wl_i64)t->n, err);
  return rc ? rc : d->copy_out(d, &t->total, t->places + t->n, 8, err);
}

/* Prepares the test of the tuples' candidates, before the first round. */
static wl_status open_test(wl_device *d, tuples *t, wl_error *err) {
  t->most = ROUND_FIRST;
  wl_status rc = wl_dev_alloc(d, t->n * 4, (void **)&t->passed, err);
  if (!rc) rc = wl_dev_alloc(d, t->n * 4, (void **)&t->now, err);
  return rc ? rc : d->fill(d, t->passed, 0xff, t->n * 4, err);
}

/* Makes the launch's output the tuples of its part. Takes over its memory. */
static wl_status keep_tuples(wl_launch *l, int part, wl_error *err) {
  wl_device *d = l->d;
  tuples *t = &l->s->expansion->levels[part];
  memset(t, 0, sizeof *t);
  wl_u64 n = l->counters[C_OUT];
  if (!n) return WL_OK;
  t->n = n;
  t->room = l->n_rows;
  t->n_cols = l->low->n_outs + 2;
  for (int k = 0; k < t->n_cols; k++) {
    t->cols[k] = l->outs[k].n;
    l->outs[k].n = NULL;
  }
  wl_status rc = wl_dev_alloc(d, (n + 1) * 8, (void **)&t->places, err);
  if (!rc && has_test(l->s, part))
    rc = open_test(d, t, err);
  else if (!rc)
    rc = number_combinations(d, t, t->cols[t->n_cols - 1], err);
  if (rc) drop_tuples(d, t);
  return rc;
}

static wl_launch launch_of(wl_pipe *e, wl_device_state *s, int part) {
  wl_launch l = {.e = e, .d = e->device, .s = s, .low = low_of(s, part)};
  l.n_fetch = e->p->n_results;
  l.first = l.end = e->next_row;
  return l;
}

/* Gives the output of the last part to the run. */
static wl_status take(wl_pipe *e, expansion *x, wl_launch *l, wl_error *err) {
  wl_i64 n = wl_sink_takes_rows(e->p->sink) ? (wl_i64)l->counters[C_OUT] : 0;
  wl_status rc = wl_launch_take(l, err);
  if (rc) return rc;
  x->n_given += n;
  x->n_combined += l->n_rows;
  return WL_OK;
}

/* Runs the first part over the next block. */
static wl_status scan_block(wl_pipe *e, wl_device_state *s, wl_error *err) {
  expansion *x = s->expansion;
  wl_launch l = launch_of(e, s, 0);
  size_t row_bytes = wl_launch_row_bytes(&l) + (has_test(s, 0) ? 16 : 8);
  wl_i64 most = e->device->budget / 8 / (wl_i64)row_bytes;
  wl_i64 n = wl_block_rows(most < x->block ? most : x->block);
  if (e->next_row == 0 && wl_join_parts_first(s)) x->n_combined = 0; /* a pass of groups begins */
  l.end = wl_block_end(e, l.first, n);
  bool restart;
  wl_status rc = run_part(&l, &restart, err);
  if (!rc) rc = keep_tuples(&l, 0, err);
  wl_i64 end = l.end;
  wl_launch_close(&l);
  if (rc == WL_FULL && end - e->next_row > WL_BLOCK_LEAST) {
    x->block = wl_block_rows((end - e->next_row) / 2);
    return WL_OK;
  }
  if (rc) return rc;
  x->open = true;
  x->end = end;
  x->n_given = 0;
  return WL_OK;
}

/* ---- combinations */

typedef struct tuple_piece {
  wl_klist lists[WL_K_LISTS];
  int n_lists;
  wl_u64 n;
} tuple_piece;

static void drop_piece(wl_device *d, tuple_piece *p) {
  for (int k = 0; k < p->n_lists; k++)
    wl_dev_free(d, (void *)(size_t)p->lists[k].rows, (p->n + 1) * 4);
}

static wl_status add_list(wl_device *d, tuple_piece *p, wl_u64 plane, wl_u32 **rows,
                          wl_error *err) {
  wl_status rc = wl_dev_alloc(d, (p->n + 1) * 4, (void **)rows, err);
  if (!rc) p->lists[p->n_lists++] = (wl_klist){*rows, (wl_u32)plane, WL_K_LIST_ROWS};
  return rc;
}

/* Makes the row numbers of combinations, starting at t->at, for part number `to`. The caller has
** set the number of combinations. */
static wl_status make_piece(wl_pipe *e, wl_device_state *s, int part, int to, tuple_piece *out,
                            wl_error *err) {
  wl_device *d = e->device;
  const tuples *t = &s->expansion->levels[part];
  const wl_lowered *low = low_of(s, part), *next = low_of(s, to);
  wl_launch of = launch_of(e, s, part);
  wl_key_part ignored[WL_LOOKUP_KEYS];
  wl_kexpand k = {.places = t->places, .n_tuples = t->n, .first = t->at, .n = out->n};
  wl_status rc = WL_OK;
  k.start = t->cols[low->n_outs];
  k.skip = t->passed ? t->skip : 0;
  k.rows = wl_join_inputs_join(&of, low->part.join, ignored).rows;
  for (int i = 0; i < next->n_ins && !rc; i++) {
    wl_u32 *rows = NULL;
    int source = next->ins[i], from = 0;
    rc = add_list(d, out, next->planes[source], &rows, err);
    if (rc) break;
    if (source == e->p->joins[low->part.join].source) {
      k.found = rows;
      continue;
    }
    while (low->outs[from] != source) from++; /* ends: the part outputs all that is read later */
    k.from[k.n_lists] = t->cols[from];
    k.to[k.n_lists++] = rows;
  }
  if (!rc && t->passed) rc = add_list(d, out, next->start, &k.tuple, err);
  if (!rc && t->passed) rc = add_list(d, out, next->count, &k.candidate, err);
  if (!rc && out->n_lists)
    rc = wl_device_each(d, WL_K_EXPAND, &k, sizeof k, out->n, err);
  if (rc) {
    drop_piece(d, out);
    out->n_lists = 0;
  }
  return rc;
}

/* Whether the next n combinations of a part's tuples are all that the last part runs over. */
static bool is_whole(const wl_pipe *e, const expansion *x, int part, wl_u64 n) {
  if (e->state->parts || e->next_row > 0 || x->end < e->n_rows || x->n_combined) return false;
  for (int k = 0; k < part; k++)
    if (x->levels[k].at < x->levels[k].total) return false;
  return x->levels[part].at + n == x->levels[part].total;
}

/* Runs a part over the next piece of the combinations of an earlier part's tuples: the next part,
** or the one after the test. */
static wl_status run_piece(wl_pipe *e, wl_device_state *s, int part, wl_error *err) {
  expansion *x = s->expansion;
  tuples *t = &x->levels[part];
  int to = t->passed || !has_test(s, part) ? part + 1 : part + 2;
  wl_u64 left = t->total - t->at, n = left < x->chunk ? left : x->chunk;
  tuple_piece p = {.n = n};
  wl_launch l = launch_of(e, s, to);
  bool restart = false;
  wl_status rc = make_piece(e, s, part, to, &p, err);
  l.combined = true;
  l.lists = p.lists;
  l.n_lists = p.n_lists;
  l.passed = t->passed;
  l.n_rows = n;
  l.row0 = x->n_combined;
  l.whole = l.low->part.kind == WL_PART_LAST && is_whole(e, x, part, n);
  if (!rc) rc = run_part(&l, &restart, err);
  if (!rc && !restart && l.low->part.kind == WL_PART_EXPAND) rc = keep_tuples(&l, to, err);
  if (!rc && !restart && l.low->part.kind == WL_PART_LAST) rc = take(e, x, &l, err);
  bool ordered = l.ordered;
  wl_launch_close(&l);
  drop_piece(e->device, &p);
  if (rc == WL_FULL && n > CHUNK_LEAST) {
    x->chunk = n / 2;
    if (restart) x->most = x->chunk;
    return restart ? wl_gather_restart(e, s, err) : WL_OK;
  }
  if (rc) return rc;
  if (restart) return wl_gather_restart(e, s, err);
  t->at += n;
  if (t->at == t->total && !t->passed) drop_tuples(e->device, t);
  if (ordered) { /* the rows are results: the CPU cannot make them again */
    x->open = false;
    e->next_row = x->end;
  }
  if (n == x->chunk && x->chunk < x->most / 2) x->chunk *= 2;
  return WL_OK;
}

/* Begins the next round of a test. If nothing is left to test, ends it. */
static wl_status next_round(wl_pipe *e, wl_device_state *s, int part, wl_error *err) {
  wl_device *d = e->device;
  tuples *t = &s->expansion->levels[part];
  const wl_lowered *low = low_of(s, part);
  wl_join_how how = e->p->joins[low->part.join].how;
  wl_kround k = {.n_tuples = t->n, .passed = t->passed, .now = t->now};
  k.start = t->cols[low->n_outs];
  k.count = t->cols[low->n_outs + 1];
  k.drops_lost = how == WL_HOW_SEMI;
  k.drops_found = how == WL_HOW_ANTI;
  k.repeats = how == WL_HOW_LEFT;
  if (t->total) { /* a round has ended */
    t->skip += t->most;
    t->most = t->most < ROUND_MOST ? t->most * ROUND_GROWTH : t->most;
  }
  k.skip = t->skip;
  k.most = t->most;
  for (;; k.ended = 1) {
    wl_status rc = wl_device_each(d, WL_K_ROUND, &k, sizeof k, t->n, err);
    if (!rc) rc = number_combinations(d, t, k.ended ? k.count : t->now, err);
    if (rc) return rc;
    if (k.ended) break;
    if (t->total) return WL_OK;
  }
  drop_test(d, t);
  if (!t->total) drop_tuples(d, t);
  return WL_OK;
}

/* ---- waves */

/* Makes one launch, or ends the block in progress. */
static wl_status step(wl_pipe *e, wl_device_state *s, wl_error *err) {
  expansion *x = s->expansion;
  for (int part = x->n_parts - 2; part >= 0; part--) {
    const tuples *t = &x->levels[part];
    if (t->passed && t->at == t->total) return next_round(e, s, part, err);
    if (t->n) return run_piece(e, s, part, err);
  }
  if (!x->open) return scan_block(e, s, err);
  x->open = false;
  e->next_row = x->end;
  return WL_OK;
}

void wl_expansion_leave(wl_pipe *e, wl_device_state *s) {
  const expansion *x = s->expansion;
  if (!x->open) return;
  if (e->streams) {
    e->n_repeated = x->n_given;
  } else if (e->p->source == WL_SOURCE_UNMATCHED) {
    e->refused = !e->p->grouped; /* the sink also has rows of the pipelines before */
  } else {                       /* the sink has some rows of this block */
    s->restarts = true;
    e->next_row = 0;
  }
}

wl_status wl_expansion_wave(wl_pipe *e, wl_device_state *s, wl_error *err) {
  expansion *x = s->expansion;
  double start = wl_clock_ns();
  wl_status rc = x->why.code;
  if (rc) *err = x->why;
  while (!rc && e->next_row < e->n_rows) {
    rc = step(e, s, err);
    if (e->streams && s->ready.first) break; /* there are rows to give */
    if (wl_clock_ns() - start > WAVE_NS) break;
  }
  if (rc == WL_FULL) rc = WL_NOT_TAKEN;
  if (rc != WL_NOT_TAKEN) return rc;
  if (e->streams && s->ready.first) { /* emit these rows first; then the CPU goes on */
    x->why = *err;
    x->why.code = WL_NOT_TAKEN;
    return WL_OK;
  }
  return rc;
}
