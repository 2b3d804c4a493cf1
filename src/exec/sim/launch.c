/*
** The simulated GPU's scheduler. A thread runs until it waits (barrier, warp operation),
** spins, is preempted, or returns from the kernel. It then picks the next thread itself and
** switches directly to it.
**
**            +------------- wake ------------- WAITING
**            v                                    ^
**   start -> READY --- picked ---> running ------ + barrier, warp operation
**            ^                      |   \-------> GONE  (returned from the kernel)
**            +---- spin, preempt ---+
**
** Invariants:
** 1. Every READY thread is in `run` or in `later` exactly once. No other thread is in them.
** 2. `later` holds most threads that spin or are preempted. It becomes `run` when `run` is empty.
**    So each such thread runs again after a finite number of turns of the others, and a wait
**    that can end does end.
** 3. While device.progress does not change, threads only spin. If it has not changed and every
**    READY thread has spun SPINS_STUCK times, no wait will ever end.
** 4. A lane reads the outcome of a warp operation from the buffer of that operation's phase. Two
**    buffers are enough: no lane passes the next operation before all lanes have left this one
**    and reached the next.
** 5. A fiber of the pool is parked inside leave(), ready for the next kernel. If a launch failed,
**    all its fibers are initialised again.
** 6. ThreadSanitizer sees the accesses of kernels, each fiber as a thread, but not those of this
**    file. It is told what barriers, and the begin and the end of blocks and launches, order.
*/
#include "exec/sim/launch.h"
#include "base/mem.h"
#include "exec/gpu/kernels/simt.h"
#include "exec/sim/fiber.h"
#include <pthread.h>
#include <string.h>

#ifdef WL_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define MAX_RESIDENT 3  /* most blocks that run at once */
#define MAX_WARPS    32 /* most warps in a block */
#define MAX_THREADS  (MAX_RESIDENT * MAX_WARPS * SIMT_WARP)
#define WINDOW       32 /* the next block to start is picked from this many */
#define SPINS_STUCK  300
#define SHARED_FILL  0xa5                  /* initial content of shared memory */
#define SHARED_GUARD 64                    /* bytes after it that must not be written */
#define GONE_VALUE   0xdeadbeefdeadbeefull /* the result of a shuffle from a returned lane */

typedef struct device device;
typedef struct block block;
typedef struct warp warp;

typedef enum thread_state { READY, SPINNING, AT_BARRIER, AT_WARP_OP, GONE } thread_state;

typedef struct thread {
  wl_sim_self me; /* first: wl_sim_me points here */
  thread_state state;
  wl_u32 n_spins; /* spins since progress became spun_at */
  wl_u64 spun_at;
  warp *warp;
  device *device;
  wl_fiber fiber;
} thread;

struct warp {
  wl_u32 live;    /* lanes that have not returned */
  wl_u32 arrived; /* lanes waiting in the current operation */
  wl_u32 phase;   /* number of the current operation; its low bit is the buffer */
  wl_sim_op op;
  wl_u32 votes[2];
  wl_u32 took_part[2];
  wl_u64 values[2][SIMT_WARP];
  block *block;
  unsigned char *stacks;
  char ordered[2]; /* places (wl_fiber_give) of the warp's barriers, by phase */
  thread threads[SIMT_WARP];
};

struct block {
  wl_u32 bid;
  wl_u32 n_live, n_at_barrier;
  wl_u32 n_warps;
  warp **warps;          /* borrowed from the device's pool */
  unsigned char *shared; /* owned; n_shared bytes, then the guard, up to `room` */
  size_t n_shared, room;
  wl_u32 n_barriers;
  char ordered[2]; /* places of the barriers, by number */
  char begun;      /* the place where its threads begin */
  char left;       /* the place where they end; the next block comes after them */
};

typedef enum trouble { NO_TROUBLE, DEADLOCK, MIXED_OPS, OVERRAN_SHARED } trouble;

