/*
** Columns of a tablet table's image; see image.h. Blobs are fetched by the caller's thread, which
** alone may talk to SQLite, and decoded by all: a unit of work is one tablet of one column.
**
** What form a column takes is known before anything is read, from the zone maps of the directory
** and the rows that the delta was merged into, which come first.
**
** Invariants:
** 1. A blob whose header differs from the directory is corrupt: the form rests on it.
** 2. Between filling and emptying, a place of the ring belongs to one thread.
** 3. Codes of a dictionary column are those of its own dictionary, which is sorted; map leads
**    there from the file's, and from those of texts that only the delta has, behind them.
*/
#include "tablet/image_impl.h"
#include "base/mem.h"
#include "base/threads.h"
#include "store/blobs.h"
#include "vm/hash.h"
#include <pthread.h>
#include <string.h>

enum { DICT_MOST = 1 << 18, CHECK_EVERY = 64, MERGE_COLS = 16 };

typedef enum form {
  FORM_INT,   /* integers, of a width that is known */
  FORM_REAL,  /* reals, of a width that shows at the end */
  FORM_CODE,  /* codes of a dictionary */
  FORM_TEXT,  /* plain texts */
  FORM_ANY,   /* values of several types */
  FORM_STAGED /* all is merged: made as a column of an ordinary table is */
} form;

typedef struct making {
  int col; /* in the file; n_cols is the rowid */
  form form;
  wl_u8 phys;
  const wl_file_dict *file; /* or NULL */
  wl_dict *dict;            /* its own, one hold */
  wl_u64 dict_id;           /* of wl_origin */
  wl_u32 *map;              /* or NULL */
  wl_i32 n_map;
  wl_segment *merged;   /* [parts] of merged parts, until they are used */
  wl_segment *segments; /* [tablets] */
  wl_u64 *keys;         /* [tablets] */
  wl_origin *before;    /* or NULL */
  wl_slab *slab;        /* what data is cut from now, under the job's lock */
} making;

/* A tablet of a column to be decoded. */
typedef struct unit {
  making *m;
  int tablet;
} unit;

/* A place of the ring: the blobs of a unit. */
typedef struct place {
  unit u;
  wl_u8 *buf;
  size_t size;
  size_t *at; /* [parts + 1] where each blob begins */
  enum { EMPTY, FULL, BUSY } state;
  struct place *next; /* of the full ones */
} place;

typedef struct job {
  wl_image *im;
  wl_tablets *t;
  const wl_image_how *how;
  making *cols;
  int n_cols, max_parts;
  unit *units;
  long n_units;
  pthread_mutex_t lock;
  pthread_cond_t turn;
  place *ring;
  int n_ring;
  place *first, **last; /* full places, in order */
  bool ended;
  wl_status status;
  wl_error error;
  _Atomic size_t n_bytes;
  atomic_bool failed;
} job;

static wl_status corrupt(const job *j, const making *m, int tablet, const char *what,
                         wl_error *err) {
  const wl_decl *d = wl_tablets_decl(j->t);
  char why[200];
  strncpy(why, what, sizeof why - 1);
  why[sizeof why - 1] = 0;
  return wl_fail(err, (wl_status)SQLITE_CORRUPT, "table %.100s, column %.100s, tablet %lld: %.199s",
                 wl_tablets_name(j->t), m->col < d->n_cols ? d->cols[m->col].name : "rowid",
                 wl_tablets_at(j->t, tablet)->id, why);
}

/* ---- rows that the delta was merged into */

typedef struct staging {
  making *cols;
  wl_stage *stages;
  int part;
  atomic_bool failed;
} staging;

static void stage_task(void *arg, int worker, long i) {
  staging *s = arg;
  (void)worker;
  if (wl_segment_make(&s->stages[i], &s->cols[i].merged[s->part])) atomic_store(&s->failed, true);
}

/* Some columns of one range: its parts are next to each other from `part` on. */
static wl_status merge_range(job *j, int part, making *cols, int n, wl_stage *stages,
                             wl_error *err) {
  int at[MERGE_COLS], tablet = j->im->parts[part].tablet;
  wl_merge *m = NULL;
  for (int i = 0; i < n; i++) at[i] = cols[i].col;
  wl_status rc = wl_merge_open(j->t, tablet, at, n, &m, err);
  for (; part < j->im->n_parts && !rc; part++) {
    const wl_part *p = &j->im->parts[part];
    wl_i32 n_rows = 0;
    if (!p->merged || p->tablet != tablet) break;
    rc = wl_merge_next(m, stages, &n_rows, err);
    if (!rc && n_rows != p->n_rows)
      rc = wl_fail(err, WL_ERROR, "%s changed while it was being read", wl_tablets_name(j->t));
    staging s = {.cols = cols, .stages = stages, .part = part};
    atomic_init(&s.failed, false);
    if (!rc) wl_threads_run(j->how->n_threads, n, stage_task, &s);
    if (atomic_load(&s.failed)) rc = wl_nomem(err);
  }
  wl_merge_close(m);
  return rc;
}

