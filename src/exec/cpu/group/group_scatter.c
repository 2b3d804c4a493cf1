/*
** Groups of a large direct array; see group_impl.h. An array for each worker would have to be
** cleared and joined, which takes longer than the rows. So workers do not accumulate: they divide
** their rows by range of the key, and store the places of the groups and the arguments of the
** aggregates in chunks. At the end there is one array. One task for each range adds the chunks of
** all workers to its part of the array, which fits the cache. A range with many of the rows is
** divided again: its chunks are dealt to several tasks, and their arrays are joined.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include <assert.h>
#include <string.h>

/* An array of fewer bytes stays in the cache of a worker. */
#define LEAST_BYTES ((wl_u64)2 << 20)
enum { LEAST_WORKERS = 4 }; /* with fewer, an array for each is faster */
enum { CHUNK = WL_VECTOR, MOST_FIELDS = 16, SHARES = 4 };

/* An argument of aggregates, as a chunk stores it. */
typedef struct scatter_field {
  wl_i16 operand;
  bool nullable;
  wl_u8 type;
  size_t v_at, t_at; /* offsets in a chunk */
} scatter_field;

struct scatter_plan {
  scatter_field fields[MOST_FIELDS];
  int n_fields;
  int *field_of;         /* [n_accs]: or -1 */
  size_t rows_at, bytes; /* of a chunk */
  wl_u64 factor;         /* the range of a place is place * factor >> 32 */
};

/* Rows of one range, in row order. Arrays of arguments follow. */
typedef struct scatter_chunk {
  struct scatter_chunk *next;
  wl_i64 n;
  wl_u32 places[CHUNK];
} scatter_chunk;

struct scatter_rows {
  scatter_chunk *first[N_PARTS], *last[N_PARTS];
  wl_i64 n_rows[N_PARTS];
  wl_u64 stored;        /* a bit for each field of the current vector that has been stored */
  wl_u8 *to[WL_VECTOR]; /* the chunk of each row of the current vector */
  wl_u16 at[WL_VECTOR]; /* and its place there */
};

/* ---- planning */

static wl_reg operand_reg(const wl_program *p, wl_i16 x) {
  if (!WL_IS_CONST(x)) return p->regs[x];
  wl_u8 t = p->consts[WL_CONST_OF(x)].t;
  return (wl_reg){t == WL_T_REAL ? WL_R_REAL : t <= WL_T_INT ? WL_R_INT : WL_R_ANY, t == WL_T_NULL};
}

/* Finds or adds the field of an operand. Returns -1 if there are too many. */
static int add_field(scatter_plan *s, const wl_program *p, wl_i16 operand) {
  for (int f = 0; f < s->n_fields; f++)
    if (s->fields[f].operand == operand) return f;
  if (s->n_fields == MOST_FIELDS) return -1;
  wl_reg reg = operand_reg(p, operand);
  s->fields[s->n_fields] =
      (scatter_field){.operand = operand, .nullable = reg.nullable, .type = reg.type};
  return s->n_fields++;
}

/* Whether values can be added to a state in any order of the rows. */
static bool any_order(wl_agg_state s) {
  return s == WL_STATE_COUNT || s == WL_STATE_SUM || s == WL_STATE_WIDE || s == WL_STATE_REALS ||
         s == WL_STATE_BEST || s == WL_STATE_ROWED;
}

/* Lays out the arguments. Returns false if one is not a number. */
static bool plan_fields(const wl_grouping *g, scatter_plan *s) {
  const wl_program *p = g->p;
  for (int k = 0; k < g->n_accs; k++) {
    if (!any_order(g->accs[k].state)) return false;
    s->field_of[k] = -1;
  }
  for (int pc = 0; pc < p->n_code; pc++) {
    const wl_instr *in = &p->code[pc];
    wl_shape shape = wl_opcodes[in->op].shape;
    if (shape == WL_SHAPE_AGG_VV) return false;
    if (shape != WL_SHAPE_AGG_I && shape != WL_SHAPE_AGG_F && shape != WL_SHAPE_AGG_V) continue;
    if (in->op == WL_OP__AggDistinct || operand_reg(p, in->a).type > WL_R_REAL) return false;
    s->field_of[in->d] = add_field(s, p, in->a);
    if (s->field_of[in->d] < 0) return false;
  }
  return true;
}

