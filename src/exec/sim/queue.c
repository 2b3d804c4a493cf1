/*
** See queue.h.
*/
#include "exec/sim/queue.h"
#include "exec/sim/launch.h"
#include "base/mem.h"
#include <string.h>

enum {
  MOST_WAITING = 4096, /* in a queue; then it runs */
  FREED = 0xdd,        /* what memory holds after it was freed … */
  MOST_FREED = 1 << 18 /* … at least in its first bytes */
};

typedef struct queue {
  wl_sim_work *work; /* [size], from piece number `done` on, at `done` modulo size */
  wl_u64 done, end;
  size_t size; /* 0 or a power of two */
  bool running;
  wl_status status; /* of kernels that nobody has waited for yet */
  wl_error error;
} queue;

struct wl_sim_queues {
  queue queues[WL_QUEUES];
  wl_u64 random; /* never 0 */
  unsigned n_launches;
  wl_i64 held;
};

wl_sim_queues *wl_sim_queues_open(void) {
  wl_sim_queues *q = wl_mem_zalloc(sizeof *q);
  if (q) q->random = 0x9e3779b97f4a7c15u;
  return q;
}

static unsigned chance(wl_sim_queues *q, unsigned n) {
  q->random ^= q->random << 13;
  q->random ^= q->random >> 7;
  q->random ^= q->random << 17;
  return (unsigned)(q->random >> 32) % n;
}

/* ---- one piece of work */

static void scan(const wl_u32 *in, wl_u64 *sums, size_t n) {
  wl_u64 s = 0;
  for (size_t i = 0; i < n; i++) {
    sums[i] = s;
    s += in[i];
  }
  sums[n] = s;
}

static void sort(const wl_sim_work *w) {
  int from = 0;
  for (int shift = 0; shift < w->n_bits; shift += 8, from = !from) {
    int bits = w->n_bits - shift < 8 ? w->n_bits - shift : 8;
    wl_u64 counts[257] = {0}, mask = (1u << bits) - 1;
    const wl_u64 *keys = w->keys[from];
    for (size_t i = 0; i < w->n; i++) counts[(keys[i] >> shift & mask) + 1]++;
    for (int k = 0; k < 256; k++) counts[k + 1] += counts[k];
    for (size_t i = 0; i < w->n; i++) {
      wl_u64 to = counts[keys[i] >> shift & mask]++;
      w->keys[!from][to] = keys[i];
      w->values[!from][to] = w->values[from][i];
    }
  }
}

static wl_status run_one(wl_sim_queues *q, const wl_sim_work *w, wl_error *err) {
  wl_status rc = WL_OK;
  switch (w->kind) {
  case WL_SIM_COPY: memcpy(w->to, w->from, w->n); break;
  case WL_SIM_FILL: memset(w->to, w->byte, w->n); break;
  case WL_SIM_LAUNCH:
    rc = wl_sim_launch(w->kernel, w->from, w->grid, w->block, w->n_shared, ++q->n_launches, err);
    break;
  case WL_SIM_SCAN: scan(w->from, w->to, w->n); break;
  case WL_SIM_SORT: sort(w); break;
  case WL_SIM_FREE:
    memset(w->to, FREED, w->n < MOST_FREED ? w->n : MOST_FREED);
    wl_mem_free(w->to);
    q->held -= (wl_i64)w->n;
    break;
  case WL_SIM_FREE_HOST: wl_mem_free(w->to); break;
  case WL_SIM_FOLLOW: break;
  }
  wl_mem_free(w->owned);
  return rc;
}

/* ---- queues */

static void run_until(wl_sim_queues *q, int number, wl_u64 until) {
  queue *at = &q->queues[number];
  while (at->done < until) {
    wl_sim_work w = at->work[at->done & (at->size - 1)];
    wl_error err;
    if (w.kind == WL_SIM_FOLLOW) run_until(q, w.queue, w.until);
    /* A queue that is followed never follows what came later, so `done` is still the same. */
    wl_status rc = run_one(q, &w, &err);
    at->done++;
    if (!rc || at->status) continue;
    at->status = rc;
    at->error = err;
  }
}

/* Runs some of the work that nobody waits for. */
static void run_some(wl_sim_queues *q) {
  for (int k = 0; k < WL_QUEUES; k++) {
    queue *at = &q->queues[k];
    unsigned waiting = (unsigned)(at->end - at->done);
    if (waiting) run_until(q, k, at->done + chance(q, waiting + 1));
  }
}

static bool grow(queue *at) {
  size_t size = at->size ? 2 * at->size : 64;
  wl_sim_work *work = wl_mem_alloc(size * sizeof *work);
  if (!work) return false;
  for (wl_u64 i = at->done; i < at->end; i++) work[i & (size - 1)] = at->work[i & (at->size - 1)];
  wl_mem_free(at->work);
  at->work = work;
  at->size = size;
  return true;
}

wl_status wl_sim_add(wl_sim_queues *q, int number, const wl_sim_work *w, wl_error *err) {
  enum { SOONER = 8 }; /* one time in so many, the device is faster than the host */
  queue *at = &q->queues[number];
  if (at->end - at->done == MOST_WAITING) run_until(q, number, at->end);
  if (at->end - at->done == at->size && !grow(at)) {
    run_until(q, number, at->end);
    if (!at->size) {
      wl_mem_free(w->owned);
      return wl_nomem(err);
    }
  }
  at->work[at->end++ & (at->size - 1)] = *w;
  if (chance(q, SOONER) == 0) run_some(q);
  return WL_OK;
}

wl_u64 wl_sim_end(const wl_sim_queues *q, int number) {
  return q->queues[number].end;
}

wl_status wl_sim_run(wl_sim_queues *q, int number, wl_u64 until, wl_error *err) {
  queue *at = &q->queues[number];
  if (chance(q, 2)) run_some(q);
  run_until(q, number, until);
  wl_status rc = at->status;
  if (rc && err) *err = at->error;
  at->status = WL_OK;
  return rc;
}

void wl_sim_run_all(wl_sim_queues *q) {
  for (int k = 0; k < WL_QUEUES; k++) run_until(q, k, q->queues[k].end);
}

wl_i64 wl_sim_held(const wl_sim_queues *q) {
  return q->held;
}
void wl_sim_hold(wl_sim_queues *q, size_t n) {
  q->held += (wl_i64)n;
}
