/*
** The internals of groups; see group.h. Shared by group.c (finding groups), group_acc.c
** (accumulating), group_one.c (accumulating without GROUP BY), group_join.c (joining and
** finishing), group_words.c (what is set aside), group_scatter.c (large arrays), group_order.c
** (sorting), group_rows.c (groups that are found by row numbers) and group_plan.c (layout).
** value/aggregates.h has the states and the operations on them.
**
** A group is an entry of plan->width bytes:
**
**   words mode    [word 0 … n_words-1] [first row] [signs] [state 0 …]
**   values mode   [hash] [value 0 … n_keys-1]  [first row]         [state 0 …]
**   direct mode                                [first row]         [state 0 …]
**
** Invariants:
** 1. The only pointers in an entry are to memory in the arena of the worker that made it. The arena
**    outlives the entry, so entries may be copied freely.
** 2. Words, compared from first to last, have the order in which groups are emitted: NULL is the
**    least, and descending keys are inverted.
** 3. Without keys the mode is direct, and entry 0 is the one group.
*/
#ifndef WL_GROUP_IMPL_H
#define WL_GROUP_IMPL_H

#include "base/arena.h"
#include "exec/cpu/group/group.h"
#include "value/aggregates.h"
#include "value/hash.h"
#include "exec/sort/sort.h"

enum { N_PARTS = 64, PART_SHIFT = 58 };

typedef struct group_slab group_slab;
typedef struct word_chunk word_chunk;

typedef struct scatter_plan scatter_plan;
typedef struct scatter_rows scatter_rows;

typedef enum group_mode { MODE_DIRECT, MODE_WORDS, MODE_VALUES } group_mode;

struct wl_grouping {
  const wl_program *p;
  int n_keys; /* values mode: number of values in an entry; by rows: number of keys */
  const wl_u8 *colls;
  group_mode mode;
  wl_key_layout words;
  wl_u64 n_direct;
  scatter_plan *scatter; /* direct mode: rows are divided by range first; NULL: they are not */
  bool has_first, has_signs;
  wl_i64 left;        /* bytes that the groups of all workers may take; 0: no limit */
  int n_workers;      /* number of workers */
  wl_i64 most;        /* most groups in a worker's table before they are set aside */
  wl_i64 group_bytes; /* bytes of a joined group, including its columns and sorting */
  bool whole;         /* groups are never set aside, because a state cannot be joined */
  bool only_words;    /* an entry is one word: the values of count(DISTINCT) */
  size_t first_at, signs_at, width;
  bool rows; /* row numbers are needed */
  int n_accs;
  wl_agg_how *accs; /* [n_accs] */
  size_t *places;   /* [n_accs]: byte offset of the state in an entry */
  int n_sets;
  struct wl_grouping **sets; /* for DISTINCT aggregates: the groups' keys and the value as keys */
  wl_arena arena;
};

/* Entries and a hash table over them. */
typedef struct group_table {
  wl_u8 *entries;
  wl_i64 n, size;
  wl_u64 *slots; /* upper half: upper half of the hash; lower half: entry + 1, or 0 if empty */
  wl_u64 n_slots;
} group_table;

/* A run: groups that were set aside, with entries ordered by part. */
typedef struct group_run {
  struct group_run *next;
  wl_u8 *entries; /* NULL: they are in the worker's file */
  bool own;       /* they are not in a slab */
  wl_i64 offset;  /* where they begin in the file, in bytes */
  wl_u32 starts[N_PARTS + 1];
} group_run;

/* Words by part that were not looked up. */
typedef struct word_lists {
  word_chunk *first[N_PARTS], *last[N_PARTS];
  wl_i64 n[N_PARTS];
} word_lists;

