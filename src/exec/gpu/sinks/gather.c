/*
** What a run does on the device in addition to its scan: the groups of all launches, and DISTINCT
** and ORDER BY over the rows of one launch. Called by run_device.c, under the
** device's lock.
**
** Invariants:
** 1. Each launch adds its rows to the groups, so it must not run twice. If anything goes wrong
**    after a launch has begun, the groups are cleared and all launches start again.
** 2. Rows are in their final order only if one launch produced all of them.
*/
#include "exec/executed.h"
#include "exec/gpu/join_parts.h"
#include "exec/sink/sort.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void wl_gather_note(wl_pipe *e, const char *format, ...) {
  char text[WL_PIPE_NOTE];
  size_t n = strlen(e->note);
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (!strstr(e->note, text)) /* the waves of a pipeline say the same */
    snprintf(e->note + n, WL_PIPE_NOTE - n, "%s%s", n ? ", " : "", text);
}

/* ---- groups */

void wl_gather_forget(wl_pipe *e) {
  wl_device_state *s = e->state;
  if (s && s->expansion) wl_expansion_forget(e, s);
  if (e->p->source != WL_SOURCE_UNMATCHED) e->sink->clear(e->sink);
  wl_join_parts_restart(e, s);
}

wl_status wl_gather_restart(wl_pipe *e, wl_device_state *s, wl_error *err) {
  wl_gather_forget(e);
  wl_status rc = wl_dgroups_restart(s->groups, err);
  return rc || !s->parts ? rc : wl_join_parts_hold(e, s, err); /* the first, as in the next wave */
}

bool wl_gather_stays(const wl_pipe *e) {
  wl_error ignored;
  bool several = e->p->also || e->p->source == WL_SOURCE_UNMATCHED; /* pipelines into this sink */
  return !several && wl_gpu_finishes(e->p) && !wl_gpu_fits(e->p->next, e->device, &ignored);
}

/* Waits for the groups, as the host needs them after all. */
static wl_status settle_late(wl_device_state *s, wl_device *d, wl_error *err) {
  bool restart = false;
  wl_status rc = d->finish(d, err);
  s->unwatched = false;
  if (!rc) rc = wl_dgroups_settle(s->groups, &restart, err);
  assert(rc || !restart);
  return rc;
}

/* Called after the last row. Moves the groups to the host, or begins the next pass. */
static wl_status finish_pass(wl_pipe *e, wl_device_state *s, wl_error *err) {
  bool again = false;
  wl_groups_sink *to = (wl_groups_sink *)e->sink;
  wl_groups_to workers = {to->grouping, to->groups, to->threads};
  wl_status rc = WL_OK;
  bool unmatched = e->p->source == WL_SOURCE_UNMATCHED;
  if (!to->on_device && s->groups_stay)
    rc = wl_dgroups_finish(s->groups, e->tally != NULL, &to->made, &to->on_device, e->stop, err);
  /* the CPU could not start again after the first */
  if (unmatched && !wl_dgroups_one_pass(s->groups))
    return wl_not_taken(err, "groups of unmatched rows that need several passes");
  if (!rc && !to->on_device && s->unwatched) rc = settle_late(s, e->device, err);
  if (!rc && !to->on_device) {
    rc = wl_dgroups_fetch(s->groups, &workers, e->stop, &again, err);
    e->refused = rc && unmatched; /* the sink has some of them, and groups of earlier pipelines */
  }
  if (!rc && again) wl_join_parts_restart(e, s);
  const char *where = to->on_device || again ? "" : ", finished on the cpu";
  if (e->p->n_keys) wl_gather_note(e, "%s%s", wl_dgroups_way(s->groups), where);
  if (!rc && !again) { /* free device memory now: the statement may stay open for a long time */
    wl_dgroups_close(s->groups);
    s->groups = NULL;
  }
  return rc;
}

