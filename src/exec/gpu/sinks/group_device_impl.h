/*
** What the files about groups on a device share: group_device.c (methods, launches), group_codes.c
** (keys that become codes), group_sets.c (DISTINCT aggregates), group_order.c and group_finish.c
** (columns on the device) and group_fetch.c (groups on the host).
*/
#ifndef WL_GROUP_DEVICE_IMPL_H
#define WL_GROUP_DEVICE_IMPL_H

#include "exec/gpu/sinks/group_device.h"
#include "exec/gpu/coded.h"
#include "exec/gpu/columns/devcol.h"
#include "exec/gpu/kernels/kfargs.h"

enum { C_MADE, C_FULL, C_SIDE, C_PACKED, COUNTERS };

struct wl_dgroups {
  const wl_program *p;     /* coded.p */
  const wl_program *whole; /* the program before its keys became codes */
  wl_arena arena;
  wl_coded coded;
  wl_device *d;
  wl_kgroup k;          /* the kernel's arguments */
  wl_key_layout layout; /* words in the order of the groups */
  wl_key_part parts[WL_KG_PARTS];
  wl_u64 total;   /* number of possible words, if the key is one word; 0: 2^64 */
  wl_u64 n_rows;  /* rows of the table */
  wl_i64 room;    /* bytes that the records may take */
  wl_u32 n_keyed; /* key words in a record */
  wl_u64 *counters;
  wl_u64 *arrived; /* pinned host memory, to which each launch in queue 0 copies them at its end */
  int n_launches, n_elsewhere; /* since the last settle: all, and those in other queues */
  wl_u64 *pack; /* a range of the groups without the empty slots */
  wl_u64 n_pack_slots;
  wl_u64 *side; /* [n_side] triples, on the host */
  wl_u64 n_side, size_side;
  wl_kvalues *sets;   /* [k.n_sets]: the sets of DISTINCT aggregates */
  wl_kvalues *d_sets; /* their copy on the device */
  wl_kcoder *coders;  /* [coded.n] */
  wl_kcoder *d_coders; /* their copy on the device, followed by their numbers of used words */
  wl_kcoder fetched[WL_CODERS]; /* copies of the coders of keys on the host */
  wl_u64 one[2 + 12 * WL_KG_ACCS]; /* without keys: the slot, 0, and the record */
  wl_u64 n_made; /* hash: number of groups so far */
  wl_i64 held;
  char way[80];
};

/* Allocates and frees device memory that the groups hold. */
wl_status wl_dgroups_take(wl_dgroups *g, size_t n, void *out, wl_error *err) WL_MUST;
void wl_dgroups_drop(wl_dgroups *g, void *p, size_t n);
size_t wl_dgroups_pack_bytes(const wl_dgroups *g);
/* Empties the groups. Codes stay: they must be the same in all passes, because passes divide the
** groups by them. */
wl_status wl_dgroups_clear(wl_dgroups *g, wl_error *err) WL_MUST;

/* The sets of DISTINCT aggregates (group_sets.c). */
wl_status wl_dgroups_sets_fit(const wl_program *p, wl_error *err) WL_MUST;
/* What adds the values of a set to a group. p: the program before they became codes. */
wl_u32 wl_dgroups_set_op(const wl_program *p, int acc);
wl_status wl_dgroups_sets_open(wl_dgroups *g, wl_error *err) WL_MUST;
/* Also adapts the sets to the number of slots for groups. */
wl_status wl_dgroups_sets_clear(wl_dgroups *g, wl_error *err) WL_MUST;
/* Called when a set was full. *grown is false if it is as large as it may be. */
wl_status wl_dgroups_sets_grow(wl_dgroups *g, int set, bool *grown, wl_error *err) WL_MUST;
void wl_dgroups_sets_close(wl_dgroups *g);

/* The groups in the order in which they leave (group_order.c). */
typedef struct wl_dlist {
  wl_u64 n;         /* groups */
  wl_u32 *slots[2]; /* slots[0] has the slot of each */
  wl_u64 *keys[2];
  wl_u32 *keep;
  wl_u64 *places;
  wl_u64 n_slots, n_sorted; /* the sizes of these arrays */
} wl_dlist;
/* x is all zero. WL_FULL: there is no memory, or the keys need too many rounds. Close it even then. */
wl_status wl_dgroups_list(wl_dgroups *g, wl_dlist *x, wl_stop *stop, wl_error *err) WL_MUST;
void wl_dgroups_list_close(wl_dgroups *g, wl_dlist *x);

/* group_finish.c: a key as a column, of which the caller sets v, tags and lengths. Then the columns
** of the groups at n slots. */
wl_kfcol wl_dgroups_key_column(const wl_dgroups *g, int key);
wl_status wl_dgroups_compute(wl_dgroups *g, const wl_kfcol *cols, int n_cols, const wl_u32 *slots,
                             wl_u64 n, wl_error *err) WL_MUST;

/* Coders of keys and distinct values (group_codes.c). */
wl_status wl_dgroups_codes_plan(wl_dgroups *g, const wl_program *p, wl_error *err) WL_MUST;
wl_status wl_dgroups_codes_open(wl_dgroups *g, wl_error *err) WL_MUST;
wl_status wl_dgroups_codes_clear(wl_dgroups *g, wl_error *err) WL_MUST;
wl_status wl_dgroups_codes_grow(wl_dgroups *g, wl_u64 full, wl_error *err) WL_MUST;
/* Brings the values of codes of keys, and those of min() and max(), to the host. */
wl_status wl_dgroups_codes_fetch(wl_dgroups *g, wl_error *err) WL_MUST;
wl_val wl_dgroups_of_code(const wl_dgroups *g, int coder, wl_val code);
/* The value of a min() or max() of any values, from its word. */
wl_val wl_dgroups_kept_value(const wl_dgroups *g, int coder, wl_u64 word);
void wl_dgroups_codes_close(wl_dgroups *g);

#endif
