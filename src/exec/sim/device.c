/*
** The simulated device. Host memory serves as device memory, fibers serve as GPU threads, and
** plain loops replace the library calls. Work waits in queues (queue.h), as on a real device.
*/
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/kernels.h"
#include "exec/sim/launch.h"
#include "exec/sim/queue.h"
#include "base/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pinned host memory. */
typedef struct pinned {
  wl_u8 *p;
  size_t n;
} pinned;

typedef struct sim {
  wl_sim_queues *queues;
  struct {
    int queue;
    wl_u64 until;
  } marks[WL_EVENTS];
  pinned *blocks;
  int n_blocks, size_blocks;
} sim;

static sim *sim_of(const wl_device *d) {
  return d->impl;
}

static wl_status add(wl_device *d, const wl_sim_work *w, wl_error *err) {
  return wl_sim_add(sim_of(d)->queues, d->queue, w, err);
}

static wl_status wait_for(wl_device *d, int queue, wl_u64 until, wl_error *err) {
  d->n_waits++;
  return wl_sim_run(sim_of(d)->queues, queue, until, err);
}

static wl_status sim_finish(wl_device *d, wl_error *err) {
  return wait_for(d, d->queue, wl_sim_end(sim_of(d)->queues, d->queue), err);
}

/* ---- memory */

static wl_status sim_fill(wl_device *d, void *p, int byte, size_t n, wl_error *err) {
  return add(d, &(wl_sim_work){.kind = WL_SIM_FILL, .to = p, .byte = byte, .n = n}, err);
}

static wl_status sim_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  wl_sim_queues *q = sim_of(d)->queues;
  if (wl_sim_held(q) + (wl_i64)n > d->memory) wl_sim_run_all(q); /* some of it may be freed then */
  if (wl_sim_held(q) + (wl_i64)n > d->memory)
    return wl_fail(err, WL_FULL, "the simulated device has %lld bytes", d->memory);
  void *p = wl_mem_alloc(n);
  if (!p) return wl_nomem(err);
  wl_status rc = sim_fill(d, p, 0xa5, n, err); /* fresh device memory is not zero */
  if (rc) {
    wl_mem_free(p);
    return rc;
  }
  wl_sim_hold(q, n);
  *out = p;
  return WL_OK;
}

static void sim_free(wl_device *d, void *p, size_t n) {
  wl_error ignored;
  if (add(d, &(wl_sim_work){.kind = WL_SIM_FREE, .to = p, .n = n}, &ignored)) return; /* it leaks */
}

static wl_status sim_host_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  sim *s = sim_of(d);
  if (s->n_blocks == s->size_blocks) {
    int size = s->size_blocks ? 2 * s->size_blocks : 16;
    pinned *p =
        wl_mem_realloc(s->blocks, (size_t)s->size_blocks * sizeof *p, (size_t)size * sizeof *p);
    if (!p) return wl_nomem(err);
    s->blocks = p;
    s->size_blocks = size;
  }
  n = (n + WL_DEV_ALIGN) & ~(size_t)(WL_DEV_ALIGN - 1);
  *out = wl_mem_alloc(n);
  if (!*out) return wl_nomem(err);
  s->blocks[s->n_blocks++] = (pinned){*out, n};
  return WL_OK;
}

/* The block that an address is in, or NULL. */
static pinned *block_of(const sim *s, const void *p) {
  for (pinned *b = s->blocks; b < s->blocks + s->n_blocks; b++)
    if ((const wl_u8 *)p >= b->p && (const wl_u8 *)p < b->p + b->n) return b;
  return NULL;
}

/* Removes a block from the list. Its next user may overwrite it at once. */
static void release(sim *s, void *p) {
  pinned *b = block_of(s, p);
  if (!b) return;
  memset(b->p, 0xdd, b->n);
  *b = s->blocks[--s->n_blocks];
}

static void sim_host_free(wl_device *d, void *p) {
  release(sim_of(d), p);
  wl_mem_free(p);
}

