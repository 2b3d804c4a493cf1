/*
** Sizes of a query before anything is loaded; see query.h. The costs are computed from them.
*/
#include "exec/query.h"
#include "exec/gpu/columns/devcol.h"

void wl_query_each_table(wl_store *store, const wl_query *q,
                         void (*fn)(void *arg, const wl_query *q, int source, wl_table *t),
                         void *arg) {
  wl_error ignored;
  wl_table *t;
  for (int s = 0; s < q->n_sources; s++) {
    const wl_bsource *src = &q->sources[s];
    if (src->reduces) continue;
    for (int k = 0; src->derived && k < src->derived->n_arms; k++)
      wl_query_each_table(store, src->derived->arms[k], fn, arg);
    if (src->table && !wl_store_table(store, src->schema, src->table, &t, &ignored))
      fn(arg, q, s, t);
  }
  for (int k = 0; k < q->n_subs; k++) wl_query_each_table(store, q->subs[k].query, fn, arg);
}

/* Columns of a source that the query reads and that are not in memory. *weight: the same, where a
** column of text counts as four. Texts are copied and sorted when they are loaded. */
static int missing_columns(const wl_query *q, int source, const wl_table *t, bool exact,
                           int *weight) {
  int n = 0;
  *weight = 0;
  for (int k = 0; k < q->n_cols; k++) {
    int c = q->cols[k].column;
    if (q->cols[k].source != source || (exact && wl_source_columns(t->source, &c, 1, NULL)))
      continue;
    n++;
    *weight += c >= 0 && c < t->n_cols && t->cols[c].affinity == 'B' ? 4 : 1;
  }
  return n;
}

static void add_table(void *arg, const wl_query *q, int source, wl_table *t) {
  wl_query_size *out = arg;
  bool exact;
  wl_i64 n = wl_source_estimate(t->source, &exact);
  int weight, missing = missing_columns(q, source, t, exact, &weight);
  out->n_rows += n;
  out->exact &= exact;
  out->n_missing += missing;
  wl_source_history used = wl_source_used(t->source);
  out->version = (out->version ^ used.version) * 0x9e3779b97f4a7c15ULL;
  if (!missing) return;
  if (t->source->in_segments) {
    out->load_tablet_values += (double)n * weight;
  } else {
    out->by_steps |= t->without_rowid;
    out->load_rows += (double)n;
    out->load_columns += (double)n * t->n_cols;
    out->load_values += (double)n * weight;
  }
  out->lost_ns += used.lost_ns;
  if (used.n_loads >= out->n_loads) {
    out->n_loads = used.n_loads;
    out->n_uses = used.n_uses;
  }
}

wl_query_size wl_query_size_of(wl_store *store, const wl_query *q) {
  wl_query_size out = {.exact = true};
  wl_query_each_table(store, q, add_table, &out);
  return out;
}

typedef struct loss {
  double ns, n_rows;
} loss;

static void add_loss(void *arg, const wl_query *q, int source, wl_table *t) {
  const loss *l = arg;
  bool exact;
  int weight;
  double n = (double)wl_source_estimate(t->source, &exact);
  if (missing_columns(q, source, t, exact, &weight) && l->n_rows > 0)
    wl_source_lose(t->source, l->ns * n / l->n_rows);
}

void wl_query_lose(wl_store *store, const wl_query *q, double ns) {
  loss l = {ns, (double)wl_query_size_of(store, q).n_rows};
  wl_query_each_table(store, q, add_loss, &l);
}

/* ---- columns on a device */

typedef struct copies {
  const wl_device *device;
  bool mapped;
  double ns; /* to be noted for the columns that are not there, n_absent bytes; 0: nothing */
  double n_absent;
  wl_query_copies out;
} copies;

static void add_copy(copies *to, wl_column *c) {
  double n = (double)c->n_bytes;
  to->out.n_bytes += n;
  if (wl_devcol_is_there(to->device, c, to->mapped)) return;
  to->out.n_absent += n;
  to->out.lost_ns += (double)atomic_load(&c->not_copied_ns);
  if (to->ns > 0) atomic_fetch_add(&c->not_copied_ns, (long long)(to->ns * n / to->n_absent));
}

static void add_copies(void *arg, const wl_query *q, int source, wl_table *t) {
  enum { VALUE_BYTES = 4, TEXT_BYTES = 16 };
  copies *to = arg;
  bool exact;
  double n_rows = (double)wl_source_estimate(t->source, &exact);
  for (int k = 0; k < q->n_cols; k++) {
    int i = q->cols[k].column;
    wl_column *c = NULL;
    if (q->cols[k].source != source) continue;
    if (exact) c = wl_source_column(t->source, i);
    if (c) {
      add_copy(to, c);
      wl_column_drop(c);
      continue;
    }
    bool text = i >= 0 && i < t->n_cols && t->cols[i].affinity == 'B';
    double n_bytes = n_rows * (text ? TEXT_BYTES : VALUE_BYTES);
    to->out.n_bytes += n_bytes;
    to->out.n_absent += n_bytes;
  }
}

wl_query_copies wl_query_copies_of(wl_store *store, const wl_query *q, const wl_device *device,
                                   bool mapped) {
  copies c = {.device = device, .mapped = mapped};
  wl_query_each_table(store, q, add_copies, &c);
  return c.out;
}

void wl_query_not_copied(wl_store *store, const wl_query *q, const wl_device *device, double ns) {
  copies c = {.device = device, .ns = ns};
  c.n_absent = wl_query_copies_of(store, q, device, false).n_absent;
  if (c.n_absent > 0) wl_query_each_table(store, q, add_copies, &c);
}

/* Whether some conjunct is an equality that joins source s with another source. */
static bool linked(const wl_bexpr *e, int s) {
  if (!e) return false;
  if (e->kind == WL_B_AND) return linked(e->a, s) || linked(e->b, s);
  if (!((e->kind == WL_B_COMPARE && e->op == WL_OP_EQ) || e->kind == WL_B_IS)) return false;
  wl_u64 a = wl_bexpr_sources(e->a), b = wl_bexpr_sources(e->b), me = 1ULL << s;
  return (a == me && b && !(b & me)) || (b == me && a && !(a & me));
}

double wl_query_pairs(wl_store *store, const wl_query *q) {
  double pairs = 0, product = 1, most = 1;
  bool loose = false;
  wl_table *t;
  wl_error ignored;
  for (int s = 0; s < q->n_sources; s++) {
    const wl_bsource *src = &q->sources[s];
    double n = src->derived ? 1000 : 1;
    bool exact;
    for (int k = 0; src->derived && k < src->derived->n_arms; k++)
      pairs += wl_query_pairs(store, src->derived->arms[k]);
    if (src->table && !wl_store_table(store, src->schema, src->table, &t, &ignored))
      n = (double)wl_source_estimate(t->source, &exact);
    if (q->n_sources > 1 && !linked(q->where, s) && !linked(src->on, s)) {
      product *= n < 1 ? 1 : n;
      loose |= s > 0;
    } else if (n > most) {
      most = n;
    }
  }
  for (int k = 0; k < q->n_subs; k++) pairs += wl_query_pairs(store, q->subs[k].query);
  return pairs + (loose ? product * most : 0);
}