/* The state that launches of one OS thread use. It is kept between launches. */
struct device {
  void (*kernel)(const void *args);
  const void *args;
  wl_u64 random;   /* state of the random generator, never 0 */
  wl_u32 mix;      /* of 8 picks, this many are at random; the others take the newest thread */
  wl_u64 progress; /* see invariant 3 */
  wl_u64 stuck_at;
  wl_u32 n_stuck;

  thread **run, **later; /* MAX_THREADS each */
  wl_u32 n_run, n_later;

  block blocks[MAX_RESIDENT];
  wl_u32 n_resident;     /* blocks that run now */
  wl_u32 window[WINDOW]; /* blocks that may start next */
  wl_u32 n_window, n_dealt, grid;
  wl_u32 block_dim;
  size_t shared_bytes;
  bool downwards; /* blocks start roughly from the last to the first */

  warp *warps[MAX_RESIDENT * MAX_WARPS];
  wl_u32 n_warps;
  wl_fiber host;
  trouble trouble;
  wl_u32 trouble_bid;
  char begun, ended; /* places of the launch */
};

_Thread_local wl_sim_self *wl_sim_me WL_SIM_TLS;
static _Thread_local device *own_device;

/* ---- scheduling */

static inline wl_u32 random_bits(device *d) {
  wl_u64 x = d->random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  d->random = x;
  return (wl_u32)(x >> 32);
}

static inline wl_u32 random_below(device *d, wl_u32 n) {
  return (wl_u32)(((wl_u64)random_bits(d) * n) >> 32);
}

/* Adds t to a list of n threads. The threads from index `first` on stay in random order. */
static inline void deal(device *d, thread **list, wl_u32 first, wl_u32 n, thread *t) {
  wl_u32 i = first + random_below(d, n - first + 1);
  list[n] = list[i];
  list[i] = t;
}

static void stop(device *d, thread *self, trouble what) {
  wl_fiber_give(&d->ended);
  d->trouble = what;
  for (;;) wl_fiber_switch(&self->fiber, &d->host);
}

/* Switches to a READY thread, or to the host if there is none. */
static void pick_next(device *d, thread *self) {
  wl_fiber_give(&d->ended); /* perhaps it never runs again */
  if (d->n_run == 0) {
    thread **empty = d->run;
    d->run = d->later;
    d->later = empty;
    d->n_run = d->n_later;
    d->n_later = 0;
    if (d->n_run == 0) {
      if (d->n_resident > 0) stop(d, self, DEADLOCK);
      wl_fiber_switch(&self->fiber, &d->host);
      return;
    }
  }
  wl_u32 last = --d->n_run;
  thread *t = d->run[last];
  if (d->mix != 0) {
    wl_u32 r = random_bits(d);
    if ((r & 7) < d->mix) {
      wl_u32 i = (wl_u32)(((wl_u64)r * (last + 1)) >> 32);
      thread *other = d->run[i];
      d->run[i] = t;
      t = other;
    }
  }
  wl_sim_me = &t->me;
  if (t != self) wl_fiber_switch(&self->fiber, &t->fiber);
}

/* Lets other threads run but stays READY. Usually waits until all others have run. */
static void step_back(device *d, thread *t) {
  if ((random_bits(d) & 3) == 0) {
    deal(d, d->run, 0, d->n_run, t);
    d->n_run++;
  } else {
    deal(d, d->later, 0, d->n_later, t);
    d->n_later++;
  }
  pick_next(d, t);
}

/* ---- waiting and waking */

static void wake(device *d, warp *w, wl_u32 lanes, wl_u32 first) {
  for (; lanes != 0; lanes &= lanes - 1) {
    thread *t = &w->threads[__builtin_ctz(lanes)];
    t->state = READY;
    deal(d, d->run, first, d->n_run, t);
    d->n_run++;
  }
}

static void open_barrier(device *d, block *b) {
  wl_u32 first = d->n_run;
  b->n_at_barrier = 0;
  b->n_barriers++;
  for (wl_u32 i = 0; i < b->n_warps; i++) wake(d, b->warps[i], b->warps[i]->live, first);
}