wl_status wl_group_plan_scatter(wl_grouping *g, wl_i64 n_rows, wl_error *err) {
  wl_u64 array = g->n_direct * (g->width + 1);
  const wl_program *p = g->p;
  if (g->mode != MODE_DIRECT || g->n_workers < LEAST_WORKERS || array < LEAST_BYTES || p->n_sets ||
      p->expands || p->also)
    return WL_OK;
  scatter_plan *s = WL_NEW(&g->arena, scatter_plan);
  if (s) s->field_of = WL_NEW_N(&g->arena, int, g->n_accs + 1);
  if (!s || !s->field_of) return wl_nomem(err);
  if (!plan_fields(g, s)) return WL_OK;
  s->bytes = sizeof(scatter_chunk);
  for (int f = 0; f < s->n_fields; f++) {
    s->fields[f].v_at = s->bytes;
    s->bytes += CHUNK * sizeof(wl_u64);
    s->fields[f].t_at = s->bytes;
    if (s->fields[f].nullable) s->bytes += CHUNK;
  }
  s->rows_at = s->bytes;
  if (g->rows) s->bytes += CHUNK * sizeof(wl_i64);
  /* Each worker has at most a chunk of each range that is not full. */
  wl_i64 chunks = n_rows / CHUNK + (wl_i64)N_PARTS * g->n_workers;
  if (g->left && (wl_i64)array + chunks * (wl_i64)s->bytes > g->left / 2) return WL_OK;
  if (!wl_group_slabs_fit(g)) return WL_OK;
  s->factor = ((wl_u64)N_PARTS << 32) / g->n_direct;
  g->scatter = s;
  return WL_OK;
}

void wl_group_range(const wl_grouping *g, int parts, long part, wl_u64 *from, wl_u64 *to) {
  if (!g->scatter) {
    *from = g->n_direct * (wl_u64)part / (wl_u64)parts;
    *to = g->n_direct * (wl_u64)(part + 1) / (wl_u64)parts;
    return;
  }
  wl_u64 factor = g->scatter->factor;
  *from = (((wl_u64)part << 32) + factor - 1) / factor;
  *to = (((wl_u64)(part + 1) << 32) + factor - 1) / factor;
  if (part == N_PARTS - 1) *to = g->n_direct;
}

/* ---- storing rows */

/* Gives a place in a chunk to each row of a vector, and stores the places of the groups. */
wl_status wl_group_scatter(wl_groups *g, const wl_i64 *rows, int n) {
  const scatter_plan *s = g->plan->scatter;
  scatter_rows *r = g->scattered;
  if (!r && !(r = g->scattered = wl_mem_zalloc(sizeof *r))) return WL_NOMEM;
  r->stored = 0;
  for (int i = 0; i < n; i++) {
    wl_u64 place = g->words[i], part = place * s->factor >> 32;
    scatter_chunk *c = r->last[part];
    if (!c || c->n == CHUNK) {
      scatter_chunk *next = wl_group_slab_alloc(g, s->bytes);
      if (!next) return WL_NOMEM;
      next->next = NULL;
      next->n = 0;
      if (c)
        c->next = next;
      else
        r->first[part] = next;
      r->last[part] = c = next;
    }
    r->to[i] = (wl_u8 *)c;
    r->at[i] = (wl_u16)c->n;
    c->places[c->n++] = (wl_u32)place;
    r->n_rows[part]++;
  }
  if (g->plan->rows)
    for (int i = 0; i < n; i++) ((wl_i64 *)(void *)(r->to[i] + s->rows_at))[r->at[i]] = rows[i];
  return WL_OK;
}

/* Stores the argument of an accumulator. */
void wl_group_scatter_add(wl_groups *g, int acc, const wl_vec *v, int n) {
  const scatter_plan *s = g->plan->scatter;
  scatter_rows *r = g->scattered;
  int k = s->field_of[acc];
  if (k < 0 || r->stored >> k & 1) return;
  r->stored |= 1ULL << k;
  const scatter_field *f = &s->fields[k];
  for (int i = 0; i < n; i++)
    ((wl_u64 *)(void *)(r->to[i] + f->v_at))[r->at[i]] = v->v[v->stride ? i : 0];
  if (f->nullable)
    for (int i = 0; i < n; i++) (r->to[i] + f->t_at)[r->at[i]] = wl_vec_get(v, i).t != WL_T_NULL;
}

