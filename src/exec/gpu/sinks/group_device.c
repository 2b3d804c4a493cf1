/*
** Groups on a device; see group_device.h. Methods, tried in this order:
**
**   one      without GROUP BY: each thread gathers in slots of its own, then all add to one record
**   shared   for few groups: the key is the address; each block first gathers in shared memory
**   direct   the key is the address, in global memory; several passes over ranges of the key
**   hash     open addressing in global memory; the table grows, then several passes by hash
*/
#include "exec/gpu/sinks/group_device_impl.h"
#include "base/mem.h"
#include "exec/gpu/columns/devcol.h"
#include "exec/gpu/kernels/kgargs.h"
#include "value/sum/fsum.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
  MAX_KEYS = WL_KG_KEYS, /* the sign bits of a row's keys are packed into 16 bits */
  SIDE_MOST = 1 << 20,   /* most reals per wave that do not fit the digits */
  PACK_BYTES = 32 << 20, /* bytes of groups moved to the host at a time */
  HASH_FIRST = 1 << 18,  /* most records in the first hash table */
  GROWTH = 16,
  MAX_PASSES = 64,
  SAFE_ROWS = 1 << 22 /* two sums of this many 40-bit digits fit in 63 bits */
};
wl_status wl_dgroups_take(wl_dgroups *g, size_t n, void *out, wl_error *err) {
  void *p = NULL;
  wl_status rc = wl_dev_alloc(g->d, n, &p, err);
  if (!rc) g->held += (wl_i64)n;
  memcpy(out, &p, sizeof p);
  return rc;
}
void wl_dgroups_drop(wl_dgroups *g, void *p, size_t n) {
  if (!p) return;
  wl_dev_free(g->d, p, n);
  g->held -= (wl_i64)n;
}
static size_t table_bytes(const wl_dgroups *g) {
  return (size_t)g->k.n_slots * g->k.words * 8;
}
/* Without keys, the record follows the counters, so that both are copied at once. */
static size_t counter_bytes(const wl_dgroups *g) {
  return COUNTERS * 8 + (g->k.mode == WL_KG_ONE ? table_bytes(g) : 0);
}
size_t wl_dgroups_pack_bytes(const wl_dgroups *g) {
  return (size_t)g->n_pack_slots * (1 + g->k.words) * 8;
}
wl_i64 wl_dgroups_bytes(const wl_dgroups *g) {
  return g->held;
}
const char *wl_dgroups_way(const wl_dgroups *g) {
  return g->way;
}

wl_status wl_dgroups_fit(const wl_program *p, wl_error *err) {
  const wl_key *finds = wl_program_finds(p);
  int n_finds = wl_program_n_finds(p);
  if (p->n_accs > WL_KG_ACCS)
    return wl_not_taken(err, "the groups have %d aggregates, the kernel takes %d", p->n_accs,
                        WL_KG_ACCS);
  if (n_finds > MAX_KEYS)
    return wl_not_taken(err, "GROUP BY has %d keys, the kernel takes %d", n_finds, MAX_KEYS);
  if (p->n_bares || p->in_order)
    return wl_not_taken(err, "aggregates that follow the order of rows run on the CPU only");
  for (int k = 0; k < n_finds; k++)
    if (finds[k].reg.type == WL_R_TRUTH)
      return wl_not_taken(err, "GROUP BY a truth value runs on the CPU only");
  return wl_dgroups_sets_fit(p, err);
}

/* ---- choosing */

/* Lays out the keys for the kernel. Returns true if a record can hold the key as one word plus 1.
 */