struct wl_groups {
  const wl_grouping *plan;
  group_table table; /* direct mode: only entries is used */
  wl_u8 *seen;       /* direct mode: whether each group has rows */
  scatter_rows *scattered;
  bool adding; /* of scattered rows */
  group_run *runs, **last_run;
  word_lists *lists; /* or NULL */
  group_slab *slabs; /* memory of runs and lists */
  size_t slab_used;  /* bytes of the first */
  wl_i64 n_set_aside;
  wl_i64 n_rows;  /* rows since the table was last set aside */
  wl_i64 n_bytes; /* bytes of the runs and lists in memory */
  int file;       /* file descriptor for the other runs, or -1 */
  wl_i64 n_file;
  bool blind; /* rows are not looked up any more, because too few were found */
  wl_arena arena;
  wl_groups **sets;
  const wl_vec *keys; /* keys of the current vector */
  wl_u64 *words;      /* [n_words][WL_VECTOR]: the same as words */
  wl_u64 *scratch;    /* [3 * WL_VECTOR] */
  wl_u8 *probe;       /* the entry to look for */
  wl_vec *set_keys;   /* a set's keys as vectors */
};

static inline wl_u8 *entry_at(const wl_grouping *g, const group_table *t, wl_i64 i) {
  return t->entries + (size_t)i * g->width;
}
static inline wl_i64 *entry_first(const wl_grouping *g, wl_u8 *e) {
  return (wl_i64 *)(void *)(e + g->first_at);
}
static inline wl_u64 *entry_signs(const wl_grouping *g, wl_u8 *e) {
  return (wl_u64 *)(void *)(e + g->signs_at);
}
static inline wl_val *entry_values(wl_u8 *e) {
  return (wl_val *)(void *)(e + 8);
}
static inline void *entry_state(const wl_grouping *g, wl_u8 *e, int k) {
  return e + g->places[k];
}
static inline wl_u64 hash_words(const wl_u64 *w, int n) {
  wl_u64 h = 0;
  for (int k = 0; k < n; k++) h = wl_hash_mix(h, w[k]);
  return h;
}

wl_u64 wl_group_hash_values(const wl_grouping *g, const wl_val *v);
wl_u64 wl_group_hash_entry(const wl_grouping *g, const wl_u8 *e);

/* ---- tables (group.c) */
/* Returns the entry with the key of e, or -1. *slot is where it is or would be. */
wl_i64 wl_group_look(const wl_grouping *g, const group_table *t, wl_u64 hash, const wl_u8 *e,
                     wl_u64 *slot);
wl_status wl_group_room(const wl_grouping *g, group_table *t, wl_i64 more) WL_MUST;
void wl_group_table_close(group_table *t);
/* Copies entries [from, to) of a run, from memory or from disk, into room. */
wl_status wl_group_read(const wl_groups *g, const group_run *r, wl_i64 from, wl_i64 to,
                        wl_u8 *room) WL_MUST;
wl_status wl_group_set_aside(wl_groups *g) WL_MUST; /* turns the table into a run */

/* Whether a worker uses more than 1/share of its part of the memory. */
bool wl_group_over(const wl_groups *g, wl_i64 share);

/* ---- what is set aside, and sets of words (group_words.c) */
bool wl_group_slabs_fit(const wl_grouping *p); /* into the memory that there is */
/* Memory that lives as long as the runs. NULL: there is none, or n_bytes is large. */
void *wl_group_slab_alloc(wl_groups *g, size_t n_bytes);
void wl_group_runs_free(wl_groups *g); /* frees runs and lists */
/* Appends words to the lists. */
wl_status wl_group_words_add(wl_groups *g, const wl_u64 *words, int n) WL_MUST;
/* The next words of a list, in pieces; NULL: there are no more. *at is NULL at first. */
const wl_u64 *wl_group_words(const wl_groups *g, int part, const word_chunk **at, wl_i64 *n);

/* ---- joining (group_join.c): the groups of all workers */
typedef struct joined {
  const wl_grouping *plan;
  group_table tables[N_PARTS]; /* by the upper bits of the hash; direct mode: only the first */
  wl_u8 *seen;                 /* direct mode */
  wl_arena arenas[N_PARTS];
  wl_i64 n;
  wl_u8 **entries; /* [n] */
  wl_u32 *places;  /* [n]: direct mode: its index, which is its word */
  /* Keys that are computed from rows; NULL: there are none. */
  struct row_keys *computed; /* by find */
  wl_u32 *numbers;           /* [n]: the number of the group there */
  bool count_only; /* only n is needed */
} joined;

