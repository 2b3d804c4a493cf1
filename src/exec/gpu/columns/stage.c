/*
** Staging; see stage.h. Several threads fill a staging buffer, because one alone is slower than
** the bus. Each run of adjacent places is then one copy to the device. A buffer is filled again
** only after its event says that these copies are done.
*/
#include "exec/gpu/columns/stage.h"
#include "base/mem.h"
#include "base/threads.h"
#include <string.h>

enum { N_PARTS = 256, TASK = 1 << 18 }; /* most parts of a buffer; most bytes of a part */

_Static_assert(WL_STAGE_IN + WL_STAGE_OUT <= WL_EVENTS, "each buffer has an event");

typedef struct stage {
  wl_u8 *buffer[WL_STAGE_IN]; /* NULL: nothing has been copied so far */
  bool marked[WL_STAGE_IN];
  int next;
  wl_u8 *out[WL_STAGE_OUT]; /* the same */
} stage;

/* A copy from host memory to host memory. */
typedef struct stage_part {
  wl_u8 *to;
  const wl_u8 *from;
  size_t n;
} stage_part;

static void copy_part(void *arg, int worker, long task) {
  const stage_part *p = (const stage_part *)arg + task;
  (void)worker;
  memcpy(p->to, p->from, p->n);
}

static void copy_parts(stage_part *parts, int n, int threads) {
  wl_threads_run(threads, n, copy_part, parts);
}

static wl_status open_stage(wl_device *d, stage **out, wl_error *err) {
  if (!d->stage) d->stage = wl_mem_zalloc(sizeof **out);
  *out = d->stage;
  return *out ? WL_OK : wl_nomem(err);
}

/* Pins n buffers, unless they are there. All or none are. */
static wl_status open_buffers(wl_device *d, wl_u8 **buffers, int n, size_t n_bytes, wl_error *err) {
  wl_status rc = WL_OK;
  if (buffers[0]) return WL_OK;
  for (int k = 0; k < n && !rc; k++) rc = d->host_alloc(d, n_bytes, (void **)&buffers[k], err);
  for (int k = 0; k < n && rc; k++) {
    if (buffers[k]) d->host_free(d, buffers[k]);
    buffers[k] = NULL;
  }
  return rc;
}

wl_status wl_stage_out(wl_device *d, wl_u8 **buffers, wl_error *err) {
  stage *s;
  wl_status rc = open_stage(d, &s, err);
  if (!rc) rc = open_buffers(d, s->out, WL_STAGE_OUT, wl_stage_out_bytes(d), err);
  if (!rc) memcpy(buffers, s->out, sizeof s->out);
  return rc;
}

/* Fills one buffer, starting at byte *skip of piece *at, and sends it. Advances both. */
static wl_status fill_and_send(wl_device *d, stage *s, int threads, wl_u8 *base,
                               const wl_piece *pieces, int n, int *at, size_t *skip,
                               wl_error *err) {
  int b = s->next;
  s->next = (b + 1) % WL_STAGE_IN;
  if (s->marked[b]) {
    wl_status rc = d->wait(d, b, err);
    if (rc) return rc;
    s->marked[b] = false;
  }
  stage_part parts[N_PARTS];
  struct {
    size_t to, n;
  } runs[N_PARTS];
  int n_parts = 0, n_runs = 0;
  size_t used = 0;
  while (*at < n && used < d->n_stage && n_parts < N_PARTS) {
    const wl_piece *p = &pieces[*at];
    size_t m = p->n - *skip, to = p->to + *skip;
    if (m > d->n_stage - used) m = d->n_stage - used;
    if (m > TASK) m = TASK;
    if (m) {
      parts[n_parts++] = (stage_part){s->buffer[b] + used, (const wl_u8 *)p->from + *skip, m};
      if (n_runs && runs[n_runs - 1].to + runs[n_runs - 1].n == to) {
        runs[n_runs - 1].n += m;
      } else {
        runs[n_runs].to = to;
        runs[n_runs++].n = m;
      }
      used += m;
      *skip += m;
    }
    if (*skip == p->n) {
      ++*at;
      *skip = 0;
    }
  }
  copy_parts(parts, n_parts, threads);
  wl_status rc = WL_OK;
  size_t from = 0;
  for (int k = 0; k < n_runs && !rc; k++) {
    rc = d->copy_in_later(d, base + runs[k].to, s->buffer[b] + from, runs[k].n, err);
    from += runs[k].n;
  }
  s->marked[b] = true;
  wl_status marked = d->mark(d, b, rc ? NULL : err);
  return rc ? rc : marked;
}

static void fill_mapped(int threads, wl_u8 *base, const wl_piece *pieces, int n) {
  stage_part parts[N_PARTS];
  int n_parts = 0;
  for (int k = 0; k < n; k++)
    for (size_t at = 0; at < pieces[k].n; at += TASK) {
      size_t left = pieces[k].n - at;
      parts[n_parts++] = (stage_part){base + pieces[k].to + at, (const wl_u8 *)pieces[k].from + at,
                                      left < TASK ? left : TASK};
      if (n_parts == N_PARTS) {
        copy_parts(parts, n_parts, threads);
        n_parts = 0;
      }
    }
  copy_parts(parts, n_parts, threads);
}

wl_status wl_stage_in(wl_device *d, wl_way way, int threads, wl_u8 *base, const wl_piece *pieces,
                      int n, wl_error *err) {
  wl_status rc = WL_OK;
  if (way == WL_WAY_MAPPED) {
    fill_mapped(threads, base, pieces, n);
    return WL_OK;
  }
  for (int k = 0; k < n; k++) d->n_in += (wl_i64)pieces[k].n;
  if (way == WL_WAY_DIRECT) {
    for (int k = 0; k < n && !rc; k++)
      rc = d->copy_in(d, base + pieces[k].to, pieces[k].from, pieces[k].n, err);
    return rc;
  }
  stage *s;
  rc = open_stage(d, &s, err);
  if (!rc) rc = open_buffers(d, s->buffer, WL_STAGE_IN, d->n_stage, err);
  size_t skip = 0;
  for (int at = 0; at < n && !rc;)
    rc = fill_and_send(d, s, threads, base, pieces, n, &at, &skip, err);
  return rc;
}