static bool lay_out_keys(wl_dgroups *g) {
  const wl_program *p = g->p;
  wl_key_layout *l = &g->layout;
  bool real = false, last = false;
  l->parts = g->parts;
  for (int k = 0; k < p->n_keys; k++)
    wl_key_layout_add(l, k, p->keys[k].reg, &p->keys[k].domain,
                      p->keys[k].desc ? WL_KEY_DESC | WL_KEY_NULL_LAST : 0);
  for (int k = 0; k < l->n_parts; k++) {
    wl_i16 operand = p->keys[l->parts[k].key].operand;
    g->k.key_parts[k] = l->parts[k];
    int key = WL_IS_CONST(operand) ? g->coded.first + WL_CONST_OF(operand) : operand;
    if (operand >= g->coded.first) key += p->n_consts; /* registers of codes follow the constants */
    g->k.key_parts[k].key = key;
    real |= l->parts[k].kind == WL_PART_REAL;
    last |= l->parts[k].kind == WL_PART_REAL && l->parts[k].null && l->parts[k].null_last;
  }
  g->k.n_key_parts = (wl_u32)l->n_parts;
  g->total = l->n_words ? l->used : 1;
  if (real) g->k.first_word = 1; /* means "needed"; lay_out_accs sets its place */
  return l->n_words <= 1 && (g->total || (real && !last)); /* a NULL after all reals is 2^64 - 1 */
}

static bool counted(const wl_program *p, wl_i16 operand) {
  if (WL_IS_CONST(operand)) return true;
  wl_reg r = p->regs[operand];
  return r.nullable || r.type == WL_R_ANY || r.type == WL_R_TRUTH;
}

/* Assigns each accumulator its words in the record and its pieces in shared memory. */
static void lay_out_accs(wl_dgroups *g) {
  const wl_program *p = g->p;
  wl_kgroup *k = &g->k;
  wl_u32 words = g->n_keyed, pieces = 1, whole = 0;
  k->rows_word = words++;
  if (k->first_word) k->first_word = words++;
  k->row_word = p->by_first ? words++ : 0;
  for (int i = 0; i < g->coded.n; i++)
    g->coders[i].word = g->coded.coders[i].look && !g->coded.coders[i].keeps ? words++ : 0;
  for (int i = 0; i < p->n_accs; i++) {
    wl_kgacc *a = &g->k.accs[i];
    a->op = p->accs[i].op;
    a->word = words;
    a->place = pieces;
    a->unit = ldexp(1.0, wl_fsum_anchor_within(p->accs[i].bound));
    for (int pc = 0; pc < p->n_code; pc++)
      if (p->code[pc].op == a->op && p->code[pc].d == i) a->counted = counted(p, p->code[pc].a);
    if (g->k.mode == WL_KG_ONE) a->counted = 1; /* its rows are not counted */
    if (a->op == WL_OP__AggDistinct) {
      a->op = wl_dgroups_set_op(g->whole, i);
      if (a->op == WL_OP__AggSumV) a->coder = (wl_u32)g->coded.of_set[p->accs[i].set];
      a->set = (wl_u16)(p->accs[i].set + 1);
      a->counted = 1;
    }
    switch (a->op) {
    case WL_OP__AggRows: a->counted = g->k.mode == WL_KG_ONE; break;
    case WL_OP__AggCount: break;
    case WL_OP__AggSumI: words += 1, pieces += 2; break;
    case WL_OP__AggSumX: words += 4, pieces += 8; break;
    case WL_OP__AggSumF: words += 6, pieces += 6; break;
    case WL_OP__AggSumV: words += 11, pieces += 15; break;
    case WL_OP__AggMinV:
    case WL_OP__AggMaxV:
      a->coder = (wl_u32)g->coded.of_acc[i];
      a->counted = 0;
      words += 1;
      break;
    default: {
      wl_u32 n = a->op == WL_OP__AggMinN || a->op == WL_OP__AggMaxN ? 4 : 2;
      a->place = whole;
      a->counted = 0;
      words += n, whole += n;
    }
    }
    words += a->counted;
    pieces += a->counted;
  }
  k->words = words;
  k->n_pieces = pieces;
  k->n_whole = whole;
}