static wl_status merge_all(job *j, wl_error *err) {
  wl_stage stages[MERGE_COLS];
  int n_open = 0;
  wl_status rc = WL_OK;
  if (!j->im->merged) return WL_OK;
  while (n_open < MERGE_COLS && n_open < j->n_cols && !rc) {
    rc = wl_stage_open(&stages[n_open]) ? wl_nomem(err) : WL_OK;
    n_open += !rc;
  }
  for (int c = 0; c < j->n_cols && !rc; c += MERGE_COLS) {
    int n = j->n_cols - c < MERGE_COLS ? j->n_cols - c : MERGE_COLS;
    int last = -1; /* the range before */
    for (int p = 0; p < j->im->n_parts && !rc; p++) {
      const wl_part *part = &j->im->parts[p];
      if (!part->merged || part->tablet == last) continue;
      last = part->tablet;
      if (j->how->check) rc = j->how->check(j->how->check_arg, err);
      if (!rc) rc = merge_range(j, p, &j->cols[c], n, stages, err);
    }
  }
  for (int i = 0; i < n_open; i++) wl_stage_close(&stages[i]);
  return rc;
}

/* ---- forms */

static void widen(wl_domain *d, const wl_domain *by) {
  d->mask |= by->mask;
  if (by->lo < d->lo) d->lo = by->lo;
  if (by->hi > d->hi) d->hi = by->hi;
}

static const wl_zone *zone_of(const job *j, const making *m, int part) {
  return &wl_tablets_at(j->t, j->im->parts[part].tablet)->zones[m->col];
}

/* Looks at what there is; of texts, whether codes can stand for them all. */
static form form_of(const job *j, making *m) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL), T = WL_M(WL_T_TEXT);
  wl_domain d = wl_domain_nothing;
  bool coded = false, plain = false, blobs = false, single = true;
  for (int p = 0; p < j->im->n_parts; p++) {
    if (j->im->parts[p].merged) {
      widen(&d, &m->merged[p].domain);
      continue;
    }
    const wl_zone *z = zone_of(j, m, p);
    blobs = true;
    coded |= z->coded;
    plain |= !z->coded && (z->domain.mask & T);
    if (z->coded)
      d.mask |= z->domain.mask; /* its range is of codes */
    else
      widen(&d, &z->domain);
  }
  for (int k = 0; k < j->im->n_tablets; k++) single &= j->im->tablets[k].n == 1;
  unsigned types = d.mask & ~WL_M(WL_T_NULL);
  if (!blobs && single) return FORM_STAGED;
  m->phys = WL_P_ANY;
  if ((types & ~I) == 0) {
    m->phys = types ? wl_int_phys(&d) : WL_P_I8;
    return FORM_INT;
  }
  if (types == F) return FORM_REAL;
  if (types != T) return FORM_ANY;
  m->phys = WL_P_TEXT;
  return coded && !plain ? FORM_CODE : FORM_TEXT;
}

static bool is_valid(const wl_segment *s, wl_i32 i) {
  return !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
}

/* ---- dictionaries */

/* Texts by their hash: those of the file, then those that only the delta has. */
typedef struct texts {
  wl_val *v;
  wl_i32 n, size;
  wl_u32 *slots;
  wl_u64 n_slots;
} texts;

static wl_status texts_slots(texts *x, wl_u64 n_slots) {
  wl_mem_free(x->slots);
  x->n_slots = n_slots;
  x->slots = wl_mem_zalloc(n_slots * sizeof *x->slots);
  if (!x->slots) return WL_NOMEM;
  for (wl_i32 i = 0; i < x->n; i++) {
    wl_u64 at = XXH3_64bits(wl_bytes(x->v[i]), x->v[i].n) & (n_slots - 1);
    while (x->slots[at]) at = (at + 1) & (n_slots - 1);
    x->slots[at] = (wl_u32)i + 1;
  }
  return WL_OK;
}

/* The number of a text, a new one if need be; -1: no memory. */
static wl_i32 texts_find(texts *x, wl_val v) {
  wl_u64 at = XXH3_64bits(wl_bytes(v), v.n) & (x->n_slots - 1);
  for (; x->slots[at]; at = (at + 1) & (x->n_slots - 1)) {
    const wl_val *w = &x->v[x->slots[at] - 1];
    if (w->n == v.n && (v.n == 0 || memcmp(wl_bytes(*w), wl_bytes(v), v.n) == 0))
      return (wl_i32)x->slots[at] - 1;
  }
  if (x->n == x->size) {
    wl_val *more = wl_mem_realloc(x->v, (size_t)x->n * sizeof *more,
                                  2 * (size_t)(x->size + 64) * sizeof *more);
    if (!more) return -1;
    x->v = more;
    x->size = 2 * (x->size + 64);
  }
  x->v[x->n++] = v;
  x->slots[at] = (wl_u32)x->n;
  if ((wl_u64)x->n * 2 > x->n_slots && texts_slots(x, x->n_slots * 4)) return -1;
  return x->n - 1;
}

static wl_val file_text(const wl_file_dict *f, wl_i64 code) {
  wl_u64 p = f->places[code];
  return wl_text(f->heap + (wl_u32)p, (wl_u32)(p >> 32));
}

/* The merged rows' texts as numbers of x; numbers[part] is an array. */
static wl_status number_merged(const job *j, const making *m, texts *x, wl_i32 **numbers) {
  for (int p = 0; p < j->im->n_parts; p++) {
    wl_segment *s = &m->merged[p];
    if (!j->im->parts[p].merged) continue;
    wl_i32 *to = numbers[p] = wl_mem_zalloc((size_t)s->n_rows * sizeof *to);
    if (!to) return WL_NOMEM;
    for (wl_i32 r = 0; r < s->n_rows && s->n_nulls < s->n_rows; r++) {
      if (!is_valid(s, r)) continue;
      wl_u64 v = s->entries ? s->entries[((const wl_i16 *)s->data)[r]] : ((wl_u64 *)s->data)[r];
      to[r] = texts_find(x, wl_text(s->heap + (wl_u32)v, (wl_u32)(v >> 32)));
      if (to[r] < 0) return WL_NOMEM;
    }
  }
  return WL_OK;
}