static void end_warp_op(device *d, warp *w) {
  wl_u32 lanes = w->arrived;
  w->took_part[w->phase & 1] = lanes;
  w->phase++;
  w->arrived = 0;
  wake(d, w, lanes, d->n_run);
}

void wl_sim_barrier(void) {
  thread *t = (thread *)wl_sim_me;
  device *d = t->device;
  block *b = t->warp->block;
  void *place = &b->ordered[b->n_barriers & 1];
  d->progress++;
  t->state = AT_BARRIER;
  wl_fiber_give(place);
  if (++b->n_at_barrier == b->n_live) open_barrier(d, b);
  pick_next(d, t);
  wl_fiber_take(place);
}

/* Waits for the other lanes. Returns the index of the buffer with their votes and values. */
static wl_u32 meet(thread *t, wl_sim_op op, wl_simt_bool vote, wl_u64 value) {
  device *d = t->device;
  warp *w = t->warp;
  wl_u32 lane = t->me.tid % SIMT_WARP, buffer = w->phase & 1;
  d->progress++;
  if (w->arrived == 0) {
    w->op = op;
    w->votes[buffer] = 0;
  } else if (w->op != op) {
    d->trouble_bid = t->me.bid;
    stop(d, t, MIXED_OPS);
  }
  w->votes[buffer] |= (wl_u32)vote << lane;
  w->values[buffer][lane] = value;
  w->arrived |= 1u << lane;
  t->state = AT_WARP_OP;
  if (op == WL_SIM_SYNC) wl_fiber_give(&w->ordered[buffer]);
  if (w->arrived == w->live) end_warp_op(d, w);
  pick_next(d, t);
  if (op == WL_SIM_SYNC) wl_fiber_take(&w->ordered[buffer]);
  return buffer;
}

wl_u32 wl_sim_vote(wl_sim_op op, wl_simt_bool p, wl_u32 *live) {
  thread *t = (thread *)wl_sim_me;
  wl_u32 buffer = meet(t, op, p, 0);
  *live = t->warp->took_part[buffer];
  return t->warp->votes[buffer];
}

wl_u64 wl_sim_shuffle(wl_u64 v, wl_u32 src_lane) {
  thread *t = (thread *)wl_sim_me;
  wl_u32 buffer = meet(t, WL_SIM_SHUFFLE, 0, v);
  bool there = (t->warp->took_part[buffer] >> src_lane) & 1;
  return there ? t->warp->values[buffer][src_lane] : GONE_VALUE;
}

void wl_sim_spin(void) {
  thread *t = (thread *)wl_sim_me;
  device *d = t->device;
  if (t->spun_at != d->progress) {
    t->spun_at = d->progress;
    t->n_spins = 0;
  }
  t->state = SPINNING;
  if (++t->n_spins == SPINS_STUCK) {
    if (d->stuck_at != d->progress) {
      d->stuck_at = d->progress;
      d->n_stuck = 0;
    }
    if (++d->n_stuck == d->n_run + d->n_later + 1) stop(d, t, DEADLOCK);
  }
  step_back(d, t);
  t->state = READY;
}

void wl_sim_preempt(void) {
  thread *t = (thread *)wl_sim_me;
  t->me.fuse = 1 + random_below(t->device, 32);
  step_back(t->device, t);
}

/* ---- blocks */

static wl_u32 next_block(device *d) {
  while (d->n_window < WINDOW && d->n_dealt < d->grid) {
    wl_u32 i = d->n_dealt++;
    d->window[d->n_window++] = d->downwards ? d->grid - 1 - i : i;
  }
  wl_u32 i = random_below(d, d->n_window);
  wl_u32 bid = d->window[i];
  d->window[i] = d->window[--d->n_window];
  return bid;
}

static void guard_shared(block *b) {
  memset(b->shared, SHARED_FILL, b->n_shared + SHARED_GUARD);
#ifdef WL_FIBER_ASAN
  __asan_poison_memory_region(b->shared + b->n_shared, b->room - b->n_shared);
#endif
}