/* Gives each block a table in shared memory if there are few groups, with up to 32 copies. */
static bool try_shared(wl_dgroups *g, wl_lowered *low) {
  wl_kgroup *k = &g->k;
  wl_u64 each = 8 * k->n_whole + 4 * k->n_pieces, most = (wl_u64)g->d->max_shared;
  wl_u64 offset = (low->n_shared + 15) & ~15u;
  if (k->first_word || g->total > most || g->total * each > most / 4 ||
      offset + g->total * each > most || (wl_i64)(g->total * k->words * 8) > g->room)
    return false;
  k->copies = 1;
  while (k->copies < 32 && g->total * each * k->copies * 2 <= most / 8 &&
         offset + g->total * each * k->copies * 2 <= most)
    k->copies *= 2;
  k->mode = WL_KG_SHARED;
  k->n_slots = g->total;
  k->offset = (wl_u32)offset;
  k->flush_tiles = SAFE_ROWS / (low->threads * WL_K_ROWS);
  low->n_shared = (wl_u32)(offset + g->total * each * k->copies);
  return true;
}

static bool try_direct(wl_dgroups *g) {
  wl_kgroup *k = &g->k;
  wl_u64 record = k->words * 8, fits = (wl_u64)g->room / record;
  if (fits < 1 || k->first_word) return false;
  if (g->total > (1u << 16) && g->total / 8 > g->n_rows) return false; /* mostly empty */
  if (fits > 1u << 30) fits = 1u << 30;
  if (g->total > fits * 8) return false;
  k->mode = WL_KG_DIRECT;
  k->n_slots = g->total < fits ? g->total : fits;
  return true;
}

static wl_u64 power_of_two(wl_u64 n) {
  wl_u64 p = 32;
  while (p < n) p *= 2;
  return p;
}

/* Slots of the largest hash table that fits, but no more than the table's rows need. */
static wl_u64 largest_hash(const wl_dgroups *g) {
  wl_u64 need = power_of_two(2 * g->n_rows), fits = (wl_u64)g->room / (g->k.words * 8), n = 16;
  while (n * 2 <= fits && n < need && n < 1u << 30) n *= 2;
  return n;
}

static void set_hash(wl_dgroups *g, wl_u64 n_slots) {
  g->k.n_slots = n_slots;
  g->k.most = n_slots / 4 * 3;
}

static void name_way(wl_dgroups *g) {
  static const char *const names[] = {"one group", "groups by address in shared memory",
                                      "groups by address", "groups by hash", "groups by hash"};
  wl_u64 passes =
      g->k.mode == WL_KG_DIRECT ? (g->total + g->k.n_slots - 1) / g->k.n_slots : g->k.n_parts;
  const char *name = names[g->k.mode];
  if (passes > 1)
    snprintf(g->way, sizeof g->way, "%s, %llu passes", name, passes);
  else
    snprintf(g->way, sizeof g->way, "%s", name);
}

static bool has_coded_keys(const wl_dgroups *g) {
  for (int k = 0; k < g->coded.n; k++)
    if (g->coded.coders[k].shown) return true;
  return false;
}

/* Whether records keep numbers of rows, which have 32 bits there. */
static bool notes_rows(const wl_dgroups *g) {
  bool looks = false;
  for (int k = 0; k < g->coded.n; k++) looks |= g->coded.coders[k].look || g->coded.coders[k].keeps;
  return looks || g->k.row_word;
}

static wl_status too_many_rows(wl_error *err) {
  return wl_not_taken(err, "groups of more than 2^32 rows run on the CPU");
}