static wl_u8 code_phys(wl_i32 n) {
  return n <= 128 ? WL_P_I8 : n <= 32768 ? WL_P_I16 : WL_P_I32;
}

static void put_code(void *data, wl_u8 phys, wl_i32 r, wl_u32 code) {
  if (phys == WL_P_I8)
    ((wl_i8 *)data)[r] = (wl_i8)code;
  else if (phys == WL_P_I16)
    ((wl_i16 *)data)[r] = (wl_i16)code;
  else
    ((wl_i32 *)data)[r] = (wl_i32)code;
}

static wl_u32 get_code(const void *data, wl_u8 phys, wl_i32 r) {
  return phys == WL_P_I8    ? (wl_u32)((const wl_i8 *)data)[r]
         : phys == WL_P_I16 ? (wl_u32)((const wl_i16 *)data)[r]
                            : (wl_u32)((const wl_i32 *)data)[r];
}

/* Numbers (of the file's codes, or behind them) become codes of the column's dictionary. */
static wl_status translate(const making *m, const void *from, wl_u8 from_phys, wl_segment *s) {
  void *to = wl_mem_zalloc((size_t)s->n_rows * (size_t)wl_phys_width(m->phys));
  wl_u32 lo = 0xffffffffu, hi = 0;
  if (!to) return WL_NOMEM;
  for (wl_i32 r = 0; r < s->n_rows; r++) {
    if (!is_valid(s, r)) continue;
    wl_u32 code = get_code(from, from_phys, r);
    if (m->map) code = m->map[code];
    if (code < lo) lo = code;
    if (code > hi) hi = code;
    put_code(to, m->phys, r, code);
  }
  wl_mem_free(s->data);
  s->data = to;
  s->phys = m->phys;
  if (lo <= hi) {
    s->domain.lo = lo;
    s->domain.hi = hi;
  }
  return WL_OK;
}

/* The dictionary of n texts of which the first are the file's. */
static wl_status settle_dict(making *m, const texts *x, wl_error *err) {
  const wl_file_dict *f = m->file;
  const wl_origin *o = m->before;
  bool same = !x || x->n == f->n; /* the delta has no other texts */
  m->dict_id = same ? f->id : 0;
  if (same && o && o->dict == f->id && o->column->dict) {
    if (o->map) {
      m->map = wl_mem_alloc(((size_t)o->n_map + 1) * sizeof *m->map);
      if (!m->map) return wl_nomem(err);
      memcpy(m->map, o->map, (size_t)o->n_map * sizeof *m->map);
      m->n_map = o->n_map;
    }
    m->dict = wl_dict_hold(o->column->dict);
  } else if (same && f->sorted) {
    wl_dict *d = m->dict = wl_mem_zalloc(sizeof *d);
    if (!d) return wl_nomem(err);
    d->n = f->n;
    d->n_heap = f->n_heap;
    d->places = wl_mem_alloc(((size_t)f->n + 1) * sizeof *d->places);
    d->heap = wl_mem_alloc(f->n_heap + 1);
    if (!d->places || !d->heap) return wl_nomem(err);
    if (f->n) memcpy(d->places, f->places, (size_t)f->n * sizeof *d->places);
    if (f->n_heap) memcpy(d->heap, f->heap, f->n_heap);
  } else {
    wl_i32 n = x ? x->n : f->n;
    wl_val *v = x ? x->v : wl_mem_alloc(((size_t)n + 1) * sizeof *v);
    m->map = wl_mem_alloc(((size_t)n + 1) * sizeof *m->map);
    m->n_map = n;
    for (wl_i32 i = 0; !x && v && i < n; i++) v[i] = file_text(f, i);
    wl_status rc = v && m->map ? wl_dict_make(v, n, m->map, &m->dict) : WL_NOMEM;
    if (!x) wl_mem_free(v);
    if (rc) return wl_nomem(err);
  }
  m->phys = code_phys(m->dict->n);
  return WL_OK;
}

static wl_status make_dict(job *j, making *m, wl_error *err) {
  const wl_file_dict *f = m->file;
  if (!f)
    return wl_fail(err, (wl_status)SQLITE_CORRUPT, "table %.100s: a dictionary is missing",
                   wl_tablets_name(j->t));
  if (!j->im->merged) return settle_dict(m, NULL, err);
  texts x = {.size = f->n + 64};
  wl_u64 n_slots = 1024;
  while (n_slots < (wl_u64)f->n * 2) n_slots *= 2;
  x.v = wl_mem_alloc((size_t)x.size * sizeof *x.v);
  wl_i32 **numbers = wl_mem_zalloc((size_t)j->im->n_parts * sizeof *numbers);
  wl_status rc = x.v && numbers ? WL_OK : wl_nomem(err);
  for (wl_i32 i = 0; i < f->n && !rc; i++) x.v[x.n++] = file_text(f, i);
  if (!rc && (texts_slots(&x, n_slots) || number_merged(j, m, &x, numbers))) rc = wl_nomem(err);
  if (!rc && x.n > DICT_MOST && x.n > f->n) {
    m->form = FORM_TEXT; /* too many for it to pay */
  } else if (!rc) {
    rc = settle_dict(m, &x, err);
    for (int p = 0; p < j->im->n_parts && !rc; p++) {
      wl_segment *s = &m->merged[p];
      if (!numbers[p]) continue;
      if (translate(m, numbers[p], WL_P_I32, s)) rc = wl_nomem(err);
      wl_mem_free(s->entries);
      wl_mem_free(s->heap);
      s->entries = NULL;
      s->heap = NULL;
      s->n_heap = 0;
      s->n_entries = 0;
    }
  }
  for (int p = 0; p < j->im->n_parts && numbers; p++) wl_mem_free(numbers[p]);
  wl_mem_free(numbers);
  wl_mem_free(x.v);
  wl_mem_free(x.slots);
  return rc;
}