static void sim_host_free_later(wl_device *d, void *p) {
  pinned *b = block_of(sim_of(d), p);
  wl_error ignored;
  if (b) *b = sim_of(d)->blocks[--sim_of(d)->n_blocks];
  if (add(d, &(wl_sim_work){.kind = WL_SIM_FREE_HOST, .to = p}, &ignored)) return; /* it leaks */
}

static wl_status sim_host_address(wl_device *d, void *p, void **out, wl_error *err) {
  (void)d;
  (void)err;
  *out = p;
  return WL_OK;
}

/* ---- copies */

static wl_status sim_copy_later(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  if (!n) return WL_OK;
  return add(d, &(wl_sim_work){.kind = WL_SIM_COPY, .to = to, .from = from, .n = n}, err);
}

/* CUDA reads ordinary memory at once, but pinned memory when the copy's turn comes. */
static wl_status sim_copy_in(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  if (!n) return WL_OK;
  if (block_of(sim_of(d), from)) return sim_copy_later(d, to, from, n, err);
  void *own = wl_mem_alloc(n);
  if (!own) return wl_nomem(err);
  memcpy(own, from, n);
  return add(d, &(wl_sim_work){.kind = WL_SIM_COPY, .to = to, .from = own, .n = n, .owned = own},
             err);
}

static wl_status sim_copy_out(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  if (!n) return WL_OK;
  wl_status rc = sim_copy_later(d, to, from, n, err);
  return rc ? rc : sim_finish(d, err);
}

/* ---- order */

static wl_status sim_follow(wl_device *d, int other, wl_error *err) {
  wl_u64 until = wl_sim_end(sim_of(d)->queues, other);
  return add(d, &(wl_sim_work){.kind = WL_SIM_FOLLOW, .queue = other, .until = until}, err);
}

static wl_status sim_mark(wl_device *d, int event, wl_error *err) {
  (void)err;
  sim_of(d)->marks[event].queue = d->queue;
  sim_of(d)->marks[event].until = wl_sim_end(sim_of(d)->queues, d->queue);
  return WL_OK;
}

static wl_status sim_wait(wl_device *d, int event, wl_error *err) {
  return wait_for(d, sim_of(d)->marks[event].queue, sim_of(d)->marks[event].until, err);
}

/* ---- work */

static wl_status sim_launch(wl_device *d, wl_kernel k, const void *args, size_t n_args,
                            unsigned grid, unsigned block, size_t n_shared, wl_error *err) {
  static void (*const kernels[WL_N_KERNELS])(const void *) = {
      [WL_K_INTERP_NUMBERS] = wl_interp_numbers,
      [WL_K_INTERP] = wl_interp,
      [WL_K_EXPAND] = wl_expand,
      [WL_K_ROUND] = wl_round,
      [WL_K_MAKE_LISTS] = wl_lists,
      [WL_K_GATHER] = wl_gather,
      [WL_K_TILES] = wl_tiles,
      [WL_K_PACK] = wl_pack_rows,
      [WL_K_GROUP_NUMBERS] = wl_group_numbers,
      [WL_K_GROUP] = wl_group,
      [WL_K_GROUP_PACK] = wl_group_pack,
      [WL_K_ORDER_KEYS] = wl_order_keys,
      [WL_K_ORDER_FIRST] = wl_order_first,
      [WL_K_ORDER_KEPT] = wl_order_kept,
      [WL_K_ORDER_PERMUTE] = wl_order_permute,
      [WL_K_TIES_SKIP] = wl_ties_skip,
      [WL_K_TIES_WORDS] = wl_ties_words,
      [WL_K_TIES_RUNS] = wl_ties_runs,
      [WL_K_TIES_SPLIT] = wl_ties_split,
      [WL_K_TIES_NEXT] = wl_ties_next,
      [WL_K_FINISH_KEEP] = wl_finish_keep,
      [WL_K_FINISH_WORDS] = wl_finish_words,
      [WL_K_FINISH] = wl_finish,
      [WL_K_MADE] = wl_made,
      [WL_K_TEXT_BASES] = wl_text_bases,
      [WL_K_TEXT_COLUMN] = wl_text_values,
      [WL_K_STAY] = wl_stay,
      [WL_K_INTERP_LONG] = wl_interp_long,
      [WL_K_GROUP_LONG] = wl_group_long,
      [WL_K_GROUP_SETS] = wl_group_sets,
      [WL_K_GROUP_SETS_LONG] = wl_group_sets_long,
  };
  /* a kernel that waits in its queue must not run out of memory then */
  wl_status rc = wl_sim_reserve(block, n_shared, err);
  void *own = rc ? NULL : wl_mem_alloc(n_args + 1);
  if (!own) return wl_nomem(err);
  memcpy(own, args, n_args);
  return add(d,
             &(wl_sim_work){.kind = WL_SIM_LAUNCH,
                            .kernel = kernels[k],
                            .from = own,
                            .owned = own,
                            .grid = grid,
                            .block = block,
                            .n_shared = n_shared},
             err);
}

