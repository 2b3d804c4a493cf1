/*
** See join_parts.h.
*/
#include "exec/gpu/join_parts.h"
#include "base/mem.h"
#include "base/threads.h"
#include <string.h>

enum { PARTS_MOST = 64, GATHER_TASK = 1 << 16 };

/* Arrays of a part, in this order in one allocation on the device. The first are on the host while
** they are made. */
enum { P_WORDS, P_SLOTS, P_COUNTS, P_STARTS, P_ARRAYS };

struct wl_join_parts {
  int join, n, now;
  int loaded;          /* the part that the device has; -1: none */
  wl_u64 *cuts;        /* [n + 1]: where each part begins */
  wl_u32 *origin;      /* [n_rows]: while a part is made: the row of the source of each row */
  wl_u64 n_rows, room; /* room: the size of origin */
  wl_u8 *memory;       /* on the device, n_bytes */
  size_t n_bytes;
  size_t at[P_ARRAYS], size[P_ARRAYS];
  wl_kcol *cols; /* [n_columns] */
};
typedef struct wl_join_parts join_parts;

static size_t aligned(size_t n) {
  return (n + WL_DEV_ALIGN - 1) & ~(size_t)(WL_DEV_ALIGN - 1);
}

/* ---- which lookup */

/* Whether an instruction is within the test of an Expand. There a row is not dropped: it counts as
** failed. */
static bool is_tested(const wl_program *p, int pc) {
  for (int at = 0; at < pc; at++)
    if (p->code[at].op == WL_OP__Expand && p->joins[p->code[at].c].match > pc) return true;
  return false;
}

/* Whether groups depend on the order of the rows: the first row of a group shows the look of its
** keys, or of equal values in min() and max(). */
static bool notes_rows(const wl_program *p) {
  bool notes = p->by_first;
  for (int k = 0; k < p->n_keys; k++) notes |= p->keys[k].reg.type != WL_R_INT;
  for (int k = 0; k < p->n_accs; k++) {
    wl_u16 op = p->accs[k].op;
    notes |= op != WL_OP__AggRows && op != WL_OP__AggCount && op != WL_OP__AggSumI &&
             op != WL_OP__AggSumX && op != WL_OP__AggSumF && op != WL_OP__AggMinI &&
             op != WL_OP__AggMaxI;
  }
  return notes;
}

/* Whether the pipeline can run in passes. Tuples of Expands are numbered in the order in which they
** are made. */
static bool can_pass(const wl_pipe *e, const wl_device_state *s) {
  const wl_program *p = e->p;
  bool groups = p->sink == WL_SINK_GROUPS && (!s->expansion || p->unordered || !notes_rows(p));
  bool rows = (p->sink == WL_SINK_SORT || p->sink == WL_SINK_DISTINCT) && p->unordered;
  bool several = p->also || p->source != WL_SOURCE_TABLE || e->marks;
  return (groups || rows) && !several && !e->build && e->transfer.mode != WL_TRANSFER_MAPPED;
}

/* Whether a lookup can be divided. Numbers of its rows are not those of the source then. */
static bool can_divide(const wl_pipe *e, int join) {
  const wl_program *p = e->p;
  const wl_lookup *l = p->joins[join].lookup;
  int source = p->joins[join].source;
  if (!l || !l->n_rows || l->plan.kind == WL_KEYS_NONE) return false;
  if ((l->on_device && !atomic_load(&l->on_host)) || !(l->slots || l->starts)) return false;
  for (int pc = 0; pc < p->n_code; pc++) {
    const wl_instr *in = &p->code[pc];
    bool finds = in->op == WL_OP__Probe || in->op == WL_OP__Expand;
    if (finds && in->c == join && is_tested(p, pc)) return false;
    if (in->op == WL_OP__Mark || (in->op == WL_OP__Row && in->a == source)) return false;
  }
  for (int k = 0; k < p->n_columns; k++)
    if (wl_column_source(p, k) == source &&
        (e->cols[k]->phys >= WL_P_TEXT || wl_column_is_remote(e->cols[k])))
      return false;
  return true;
}

/* Bytes of a lookup and of the columns of its source. */
static wl_i64 input_bytes(const wl_pipe *e, int join) {
  const wl_lookup *l = e->p->joins[join].lookup;
  wl_i64 n = l && l->n_rows ? (wl_i64)wl_devlookup_bytes(l) : 0;
  for (int k = 0; k < e->p->n_columns; k++)
    if (wl_column_source(e->p, k) == e->p->joins[join].source)
      n += (wl_i64)wl_devcol_bytes(e->cols[k], 0, e->cols[k]->n_rows);
  return n;
}