/* ---- decoding */

/* Codes of the file become its texts: each that occurs once in the heap. */
static wl_status spell(const wl_file_dict *f, wl_segment *s) {
  wl_u64 *places = wl_mem_zalloc(((size_t)f->n + 1) * sizeof *places); /* 0: not yet */
  wl_u64 *to = wl_mem_zalloc((size_t)s->n_rows * sizeof *to);
  size_t n = 1; /* so that no place is 0 */
  wl_u8 *heap = NULL;
  for (int pass = 0; pass < 2 && places && to; pass++) {
    for (wl_i32 r = 0; r < s->n_rows; r++) {
      if (!is_valid(s, r)) continue;
      wl_u32 code = get_code(s->data, s->phys, r);
      wl_u64 p = f->places[code];
      if (pass == 0 && !places[code]) {
        places[code] = (wl_u64)n | (p >> 32 << 32);
        n += (size_t)(p >> 32);
      } else if (pass == 1) {
        to[r] = places[code];
      }
    }
    if (pass == 0 && (n > 0xffffffffu || !(heap = wl_mem_zalloc(n)))) break;
  }
  bool ok = places && to && heap;
  for (wl_i32 i = 0; i < f->n && ok; i++)
    if (places[i] >> 32)
      memcpy(heap + (wl_u32)places[i], f->heap + (wl_u32)f->places[i], (size_t)(places[i] >> 32));
  wl_mem_free(places);
  if (!ok) {
    wl_mem_free(to);
    wl_mem_free(heap);
    return n > 0xffffffffu ? WL_TOOBIG : WL_NOMEM;
  }
  wl_mem_free(s->data);
  s->data = to;
  s->heap = heap;
  s->n_heap = n;
  s->phys = WL_P_TEXT;
  s->domain.lo = wl_domain_nothing.lo;
  s->domain.hi = wl_domain_nothing.hi;
  return WL_OK;
}

static bool same_zone(const wl_zone *a, const wl_zone *b) {
  return a->sum == b->sum && a->n_nulls == b->n_nulls && a->coded == b->coded &&
         a->domain.mask == b->domain.mask && a->domain.lo == b->domain.lo &&
         a->domain.hi == b->domain.hi;
}

enum { SLAB = 4 << 20 };

/* Room for a tablet's data that stays as it is decoded; NULL: let it have a block of its own. */
static void *room_for(job *j, making *m, int part, wl_u8 phys, wl_slab **slab) {
  size_t n = (size_t)j->im->parts[part].n_rows * (size_t)wl_phys_width(phys);
  void *room = NULL;
  if (phys >= WL_P_TEXT || j->im->parts[part].n_rows < WL_TABLET_ROWS ||
      n * j->im->n_tablets < SLAB)
    return NULL;
  pthread_mutex_lock(&j->lock);
  if (m->slab) room = wl_slab_cut(m->slab, n);
  if (!room) {
    wl_slab_drop(m->slab);
    m->slab = wl_slab_open(SLAB);
    if (m->slab) room = wl_slab_cut(m->slab, n);
  }
  *slab = m->slab;
  if (room) atomic_fetch_add(&m->slab->refs, 1);
  pthread_mutex_unlock(&j->lock);
  return room;
}

/* A blob becomes a segment of the column's form; of reals, as wide as it needs. */
static wl_status decode(job *j, making *m, int part, const wl_u8 *blob, size_t n, wl_segment *out,
                        wl_error *err) {
  int tablet = j->im->parts[part].tablet;
  const wl_zone *want = zone_of(j, m, part);
  wl_zone z;
  wl_i32 n_rows;
  bool coded, own = m->form == FORM_REAL || want->coded;
  wl_error why = {0};
  wl_i64 max_code = m->file ? m->file->n : 0;
  if (m->form == FORM_CODE && !m->map) own = false; /* its codes as they are */
  memset(out, 0, sizeof *out);
  wl_status rc = wl_codec_zone(blob, n, &z, &n_rows, &why);
  if (!rc && (!same_zone(&z, want) || n_rows != j->im->parts[part].n_rows))
    return corrupt(j, m, tablet, "the directory speaks of another segment", err);
  wl_u8 phys = m->phys;
  bool real = m->form == FORM_REAL;
  wl_slab *slab = NULL;
  if (!rc && real) rc = wl_codec_phys(blob, n, &phys, &why);
  if (!rc && own && !real) {
    rc = wl_codec_read(blob, n, max_code, out, &coded, &why);
  } else if (!rc) {
    void *room = room_for(j, m, part, phys, &slab);
    rc = wl_codec_read_into(blob, n, max_code, phys, room, out, &coded, &why);
    if (room && !rc && out->data == room)
      out->slab = slab;
    else if (room)
      wl_slab_drop(slab);
  }
  if (rc == WL_NOMEM) return wl_nomem(err);
  if (rc) return corrupt(j, m, tablet, why.text, err);
  if (coded != want->coded) return corrupt(j, m, tablet, "codes where there were none", err);
  if (!own || m->form == FORM_REAL) return WL_OK;
  if (m->form == FORM_CODE)
    rc = translate(m, out->data, out->phys, out);
  else
    rc = spell(m->file, out);
  if (!rc && m->form == FORM_ANY) rc = wl_segment_convert(out, WL_P_ANY);
  if (rc == WL_TOOBIG) return wl_not_taken(err, "a tablet holds more than 4 GiB of text");
  return rc ? wl_nomem(err) : WL_OK;
}

