/*
** The dictionaries of an image's columns. Codes in the file are in the order in which the texts
** were added. Codes in memory are in the order of the texts.
**
** Invariants:
** 1. The codes of a column are those of its own sorted dictionary. map translates the file's codes
**    to them, and also the numbers after those, which stand for texts that only the delta has.
*/
#include "base/mem.h"
#include "tablet/read/image_impl.h"
#include "value/hash.h"
#include <string.h>

enum { DICT_MOST = 1 << 18 };

/* Texts by hash: first those of the file, then those that only the delta has. */
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

/* The number of a text, which is added if it is new. -1: out of memory. */
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

/* Converts the texts of merged rows to numbers of x. numbers[part] is an array. */
static wl_status number_merged(const wl_image_job *j, const wl_making_col *m, texts *x,
                               wl_i32 **numbers) {
  for (int p = 0; p < j->im->n_parts; p++) {
    wl_segment *s = &m->merged[p];
    if (!j->im->parts[p].merged) continue;
    wl_i32 *to = numbers[p] = wl_mem_zalloc((size_t)s->n_rows * sizeof *to);
    if (!to) return WL_NOMEM;
    for (wl_i32 r = 0; r < s->n_rows && s->n_nulls < s->n_rows; r++) {
      if (!wl_image_valid(s, r)) continue;
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

/* Converts numbers of texts to codes of the column's dictionary. */
wl_status wl_image_translate(const wl_making_col *m, const void *from, wl_u8 from_phys,
                             wl_segment *s) {
  void *to = wl_mem_zalloc((size_t)s->n_rows * (size_t)wl_phys_width(m->phys));
  wl_u32 lo = 0xffffffffu, hi = 0;
  if (!to) return WL_NOMEM;
  for (wl_i32 r = 0; r < s->n_rows; r++) {
    if (!wl_image_valid(s, r)) continue;
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

/* Makes the dictionary of x, whose first texts are the file's. */
static wl_status settle_dict(wl_making_col *m, const texts *x, wl_error *err) {
  const wl_file_dict *f = m->file;
  const wl_origin *o = m->before;
  bool same = !x || x->n == f->n; /* the delta has no new texts */
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

wl_status wl_image_make_dict(wl_image_job *j, wl_making_col *m, wl_error *err) {
  const wl_file_dict *f = m->file;
  if (!f)
    return wl_fail(err, WL_CORRUPT, "table %.100s, column %.100s: its dictionary is missing",
                   wl_tablets_name(j->t), wl_tablets_decl(j->t)->cols[m->col].name);
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
    m->form = FORM_TEXT; /* too many texts for a dictionary to be useful */
  } else if (!rc) {
    rc = settle_dict(m, &x, err);
    for (int p = 0; p < j->im->n_parts && !rc; p++) {
      wl_segment *s = &m->merged[p];
      if (!numbers[p]) continue;
      if (wl_image_translate(m, numbers[p], WL_P_I32, s)) rc = wl_nomem(err);
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

/* Replaces codes of the file by texts. The heap gets each text once. */
wl_status wl_image_spell(const wl_file_dict *f, wl_segment *s) {
  wl_u64 *places = wl_mem_zalloc(((size_t)f->n + 1) * sizeof *places); /* 0: not in the heap yet */
  wl_u64 *to = wl_mem_zalloc((size_t)s->n_rows * sizeof *to);
  size_t n = 1; /* so that no text is at 0 */
  wl_u8 *heap = NULL;
  for (int pass = 0; pass < 2 && places && to; pass++) {
    for (wl_i32 r = 0; r < s->n_rows; r++) {
      if (!wl_image_valid(s, r)) continue;
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
