/*
** Reads the blobs of an image's columns and decodes them on several threads. A unit of work is one
** tablet of one column. If the file's pages can be read directly, every thread reads for itself.
** The caller's thread fetches the rest, because only it may use SQLite.
**
** Invariants:
** 1. Between filling and emptying, a place in the ring belongs to one thread.
** 2. Reading pages never makes a load fail: what is not found, or is wrong, is fetched again
**    through SQLite, whose answer counts.
*/
#include "base/mem.h"
#include "base/tasks.h"
#include "base/threads.h"
#include "store/blobs.h"
#include "tablet/read/image_impl.h"
#include <string.h>

enum { CHECK_EVERY = 64 };

/* The blobs of a unit. */
typedef struct unit_blobs {
  wl_image_unit u;
  wl_u8 *buf;
  size_t size;
  size_t *at; /* [parts + 1] where each blob begins */
  enum { EMPTY, FULL, BUSY } state;
  struct unit_blobs *next; /* next full one */
} unit_blobs;

static void fail(wl_image_job *j, wl_status rc, const wl_error *err) {
  pthread_mutex_lock(&j->lock);
  if (!j->status) {
    j->status = rc;
    j->error = *err;
  }
  atomic_store(&j->failed, true);
  pthread_mutex_unlock(&j->lock);
}

/* Makes room for the blobs of a unit. */
static wl_status place_room(const wl_image_job *j, const wl_image_unit *u, unit_blobs *to,
                            wl_error *err) {
  const wl_image_tablet *tablet = &j->im->tablets[u->tablet];
  size_t n = 0;
  to->u = *u;
  for (int i = 0; i < tablet->n; i++) {
    to->at[i] = n;
    if (!j->im->parts[tablet->first + i].merged)
      n += wl_image_zone(j, u->m, tablet->first + i)->n_bytes;
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

static wl_status place_open(const wl_image_job *j, unit_blobs *p, wl_error *err) {
  p->at = wl_mem_alloc(((size_t)j->max_parts + 1) * sizeof *p->at);
  return p->at ? WL_OK : wl_nomem(err);
}

static void place_close(unit_blobs *p) {
  wl_mem_free(p->at);
  wl_mem_free(p->buf);
}

/* ---- through SQLite: one thread fetches and decodes, the others decode */

typedef struct ring {
  wl_image_job *j;
  pthread_cond_t turn;
  unit_blobs *places;
  int n;
  unit_blobs *first, **last; /* full ones, in order */
  bool ended;
} ring;

static wl_status fetch(wl_image_job *j, const wl_image_unit *u, unit_blobs *to, wl_error *err) {
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
      rc = wl_image_corrupt(j, u->m, part->tablet, "its size is not the one in the directory", err);
    else
      memcpy(to->buf + to->at[i], blob, n);
    wl_tablets_done_blob(j->t);
  }
  return rc;
}

/* Decodes the first full place. False: there is none. The lock is held on call and on return. */
static bool empty_one(ring *x) {
  wl_image_job *j = x->j;
  unit_blobs *p = x->first;
  wl_error err = {0};
  if (!p) return false;
  x->first = p->next;
  if (!x->first) x->last = &x->first;
  p->state = BUSY;
  pthread_mutex_unlock(&j->lock);
  wl_status rc =
      atomic_load(&j->failed) ? WL_OK : wl_image_make_unit(j, &p->u, p->buf, p->at, &err);
  if (rc) fail(j, rc, &err);
  pthread_mutex_lock(&j->lock);
  p->state = EMPTY;
  pthread_cond_broadcast(&x->turn);
  return true;
}

/* Gets an empty place to fill. If there is none, the caller decodes one. */
static unit_blobs *empty_place(ring *x) {
  wl_image_job *j = x->j;
  for (;;) {
    for (int i = 0; i < x->n; i++)
      if (x->places[i].state == EMPTY) return &x->places[i];
    if (!empty_one(x)) pthread_cond_wait(&x->turn, &j->lock);
  }
}

static void fetch_all(ring *x) {
  wl_image_job *j = x->j;
  wl_error err = {0};
  pthread_mutex_lock(&j->lock);
  for (long k = 0; k < j->n_units && !atomic_load(&j->failed); k++) {
    unit_blobs *p = empty_place(x);
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
    *x->last = p;
    x->last = &p->next;
    pthread_cond_signal(&x->turn);
  }
  x->ended = true;
  pthread_cond_broadcast(&x->turn);
  while (empty_one(x)) {
  }
  pthread_mutex_unlock(&j->lock);
}

/* The caller's thread fetches and decodes, the others decode. */
static void work_task(void *arg, int worker, long task) {
  ring *x = arg;
  wl_image_job *j = x->j;
  (void)task;
  if (worker == 0) {
    if (!x->ended) fetch_all(x);
    return;
  }
  pthread_mutex_lock(&j->lock);
  for (;;) {
    if (empty_one(x)) continue;
    if (x->ended) break;
    pthread_cond_wait(&x->turn, &j->lock);
  }
  pthread_mutex_unlock(&j->lock);
}

static wl_status fetch_units(wl_image_job *j, int threads, wl_error *err) {
  if (threads > j->n_units) threads = (int)j->n_units;
  ring x = {.j = j, .n = threads == 1 ? 1 : 2 * threads + 2};
  x.last = &x.first;
  wl_status rc = WL_OK;
  x.places = wl_mem_zalloc((size_t)x.n * sizeof *x.places);
  if (!x.places) return wl_nomem(err);
  for (int i = 0; i < x.n && !rc; i++) rc = place_open(j, &x.places[i], err);
  if (!rc) {
    pthread_cond_init(&x.turn, NULL);
    wl_threads_run(threads, threads, work_task, &x);
    pthread_cond_destroy(&x.turn);
    rc = j->status;
    if (rc) *err = j->error;
  }
  for (int i = 0; i < x.n; i++) place_close(&x.places[i]);
  wl_mem_free(x.places);
  return rc;
}

/* ---- from the file's pages: any thread reads and decodes */

/* What each thread has for itself. */
typedef struct reader {
  wl_blobs *blobs;
  unit_blobs room;
} reader;

typedef struct reading {
  wl_image_job *j;
  reader *readers;
  long first;      /* first unit of the wave */
  atomic_bool odd; /* a blob was not found or is wrong: SQLite must read it */
} reading;

static wl_status read_unit(reading *x, reader *r, const wl_image_unit *u, wl_error *err) {
  wl_image_job *j = x->j;
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
      return wl_not_taken(err, "a segment was not found in its page");
  }
  return rc ? rc : wl_image_make_unit(j, u, r->room.buf, r->room.at, err);
}

