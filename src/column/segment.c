/*
** Makes segments of staged rows, and columns of segments. It chooses the narrowest physical types.
** Both loaders use it, so a column is the same whichever loader read it.
**
** Invariants:
** 1. A segment's phys is the narrowest that holds its own rows. wl_column_make converts all
**    segments to the narrowest phys that holds the rows of all.
** 2. A segment of texts that repeat first has its own codes. column/dict.c turns them into codes of
**    the column's dictionary, or into plain texts again.
** 3. The value of a NULL is zero in the stage, so it is zero in the segment.
*/
#include "column/column.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "column/dict.h"
#include <assert.h>
#include <string.h>

wl_status wl_stage_open(wl_stage *st) {
  memset(st, 0, sizeof *st);
  st->v = wl_mem_alloc(WL_TABLET_ROWS * sizeof *st->v);
  st->t = wl_mem_alloc(WL_TABLET_ROWS);
  if (st->v && st->t) return WL_OK;
  wl_stage_close(st);
  return WL_NOMEM;
}

void wl_stage_close(wl_stage *st) {
  wl_mem_free(st->v);
  wl_mem_free(st->t);
  wl_mem_free(st->heap);
  memset(st, 0, sizeof *st);
}

wl_status wl_stage_room(wl_stage *st, size_t n_bytes) {
  if (st->n_heap + n_bytes <= st->size_heap) return WL_OK;
  if (st->n_heap + n_bytes > 0xffffffffu) return WL_TOOBIG; /* offsets have 32 bits */
  size_t size = st->size_heap ? st->size_heap * 2 : 65536;
  while (size < st->n_heap + n_bytes) size *= 2;
  wl_u8 *p = wl_mem_realloc(st->heap, st->n_heap, size);
  if (!p) return WL_NOMEM;
  st->heap = p;
  st->size_heap = size;
  return WL_OK;
}

wl_status wl_stage_add(wl_stage *st, wl_val v) {
  assert(st->n < WL_TABLET_ROWS);
  if (v.t >= WL_T_TEXT) {
    wl_status rc = wl_stage_room(st, v.n);
    if (rc) return rc;
    if (v.n) memcpy(st->heap + st->n_heap, wl_bytes(v), v.n);
    st->v[st->n] = (wl_u64)st->n_heap | (wl_u64)v.n << 32;
    st->n_heap += v.n;
  } else {
    st->v[st->n] = v.t == WL_T_NULL ? 0 : v.v;
  }
  st->t[st->n++] = v.t;
  return WL_OK;
}

wl_val wl_stage_value(const wl_stage *st, wl_i32 row) {
  wl_u64 v = st->v[row];
  return st->t[row] < WL_T_TEXT
             ? wl_val_make(st->t[row], v, 0)
             : wl_val_make(st->t[row], (wl_u64)(size_t)(st->heap + (wl_u32)v), (wl_u32)(v >> 32));
}

void wl_segment_free(wl_segment *s) {
  if (s->shared && atomic_fetch_sub(s->shared, 1) != 1) return;
  wl_mem_free(s->shared);
  if (s->slab)
    wl_slab_drop(s->slab);
  else
    wl_mem_free(s->data);
  wl_mem_free(s->valid);
  wl_mem_free(s->tags);
  wl_mem_free(s->heap);
  wl_mem_free(s->entries);
}

size_t wl_segment_bytes(const wl_segment *s) {
  size_t n = (size_t)s->n_rows;
  return n * (size_t)wl_phys_width(s->phys) + (s->valid ? (n + 7) / 8 : 0) + (s->tags ? n : 0) +
         s->n_heap + (size_t)s->n_entries * sizeof *s->entries;
}

wl_u8 wl_int_phys(const wl_domain *d) {
  if (d->lo >= -128 && d->hi <= 127) return WL_P_I8;
  if (d->lo >= -32768 && d->hi <= 32767) return WL_P_I16;
  if (d->lo >= -2147483647 - 1 && d->hi <= 2147483647) return WL_P_I32;
  return WL_P_I64;
}

