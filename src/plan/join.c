/*
** Join order: dynamic programming over sets of sources if there are few sources, else a greedy
** search. See join.h. Called by exec/query.c when columns are in memory, so that estimates are
** based on data.
*/
#include "plan/join.h"
#include "column/statistics.h"
#include <math.h>
#include <string.h>

enum { MAX_DP = 10, MAX_LEADS = 64 };
#define MOST_LEFT 0.5 /* a source that only reduces others pays if it leaves at most this share */

/* Costs per row, in nanoseconds. Only their ratios matter. */
#define COST_SCAN   0.6
#define COST_PROBE  2.0  /* a probe of a lookup that fits the cache */
#define COST_FAR    12.0 /* a probe of a larger lookup */
#define COST_BUILD  6.0
#define COST_LISTS  16.0 /* a row of a lookup that has several rows for a key */
#define COST_OUT    3.0
#define COST_LISTED 8.0  /* a pair from such a lookup, whose row is read at a random place */
#define COST_NESTED 20.0 /* a pair of rows, without keys */
#define FAR_ROWS    300000.0
#define COST_COPY   4.0 /* with a device: extra cost of a row that the host puts into a lookup */
#define ON_DEVICE   0.1 /* what a scan, a probe or a pair costs on a device, as a share */

typedef struct conjunct {
  const wl_bexpr *e;
  wl_u64 sources;
  wl_u64 barrier; /* the sources of the last RIGHT or FULL join before it in the text, which keeps
                  ** rows that would fail it */
  wl_u64 waits;   /* sources that must have been joined before it can be tested: both of these */
} conjunct;

typedef struct planner {
  const wl_jplan_in *in;
  const wl_query *q;
  wl_arena *arena;
  wl_error *err;
  conjunct *where; /* conjuncts of WHERE, and of ON of inner joins before a RIGHT or FULL join */
  int n_where;
  conjunct *on[WL_MAX_SOURCES]; /* conjuncts of ON, for sources that are not INNER */
  int n_on[WL_MAX_SOURCES];
  wl_join_how how[WL_MAX_SOURCES];
  wl_u64 needs[WL_MAX_SOURCES]; /* sources that must come before */
  double rows[WL_MAX_SOURCES];  /* estimated rows that pass the conjuncts on this source only */
  wl_u64 leads[WL_MAX_SOURCES]; /* sources of which each row of this one finds one row */
  /* A SEMI join by keys of one source is a filter on that source: which one, or -1, and the
  ** estimated share of its rows that is left. */
  int filtered[WL_MAX_SOURCES];
  double filtered_share[WL_MAX_SOURCES];
  wl_u64 left_out; /* sources that only reduce others, and do not pay or would hide errors */
  double drive;    /* costs of the pipeline that the driver feeds are multiplied by this */
} planner;

static wl_u64 bit(int s) {
  return 1ULL << s;
}

/* The sources of the last RIGHT or FULL join before source s in the text: all up to the one that it
** joins. 0: there is no such join. */
static wl_u64 barrier_before(const wl_query *q, int s) {
  while (--s > 0)
    if (wl_how_keeps_unmatched(q->sources[s].how)) return (bit(s) << 1) - 1;
  return 0;
}

static int count_and(const wl_bexpr *e) {
  if (!e) return 0;
  return e->kind == WL_B_AND ? count_and(e->a) + count_and(e->b) : 1;
}

static void list_and(const wl_bexpr *e, wl_u64 barrier, conjunct *out, int *n) {
  if (!e) return;
  if (e->kind == WL_B_AND) {
    list_and(e->a, barrier, out, n);
    list_and(e->b, barrier, out, n);
    return;
  }
  wl_u64 sources = wl_bexpr_sources(e);
  out[(*n)++] = (conjunct){e, sources, barrier, sources | barrier};
}

/* Lists the conjuncts of WHERE, and those of ON of all inner joins. */
static wl_status collect_where(planner *p) {
  const wl_query *q = p->q;
  int n = count_and(q->where);
  for (int s = 0; s < q->n_sources; s++)
    if (q->sources[s].how == WL_HOW_INNER) n += count_and(q->sources[s].on);
  p->where = WL_NEW_N(p->arena, conjunct, n + 1);
  if (!p->where) return wl_nomem(p->err);
  list_and(q->where, barrier_before(q, q->n_sources), p->where, &p->n_where);
  for (int s = 0; s < q->n_sources; s++)
    if (q->sources[s].how == WL_HOW_INNER)
      list_and(q->sources[s].on, barrier_before(q, s), p->where, &p->n_where);
  return WL_OK;
}