static void unguard_shared(block *b) {
#ifdef WL_FIBER_ASAN
  if (b->shared) __asan_unpoison_memory_region(b->shared + b->n_shared, b->room - b->n_shared);
#else
  (void)b;
#endif
}

static bool shared_overrun(const block *b) {
  wl_u8 differ = 0;
#ifndef WL_FIBER_ASAN
  for (size_t i = 0; i < SHARED_GUARD; i++) differ |= b->shared[b->n_shared + i] ^ SHARED_FILL;
#else
  (void)b;
#endif
  return differ != 0;
}

static void start_block(device *d, block *b) {
  wl_u32 first = d->n_run;
  b->bid = next_block(d);
  b->n_live = d->block_dim;
  b->n_at_barrier = 0;
  wl_fiber_take(&b->left);
  guard_shared(b);
  wl_fiber_give(&b->begun);
  for (wl_u32 i = 0; i < b->n_warps; i++) {
    warp *w = b->warps[i];
    w->block = b;
    w->live = 0xffffffffu;
    w->arrived = 0;
    for (wl_u32 lane = 0; lane < SIMT_WARP; lane++) {
      thread *t = &w->threads[lane];
      t->me.tid = i * SIMT_WARP + lane;
      t->me.bid = b->bid;
      t->me.bdim = d->block_dim;
      t->me.gdim = d->grid;
      t->me.shared = b->shared;
      t->me.fuse = 1 + (random_bits(d) & 31);
      t->n_spins = 0;
    }
    wake(d, w, w->live, first);
  }
}

/* Called when the thread has returned from the kernel. This may end the waits of others. */
static void leave(thread *t) {
  device *d = t->device;
  warp *w = t->warp;
  block *b = w->block;
  d->progress++;
  t->state = GONE;
  wl_fiber_give(&b->left);
  w->live &= ~(1u << t->me.tid % SIMT_WARP);
  if (w->live != 0 && w->arrived == w->live) end_warp_op(d, w);
  if (--b->n_live == 0) {
    if (shared_overrun(b)) {
      d->trouble_bid = b->bid;
      stop(d, t, OVERRAN_SHARED);
    }
    unguard_shared(b);
    if (d->n_window > 0 || d->n_dealt < d->grid)
      start_block(d, b);
    else
      d->n_resident--;
  } else if (b->n_at_barrier == b->n_live) {
    open_barrier(d, b);
  }
  pick_next(d, t);
}

static void thread_main(void *arg) {
  thread *t = (thread *)arg;
  for (;;) {
    wl_fiber_take(&t->device->begun);
    wl_fiber_take(&t->warp->block->begun);
    t->device->kernel(t->device->args);
    leave(t);
  }
}

/* ---- the pool */

static void close_warp(warp *w) {
  if (!w) return;
  for (wl_u32 i = 0; i < SIMT_WARP; i++) wl_fiber_close(&w->threads[i].fiber);
  wl_mem_free(w->stacks);
  wl_mem_free(w);
}

static bool init_fibers(warp *w) {
  for (wl_u32 i = 0; i < SIMT_WARP; i++) {
    thread *t = &w->threads[i];
    wl_fiber_close(&t->fiber);
    if (!wl_fiber_init(&t->fiber, w->stacks + (size_t)i * WL_FIBER_STACK, thread_main, t))
      return false;
  }
  return true;
}

static warp *open_warp(device *d) {
  warp *w = (warp *)wl_mem_zalloc(sizeof *w);
  if (!w) return NULL;
  w->stacks = (unsigned char *)wl_mem_alloc((size_t)WL_FIBER_STACK * SIMT_WARP);
  if (!w->stacks) {
    wl_mem_free(w);
    return NULL;
  }
  for (wl_u32 i = 0; i < SIMT_WARP; i++) {
    w->threads[i].warp = w;
    w->threads[i].device = d;
    w->threads[i].me.progress = &d->progress;
  }
  if (!init_fibers(w)) {
    close_warp(w);
    return NULL;
  }
  return w;
}