static wl_status read_task(void *arg, int worker, long i, wl_error *err) {
  reading *x = arg;
  const wl_image_unit *u = &x->j->units[x->first + i];
  if (atomic_load(&x->odd)) return WL_OK;
  if (x->j->im->tablets[u->tablet].merged) return WL_OK; /* its rows can be used only once */
  wl_status rc = read_unit(x, &x->readers[worker], u, err);
  if (rc == WL_NOMEM || rc == WL_FULL) return rc;
  if (rc) atomic_store(&x->odd, true);
  return WL_OK;
}

/* Does what it can. fetch_units does the remaining units. */
static wl_status read_units(wl_image_job *j, int threads, wl_error *err) {
  enum { WAVE = 64 };
  reading x = {.j = j, .readers = wl_mem_zalloc((size_t)threads * sizeof *x.readers)};
  wl_status rc = x.readers ? WL_OK : wl_nomem(err);
  atomic_init(&x.odd, false);
  for (int i = 0; i < threads && !rc; i++) rc = place_open(j, &x.readers[i].room, err);
  for (; x.first < j->n_units && !rc && !atomic_load(&x.odd); x.first += WAVE) {
    if (j->how->check) rc = j->how->check(j->how->check_arg, err);
    if (j->how->tell) j->how->tell(j->how->tell_arg, x.first, j->n_units);
    long n = j->n_units - x.first < WAVE ? j->n_units - x.first : WAVE;
    wl_tasks tasks = {threads, n, read_task, &x, NULL};
    if (!rc) rc = wl_tasks_run(&tasks, NULL, err);
  }
  for (int i = 0; i < threads && x.readers; i++) {
    wl_blobs_close(x.readers[i].blobs);
    place_close(&x.readers[i].room);
  }
  wl_mem_free(x.readers);
  long left = 0;
  for (long k = 0; k < j->n_units; k++)
    if (!j->units[k].m->segments[j->units[k].tablet].data) j->units[left++] = j->units[k];
  j->n_units = left;
  return rc;
}

wl_status wl_image_run_units(wl_image_job *j, wl_error *err) {
  int threads = j->how->n_threads < 1 ? 1 : j->how->n_threads;
  pthread_mutex_init(&j->lock, NULL);
  wl_status rc = j->how->pages ? read_units(j, threads, err) : WL_OK;
  if (!rc && j->n_units) rc = fetch_units(j, threads, err);
  pthread_mutex_destroy(&j->lock);
  return rc;
}