/* ---- where it is cut */

static wl_u64 n_slots(const wl_lookup *l) {
  return l->direct ? l->span : l->mask + 1;
}

static wl_u64 rows_in(const wl_lookup *l, wl_u64 slot) {
  if (!l->slots) return l->starts[slot + 1] - l->starts[slot];
  if (l->slots[slot] == WL_NO_ROW) return 0;
  return l->counts ? l->counts[slot] : 1;
}

/* Bytes that a row has in the columns of the source, besides their bitmaps. */
static wl_u64 row_bytes(const wl_pipe *e, int source) {
  wl_u64 n = 1;
  for (int k = 0; k < e->p->n_columns; k++)
    if (wl_column_source(e->p, k) == source) n += (wl_u64)wl_phys_width(e->cols[k]->phys) + 1;
  return n;
}

/* Cuts the slots so that no part takes more than `most` bytes. Returns how many parts there are, or
** 0 if there would be too many. */
static int cut(const wl_lookup *l, wl_u64 each_row, wl_u64 most, wl_u64 *cuts) {
  wl_u64 each = l->direct ? 4 : l->counts ? 16 : 12, n = n_slots(l), bytes = 0;
  int parts = 0;
  cuts[0] = 0;
  for (wl_u64 slot = 0; slot < n; slot++) {
    wl_u64 more = each + rows_in(l, slot) * each_row;
    if (more > most) return 0;
    if (bytes + more > most) {
      cuts[++parts] = slot;
      bytes = 0;
      if (parts == PARTS_MOST) return 0;
    }
    bytes += more;
  }
  cuts[++parts] = n;
  return parts;
}

wl_status wl_join_parts_plan(wl_pipe *e, wl_device_state *s, wl_error *err) {
  const wl_program *p = e->p;
  wl_i64 all = 0, largest = 0, budget = e->device->budget;
  wl_u64 cuts[PARTS_MOST + 1];
  int join = -1;
  if (!can_pass(e, s)) return WL_OK;
  for (int k = 0; k < p->n_joins; k++) {
    wl_i64 n = input_bytes(e, k);
    all += n;
    if (n > largest && can_divide(e, k)) {
      largest = n;
      join = k;
    }
  }
  for (int k = 0; k < p->n_columns && s->expansion; k++)
    if (wl_column_source(p, k) == 0) all += (wl_i64)wl_devcol_bytes(e->cols[k], 0, e->n_rows);
  wl_i64 most = budget / 8 * 3 - (all - largest); /* groups and blocks need the rest */
  if (join < 0 || all <= budget / 2 || most < budget / 8) return WL_OK;
  const wl_lookup *l = p->joins[join].lookup;
  int n = cut(l, row_bytes(e, p->joins[join].source), (wl_u64)most, cuts);
  if (!n) return WL_OK;
  join_parts *x = WL_NEW(&s->arena, join_parts);
  if (!x) return wl_nomem(err);
  *x = (join_parts){.join = join, .n = n, .loaded = -1};
  x->cuts = WL_NEW_N(&s->arena, wl_u64, n + 1);
  x->cols = WL_NEW_N(&s->arena, wl_kcol, p->n_columns + 1);
  if (!x->cuts || !x->cols) return wl_nomem(err);
  memcpy(x->cuts, cuts, (size_t)(n + 1) * sizeof *cuts);
  s->parts = x;
  if (n > 1) wl_gather_note(e, "a join in %d passes", n);
  return WL_OK;
}

/* ---- a part on the host */

/* The number of slots of the part. A hash table also has those after it, up to a free one: a search
** that begins in the part ends there. */
static wl_u64 slots_of(const join_parts *x, const wl_lookup *l) {
  wl_u64 n = x->cuts[x->now + 1] - x->cuts[x->now], first = x->cuts[x->now];
  if (l->direct) return n;
  if (n == l->mask + 1) return n;
  while (l->slots[(first + n) & l->mask] != WL_NO_ROW) n++;
  return n + 1;
}

/* The first row of a slot within the source. */
static const wl_u32 *first_of(const wl_lookup *l, wl_u64 slot) {
  if (!l->slots) return &l->rows[l->starts[slot]];
  return l->rows ? &l->rows[l->slots[slot]] : &l->slots[slot];
}