const wl_domain wl_domain_nothing = {0, WL_I64_MAX, WL_I64_MIN, __builtin_inf(), -__builtin_inf()};

/* The range of rows that are all integers, and below of rows that are all reals. The compiler can
** vectorise these loops. */
static WL_CLONES void range_int(const wl_u64 *v, wl_i32 n, wl_domain *d) {
  wl_i64 lo = d->lo, hi = d->hi;
  for (wl_i32 i = 0; i < n; i++) {
    wl_i64 x = (wl_i64)v[i];
    lo = x < lo ? x : lo;
    hi = x > hi ? x : hi;
  }
  d->lo = lo;
  d->hi = hi;
}

/* Returns whether every value fits into a float. */
static WL_CLONES bool range_real(const wl_u64 *v, wl_i32 n, wl_domain *d) {
  double lo = d->flo, hi = d->fhi;
  wl_i32 n_wide = 0;
  for (wl_i32 i = 0; i < n; i++) {
    double x = wl_as_f64(v[i]);
    lo = x < lo ? x : lo;
    hi = x > hi ? x : hi;
    n_wide += (double)(float)x != x; /* -0.0 and infinities fit into a float */
  }
  d->flo = lo;
  d->fhi = hi;
  return n_wide == 0;
}

static bool range_mixed(const wl_stage *st, wl_domain *d) {
  bool narrow = true;
  for (wl_i32 i = 0; i < st->n; i++) {
    wl_i64 x = (wl_i64)st->v[i];
    double y = wl_as_f64(st->v[i]);
    if (st->t[i] == WL_T_INT) {
      if (x < d->lo) d->lo = x;
      if (x > d->hi) d->hi = x;
    } else if (st->t[i] == WL_T_REAL) {
      if (y < d->flo) d->flo = y;
      if (y > d->fhi) d->fhi = y;
      narrow &= (double)(float)y == y;
    }
  }
  return narrow;
}

static WL_CLONES bool all_same(const wl_u8 *t, wl_i32 n) {
  wl_u8 differ = 0;
  for (wl_i32 i = 0; i < n; i++) differ |= t[i] ^ t[0];
  return differ == 0;
}

/* The types among n tags, and the number of NULLs. */
static unsigned mask_of(const wl_u8 *t, wl_i32 n, wl_i32 *n_nulls) {
  unsigned mask = 0;
  wl_i32 nulls = 0;
  if (n && all_same(t, n)) {
    *n_nulls = t[0] == WL_T_NULL ? n : 0;
    return WL_M(t[0]);
  }
  for (wl_i32 i = 0; i < n; i++) {
    mask |= WL_M(t[i]);
    nulls += t[i] == WL_T_NULL;
  }
  *n_nulls = nulls;
  return mask;
}

/* Finds the types, the ranges and the narrowest physical type of the staged rows. */
static void find_types(const wl_stage *st, wl_segment *s) {
  wl_domain d = wl_domain_nothing;
  unsigned mask = mask_of(st->t, st->n, &s->n_nulls);
  d.mask = (wl_u8)mask;
  bool narrow_real = true;
  if (mask == WL_M(WL_T_INT))
    range_int(st->v, st->n, &d);
  else if (mask == WL_M(WL_T_REAL))
    narrow_real = range_real(st->v, st->n, &d);
  else if (mask & (WL_M(WL_T_INT) | WL_M(WL_T_REAL)))
    narrow_real = range_mixed(st, &d);
  s->domain = d;
  unsigned types = mask & ~WL_M(WL_T_NULL);
  if (types == 0)
    s->phys = WL_P_I8;
  else if (types == WL_M(WL_T_INT))
    s->phys = wl_int_phys(&d);
  else if (types == WL_M(WL_T_REAL))
    s->phys = narrow_real ? WL_P_F32 : WL_P_F64;
  else if (types == WL_M(WL_T_TEXT))
    s->phys = WL_P_TEXT;
  else
    s->phys = WL_P_ANY;
}