/* Lists the conjuncts of an ON, for source s, which is not INNER. */
static wl_status collect_on(planner *p, int s, const wl_bexpr *on) {
  p->on[s] = WL_NEW_N(p->arena, conjunct, count_and(on) + 1);
  if (!p->on[s]) return wl_nomem(p->err);
  list_and(on, 0, p->on[s], &p->n_on[s]);
  return WL_OK;
}

/* The sources that must be joined before source s. A RIGHT or FULL join comes after all sources
** before it in the text, and before all after it. */
static wl_u64 needs_of(const planner *p, int s) {
  const wl_query *q = p->q;
  wl_u64 needs = barrier_before(q, s);
  if (wl_how_keeps_unmatched(p->how[s])) return s ? bit(s) - 1 : bit(1);
  if (p->how[s] == WL_HOW_INNER) return needs;
  needs |= wl_bexpr_sources(q->sources[s].on) & ~bit(s);
  return needs ? needs : p->how[0] == WL_HOW_INNER && s ? bit(0) : 0;
}

/* Finds how the sources are joined, and their conditions. The two sources of a FULL join can change
** places: the larger one is scanned, so that the lookup is small. */
static wl_status find_joins(planner *p) {
  const wl_query *q = p->q;
  wl_status rc = WL_OK;
  for (int s = 0; s < q->n_sources; s++) p->how[s] = q->sources[s].how;
  bool turned = p->how[1] == WL_HOW_FULL && p->in->n_rows[1] > p->in->n_rows[0];
  if (turned) {
    p->how[0] = WL_HOW_FULL;
    p->how[1] = WL_HOW_INNER;
  }
  for (int s = 0; s < q->n_sources && !rc; s++) {
    if (p->how[s] != WL_HOW_INNER) rc = collect_on(p, s, q->sources[turned && !s ? 1 : s].on);
    p->needs[s] = needs_of(p, s);
  }
  return rc;
}

/* Whether c is about source s only and can be tested when s is read. */
static bool filters(const conjunct *c, int s) {
  return c->sources == bit(s) && !(c->barrier & bit(s));
}

/* Whether c is an equality with one side over source s only and the other over `before`. */
static bool key_of(const conjunct *c, int s, wl_u64 before, wl_jkey *out) {
  const wl_bexpr *e = c->e;
  if (!((e->kind == WL_B_COMPARE && e->op == WL_OP_EQ) || e->kind == WL_B_IS)) return false;
  wl_u64 a = wl_bexpr_sources(e->a), b = wl_bexpr_sources(e->b);
  bool turned = a != bit(s);
  wl_u64 mine = turned ? b : a, other = turned ? a : b;
  if (mine != bit(s) || other == 0 || (other & ~before)) return false;
  *out = (wl_jkey){e, turned ? e->b : e->a, turned ? e->a : e->b};
  return true;
}

/* ---- estimates */

static double distinct(const planner *p, const wl_bexpr *e, double rows) {
  while (e->kind == WL_B_CAST && e->op == WL_OP_POS) e = e->a;
  if (e->kind != WL_B_COLUMN) return rows;
  wl_column *c = p->in->cols ? p->in->cols[e->slot] : NULL;
  if (!c || c->n_rows == 0) return rows;
  double n = wl_column_distinct(c);
  return n < rows ? n : rows;
}

/* The distinct combinations of keys on both sides of a join. */
typedef struct key_counts {
  double inner, outer, most_outer;
  wl_u64 outers;
} key_counts;

static void count_key(const planner *p, const wl_jkey *k, int s, key_counts *to) {
  to->inner *= distinct(p, k->inner, (double)p->in->n_rows[s]);
  wl_u64 o = wl_bexpr_sources(k->outer);
  if (o & (o - 1)) return;
  double rows = (double)p->in->n_rows[__builtin_ctzll(o)];
  to->outer *= distinct(p, k->outer, rows);
  if (!(to->outers & o)) to->most_outer *= rows;
  to->outers |= o;
}