/* The rows that were merged, in the column's form. */
static wl_status use_merged(const making *m, int part, wl_segment *out) {
  *out = m->merged[part];
  memset(&m->merged[part], 0, sizeof *out);
  if (wl_dict_uncode(out)) return WL_NOMEM;
  if (m->form == FORM_REAL || m->form == FORM_CODE) return WL_OK;
  return wl_segment_convert(out, m->phys);
}

static wl_status append(const making *m, wl_segment *to, wl_segment *more) {
  wl_u8 phys = to->phys;
  if (m->form == FORM_REAL && phys != more->phys) /* or one of them is all NULL */
    phys = to->phys == WL_P_F64 || more->phys == WL_P_F64 ? WL_P_F64 : WL_P_F32;
  wl_status rc = wl_segment_convert(to, phys);
  if (!rc) rc = wl_segment_convert(more, phys);
  return rc ? rc : wl_segment_append(to, more);
}

/* A unit, from the blobs of its parts; those of merged parts are empty. */
static wl_status make_unit(job *j, const unit *u, const wl_u8 *buf, const size_t *at,
                           wl_error *err) {
  const wl_image_tablet *tablet = &j->im->tablets[u->tablet];
  making *m = u->m;
  wl_segment all = {0}, one = {0};
  wl_status rc = WL_OK;
  for (int i = 0; i < tablet->n && !rc; i++) {
    int part = tablet->first + i;
    if (j->im->parts[part].merged)
      rc = use_merged(m, part, &one) ? wl_nomem(err) : WL_OK;
    else
      rc = decode(j, m, part, buf + at[i], at[i + 1] - at[i], &one, err);
    if (!rc && i > 0) rc = append(m, &all, &one);
    if (rc == WL_TOOBIG) rc = wl_not_taken(err, "a tablet holds more than 4 GiB of text");
    if (rc == WL_NOMEM) rc = wl_nomem(err);
    if (i == 0)
      all = one;
    else
      wl_segment_free(&one);
    memset(&one, 0, sizeof one);
  }
  if (!rc && (wl_segment_pad(&all, tablet->n_slots) || wl_segment_share(&all))) rc = wl_nomem(err);
  if (rc) {
    wl_segment_free(&all);
    return rc;
  }
  m->segments[u->tablet] = all;
  size_t n = atomic_fetch_add(&j->n_bytes, wl_segment_bytes(&all)) + wl_segment_bytes(&all);
  return j->how->limit && n > j->how->limit ? WL_FULL : WL_OK;
}

/* ---- fetching, and who does what */

static void fail(job *j, wl_status rc, const wl_error *err) {
  pthread_mutex_lock(&j->lock);
  if (!j->status) {
    j->status = rc;
    j->error = *err;
  }
  atomic_store(&j->failed, true);
  pthread_mutex_unlock(&j->lock);
}

/* Room for the blobs of a unit. */
static wl_status place_room(const job *j, const unit *u, place *to, wl_error *err) {
  const wl_image_tablet *tablet = &j->im->tablets[u->tablet];
  size_t n = 0;
  to->u = *u;
  for (int i = 0; i < tablet->n; i++) {
    to->at[i] = n;
    if (!j->im->parts[tablet->first + i].merged) n += zone_of(j, u->m, tablet->first + i)->n_bytes;
  }
  to->at[tablet->n] = n;
  if (n > to->size) {
    wl_mem_free(to->buf);
    to->size = n + n / 4;
    to->buf = wl_mem_alloc(to->size);
    if (!to->buf) to->size = 0;
    if (!to->buf) return wl_nomem(err);
  }
  return WL_OK;
}

static wl_status fetch(job *j, const unit *u, place *to, wl_error *err) {
  const wl_image_tablet *tablet = &j->im->tablets[u->tablet];
  size_t n;
  wl_status rc = place_room(j, u, to, err);
  for (int i = 0; i < tablet->n && !rc; i++) {
    const wl_part *part = &j->im->parts[tablet->first + i];
    const wl_u8 *blob;
    if (part->merged) continue;
    rc = wl_tablets_blob(j->t, part->tablet, u->m->col, &blob, &n, err);
    if (rc) break;
    if (n != to->at[i + 1] - to->at[i])
      rc = corrupt(j, u->m, part->tablet, "it is of another size than the directory says", err);
    else
      memcpy(to->buf + to->at[i], blob, n);
    wl_tablets_done_blob(j->t);
  }
  return rc;
}

/* Decodes the first full place; false: there is none. Called and left under the lock. */
static bool empty_one(job *j) {
  place *p = j->first;
  wl_error err = {0};
  if (!p) return false;
  j->first = p->next;
  if (!j->first) j->last = &j->first;
  p->state = BUSY;
  pthread_mutex_unlock(&j->lock);
  wl_status rc = atomic_load(&j->failed) ? WL_OK : make_unit(j, &p->u, p->buf, p->at, &err);
  if (rc) fail(j, rc, &err);
  pthread_mutex_lock(&j->lock);
  p->state = EMPTY;
  pthread_cond_broadcast(&j->turn);
  return true;
}