/* Writes values (integers, the bits of reals, or heap places) as phys. */
static WL_CLONES void write_values(void *data, wl_u8 phys, const wl_u64 *v, wl_i32 n) {
  switch ((wl_phys)phys) {
  case WL_P_I8:
    for (wl_i32 i = 0; i < n; i++) ((wl_i8 *)data)[i] = (wl_i8)v[i];
    break;
  case WL_P_I16:
    for (wl_i32 i = 0; i < n; i++) ((wl_i16 *)data)[i] = (wl_i16)v[i];
    break;
  case WL_P_I32:
    for (wl_i32 i = 0; i < n; i++) ((wl_i32 *)data)[i] = (wl_i32)v[i];
    break;
  case WL_P_F32:
    for (wl_i32 i = 0; i < n; i++) ((float *)data)[i] = (float)wl_as_f64(v[i]);
    break;
  default: memcpy(data, v, (size_t)n * sizeof *v);
  }
}

static wl_status make_segment(const wl_stage *st, bool codes, wl_segment *s) {
  memset(s, 0, sizeof *s);
  s->n_rows = st->n;
  find_types(st, s);
  size_t n = (size_t)st->n;
  bool coded = false;
  if (codes && s->phys == WL_P_TEXT && wl_dict_segment(st, s, &coded)) goto nomem;
  if (!coded) {
    s->data = wl_mem_alloc(n * (size_t)wl_phys_width(s->phys));
    if (!s->data) goto nomem;
    write_values(s->data, s->phys, st->v, st->n);
  }
  if (s->n_nulls) {
    s->valid = wl_mem_zalloc((n + 7) / 8);
    if (!s->valid) goto nomem;
    for (wl_i32 i = 0; i < st->n; i++) s->valid[i >> 3] |= (wl_u8)((st->t[i] != 0) << (i & 7));
  }
  if (s->phys == WL_P_ANY) {
    s->tags = wl_mem_alloc(n);
    if (!s->tags) goto nomem;
    memcpy(s->tags, st->t, n);
  }
  if (s->phys >= WL_P_TEXT && !coded) {
    s->heap = wl_mem_alloc(st->n_heap);
    if (!s->heap) goto nomem;
    if (st->n_heap) memcpy(s->heap, st->heap, st->n_heap);
    s->n_heap = st->n_heap;
  }
  return WL_OK;
nomem:
  wl_segment_free(s);
  memset(s, 0, sizeof *s);
  return WL_NOMEM;
}

wl_status wl_segment_make(const wl_stage *st, wl_segment *s) {
  return make_segment(st, true, s);
}

wl_status wl_segment_plain(const wl_stage *st, wl_segment *s) {
  return make_segment(st, false, s);
}

/* The narrowest physical type for the rows of all segments. */
static wl_u8 common_phys(const wl_segment *segments, int n, wl_domain *d) {
  wl_u8 real = WL_P_F32;
  *d = wl_domain_nothing;
  for (int i = 0; i < n; i++) {
    const wl_segment *s = &segments[i];
    d->mask |= s->domain.mask;
    if (s->domain.lo < d->lo) d->lo = s->domain.lo;
    if (s->domain.hi > d->hi) d->hi = s->domain.hi;
    if (s->domain.flo < d->flo) d->flo = s->domain.flo;
    if (s->domain.fhi > d->fhi) d->fhi = s->domain.fhi;
    if (s->phys == WL_P_F64) real = WL_P_F64;
  }
  unsigned types = d->mask & ~WL_M(WL_T_NULL);
  if (types == 0) return WL_P_I8;
  if (types == WL_M(WL_T_INT)) return wl_int_phys(d);
  if (types == WL_M(WL_T_REAL)) return real;
  return types == WL_M(WL_T_TEXT) ? WL_P_TEXT : WL_P_ANY;
}