static wl_status choose(wl_dgroups *g, wl_lowered *low, wl_error *err) {
  if (wl_gathers_in_slots(g->p)) {
    g->k.mode = WL_KG_ONE;
    g->k.n_slots = g->k.n_parts = 1;
    lay_out_accs(g);
    for (int k = 0; k < g->p->n_accs; k++) low->accs[k].word = g->k.accs[k].word;
    return WL_OK;
  }
  g->k.mode = WL_KG_SHARED;
  bool packs = lay_out_keys(g);
  bool by_address = packs && !g->k.first_word && !has_coded_keys(g) && !g->p->by_first;
  lay_out_accs(g);
  g->k.n_parts = 1;
  if (by_address && (try_shared(g, low) || try_direct(g))) {
    /* With many rows, digits are split as they are added. The shared table splits at its flush. */
    g->k.split = g->k.mode == WL_KG_DIRECT && g->n_rows > SAFE_ROWS;
    return WL_OK;
  }
  g->k.mode = packs ? WL_KG_HASH : WL_KG_WIDE;
  g->n_keyed = packs ? 1 : (wl_u32)g->layout.n_words + 1;
  lay_out_accs(g);
  g->k.split = g->n_rows > SAFE_ROWS;
  wl_u64 n = power_of_two(2 * g->n_rows);
  if (by_address && n > 2 * g->total) n = power_of_two(2 * g->total);
  if (n > HASH_FIRST) n = HASH_FIRST;
  if (n > largest_hash(g)) n = largest_hash(g);
  if ((wl_i64)(n * g->k.words * 8) > g->room)
    return wl_not_taken(err, "groups need %u bytes each on the device; device_budget is %lld",
                        g->k.words * 8, g->d->budget);
  set_hash(g, n);
  return WL_OK;
}

/* ---- opening */

wl_status wl_dgroups_clear(wl_dgroups *g, wl_error *err) {
  g->n_side = 0;
  g->n_launches = g->n_elsewhere = 0;
  wl_status rc = g->d->fill(g->d, g->counters, 0, counter_bytes(g), err);
  if (!rc && g->k.mode != WL_KG_ONE) rc = g->d->fill(g->d, g->k.table, 0, table_bytes(g), err);
  return rc ? rc : wl_dgroups_sets_clear(g, err);
}

wl_status wl_dgroups_restart(wl_dgroups *g, wl_error *err) {
  g->k.base = 0;
  g->k.part = 0;
  wl_status rc = wl_dgroups_codes_clear(g, err);
  return rc ? rc : wl_dgroups_clear(g, err);
}

static wl_status make_counters(wl_dgroups *g, wl_error *err) {
  wl_status rc = wl_dgroups_take(g, counter_bytes(g), &g->counters, err);
  if (!rc) rc = g->d->host_alloc(g->d, counter_bytes(g), (void **)&g->arrived, err);
  if (rc) return rc;
  if (g->k.mode == WL_KG_ONE) g->k.table = g->counters + COUNTERS;
  g->k.n_made = g->counters + C_MADE;
  g->k.full = g->counters + C_FULL;
  g->k.n_side = g->counters + C_SIDE;
  return WL_OK;
}

wl_status wl_dgroups_open(const wl_program *p, wl_device *d, wl_i64 n_rows, wl_lowered *low,
                          wl_dgroups **out, wl_error *err) {
  wl_dgroups *g = *out = wl_mem_zalloc(sizeof *g);
  if (!g) return wl_nomem(err);
  wl_arena_init(&g->arena);
  g->p = &g->coded.p;
  g->whole = p;
  g->d = d;
  g->n_rows = (wl_u64)n_rows;
  g->k.n_accs = (wl_u32)p->n_accs;
  g->room = d->budget / 4; /* fractions of it bound the other buffers */
  wl_status rc = wl_dgroups_codes_plan(g, p, err);
  p = g->p;
  if (!rc) rc = choose(g, low, err);
  if (!rc && notes_rows(g) && g->n_rows >= 0xffffffffULL) rc = too_many_rows(err);
  wl_u64 n_sums = 0, n_pack = PACK_BYTES < g->room / 8 ? PACK_BYTES : (wl_u64)g->room / 8;
  for (int k = 0; k < p->n_accs; k++)
    n_sums += g->k.accs[k].op == WL_OP__AggSumF || g->k.accs[k].op == WL_OP__AggSumV;
  if (!rc && n_sums) {
    wl_u64 most = (wl_u64)g->room / 4 / 24;
    g->k.side_size = n_sums * g->n_rows < SIDE_MOST ? n_sums * g->n_rows : SIDE_MOST;
    if (g->k.side_size > most) g->k.side_size = most;
  }
  g->n_pack_slots = n_pack / ((1 + g->k.words) * 8);
  if (g->n_pack_slots > g->k.n_slots) g->n_pack_slots = g->k.n_slots;
  if (g->n_pack_slots < 32) g->n_pack_slots = 32;
  if (!rc) rc = make_counters(g, err);
  if (!rc && g->k.mode != WL_KG_ONE) rc = wl_dgroups_take(g, table_bytes(g), &g->k.table, err);
  if (!rc && g->k.mode != WL_KG_ONE)
    rc = wl_dgroups_take(g, wl_dgroups_pack_bytes(g), &g->pack, err);
  if (!rc && g->k.side_size) rc = wl_dgroups_take(g, g->k.side_size * 24, &g->k.side, err);
  if (!rc) rc = wl_dgroups_sets_open(g, err);
  if (!rc) rc = wl_dgroups_codes_open(g, err);
  if (!rc) rc = wl_dgroups_restart(g, err);
  if (!rc) name_way(g);
  if (rc) {
    wl_dgroups_close(g);
    *out = NULL;
  }
  return rc == WL_FULL ? WL_NOT_TAKEN : rc;
}