/* A place to fill; the caller decodes where there is none. */
static place *empty_place(job *j) {
  for (;;) {
    for (int i = 0; i < j->n_ring; i++)
      if (j->ring[i].state == EMPTY) return &j->ring[i];
    if (!empty_one(j)) pthread_cond_wait(&j->turn, &j->lock);
  }
}

static void fetch_all(job *j) {
  wl_error err = {0};
  pthread_mutex_lock(&j->lock);
  for (long k = 0; k < j->n_units && !atomic_load(&j->failed); k++) {
    place *p = empty_place(j);
    p->state = BUSY;
    pthread_mutex_unlock(&j->lock);
    wl_status rc = WL_OK;
    if (k % CHECK_EVERY == 0 && j->how->check) rc = j->how->check(j->how->check_arg, &err);
    if (k % CHECK_EVERY == 0 && j->how->tell) j->how->tell(j->how->tell_arg, k, j->n_units);
    if (!rc) rc = fetch(j, &j->units[k], p, &err);
    if (rc) fail(j, rc, &err);
    pthread_mutex_lock(&j->lock);
    p->state = rc ? EMPTY : FULL;
    p->next = NULL;
    if (rc) break;
    *j->last = p;
    j->last = &p->next;
    pthread_cond_signal(&j->turn);
  }
  j->ended = true;
  pthread_cond_broadcast(&j->turn);
  while (empty_one(j)) {
  }
  pthread_mutex_unlock(&j->lock);
}

/* The caller's thread fetches and decodes, the others decode. */
static void work_task(void *arg, int worker, long task) {
  job *j = arg;
  (void)task;
  if (worker == 0) {
    if (!j->ended) fetch_all(j);
    return;
  }
  pthread_mutex_lock(&j->lock);
  for (;;) {
    if (empty_one(j)) continue;
    if (j->ended) break;
    pthread_cond_wait(&j->turn, &j->lock);
  }
  pthread_mutex_unlock(&j->lock);
}

static wl_status run_units(job *j, wl_error *err) {
  int threads = j->how->n_threads < 1 ? 1 : j->how->n_threads;
  if (threads > j->n_units) threads = j->n_units ? (int)j->n_units : 1;
  j->n_ring = threads == 1 ? 1 : 2 * threads + 2;
  j->last = &j->first;
  wl_status rc = WL_OK;
  j->ring = wl_mem_zalloc((size_t)j->n_ring * sizeof *j->ring);
  for (int i = 0; i < j->n_ring && j->ring && !rc; i++) {
    j->ring[i].at = wl_mem_alloc(((size_t)j->max_parts + 1) * sizeof *j->ring[i].at);
    if (!j->ring[i].at) rc = wl_nomem(err);
  }
  if (!j->ring) rc = wl_nomem(err);
  if (!rc) {
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->turn, NULL);
    wl_threads_run(threads, threads, work_task, j);
    pthread_cond_destroy(&j->turn);
    pthread_mutex_destroy(&j->lock);
    rc = j->status;
    if (rc) *err = j->error;
  }
  for (int i = 0; i < j->n_ring && j->ring; i++) {
    wl_mem_free(j->ring[i].at);
    wl_mem_free(j->ring[i].buf);
  }
  wl_mem_free(j->ring);
  return rc;
}

/* ---- the same from the file's pages, all of it by any thread */

/* What a thread has of its own. */
typedef struct reader {
  wl_blobs *blobs;
  place room;
} reader;

typedef struct reading {
  job *j;
  reader *readers;
  long first;      /* unit of the wave */
  atomic_bool odd; /* a blob was not found, or not as it should be: SQLite must say */
} reading;

static wl_status read_unit(reading *x, reader *r, const unit *u, wl_error *err) {
  job *j = x->j;
  const wl_image_tablet *tablet = &j->im->tablets[u->tablet];
  wl_status rc = WL_OK;
  if (!r->blobs) rc = wl_blobs_open(j->how->pages, j->how->root, &r->blobs, err);
  if (!rc) rc = place_room(j, u, &r->room, err);
  for (int i = 0; i < tablet->n && !rc; i++) {
    const wl_part *part = &j->im->parts[tablet->first + i];
    if (part->merged) continue;
    wl_i64 id = wl_tablets_at(j->t, part->tablet)->id << 12 | u->m->col;
    if (!wl_blobs_read(r->blobs, id, r->room.buf + r->room.at[i],
                       r->room.at[i + 1] - r->room.at[i]))
      return wl_not_taken(err, "a segment is not where it should be");
  }
  return rc ? rc : make_unit(j, u, r->room.buf, r->room.at, err);
}

static void read_task(void *arg, int worker, long i) {
  reading *x = arg;
  wl_error err = {0};
  if (atomic_load(&x->j->failed) || atomic_load(&x->odd)) return;
  wl_status rc = read_unit(x, &x->readers[worker], &x->j->units[x->first + i], &err);
  if (rc == WL_NOMEM || rc == WL_FULL)
    fail(x->j, rc, &err);
  else if (rc)
    atomic_store(&x->odd, true);
}

