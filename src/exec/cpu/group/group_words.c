/*
** Memory for what workers set aside, and sets of words; see group_impl.h. Memory is taken in large
** blocks, which later statements use again (base/mem.h). Small ones would go back to the system
** each time.
**
** A set of words is what count(DISTINCT) without GROUP BY needs of numbers. When nearly every value
** is new, a worker stops looking values up. It appends them to lists, one for each part by hash. At
** the end one task for each part counts the different words of all workers, in a table that the
** next part uses again.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include <string.h>

/* ---- memory */

enum { SLAB = 4 << 20, HEAD = 64 };

struct group_slab {
  group_slab *next;
};

bool wl_group_slabs_fit(const wl_grouping *p) {
  enum { SHARE = 8 };
  return !p->left || p->left / p->n_workers / SHARE > SLAB;
}

void *wl_group_slab_alloc(wl_groups *g, size_t n_bytes) {
  n_bytes = (n_bytes + 63) & ~(size_t)63;
  if (n_bytes > SLAB - HEAD || !wl_group_slabs_fit(g->plan)) return NULL;
  if (!g->slabs || g->slab_used + n_bytes > SLAB) {
    group_slab *s = wl_mem_alloc(SLAB);
    if (!s) return NULL;
    s->next = g->slabs;
    g->slabs = s;
    g->slab_used = HEAD;
  }
  void *p = (wl_u8 *)g->slabs + g->slab_used;
  g->slab_used += n_bytes;
  return p;
}

void wl_group_runs_free(wl_groups *g) {
  for (group_run *r = g->runs, *next; r; r = next) {
    next = r->next;
    if (r->own) wl_mem_free(r->entries);
    wl_mem_free(r);
  }
  g->runs = NULL;
  g->last_run = &g->runs;
  wl_mem_free(g->lists);
  g->lists = NULL;
  wl_mem_free(g->scattered);
  g->scattered = NULL;
  for (group_slab *s = g->slabs, *next; s; s = next) {
    next = s->next;
    wl_mem_free(s);
  }
  g->slabs = NULL;
}

/* ---- lists of words */

enum { LIST_WORDS = 1022 };

/* Its bytes are a power of 2. */
struct word_chunk {
  word_chunk *next;
  wl_i64 n;
  wl_u64 words[LIST_WORDS];
};

wl_status wl_group_words_add(wl_groups *g, const wl_u64 *words, int n) {
  word_lists *l = g->lists;
  if (!l && !(l = g->lists = wl_mem_zalloc(sizeof *l))) return WL_NOMEM;
  for (int i = 0; i < n; i++) {
    wl_u64 part = wl_hash_mix(0, words[i]) >> PART_SHIFT;
    word_chunk *c = l->last[part];
    if (!c || c->n == LIST_WORDS) {
      word_chunk *next = wl_group_slab_alloc(g, sizeof *next);
      if (!next) return WL_NOMEM;
      next->next = NULL;
      next->n = 0;
      g->n_bytes += (wl_i64)sizeof *next;
      if (c)
        c->next = next;
      else
        l->first[part] = next;
      l->last[part] = c = next;
    }
    c->words[c->n++] = words[i];
    l->n[part]++;
  }
  g->n_set_aside += n;
  return WL_OK;
}

const wl_u64 *wl_group_words(const wl_groups *g, int part, const word_chunk **at, wl_i64 *n) {
  *at = *at ? (*at)->next : g->lists ? g->lists->first[part] : NULL;
  *n = *at ? (*at)->n : 0;
  return *at ? (*at)->words : NULL;
}

/* ---- counting */

typedef struct word_counting {
  const wl_grouping *plan;
  wl_groups **from;
  int n_from;
  joined *out;
  wl_u64 *slots, n_slots; /* n_slots of each worker */
  wl_stop *stop;
} word_counting;

static wl_i64 words_of(const word_counting *w, int part) {
  wl_i64 n = 0;
  for (int k = 0; k < w->n_from; k++) {
    const wl_groups *g = w->from[k];
    if (g->lists) n += g->lists->n[part];
    for (const group_run *r = g->runs; r; r = r->next)
      n += (wl_i64)r->starts[part + 1] - r->starts[part];
  }
  return n;
}

/* Adds words to a table in which 0 is an empty slot. Returns how many are new; the word 0 is not
** counted, but noted. */
static wl_i64 add_words(wl_u64 *slots, wl_u64 mask, const wl_u64 *words, wl_i64 n, bool *zero) {
  enum { AHEAD = 64 };
  wl_u64 hash[AHEAD];
  wl_i64 n_new = 0;
  for (wl_i64 at = 0; at < n; at += AHEAD) {
    int m = n - at < AHEAD ? (int)(n - at) : AHEAD;
    for (int i = 0; i < m; i++) {
      hash[i] = wl_hash_mix(0, words[at + i]) & mask;
      __builtin_prefetch(&slots[hash[i]]);
    }
    for (int i = 0; i < m; i++) {
      wl_u64 w = words[at + i], s = hash[i];
      while (slots[s] && slots[s] != w) s = (s + 1) & mask;
      *zero |= w == 0;
      n_new += slots[s] != w;
      slots[s] = w;
    }
  }
  return n_new;
}

static wl_status count_task(void *arg, int worker, long part, wl_error *err) {
  word_counting *w = arg;
  (void)err;
  wl_u64 *slots = w->slots + (wl_u64)worker * w->n_slots, size = 64;
  wl_i64 n = 0, m, all = words_of(w, (int)part);
  bool zero = false;
  if (all == 0) return WL_OK;
  while (size * 3 < (wl_u64)all * 4) size *= 2;
  memset(slots, 0, size * sizeof *slots);
  for (int k = 0; k < w->n_from && !wl_stop_now(w->stop, worker); k++) {
    const wl_groups *g = w->from[k];
    const word_chunk *at = NULL;
    for (const wl_u64 *words; (words = wl_group_words(g, (int)part, &at, &m));)
      n += add_words(slots, size - 1, words, m, &zero);
    for (const group_run *r = g->runs; r; r = r->next)
      n += add_words(slots, size - 1, (const wl_u64 *)(const void *)r->entries + r->starts[part],
                     (wl_i64)r->starts[part + 1] - r->starts[part], &zero);
  }
  w->out->tables[part].n = n + zero;
  return WL_OK;
}

wl_status wl_group_count_words(const wl_finishing *f, const wl_grouping *plan, wl_groups **from,
                               int n_from, joined *out, bool *done, wl_error *err) {
  word_counting w = {.plan = plan, .from = from, .n_from = n_from, .out = out, .stop = f->stop};
  wl_i64 most = 0;
  *done = false;
  for (int part = 0; part < N_PARTS; part++) {
    wl_i64 n = words_of(&w, part);
    if (n > most) most = n;
  }
  for (int k = 0; k < n_from; k++)
    if (from[k]->file >= 0) return WL_OK;
  for (w.n_slots = 64; w.n_slots * 3 < (wl_u64)most * 4;) w.n_slots *= 2;
  wl_i64 n_bytes = (wl_i64)w.n_slots * 8 * f->n_workers;
  if (plan->left && n_bytes > plan->left / 2) return WL_OK;
  w.slots = wl_mem_alloc((size_t)n_bytes);
  if (!w.slots) return wl_nomem(err);
  wl_tasks tasks = {f->n_workers, N_PARTS, count_task, &w, f->stop};
  wl_status rc = wl_tasks_run(&tasks, NULL, err);
  wl_mem_free(w.slots);
  *done = true;
  return rc;
}