wl_status wl_segment_tag(wl_segment *s, wl_u8 tag) {
  s->tags = wl_mem_alloc((size_t)s->n_rows);
  if (!s->tags) return WL_NOMEM;
  wl_u64 *data = s->data;
  for (wl_i32 i = 0; i < s->n_rows; i++) {
    bool ok = !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
    s->tags[i] = ok ? tag : WL_T_NULL;
    if (!ok) data[i] = 0;
  }
  return WL_OK;
}

wl_status wl_segment_convert(wl_segment *s, wl_u8 phys) {
  if (s->phys == phys) return WL_OK;
  assert((!s->shared || atomic_load(s->shared) == 1) && !s->entries);
  size_t n_bytes = (size_t)s->n_rows * (size_t)wl_phys_width(phys);
  wl_u8 tag = s->phys <= WL_P_I64 ? WL_T_INT : s->phys <= WL_P_F64 ? WL_T_REAL : WL_T_TEXT;
  void *data = wl_mem_alloc(n_bytes);
  if (!data) return WL_NOMEM;
  if (s->n_nulls == s->n_rows)
    memset(data, 0, n_bytes);
  else
    wl_phys_copy(data, phys, s->data, s->phys, s->n_rows);
  if (s->slab)
    wl_slab_drop(s->slab);
  else
    wl_mem_free(s->data);
  s->slab = NULL;
  s->data = data;
  s->phys = phys;
  return phys == WL_P_ANY ? wl_segment_tag(s, tag) : WL_OK;
}

typedef struct convert_job {
  wl_segment *segments;
  wl_u8 phys;
} convert_job;

static wl_status convert_task(void *arg, int worker, long i, wl_error *err) {
  convert_job *j = arg;
  (void)worker;
  return wl_segment_convert(&j->segments[i], j->phys) ? wl_nomem(err) : WL_OK;
}

static void free_all(wl_segment *segments, int n, wl_dict *dict) {
  for (int i = 0; i < n; i++) wl_segment_free(&segments[i]);
  wl_mem_free(segments);
  wl_dict_free(dict);
}

wl_status wl_column_of(wl_segment *segments, int n, wl_dict *dict, wl_column **out, wl_error *err) {
  wl_column *c = *out = wl_mem_zalloc(sizeof *c);
  if (!c) {
    free_all(segments, n, dict);
    return wl_nomem(err);
  }
  c->dict = dict;
  c->phys = common_phys(segments, n, &c->domain);
  if (n) c->phys = segments[0].phys;
  if (dict) {
    /* A range is one of numbers. Only the segments have ranges of codes. */
    c->domain.lo = wl_domain_nothing.lo;
    c->domain.hi = wl_domain_nothing.hi;
  }
  atomic_init(&c->refs, 1);
  c->id = wl_column_new_id();
  c->n_bytes = sizeof *c + (size_t)n * sizeof *segments;
  if (dict) c->n_bytes += (size_t)dict->n * sizeof *dict->places + dict->n_heap;
  for (int i = 0; i < n; i++) {
    c->n_rows += segments[i].n_rows;
    c->n_bytes += wl_segment_bytes(&segments[i]);
  }
  c->n_tablets = n;
  c->segments = segments;
  for (int i = 0; i < n; i++) {
    assert(segments[i].phys == c->phys && !segments[i].entries);
    assert(!segments[i].n_nulls || segments[i].valid);
  }
  return WL_OK;
}

wl_status wl_column_make(wl_segment *segments, int n, int n_threads, bool small, wl_column **out,
                         wl_error *err) {
  convert_job job = {.segments = segments};
  wl_dict *dict = NULL;
  wl_domain all;
  *out = NULL;
  wl_status rc = wl_dict_join(segments, n, n_threads, small, &dict) ? wl_nomem(err) : WL_OK;
  if (!rc && !dict) {
    wl_tasks tasks = {n_threads, n, convert_task, &job, NULL};
    job.phys = common_phys(segments, n, &all);
    rc = wl_tasks_run(&tasks, NULL, err);
  }
  if (!rc) return wl_column_of(segments, n, dict, out, err);
  free_all(segments, n, dict);
  return rc;
}