/* ---- accumulating */

/* Some of the chunks of a range: every `step`th from `first` on. */
typedef struct scatter_share {
  int part, first, step;
  wl_u64 from, to;       /* the range */
  wl_u8 *entries, *seen; /* of place `from` */
  wl_arena *arena;
} scatter_share;

typedef struct scatter_joining {
  const wl_grouping *plan;
  wl_groups **from;
  int n_from;
  joined *out;
  scatter_share *shares;
  int n_shares;
  wl_arena *arenas; /* of the shares whose array is their own */
  wl_stop *stop;
} scatter_joining;

/* Adds a chunk to the array of a share. sub: its accumulators, whose entries are numbered as the
** groups are. */
static wl_status add_chunk(wl_groups *sub, const scatter_chunk *c, const wl_i64 *no_rows) {
  const wl_grouping *p = sub->plan;
  const scatter_plan *s = p->scatter;
  const wl_u8 *chunk = (const wl_u8 *)c;
  const wl_i64 *rows = p->rows ? (const wl_i64 *)(const void *)(chunk + s->rows_at) : no_rows;
  int n = (int)c->n;
  if (p->has_first)
    for (int i = 0; i < n; i++) {
      wl_i64 *first = entry_first(p, sub->table.entries + c->places[i] * p->width);
      if (!sub->seen[c->places[i]] || rows[i] < *first) *first = rows[i];
      sub->seen[c->places[i]] = 1;
    }
  else
    for (int i = 0; i < n; i++) sub->seen[c->places[i]] = 1;
  wl_status rc = WL_OK;
  for (int k = 0; k < p->n_accs && !rc; k++) {
    const scatter_field *f = s->field_of[k] >= 0 ? &s->fields[s->field_of[k]] : NULL;
    wl_vec v = {.stride = 1};
    if (f) {
      v.type = f->type;
      v.v = (const wl_u64 *)(const void *)(chunk + f->v_at);
      v.t = f->nullable ? chunk + f->t_at : NULL;
    }
    rc = wl_groups_add(sub, k, c->places, &v, NULL, rows, n, 0);
  }
  return rc;
}

static wl_status share_task(void *arg, int worker, long task, wl_error *err) {
  scatter_joining *j = arg;
  (void)err;
  static const wl_i64 no_rows[CHUNK];
  const scatter_share *h = &j->shares[task];
  const wl_grouping *p = j->plan;
  wl_groups sub = {.plan = p, .arena = *h->arena, .adding = true};
  sub.scratch = wl_mem_alloc(3 * WL_VECTOR * sizeof *sub.scratch);
  if (!sub.scratch) return WL_NOMEM;
  memset(h->entries, 0, (h->to - h->from) * p->width);
  memset(h->seen, 0, h->to - h->from);
  sub.table.entries = h->entries - h->from * p->width;
  sub.seen = h->seen - h->from;
  wl_status rc = WL_OK;
  long number = 0;
  for (int w = 0; w < j->n_from; w++) {
    const scatter_rows *r = j->from[w]->scattered;
    for (const scatter_chunk *c = r ? r->first[h->part] : NULL; c && !rc; c = c->next) {
      if (number++ % h->step != h->first) continue;
      if (wl_stop_now(j->stop, worker)) break;
      rc = add_chunk(&sub, c, no_rows);
    }
  }
  *h->arena = sub.arena;
  wl_mem_free(sub.scratch);
  return rc;
}