/* Does what it can; the units that are left are for run_units. */
static wl_status read_units(job *j, wl_error *err) {
  enum { WAVE = 64 };
  int threads = j->how->n_threads < 1 ? 1 : j->how->n_threads;
  reading x = {.j = j, .readers = wl_mem_zalloc((size_t)threads * sizeof *x.readers)};
  wl_status rc = x.readers ? WL_OK : wl_nomem(err);
  atomic_init(&x.odd, false);
  for (int i = 0; i < threads && !rc; i++) {
    x.readers[i].room.at = wl_mem_alloc(((size_t)j->max_parts + 1) * sizeof *x.readers[i].room.at);
    if (!x.readers[i].room.at) rc = wl_nomem(err);
  }
  pthread_mutex_init(&j->lock, NULL);
  for (; x.first < j->n_units && !rc && !atomic_load(&x.odd); x.first += WAVE) {
    if (j->how->check) rc = j->how->check(j->how->check_arg, err);
    if (j->how->tell) j->how->tell(j->how->tell_arg, x.first, j->n_units);
    long n = j->n_units - x.first < WAVE ? j->n_units - x.first : WAVE;
    if (!rc) wl_threads_run(threads, n, read_task, &x);
    if (!rc && j->status) {
      rc = j->status;
      *err = j->error;
    }
  }
  pthread_mutex_destroy(&j->lock);
  for (int i = 0; i < threads && x.readers; i++) {
    wl_blobs_close(x.readers[i].blobs);
    wl_mem_free(x.readers[i].room.at);
    wl_mem_free(x.readers[i].room.buf);
  }
  wl_mem_free(x.readers);
  long left = 0;
  for (long k = 0; k < j->n_units; k++)
    if (!j->units[k].m->segments[j->units[k].tablet].data) j->units[left++] = j->units[k];
  j->n_units = left;
  return rc;
}

/* ---- segments of the image before */

static void make_keys(const job *j, making *m) {
  for (int k = 0; k < j->im->n_tablets; k++) {
    const wl_image_tablet *at = &j->im->tablets[k];
    XXH3_state_t h;
    XXH3_64bits_reset(&h);
    XXH3_64bits_update(&h, &at->n_slots, sizeof at->n_slots);
    for (int p = at->first; p < at->first + at->n && !at->merged; p++) {
      const wl_zone *z = zone_of(j, m, p);
      XXH3_64bits_update(&h, &z->sum, sizeof z->sum);
      XXH3_64bits_update(&h, &z->n_bytes, sizeof z->n_bytes);
    }
    m->keys[k] = at->merged ? 0 : XXH3_64bits_digest(&h) | 1;
  }
}

/* Whether the segments of the column before have the form that is wanted now. */
static bool same_form(const making *m) {
  const wl_column *c = m->before->column;
  switch (m->form) {
  case FORM_CODE: return m->dict_id && m->dict_id == m->before->dict && c->dict == m->dict;
  case FORM_REAL: return c->phys == WL_P_F32 || c->phys == WL_P_F64;
  case FORM_STAGED: return false;
  default: return c->phys == m->phys && !c->dict;
  }
}

static wl_status borrow(const job *j, making *m) {
  wl_origin *o = m->before;
  if (!o || !o->column || !same_form(m)) return WL_OK;
  wl_u64 n_slots = 64;
  while (n_slots < (wl_u64)o->n * 2) n_slots *= 2;
  int *slots = wl_mem_zalloc(n_slots * sizeof *slots);
  if (!slots) return WL_NOMEM;
  for (int i = 0; i < o->n; i++) {
    if (!o->keys[i] || !o->column->segments[i].shared) continue;
    wl_u64 at = o->keys[i] >> 20 & (n_slots - 1);
    while (slots[at]) at = (at + 1) & (n_slots - 1);
    slots[at] = i + 1;
  }
  for (int k = 0; k < j->im->n_tablets; k++) {
    wl_u64 at = m->keys[k] >> 20 & (n_slots - 1);
    while (m->keys[k] && slots[at] && o->keys[slots[at] - 1] != m->keys[k])
      at = (at + 1) & (n_slots - 1);
    if (m->keys[k] && slots[at])
      m->segments[k] = wl_segment_hold(&o->column->segments[slots[at] - 1]);
  }
  wl_mem_free(slots);
  return WL_OK;
}

/* ---- a load */

static wl_status open_column(job *j, making *m, int col, wl_error *err) {
  const wl_image *im = j->im;
  const wl_decl *d = wl_tablets_decl(j->t);
  size_t n = (size_t)im->n_tablets + 1;
  m->col = col < 0 || col == d->rowid_col ? d->n_cols : col;
  m->segments = wl_mem_zalloc(n * sizeof *m->segments);
  m->keys = wl_mem_zalloc(n * sizeof *m->keys);
  m->merged = wl_mem_zalloc(((size_t)im->n_parts + 1) * sizeof *m->merged);
  if (!m->segments || !m->keys || !m->merged) return wl_nomem(err);
  make_keys(j, m);
  return m->col == d->n_cols ? WL_OK : wl_tablets_dict(j->t, m->col, &m->file, err);
}

static void close_column(const job *j, making *m) {
  for (int k = 0; k < j->im->n_tablets && m->segments; k++) wl_segment_free(&m->segments[k]);
  for (int p = 0; p < j->im->n_parts && m->merged; p++) wl_segment_free(&m->merged[p]);
  wl_mem_free(m->segments);
  wl_mem_free(m->merged);
  wl_mem_free(m->keys);
  wl_mem_free(m->map);
  wl_dict_free(m->dict);
  wl_slab_drop(m->slab);
}