/* Estimates the share of pairs that are equal in all keys. There are at most as many combinations
** as rows: two columns that are a key together are not independent. */
static double pair_share(const planner *p, const key_counts *keys, int s) {
  double all = (double)p->in->n_rows[s];
  double a = keys->inner < all ? keys->inner : all;
  double b = keys->outer < keys->most_outer ? keys->outer : keys->most_outer;
  double most = a > b ? a : b;
  return most < 1 ? 1 : 1 / most;
}

/* Finds the sources s of which each row finds one row of t: s.x = t.key. */
static void find_leads(planner *p) {
  int n = p->q->n_sources;
  for (int s = 0; s < n; s++)
    for (int t = 0; t < n; t++)
      for (int k = 0; k < p->n_where && s != t; k++) {
        wl_jkey key;
        double all = (double)p->in->n_rows[t];
        if (p->how[s] != WL_HOW_INNER || p->how[t] != WL_HOW_INNER) break;
        if (p->where[k].waits == (bit(s) | bit(t)) && key_of(&p->where[k], t, bit(s), &key) &&
            distinct(p, key.inner, all) >= 0.9 * all)
          p->leads[s] |= bit(t);
      }
}

/* Finds the SEMI joins that only filter one source. */
static void find_semi_filters(planner *p) {
  for (int t = 0; t < p->q->n_sources; t++) {
    int n_keys = 0, outer = -1;
    double share = 1;
    bool only = p->how[t] == WL_HOW_SEMI;
    p->filtered[t] = -1;
    for (int k = 0; only && k < p->n_on[t]; k++) {
      const conjunct *c = &p->on[t][k];
      wl_u64 others = c->sources & ~bit(t);
      wl_jkey key;
      if (!others) continue;
      int s = __builtin_ctzll(others);
      only = !(others & (others - 1)) && (outer < 0 || outer == s) && p->how[s] == WL_HOW_INNER &&
             key_of(c, t, others, &key);
      if (!only) break;
      outer = s;
      n_keys++;
      double left = p->rows[t] / distinct(p, key.outer, (double)p->in->n_rows[s]);
      share = left < share ? left : share;
    }
    if (!only || !n_keys || barrier_before(p->q, outer) != barrier_before(p->q, t)) continue;
    p->filtered[t] = outer;
    p->filtered_share[t] = share;
  }
  for (int t = 0; t < p->q->n_sources; t++) {
    if (!p->q->sources[t].reduces) continue;
    if (p->filtered[t] >= 0 && p->filtered_share[t] <= MOST_LEFT && !p->in->may_fail) continue;
    p->filtered[t] = -1;
    p->left_out |= bit(t);
  }
}

/* The share of the rows of source s that SEMI joins leave. */
static double semi_share(const planner *p, int s) {
  double share = 1;
  for (int t = 0; t < p->q->n_sources; t++)
    if (p->filtered[t] == s) share *= p->filtered_share[t];
  return share;
}

/* Estimates the share of a source's rows that are left after the filters on it and on the sources
** it leads to. Many equalities between many sources have too many paths, so *steps limits them. */
static double share_left(const planner *p, int s, wl_u64 seen, int *steps) {
  double all = (double)p->in->n_rows[s], share = all > 0 ? p->rows[s] / all : 1;
  for (int t = 0; t < p->q->n_sources; t++)
    if ((p->leads[s] & ~seen & bit(t)) && --*steps >= 0)
      share *= share_left(p, t, seen | bit(t) | bit(s), steps);
  return share;
}