wl_status wl_gather_wave(wl_pipe *e, wl_device_state *s, wl_error *err) {
  bool restart = false;
  wl_status rc = s->unwatched ? WL_OK : wl_dgroups_settle(s->groups, &restart, err);
  if (rc) return rc;
  if (restart) {
    wl_gather_forget(e);
    return WL_OK;
  }
  if (e->next_row < e->n_rows || wl_join_parts_next(e, s)) return WL_OK;
  return finish_pass(e, s, err);
}

/* ---- order */

/* Sorts the rows of a LIMIT that must not cut between equal rows, and leaves those before the cut
** and the one behind it. The host compares them. It takes all rows if they are few: then it can see
** whether equal rows look alike. */
static wl_status sort_to_check(wl_launch *l, wl_error *err) {
  wl_pipe *e = l->e;
  const wl_dorder *o = &l->s->order;
  wl_u64 *n = &l->counters[C_OUT], before = *n;
  wl_i64 most = wl_cut_needed(1, wl_cut_needed(o->sort->offset, o->sort->limit));
  wl_status rc = WL_OK;
  bool pays = !o->distinct && o->order && !o->why && most >= 0 && before / 8 > (wl_u64)most;
  if (pays)
    rc = wl_dorder_run(l->d, e->p, o, l->outs, e->p->n_results, l->n_rows, n, most, e->stop, err);
  if (rc && rc != WL_FULL) return rc;
  if (!pays || rc) {
    wl_gather_note(e, "sorted on the cpu: LIMIT that must not cut between equal rows");
    return WL_OK;
  }
  wl_executed_sink(WL_ON_DEVICE, WL_SINK_SORT);
  ((wl_sort_sink *)e->sink)->pruned |= *n < before;
  wl_gather_note(e, "sorted on the gpu, checked on the cpu");
  return WL_OK;
}

/*
** If the launch made all rows, this does all of DISTINCT and ORDER BY. Otherwise the
** host merges the rows of all launches, and only work that reduces their number is worth doing
** here.
*/
wl_status wl_gather_order(wl_launch *l, wl_error *err) {
  wl_pipe *e = l->e;
  const wl_program *p = e->p;
  wl_dorder o = l->s->order;
  if (p->sink == WL_SINK_SORT && p->checks_cut) return sort_to_check(l, err);
  bool several = p->also || p->source == WL_SOURCE_UNMATCHED; /* pipelines into this sink */
  bool whole = l->whole && !several;
  bool distinct = p->sink == WL_SINK_DISTINCT;
  if (o.sort && o.sort->checks_cut) o.order = false; /* the host sorts the distinct rows */
  bool all = (!distinct || o.distinct) && (!o.sort || o.order);
  const char *what = distinct && o.sort ? "distinct and sorted" : o.sort ? "sorted" : "distinct";
  wl_i64 most =
      o.sort ? wl_cut_needed(o.sort->offset, o.sort->limit) : wl_cut_needed(p->offset, p->limit);
  for (int k = 0; o.sort && k < o.sort->n_order && distinct && !whole; k++)
    if (o.sort->order[k].result >= p->n_given) most = -1; /* equal rows may sort differently */
  if (!all) most = -1;
  if (!whole && most < 0) o.order = false;
  if (o.why)
    wl_gather_note(e, "%s on the cpu: %s", what, o.why);
  else if (!whole)
    wl_gather_note(e, "%s on the cpu: the rows come in several launches", what);
  if (!o.distinct && !o.order) return WL_OK;
  if (o.distinct) wl_executed_sink(WL_ON_DEVICE, WL_SINK_DISTINCT);
  if (o.order) wl_executed_sink(WL_ON_DEVICE, WL_SINK_SORT);
  wl_status rc = wl_dorder_run(l->d, p, &o, l->outs, whole && all ? p->n_given : p->n_results,
                               l->n_rows, &l->counters[C_OUT], most, e->stop, err);
  if (rc == WL_FULL) {
    wl_gather_note(e, "%s on the cpu: %.80s", what, err->text);
    return WL_OK;
  }
  if (rc || !whole || !all) return rc;
  wl_gather_note(e, "%s on the gpu", what);
  l->n_fetch = p->n_given;
  l->ordered = true;
  return WL_OK;
}