wl_status wl_group_join_all(const wl_finishing *f, const wl_grouping *plan, int set, joined *out,
                            wl_error *err) WL_MUST;
void wl_group_joined_close(joined *j);
/* Counts the different words of all workers: out->tables[part].n (group_words.c). *done is false if
** there is no room for that, or some are on disk. */
wl_status wl_group_count_words(const wl_finishing *f, const wl_grouping *plan, wl_groups **from,
                               int n_from, joined *out, bool *done, wl_error *err) WL_MUST;
/* Finds the entry of a group by its words or values; NULL if there is none. */
wl_u8 *wl_group_entry(const joined *j, const wl_u64 *words, const wl_val *values);

/* ---- direct mode with a large array (group_scatter.c) */
/* Sets plan->scatter if that pays. */
wl_status wl_group_plan_scatter(wl_grouping *g, wl_i64 n_rows, wl_error *err) WL_MUST;
/* Stores the groups of n rows, whose places are g->words, and their row numbers. */
wl_status wl_group_scatter(wl_groups *g, const wl_i64 *rows, int n) WL_MUST;
/* Stores the argument of an accumulator for these rows. */
void wl_group_scatter_add(wl_groups *g, int acc, const wl_vec *v, int n);
/* Accumulates the rows of all workers in the array of `out`. */
wl_status wl_group_join_scattered(const wl_finishing *f, const wl_grouping *plan, wl_groups **from,
                                  int n_from, joined *out, wl_error *err) WL_MUST;
/* The places [from, to) of part `part` of the array. */
void wl_group_range(const wl_grouping *g, int parts, long part, wl_u64 *from, wl_u64 *to);

/* ---- the order of the groups (group_order.c) */
/* Sorts the list of entries into the order in which groups are emitted. If groups were found by row
** numbers, those with equal keys become one. */
wl_status wl_group_put_in_order(const wl_finishing *f, joined *j, wl_error *err) WL_MUST;

/* ---- keys of finished groups (group_rows.c) */
/* Computes the keys that are expressions of rows, before the groups are put in order. */
wl_status wl_group_compute_keys(const wl_finishing *f, joined *j, wl_error *err) WL_MUST;
void wl_group_free_keys(joined *j);
/* A key of group i as a value: from the entry, or from the row whose number the entry has. */
wl_val wl_group_key(const wl_finishing *f, const joined *j, wl_i64 i, int key);
/* Compares the keys of two groups, in the order in which groups are emitted. */
int wl_group_compare_keys(const wl_finishing *f, const joined *j, wl_i64 a, wl_i64 b);
/* Joins groups with equal keys, which are neighbours in the list of entries. */
wl_status wl_group_join_equal(const wl_finishing *f, joined *j, wl_error *err) WL_MUST;

/* ---- computing DISTINCT aggregates from their sets (group_set.c) */
wl_status wl_group_feed_set(const wl_finishing *f, int set, joined *groups, wl_error *err) WL_MUST;

/* ---- states (group_acc.c, group_one.c) */
wl_status wl_group_join(const wl_grouping *g, wl_arena *arena, wl_u8 *into,
                        const wl_u8 *from) WL_MUST;
/* The finished aggregate of an entry. */
wl_status wl_group_final(const wl_grouping *g, const wl_agg *agg, wl_u8 *e, bool in_order,
                         wl_val *out, wl_error *err) WL_MUST;
/* Adds values one by one, to any state. groups is NULL if there are no keys. */
wl_status wl_group_add_values(wl_groups *g, int k, const wl_u32 *groups, const wl_vec *v,
                              const wl_vec *b, const wl_i64 *rows, int n, wl_u64 max_text) WL_MUST;
/* wl_groups_add() without keys: all rows belong to group 0. */
wl_status wl_group_add_one(wl_groups *g, int k, const wl_vec *v, const wl_vec *b,
                           const wl_i64 *rows, int n, wl_u64 max_text) WL_MUST;

/* ---- DISTINCT aggregates */
wl_status wl_group_set_add(wl_groups *g, int set, const wl_vec *v, const wl_i64 *rows,
                           int n) WL_MUST;

#endif