void wl_dgroups_close(wl_dgroups *g) {
  if (!g) return;
  g->d->queue = 0;
  if (g->k.mode != WL_KG_ONE) wl_dgroups_drop(g, g->k.table, table_bytes(g));
  wl_dgroups_drop(g, g->pack, wl_dgroups_pack_bytes(g));
  wl_dgroups_drop(g, g->k.side, g->k.side_size * 24);
  wl_dgroups_drop(g, g->counters, counter_bytes(g));
  if (g->arrived) g->d->host_free_later(g->d, g->arrived); /* a copy may be on its way */
  wl_dgroups_sets_close(g);
  wl_dgroups_codes_close(g);
  wl_arena_close(&g->arena);
  wl_mem_free(g->side);
  wl_mem_free(g);
}

/* ---- gathering */

/* Called when the hash table or a set was too small, as `full` says. Makes a larger one, or doubles
** the passes. */
static wl_status grow(wl_dgroups *g, wl_u64 full, wl_error *err) {
  wl_u64 largest = largest_hash(g), n = g->k.n_slots * GROWTH;
  bool grown = full >= WL_KG_FULL_CODER;
  if (full == WL_KG_TIED)
    return wl_not_taken(err, "a sum of DISTINCT values, of which some are equal but of two types");
  if (grown) {
    wl_status rc = wl_dgroups_codes_grow(g, full, err);
    if (rc) return rc;
  } else if (full >= WL_KG_FULL_SET) {
    wl_status rc = wl_dgroups_sets_grow(g, (int)(full - WL_KG_FULL_SET), &grown, err);
    if (rc) return rc;
    if (!grown && g->k.mode < WL_KG_HASH)
      return wl_not_taken(err, "the distinct values do not fit into a device_budget of %lld",
                          g->d->budget);
    n = 0; /* the groups have room */
  }
  if (n > largest) n = largest;
  if (grown) {
    /* nothing else is full */
  } else if (n > g->k.n_slots) {
    wl_dgroups_drop(g, g->k.table, table_bytes(g));
    g->k.table = NULL;
    set_hash(g, n);
    wl_status rc = wl_dgroups_take(g, table_bytes(g), &g->k.table, err);
    if (rc) return rc == WL_FULL ? WL_NOT_TAKEN : rc;
  } else {
    g->k.n_parts *= 2;
    if (g->k.n_parts > MAX_PASSES)
      return wl_not_taken(err, "the groups need more than %d passes in a device_budget of %lld",
                          MAX_PASSES, g->d->budget);
  }
  name_way(g);
  return wl_dgroups_restart(g, err);
}

static wl_status keep_side(wl_dgroups *g, wl_u64 n, wl_error *err) {
  if (g->n_side + n > g->size_side) {
    wl_u64 size = 2 * (g->n_side + n);
    wl_u64 *p = wl_mem_realloc(g->side, g->n_side * 24, size * 24);
    if (!p) return wl_nomem(err);
    g->side = p;
    g->size_side = size;
  }
  wl_status rc = g->d->copy_out(g->d, g->side + 3 * g->n_side, g->k.side, n * 24, err);
  g->n_side += n;
  return rc ? rc : g->d->fill(g->d, g->k.n_side, 0, 8, err);
}