/* Estimates the join of source s to the sources `before`, which have n rows. Returns the number of
** rows after it, and sets *cost. */
static double join_rows(planner *p, int s, int driver, wl_u64 before, double n, double *cost) {
  wl_join_how how = p->how[s];
  const conjunct *list = how == WL_HOW_INNER ? p->where : p->on[s];
  int n_list = how == WL_HOW_INNER ? p->n_where : p->n_on[s];
  double share = 1, all = (double)p->in->n_rows[s];
  /* Lookups of later sources reduce its rows. Sources before it reduce them by the join itself. */
  int steps = MAX_LEADS;
  double build = all * share_left(p, s, before | bit(s), &steps);
  if (build > p->rows[s]) build = p->rows[s];
  build *= semi_share(p, s);
  bool thinned = false; /* its filters have already reduced the source that leads to it */
  bool keyed = false;
  key_counts keys = {1, 1, 1, 0};
  for (int k = 0; k < n_list; k++) {
    wl_jkey key;
    if (!(list[k].sources & bit(s)) || (list[k].waits & ~(before | bit(s)))) continue;
    if (list[k].sources == bit(s)) continue;
    if (key_of(&list[k], s, before, &key)) {
      wl_u64 outer = wl_bexpr_sources(key.outer);
      count_key(p, &key, s, &keys);
      keyed = true;
      if ((outer & (outer - 1)) == 0 && !(outer & bit(driver)))
        thinned |= (p->leads[__builtin_ctzll(outer)] & bit(s)) != 0;
    } else {
      share *= 0.3;
    }
  }
  if (keyed) share *= pair_share(p, &keys, s);
  /* Without a key every row is a pair. A lookup that comes later may take its keys from several
  ** sources, and then it reduces none of them. */
  if (!keyed) build = p->rows[s] * semi_share(p, s);
  double matches = (thinned ? all : build) * share, pairs = n * matches;
  bool lists = keys.inner < 0.9 * all && !wl_how_finds_one(how);
  *cost = (double)p->in->n_rows[s] * COST_SCAN + build * (lists ? COST_LISTS : COST_BUILD);
  if (p->in->for_device) *cost += build * COST_COPY;
  double search = keyed ? n * (build > FAR_ROWS ? COST_FAR : COST_PROBE) +
                              pairs * (lists && build > FAR_ROWS ? COST_LISTED : COST_OUT)
                        : n * build * COST_NESTED;
  *cost += p->drive * search;
  switch (how) {
  case WL_HOW_INNER: break;
  case WL_HOW_RIGHT: return pairs > all ? pairs : all;
  case WL_HOW_FULL: return (matches > 1 ? pairs : n) + (pairs < all ? all - pairs : 0);
  case WL_HOW_LEFT: return matches > 1 && !p->q->sources[s].single ? pairs : n;
  case WL_HOW_SEMI: /* the lookup of the source that it filters is reduced already */
    if (p->filtered[s] >= 0 && p->filtered[s] != driver) return n;
    return n * (matches < 1 ? matches : 1);
  case WL_HOW_ANTI: return n * (matches < 1 ? 1 - matches : 0.1);
  case WL_HOW_MARK: return n;
  }
  /* Other conjuncts that can be tested after this source were counted above. */
  return pairs;
}

static bool can_drive(const planner *p, int s) {
  return p->how[s] == WL_HOW_INNER && p->needs[s] == 0 && (p->in->driver < 0 || p->in->driver == s);
}

/* The cost of scanning the driver. */
static double scan_cost(const planner *p, int s) {
  return p->drive * (double)p->in->n_rows[s] * COST_SCAN;
}

typedef struct state {
  double cost, rows;
  wl_u8 last, driver;
  bool known;
} state;

static wl_status by_sets(planner *p, int n_order, int *order) {
  int n = p->q->n_sources;
  size_t sets = (size_t)1 << n;
  state *st = WL_NEW_N(p->arena, state, sets);
  if (!st) return wl_nomem(p->err);
  for (int s = 0; s < n; s++)
    if (can_drive(p, s))
      st[bit(s) | p->left_out] = (state){scan_cost(p, s), p->rows[s], (wl_u8)s, (wl_u8)s, true};
  for (wl_u64 set = 1; set < sets; set++) {
    if (!st[set].known) continue;
    for (int s = 0; s < n; s++) {
      double cost;
      if (set & bit(s) || (p->needs[s] & ~set)) continue;
      double rows = join_rows(p, s, st[set].driver, set, st[set].rows, &cost);
      state *to = &st[set | bit(s)];
      if (to->known && to->cost <= st[set].cost + cost) continue;
      *to = (state){st[set].cost + cost, rows, (wl_u8)s, st[set].driver, true};
    }
  }
  wl_u64 set = sets - 1;
  if (!st[set].known)
    return wl_not_taken(p->err,
                        "a subquery in the ON of a LEFT JOIN that refers to the joined table");
  for (int k = n_order - 1; k >= 0; k--) {
    order[k] = st[set].last;
    set &= ~bit(order[k]);
  }
  return WL_OK;
}