static void drop_warps(device *d, wl_u32 n_kept) {
  while (d->n_warps > n_kept) close_warp(d->warps[--d->n_warps]);
}

static void close_device(void *p) {
  device *d = (device *)p;
  if (!d) return;
  drop_warps(d, 0);
  for (int i = 0; i < MAX_RESIDENT; i++) wl_mem_free(d->blocks[i].shared);
  wl_mem_free(d->run);
  wl_mem_free(d->later);
  wl_mem_free(d);
  own_device = NULL;
}

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static void make_key(void) {
  key_made = pthread_key_create(&key, close_device) == 0;
}

/*
** When the library is unloaded, threads that still run must not call into it when they exit. Their
** memory leaks; that of the unloading thread is freed.
*/
__attribute__((destructor)) static void drop_key(void) {
  if (key_made) {
    close_device(own_device);
    pthread_key_delete(key);
    key_made = false;
  }
}

static device *open_device(void) {
  if (own_device) return own_device;
  pthread_once(&key_once, make_key);
  device *d = key_made ? (device *)wl_mem_zalloc(sizeof *d) : NULL;
  if (!d) return NULL;
  d->run = (thread **)wl_mem_alloc(MAX_THREADS * sizeof(thread *));
  d->later = (thread **)wl_mem_alloc(MAX_THREADS * sizeof(thread *));
  if (!d->run || !d->later || pthread_setspecific(key, d) != 0) {
    close_device(d);
    return NULL;
  }
  own_device = d;
  return d;
}

void wl_sim_release(void) {
  if (!own_device) return;
  pthread_setspecific(key, NULL);
  close_device(own_device);
}

/* ---- a launch */

static bool has_shared(block *b, size_t n) {
  if (b->shared && b->room >= n + SHARED_GUARD) return true;
  wl_mem_free(b->shared);
  b->room = n + SHARED_GUARD;
  b->shared = (unsigned char *)wl_mem_alloc(b->room);
  return b->shared != NULL;
}

static bool has_warps(device *d, wl_u32 n) {
  while (d->n_warps < n) {
    warp *w = open_warp(d);
    if (!w) return false;
    d->warps[d->n_warps++] = w;
  }
  return true;
}

static bool prepare_block(device *d, block *b, warp **warps) {
  b->n_warps = d->block_dim / SIMT_WARP;
  b->warps = warps;
  b->n_shared = d->shared_bytes;
  return has_shared(b, d->shared_bytes);
}

static bool prepare(device *d, unsigned seed) {
  /* Similar seeds must not give similar runs, so mix the seed well (splitmix64). */
  wl_u64 x = (wl_u64)seed + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  d->random = (x ^ (x >> 31)) | 1;

  static const wl_u32 mixes[4] = {0, 1, 4, 8};
  d->mix = mixes[random_bits(d) & 3];
  d->downwards = random_bits(d) & 1;
  d->n_run = d->n_later = d->n_window = d->n_dealt = d->n_stuck = 0;
  d->trouble = NO_TROUBLE;
  d->n_resident = 1 + random_below(d, MAX_RESIDENT);
  if (d->n_resident > d->grid) d->n_resident = d->grid;

  wl_u32 n_warps = d->block_dim / SIMT_WARP;
  if (!has_warps(d, d->n_resident * n_warps)) return false;
  for (wl_u32 i = 0; i < d->n_resident; i++) {
    if (!prepare_block(d, &d->blocks[i], d->warps + (size_t)i * n_warps)) return false;
  }
  return true;
}