static wl_status sim_scan(wl_device *d, const wl_u32 *in, wl_u64 *sums, wl_i64 n, wl_error *err) {
  return add(d, &(wl_sim_work){.kind = WL_SIM_SCAN, .from = in, .to = sums, .n = (size_t)n}, err);
}

static wl_status sim_sort(wl_device *d, wl_u64 *keys[2], wl_u32 *values[2], wl_i64 n, int n_bits,
                          int *at, wl_error *err) {
  *at = wl_sim_sorted_at(n_bits);
  return add(d,
             &(wl_sim_work){.kind = WL_SIM_SORT,
                            .keys = {keys[0], keys[1]},
                            .values = {values[0], values[1]},
                            .n = (size_t)n,
                            .n_bits = n_bits},
             err);
}

/* The simulated devices, by their memory. Small ones are like old GPUs. */
typedef struct model {
  int mebibytes, max_shared, block_threads, n_processors, blocks_each;
} model;

static const model models[] = {{1, 48 << 10, 32, 1, 1},
                               {16, 64 << 10, 64, 2, 1},
                               {128, 99 << 10, 128, 3, 2},
                               {1024, 96 << 10, 64, 2, 2}};
enum { N_MODELS = sizeof models / sizeof *models };

/* The smallest one with at least WARPLITE_SIM_MEMORY mebibytes; without the variable, the last. */
static const model *choose_model(void) {
  const char *word = secure_getenv("WARPLITE_SIM_MEMORY");
  int k = 0, least = word && *word ? atoi(word) : models[N_MODELS - 1].mebibytes;
  while (k < N_MODELS - 1 && models[k].mebibytes < least) k++;
  return &models[k];
}

wl_status wl_device_open_sim(wl_device *d, wl_error *err) {
  sim *s = wl_mem_zalloc(sizeof *s);
  if (s) s->queues = wl_sim_queues_open();
  if (!s || !s->queues) {
    wl_mem_free(s);
    return wl_nomem(err);
  }
  d->impl = s;
  const model *m = choose_model();
  snprintf(d->name, sizeof d->name, "simulator");
  d->memory = (wl_i64)m->mebibytes << 20;
  d->free_memory = d->budget = d->memory;
  d->n_processors = m->n_processors;
  d->max_shared = m->max_shared;
  d->block_threads = m->block_threads;
  d->blocks_each = m->blocks_each;
  d->least_build = 1;
  d->least_tablets = 1;
  d->n_stage = 100 * 1024; /* small, so that a column needs several buffers */
  d->alloc = sim_alloc;
  d->free = sim_free;
  d->copy_in = sim_copy_in;
  d->copy_out = sim_copy_out;
  d->fill = sim_fill;
  d->copy_on = sim_copy_later;
  d->launch = sim_launch;
  d->scan = sim_scan;
  d->sort = sim_sort;
  d->copy_in_later = sim_copy_later;
  d->copy_out_later = sim_copy_later;
  d->follow = sim_follow;
  d->finish = sim_finish;
  d->mark = sim_mark;
  d->wait = sim_wait;
  d->host_alloc = sim_host_alloc;
  d->host_address = sim_host_address;
  d->host_free = sim_host_free;
  d->host_free_later = sim_host_free_later;
  return WL_OK;
}