/* Joins the arrays of the shares of a range into the first one, and counts its groups. */
static wl_status merge_task(void *arg, int worker, long part, wl_error *err) {
  scatter_joining *j = arg;
  (void)worker, (void)err;
  const wl_grouping *p = j->plan;
  const scatter_share *to = NULL;
  wl_status rc = WL_OK;
  for (int k = 0; k < j->n_shares && !rc; k++) {
    const scatter_share *h = &j->shares[k];
    if (h->part != part) continue;
    if (!to) {
      to = h;
      continue;
    }
    for (wl_u64 i = 0; i < h->to - h->from && !rc; i++) {
      if (!h->seen[i]) continue;
      if (to->seen[i])
        rc = wl_group_join(p, to->arena, to->entries + i * p->width, h->entries + i * p->width);
      else
        memcpy(to->entries + i * p->width, h->entries + i * p->width, p->width);
      to->seen[i] = 1;
    }
  }
  wl_i64 n = 0;
  for (wl_u64 i = 0; i < to->to - to->from; i++) n += to->seen[i];
  j->out->tables[part].n = n; /* for now: the number of groups in this range */
  return rc;
}

static wl_i64 rows_of(const scatter_joining *j, int part) {
  wl_i64 n = 0;
  for (int w = 0; w < j->n_from; w++)
    if (j->from[w]->scattered) n += j->from[w]->scattered->n_rows[part];
  return n;
}

/* Decides how many tasks each range has. */
static int count_shares(const scatter_joining *j, int *n_shares) {
  const wl_grouping *p = j->plan;
  wl_i64 all = 0, most;
  int n = 0;
  for (int part = 0; part < N_PARTS; part++) all += rows_of(j, part);
  most = all / (SHARES * (wl_i64)p->n_workers) + 1;
  if (most < 4 * CHUNK) most = 4 * CHUNK;
  for (int part = 0; part < N_PARTS; part++) {
    wl_i64 shares = p->left || j->n_from == 1 ? 1 : rows_of(j, part) / most + 1;
    n_shares[part] = shares < p->n_workers ? (int)shares : p->n_workers;
    n += n_shares[part];
  }
  return n;
}

wl_status wl_group_join_scattered(const wl_finishing *f, const wl_grouping *p, wl_groups **from,
                                  int n_from, joined *out, wl_error *err) {
  int n_shares[N_PARTS], n_more = 0;
  scatter_joining j = {.plan = p, .from = from, .n_from = n_from, .out = out, .stop = f->stop};
  int n = count_shares(&j, n_shares);
  out->tables[0].entries = wl_mem_alloc(p->n_direct * p->width + 16);
  out->seen = wl_mem_alloc(p->n_direct + 8);
  j.shares = wl_mem_zalloc((size_t)n * sizeof *j.shares);
  j.arenas = wl_mem_zalloc((size_t)n * sizeof *j.arenas);
  bool ok = out->tables[0].entries && out->seen && j.shares && j.arenas;
  for (int part = 0; part < N_PARTS && ok; part++)
    for (int k = 0; k < n_shares[part] && ok; k++) {
      scatter_share *h = &j.shares[j.n_shares++];
      h->part = part;
      h->first = k;
      h->step = n_shares[part];
      wl_group_range(p, N_PARTS, part, &h->from, &h->to);
      if (k == 0) {
        h->entries = out->tables[0].entries + h->from * p->width;
        h->seen = out->seen + h->from;
        h->arena = &out->arenas[part];
        continue;
      }
      h->arena = &j.arenas[n_more++];
      wl_arena_init(h->arena);
      h->entries = wl_mem_alloc((h->to - h->from) * p->width + 16);
      h->seen = wl_mem_alloc(h->to - h->from + 8);
      ok = h->entries && h->seen;
    }
  wl_status rc = ok ? WL_OK : wl_nomem(err);
  wl_tasks adding = {f->n_workers, j.n_shares, share_task, &j, f->stop};
  wl_tasks merging = {f->n_workers, N_PARTS, merge_task, &j, f->stop};
  if (!rc) rc = wl_tasks_run(&adding, NULL, err);
  if (!rc) rc = wl_tasks_run(&merging, NULL, err);
  for (int k = 0; k < j.n_shares; k++) {
    if (!j.shares[k].first) continue;
    wl_mem_free(j.shares[k].entries);
    wl_mem_free(j.shares[k].seen);
  }
  /* What the joined groups point to must live as long as they do. */
  for (int k = 0; k < n_more; k++) wl_arena_join(&out->arenas[0], &j.arenas[k]);
  wl_mem_free(j.shares);
  wl_mem_free(j.arenas);
  return rc;
}