static void convert_task(void *arg, int worker, long i) {
  making *m = arg;
  (void)worker;
  wl_segment *s = &m->segments[i];
  if (s->phys == m->phys || !s->data) return;
  atomic_int *shared = s->shared;
  bool alone = atomic_load(shared) == 1;
  wl_segment copy = {0};
  if (!alone) { /* a segment of the column before: that stays as it is */
    copy = *s;
    copy.shared = NULL;
    copy.slab = NULL;
    copy.data = wl_mem_alloc((size_t)s->n_rows * (size_t)wl_phys_width(s->phys));
    copy.valid = s->valid ? wl_mem_alloc(((size_t)s->n_rows + 7) / 8) : NULL;
    bool ok = copy.data && (copy.valid || !s->valid) && wl_segment_share(&copy) == WL_OK;
    if (ok) memcpy(copy.data, s->data, (size_t)s->n_rows * (size_t)wl_phys_width(s->phys));
    if (ok && s->valid) memcpy(copy.valid, s->valid, ((size_t)s->n_rows + 7) / 8);
    wl_segment_free(s);
    *s = copy;
    if (!ok) wl_segment_free(s);
    if (!ok) memset(s, 0, sizeof *s);
  }
  if (s->data && wl_segment_convert(s, m->phys)) {
    wl_segment_free(s);
    memset(s, 0, sizeof *s); /* which the caller sees */
  }
}

/* The column of what was made; o is told where it comes from. */
static wl_status finish(job *j, making *m, wl_origin *o, wl_column **out, wl_error *err) {
  int n = j->im->n_tablets;
  wl_status rc = WL_OK;
  if (m->form == FORM_STAGED) {
    for (int k = 0; k < n && !rc; k++) {
      wl_segment *s = &m->merged[j->im->tablets[k].first];
      if (wl_segment_pad(s, j->im->tablets[k].n_slots)) rc = wl_nomem(err);
      if (rc) break;
      m->segments[k] = *s;
      memset(s, 0, sizeof *s);
    }
    if (rc) return rc;
    wl_segment *all = m->segments;
    m->segments = NULL;
    return wl_column_make(all, n, j->how->n_threads, true, out, err);
  }
  if (m->form == FORM_REAL) {
    m->phys = WL_P_F32;
    for (int k = 0; k < n; k++)
      if (m->segments[k].phys == WL_P_F64) m->phys = WL_P_F64;
    wl_threads_run(j->how->n_threads, n, convert_task, m);
  }
  for (int k = 0; k < n; k++)
    if (!m->segments[k].data) return wl_nomem(err);
  wl_segment *all = m->segments;
  wl_dict *dict = m->dict;
  m->segments = NULL;
  m->dict = NULL;
  rc = wl_column_of(all, n, dict, out, err);
  if (rc) return rc;
  wl_origin_clear(o);
  *o = (wl_origin){.keys = m->keys, .n = n, .dict = m->dict_id, .map = m->map, .n_map = m->n_map};
  m->keys = NULL;
  m->map = NULL;
  return WL_OK;
}

wl_status wl_image_load(wl_image *im, wl_tablets *t, const int *cols, int n,
                        const wl_image_how *how, wl_column **out, wl_error *err) {
  job j = {.im = im, .t = t, .how = how, .n_cols = n};
  atomic_init(&j.n_bytes, 0);
  atomic_init(&j.failed, false);
  for (int k = 0; k < im->n_tablets; k++)
    if (im->tablets[k].n > j.max_parts) j.max_parts = im->tablets[k].n;
  j.cols = wl_mem_zalloc(((size_t)n + 1) * sizeof *j.cols);
  j.units = wl_mem_alloc(((size_t)n * (size_t)im->n_tablets + 1) * sizeof *j.units);
  wl_status rc = j.cols && j.units ? WL_OK : wl_nomem(err);
  for (int i = 0; i < n && !rc; i++) {
    int at = cols[i] < 0 ? im->n_cols : cols[i];
    rc = open_column(&j, &j.cols[i], cols[i], err);
    if (im->before[at].column) j.cols[i].before = &im->before[at];
  }
  if (!rc) rc = merge_all(&j, err);
  for (int i = 0; i < n && !rc; i++) {
    making *m = &j.cols[i];
    m->form = form_of(&j, m);
    if (m->form == FORM_CODE) rc = make_dict(&j, m, err);
    if (!rc && borrow(&j, m)) rc = wl_nomem(err);
  }
  for (int k = 0; k < im->n_tablets && !rc; k++) /* as they stand in the file */
    for (int i = 0; i < n; i++)
      if (j.cols[i].form != FORM_STAGED && !j.cols[i].segments[k].data)
        j.units[j.n_units++] = (unit){&j.cols[i], k};
  if (!rc && j.n_units && how->pages) rc = read_units(&j, err);
  if (!rc && j.n_units) rc = run_units(&j, err);
  for (int i = 0; i < n && !rc; i++) {
    int at = cols[i] < 0 ? im->n_cols : cols[i];
    rc = finish(&j, &j.cols[i], &im->now[at], &out[i], err);
    if (!rc) wl_origin_clear(&im->before[at]);
  }
  for (int i = 0; i < n && j.cols; i++) close_column(&j, &j.cols[i]);
  for (int i = 0; i < n && rc; i++) {
    wl_column_drop(out[i]);
    out[i] = NULL;
  }
  wl_mem_free(j.cols);
  wl_mem_free(j.units);
  return rc;
}
