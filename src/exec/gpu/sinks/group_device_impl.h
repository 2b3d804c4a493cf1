/*
** What the files about groups on a device share (group_device.c, group_finish.c, group_sets.c).
*/
#ifndef WL_GROUP_DEVICE_IMPL_H
#define WL_GROUP_DEVICE_IMPL_H

#include "exec/gpu/sinks/group_device.h"
#include "exec/gpu/columns/devcol.h"
#include "exec/gpu/kernels/kgargs.h"

enum { C_MADE, C_FULL, C_SIDE, C_PACKED, COUNTERS };

struct wl_dgroups {
  const wl_program *p;
  wl_device *d;
  wl_kgroup k;          /* the kernel's arguments */
  wl_key_layout layout; /* words in the order of the groups */
  wl_key_part parts[WL_KG_PARTS];
  wl_u64 total;   /* number of possible words, if the key is one word; 0: 2^64 */
  wl_u64 n_rows;  /* rows of the table */
  wl_i64 room;    /* bytes that the records may take */
  wl_u32 n_keyed; /* key words in a record */
  wl_u64 *counters;
  wl_u64 *pack; /* a range of the groups without the empty slots */
  wl_u64 n_pack_slots;
  wl_u64 *side; /* [n_side] triples, on the host */
  wl_u64 n_side, size_side;
  wl_kvalues *sets;   /* [k.n_sets]: the sets of DISTINCT aggregates */
  wl_kvalues *d_sets; /* their copy on the device */
  wl_u64 one[2 + 7 * WL_KG_ACCS]; /* without keys: the slot, 0, and the record */
  wl_u64 n_made; /* hash: number of groups so far */
  wl_i64 held;
  char way[80];
};

/* Allocates and frees device memory that the groups hold. */
wl_status wl_dgroups_take(wl_dgroups *g, size_t n, void *out, wl_error *err) WL_MUST;
void wl_dgroups_drop(wl_dgroups *g, void *p, size_t n);

/* The sets of DISTINCT aggregates (group_sets.c). */
wl_status wl_dgroups_sets_fit(const wl_program *p, wl_error *err) WL_MUST;
wl_u32 wl_dgroups_set_op(const wl_program *p, int acc); /* what adds the values of a set to a group */
wl_status wl_dgroups_sets_open(wl_dgroups *g, wl_error *err) WL_MUST;
/* Also adapts the sets to the number of slots for groups. */
wl_status wl_dgroups_sets_clear(wl_dgroups *g, wl_error *err) WL_MUST;
/* Called when a set was full. *grown is false if it is as large as it may be. */
wl_status wl_dgroups_sets_grow(wl_dgroups *g, int set, bool *grown, wl_error *err) WL_MUST;
void wl_dgroups_sets_close(wl_dgroups *g);

#endif