static wl_status launch(wl_dgroups *g, const wl_kargs *args, wl_i64 first_row, unsigned grid,
                        unsigned threads, size_t n_shared, wl_error *err) {
  if (g->k.mode == WL_KG_ONE) {
    wl_kargs one = *args;
    one.record = g->k.table;
    one.side = g->k.side;
    one.n_side = g->k.n_side;
    one.side_size = g->k.side_size;
    return g->d->launch(g->d, wl_launch_kernel(&one), &one, sizeof one, grid, threads, n_shared,
                        err);
  }
  wl_kgargs all = {*args, g->k};
  all.g.row0 = (wl_u64)first_row;
  bool sets = g->k.n_sets || g->k.n_coders || g->k.row_word;
  wl_kernel plain = sets ? WL_K_GROUP_SETS : args->only_numbers ? WL_K_GROUP_NUMBERS : WL_K_GROUP;
  wl_kernel with_long = sets ? WL_K_GROUP_SETS_LONG : WL_K_GROUP_LONG;
  return g->d->launch(g->d, args->has_long ? with_long : plain, &all, sizeof all, grid, threads,
                      n_shared, err);
}

/* Whether the records cannot take more than 2^32 - 1 rows: row numbers have 32 bits, and words that add
** up 32 bits of each value have 64. How many rows a join makes is not known before. */
static bool has_row_limit(const wl_dgroups *g) {
  bool sums = false;
  for (wl_u32 k = 0; k < g->k.n_accs; k++) {
    wl_u32 op = g->k.accs[k].op;
    sums |= op == WL_OP__AggSumX || op == WL_OP__AggSumF || op == WL_OP__AggSumV;
  }
  return sums || notes_rows(g);
}

/* first_row: all rows of the pass have smaller numbers so far. */
wl_status wl_dgroups_launch(wl_dgroups *g, const wl_kargs *args, wl_i64 first_row, unsigned grid,
                            unsigned threads, size_t n_shared, wl_error *err) {
  if ((wl_u64)first_row + args->n_rows >= 0xffffffffULL && has_row_limit(g))
    return too_many_rows(err);
  wl_status rc = launch(g, args, first_row, grid, threads, n_shared, err);
  g->n_launches++;
  g->n_elsewhere += g->d->queue != 0;
  if (rc || g->d->queue) return rc;
  return g->d->copy_out_later(g->d, g->arrived, g->counters, counter_bytes(g), err);
}

bool wl_dgroups_is_sure(const wl_dgroups *g) {
  bool passes = g->k.mode == WL_KG_DIRECT && g->total > g->k.n_slots;
  return g->k.mode < WL_KG_HASH && !passes && !g->k.n_sets && !g->k.n_coders && !g->k.side_size;
}

wl_status wl_dgroups_settle(wl_dgroups *g, bool *restart, wl_error *err) {
  const wl_u64 *counters = g->arrived;
  wl_status rc = WL_OK;
  *restart = false;
  if (!g->n_launches || g->n_elsewhere)
    rc = g->d->copy_out(g->d, g->arrived, g->counters, counter_bytes(g), err);
  g->n_launches = g->n_elsewhere = 0;
  if (rc) return rc;
  if (g->k.mode == WL_KG_ONE) memcpy(g->one + 1, counters + COUNTERS, table_bytes(g));
  g->n_made = counters[C_MADE];
  if (counters[C_FULL]) {
    *restart = true;
    return grow(g, counters[C_FULL], err);
  }
  if (counters[C_SIDE] > g->k.side_size)
    return wl_not_taken(err, "too many reals do not fit the device's digits");
  return counters[C_SIDE] ? keep_side(g, counters[C_SIDE], err) : WL_OK;
}