static wl_status greedily(planner *p, int n_order, int *order) {
  int n = p->q->n_sources, best_driver = -1;
  double best = INFINITY;
  int *trial = WL_NEW_N(p->arena, int, n);
  if (!trial) return wl_nomem(p->err);
  for (int d = 0; d < n; d++) {
    if (!can_drive(p, d)) continue;
    wl_u64 set = bit(d) | p->left_out;
    double rows = p->rows[d], total = scan_cost(p, d);
    int k = 1;
    trial[0] = d;
    for (; k < n_order; k++) {
      int next = -1;
      double next_rows = 0, next_cost = INFINITY;
      for (int s = 0; s < n; s++) {
        double cost;
        if (set & bit(s) || (p->needs[s] & ~set)) continue;
        double r = join_rows(p, s, d, set, rows, &cost);
        if (cost + r * COST_OUT >= next_cost) continue;
        next = s;
        next_rows = r;
        next_cost = cost + r * COST_OUT;
      }
      if (next < 0) break;
      trial[k] = next;
      set |= bit(next);
      rows = next_rows;
      total += next_cost;
    }
    if (k < n_order || total >= best) continue;
    best = total;
    best_driver = d;
    memcpy(order, trial, (size_t)n_order * sizeof *order);
  }
  return best_driver >= 0
             ? WL_OK
             : wl_not_taken(p->err,
                            "a subquery in the ON of a LEFT JOIN that refers to the joined table");
}

/* ---- from an order to a plan */

static wl_status push(planner *p, wl_jlist *l, const wl_bexpr *e) {
  if (l->n % 8 == 0) {
    const wl_bexpr **more = WL_NEW_N(p->arena, const wl_bexpr *, l->n + 8);
    if (!more) return wl_nomem(p->err);
    if (l->n) memcpy(more, l->e, (size_t)l->n * sizeof *more);
    l->e = more;
  }
  l->e[l->n++] = e;
  return WL_OK;
}

static wl_status make_step(planner *p, wl_u64 before, bool *used, wl_jstep *st) {
  int s = st->source;
  bool inner = p->how[s] == WL_HOW_INNER;
  conjunct *list = inner ? p->where : p->on[s];
  int n = inner ? p->n_where : p->n_on[s];
  st->how = p->how[s];
  st->keys = WL_NEW_N(p->arena, wl_jkey, n + 1);
  if (!st->keys) return wl_nomem(p->err);
  wl_status rc = WL_OK;
  for (int k = 0; k < n && !rc; k++) {
    if (inner && (used[k] || !(list[k].sources & bit(s)) || (list[k].waits & ~(before | bit(s)))))
      continue;
    if (inner) used[k] = true;
    if (list[k].sources == bit(s) || (!inner && list[k].sources == 0))
      rc = push(p, &st->filters, list[k].e);
    else if (key_of(&list[k], s, before, &st->keys[st->n_keys]))
      st->n_keys++;
    else
      rc = push(p, inner ? &st->after : &st->tests, list[k].e);
  }
  for (int k = 0; k < p->n_where && !rc; k++) {
    if (used[k] || (p->where[k].waits & ~(before | bit(s)))) continue;
    used[k] = true;
    rc = push(p, &st->after, p->where[k].e);
  }
  return rc;
}

/* The sources whose columns are read after the lookup of step k. */
static wl_u64 read_after(const planner *p, const wl_jplan *plan, int k) {
  const wl_query *q = p->q;
  wl_u64 m = wl_bexpr_sources(q->having);
  for (int i = 0; i < q->n_results; i++) m |= wl_bexpr_sources(q->results[i]);
  for (int i = 0; i < q->n_groups; i++) m |= wl_bexpr_sources(q->groups[i]);
  for (int i = 0; i < q->n_order; i++) m |= wl_bexpr_sources(q->order[i].expr);
  for (int i = 0; i < q->n_scan; i++) m |= wl_bexpr_sources(q->scan[i].expr);
  for (int i = 0; i < q->n_aggs; i++)
    m |= wl_bexpr_sources(q->aggs[i].arg) | wl_bexpr_sources(q->aggs[i].separator);
  for (int i = k; i < plan->n_steps; i++) {
    const wl_jstep *st = &plan->steps[i];
    for (int j = 0; j < st->after.n; j++) m |= wl_bexpr_sources(st->after.e[j]);
    for (int j = 0; j < st->tests.n; j++) m |= wl_bexpr_sources(st->tests.e[j]);
    for (int j = 0; j < st->n_keys && i > k; j++) m |= wl_bexpr_sources(st->keys[j].outer);
  }
  return m;
}