/* Makes the arrays of the part on the host, and lists its rows. */
static wl_status make_arrays(join_parts *x, const wl_lookup *l, wl_u8 *host, wl_error *err) {
  wl_u64 first = x->cuts[x->now], n = slots_of(x, l), mask = l->direct ? ~(wl_u64)0 : l->mask;
  wl_u64 *words = (wl_u64 *)(void *)(host + x->at[P_WORDS]);
  wl_u32 *slots = (wl_u32 *)(void *)(host + x->at[P_SLOTS]);
  wl_u32 *counts = (wl_u32 *)(void *)(host + x->at[P_COUNTS]);
  wl_u32 *starts = (wl_u32 *)(void *)(host + x->at[P_STARTS]);
  x->n_rows = 0;
  for (wl_u64 i = 0; i < n; i++) {
    wl_u64 slot = (first + i) & mask, rows = rows_in(l, slot);
    if (x->size[P_WORDS]) words[i] = l->words[slot];
    if (x->size[P_SLOTS]) slots[i] = rows ? (wl_u32)x->n_rows : WL_NO_ROW;
    if (x->size[P_COUNTS]) counts[i] = (wl_u32)rows;
    if (x->size[P_STARTS]) starts[i] = (wl_u32)x->n_rows;
    if (x->n_rows + rows > x->room) {
      wl_u64 room = 2 * (x->n_rows + rows);
      wl_u32 *more = wl_mem_realloc(x->origin, x->room * 4, room * 4);
      if (!more) return wl_nomem(err);
      x->origin = more;
      x->room = room;
    }
    if (rows) memcpy(x->origin + x->n_rows, first_of(l, slot), rows * 4);
    x->n_rows += rows;
  }
  if (x->size[P_STARTS]) starts[n] = (wl_u32)x->n_rows;
  return WL_OK;
}

/* Sets the places of the arrays. */
static size_t place_arrays(join_parts *x, const wl_lookup *l) {
  wl_u64 n = slots_of(x, l);
  size_t at = 0;
  x->size[P_WORDS] = l->direct ? 0 : n * 8;
  x->size[P_SLOTS] = l->slots ? n * 4 : 0;
  x->size[P_COUNTS] = l->slots && l->counts ? n * 4 : 0;
  x->size[P_STARTS] = l->slots ? 0 : (n + 1) * 4;
  for (int k = 0; k < P_ARRAYS; k++) {
    x->at[k] = at;
    at += aligned(x->size[k]);
  }
  return at;
}

/* ---- its values */

typedef struct gathering {
  const wl_column *c;
  const wl_u32 *origin;
  wl_u64 n;
  wl_u8 *data, *valid; /* valid: NULL if there are no NULLs */
} gathering;

/* Copies the values of some rows. Tasks begin at multiples of 8 rows. */
static void gather_task(void *arg, int worker, long task) {
  const gathering *g = arg;
  size_t width = (size_t)wl_phys_width(g->c->phys);
  wl_u64 from = (wl_u64)task * GATHER_TASK,
         end = g->n - from < GATHER_TASK ? g->n : from + GATHER_TASK;
  (void)worker;
  for (wl_u64 i = from; i < end; i++) {
    const wl_segment *s = &g->c->segments[g->origin[i] >> WL_TABLET_SHIFT];
    size_t row = g->origin[i] & (WL_TABLET_ROWS - 1);
    bool there = !s->valid || (s->valid[row >> 3] >> (row & 7) & 1);
    memcpy(g->data + i * width, (const wl_u8 *)s->data + row * width, width);
    if (g->valid && there) g->valid[i >> 3] |= (wl_u8)(1 << (i & 7));
  }
}

/* Bytes of a column of the part: its data, and where its bitmap begins. */
static size_t column_bytes(const wl_column *c, wl_u64 n, size_t *valid) {
  bool nullable = (c->domain.mask & WL_M(WL_T_NULL)) != 0;
  *valid = aligned(n * (size_t)wl_phys_width(c->phys));
  return *valid + (nullable ? aligned((n + 7) / 8) : 0);
}

/* Gathers a column and copies it to `at` of the part. */
static wl_status load_column(wl_pipe *e, join_parts *x, int k, size_t at, wl_error *err) {
  const wl_column *c = e->cols[k];
  size_t valid, n = column_bytes(c, x->n_rows, &valid);
  wl_u8 *host = wl_mem_zalloc(n + 1);
  if (!host) return wl_nomem(err);
  gathering g = {c, x->origin, x->n_rows, host, valid < n ? host + valid : NULL};
  wl_threads_run(e->threads, (long)((x->n_rows + GATHER_TASK - 1) / GATHER_TASK), gather_task, &g);
  wl_piece all = {at, host, n};
  wl_way way = e->transfer.pinned ? WL_WAY_STAGED : WL_WAY_DIRECT;
  wl_status rc = wl_stage_in(e->device, way, e->threads, x->memory, &all, 1, err);
  x->cols[k] = (wl_kcol){
      .data = x->memory + at, .valid = valid < n ? x->memory + at + valid : NULL, .phys = c->phys};
  wl_mem_free(host);
  return rc;
}