static wl_status report(device *d, wl_error *err) {
  wl_u32 n[GONE + 1] = {0}, bid = 0;
  switch (d->trouble) {
  case MIXED_OPS:
    return wl_fail(err, WL_ERROR,
                   "kernel error in block %u: lanes of one warp are in different warp operations",
                   d->trouble_bid);
  case OVERRAN_SHARED:
    return wl_fail(err, WL_ERROR, "kernel error in block %u: write past its shared memory",
                   d->trouble_bid);
  default: break;
  }
  for (int i = 0; i < MAX_RESIDENT; i++) {
    block *b = &d->blocks[i];
    if (!b->warps || b->n_live == 0) continue;
    bid = b->bid;
    for (wl_u32 j = 0; j < b->n_warps * SIMT_WARP; j++)
      n[b->warps[j / SIMT_WARP]->threads[j % SIMT_WARP].state]++;
  }
  return wl_fail(err, WL_ERROR,
                 "kernel deadlock in %u block%s (one is %u): %u threads at a barrier, "
                 "%u in a warp operation, %u spinning, %u returned",
                 d->n_resident, d->n_resident == 1 ? "" : "s", bid, n[AT_BARRIER], n[AT_WARP_OP],
                 n[SPINNING], n[GONE]);
}

static wl_status check_shape(unsigned grid, unsigned block, size_t shared_bytes, wl_error *err) {
  if (wl_sim_me) return wl_fail(err, WL_MISUSE, "a kernel cannot launch a kernel");
  if (grid == 0 || grid > 0x7fffffffu)
    return wl_fail(err, WL_MISUSE, "cannot launch a grid of %u blocks", grid);
  if (block == 0 || block > MAX_WARPS * SIMT_WARP || block % SIMT_WARP != 0)
    return wl_fail(err, WL_MISUSE, "cannot launch blocks of %u threads", block);
  if (shared_bytes > WL_SIM_MAX_SHARED)
    return wl_fail(err, WL_MISUSE, "cannot launch blocks with %zu bytes of shared memory",
                   shared_bytes);
  return WL_OK;
}

wl_status wl_sim_reserve(unsigned block_dim, size_t shared_bytes, wl_error *err) {
  device *d = open_device();
  bool has = d && has_warps(d, MAX_RESIDENT * (block_dim / SIMT_WARP));
  for (int i = 0; i < MAX_RESIDENT && has; i++) has = has_shared(&d->blocks[i], shared_bytes);
  return has ? WL_OK : wl_nomem(err);
}

wl_status wl_sim_launch(void (*kernel)(const void *args), const void *args, unsigned grid,
                        unsigned block_dim, size_t shared_bytes, unsigned seed, wl_error *err) {
  wl_status rc = check_shape(grid, block_dim, shared_bytes, err);
  if (rc != WL_OK) return rc;
  device *d = open_device();
  if (!d) return wl_nomem(err);
  d->kernel = kernel;
  d->args = args;
  d->grid = grid;
  d->block_dim = block_dim;
  d->shared_bytes = shared_bytes;
  for (int i = 0; i < MAX_RESIDENT; i++) {
    d->blocks[i].warps = NULL;
    d->blocks[i].n_live = 0;
  }
  if (!prepare(d, seed)) return wl_nomem(err);

  for (wl_u32 i = 0, n = d->n_resident; i < n; i++) start_block(d, &d->blocks[i]);
  wl_fiber_adopt(&d->host);
  wl_u32 n_used = d->n_resident * (block_dim / SIMT_WARP);
  thread *first = d->run[--d->n_run];
  wl_sim_me = &first->me;
  wl_fiber_give(&d->begun);
  wl_fiber_switch(&d->host, &first->fiber);
  wl_fiber_take(&d->ended);
  wl_sim_me = NULL;

  bool overflow = false;
  for (wl_u32 i = 0; i < n_used * SIMT_WARP; i++)
    overflow |= wl_fiber_overflowed(&d->warps[i / SIMT_WARP]->threads[i % SIMT_WARP].fiber);
  if (!overflow && d->trouble == NO_TROUBLE) return WL_OK;

  rc = overflow ? wl_fail(err, WL_ERROR, "kernel error: a thread overran its stack of %u bytes",
                          WL_FIBER_STACK - WL_FIBER_GAP)
                : report(d, err);
  for (int i = 0; i < MAX_RESIDENT; i++) unguard_shared(&d->blocks[i]);
  for (wl_u32 i = 0; i < n_used; i++) {
    if (init_fibers(d->warps[i])) continue;
    drop_warps(d, i);
    break;
  }
  return rc;
}