/* Finds selective lookups. They reduce the rows of the earlier steps that lead to them. A RIGHT or
** FULL join between both needs the rows that would be dropped: they mark rows. */
static void add_reducers(const planner *p, wl_jplan *plan) {
  for (int j = plan->n_steps - 1; j >= 0; j--) {
    wl_jstep *t = &plan->steps[j];
    double all = (double)p->in->n_rows[t->source];
    t->unread = !(read_after(p, plan, j) & bit(t->source));
    bool semi = p->filtered[t->source] >= 0;
    bool thin = (t->filters.n || t->reducers) && t->n_build < 0.8 * all;
    t->left = semi ? p->filtered_share[t->source] : t->n_build / all;
    if (semi ? t->left > 0.8 : t->how != WL_HOW_INNER || !t->n_keys || !thin) continue;
    wl_u64 outer = 0;
    for (int k = 0; k < t->n_keys; k++) outer |= wl_bexpr_sources(t->keys[k].outer);
    if (outer & (outer - 1)) continue;
    for (int i = 0; i < j; i++) {
      wl_jstep *s = &plan->steps[i];
      if (bit(s->source) != outer || s->how != WL_HOW_INNER) continue;
      if (barrier_before(p->q, s->source) != barrier_before(p->q, t->source)) continue;
      s->reducers |= bit(j);
      s->n_build *= t->left;
    }
  }
}

wl_status wl_jplan_make(wl_arena *arena, const wl_jplan_in *in, wl_jplan **out, wl_error *err) {
  planner p = {.in = in, .q = in->q, .arena = arena, .err = err};
  p.drive = in->for_device ? ON_DEVICE : 1;
  const wl_query *q = in->q;
  int n = q->n_sources, *order = WL_NEW_N(arena, int, n + 1);
  wl_jplan *plan = *out = WL_NEW(arena, wl_jplan);
  if (!order || !plan) return wl_nomem(err);
  plan->steps = WL_NEW_N(arena, wl_jstep, n + 1);
  wl_status rc = plan->steps ? collect_where(&p) : wl_nomem(err);
  bool *used = WL_NEW_N(arena, bool, rc ? 1 : p.n_where + 1);
  if (!rc && !used) rc = wl_nomem(err);
  if (!rc) rc = find_joins(&p);
  for (int s = 0; s < n && !rc; s++) {
    wl_jlist own = {0};
    bool inner = p.how[s] == WL_HOW_INNER;
    const conjunct *list = inner ? p.where : p.on[s];
    for (int k = 0; k < (inner ? p.n_where : p.n_on[s]) && !rc; k++)
      if (filters(&list[k], s)) rc = push(&p, &own, list[k].e);
    double all = (double)in->n_rows[s];
    p.rows[s] = own.n && in->share ? all * in->share(in->arg, s, &own) : all;
    if (own.n && p.rows[s] < 1) p.rows[s] = all < 1 ? all : 1;
  }
  if (rc) return rc;
  find_leads(&p);
  find_semi_filters(&p);
  int n_order = n - __builtin_popcountll(p.left_out);
  rc = n <= MAX_DP ? by_sets(&p, n_order, order) : greedily(&p, n_order, order);
  if (rc) return rc;
  plan->driver = order[0];
  plan->n_first = p.rows[order[0]];
  wl_u64 before = bit(order[0]);
  for (int k = 0; k < p.n_where && !rc; k++) {
    if (p.where[k].waits & ~before) continue;
    used[k] = true;
    rc = push(&p, &plan->filters, p.where[k].e);
  }
  double rows = plan->n_first;
  for (int k = 1; k < n_order && !rc; k++) {
    wl_jstep *st = &plan->steps[plan->n_steps++];
    double cost;
    st->source = order[k];
    st->n_build = p.rows[order[k]];
    rows = st->n_out = join_rows(&p, order[k], order[0], before, rows, &cost);
    plan->cost += cost;
    rc = make_step(&p, before, used, st);
    before |= bit(order[k]);
  }
  if (!rc) add_reducers(&p, plan);
  return rc;
}