/* ---- a part on the device */

static void unload(wl_pipe *e, join_parts *x) {
  wl_dev_free(e->device, x->memory, x->n_bytes);
  x->memory = NULL;
  x->loaded = -1;
}

static wl_status load(wl_pipe *e, join_parts *x, wl_error *err) {
  const wl_program *p = e->p;
  const wl_lookup *l = p->joins[x->join].lookup;
  int source = p->joins[x->join].source;
  size_t n_arrays = place_arrays(x, l), valid;
  wl_u8 *host = wl_mem_alloc(n_arrays + 1);
  wl_status rc = host ? make_arrays(x, l, host, err) : wl_nomem(err);
  x->n_bytes = n_arrays;
  for (int k = 0; k < p->n_columns; k++)
    if (wl_column_source(p, k) == source) x->n_bytes += column_bytes(e->cols[k], x->n_rows, &valid);
  e->device->queue = 0;
  if (!rc) rc = wl_dev_alloc(e->device, x->n_bytes, (void **)&x->memory, err);
  wl_piece pieces[P_ARRAYS];
  for (int k = 0; k < P_ARRAYS && host; k++)
    pieces[k] = (wl_piece){x->at[k], host + x->at[k], x->size[k]};
  wl_way way = e->transfer.pinned ? WL_WAY_STAGED : WL_WAY_DIRECT;
  if (!rc) rc = wl_stage_in(e->device, way, e->threads, x->memory, pieces, P_ARRAYS, err);
  size_t at = n_arrays;
  for (int k = 0; k < p->n_columns && !rc; k++) {
    if (wl_column_source(p, k) != source) continue;
    rc = load_column(e, x, k, at, err);
    at += column_bytes(e->cols[k], x->n_rows, &valid);
  }
  wl_mem_free(host);
  if (rc)
    unload(e, x);
  else
    x->loaded = x->now;
  return rc;
}

wl_status wl_join_parts_hold(wl_pipe *e, wl_device_state *s, wl_error *err) {
  join_parts *x = s->parts;
  wl_status rc = WL_OK;
  if (x->loaded != x->now) {
    unload(e, x);
    rc = load(e, x, err);
    wl_mem_free(x->origin);
    x->origin = NULL;
    x->room = 0;
  }
  if (!rc) s->n_join_bytes += (wl_i64)x->n_bytes;
  return rc;
}

void wl_join_parts_close(wl_pipe *e, wl_device_state *s) {
  if (!s->parts) return;
  e->device->queue = 0;
  unload(e, s->parts);
  s->parts = NULL;
}

/* ---- passes */

bool wl_join_parts_next(wl_pipe *e, wl_device_state *s) {
  join_parts *x = s->parts;
  if (!x || x->now + 1 == x->n) return false;
  x->now++;
  e->next_row = 0;
  return true;
}

void wl_join_parts_restart(wl_pipe *e, wl_device_state *s) {
  if (s && s->parts) s->parts->now = 0;
  e->next_row = 0;
}

bool wl_join_parts_first(const wl_device_state *s) {
  return !s->parts || s->parts->now == 0;
}

/* ---- for launches */

bool wl_join_parts_has(const wl_device_state *s, int join) {
  return s->parts && s->parts->join == join;
}

bool wl_join_parts_has_column(const wl_pipe *e, int k) {
  const wl_device_state *s = e->state;
  return s->parts && wl_column_source(e->p, k) == e->p->joins[s->parts->join].source;
}

wl_kcol wl_join_parts_column(const wl_device_state *s, int k) {
  return s->parts->cols[k];
}

void wl_join_parts_join(const wl_device_state *s, wl_kjoin *out) {
  const join_parts *x = s->parts;
  const void *at[P_ARRAYS];
  for (int k = 0; k < P_ARRAYS; k++) at[k] = x->size[k] ? x->memory + x->at[k] : NULL;
  out->words = at[P_WORDS];
  out->slots = at[P_SLOTS];
  out->counts = at[P_COUNTS];
  out->starts = at[P_STARTS];
  out->rows = NULL;
  out->part = x->now ? WL_K_PART : WL_K_FIRST_PART;
  out->first_slot = x->cuts[x->now];
  out->n_own = x->cuts[x->now + 1] - x->cuts[x->now];
  if (x->n > 1) out->wrap = ~(wl_u64)0; /* the part ends with a free slot */
}
