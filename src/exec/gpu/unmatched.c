/*
** Marks on a device, and rows without one; see unmatched.h.
*/
#include "exec/gpu/unmatched.h"
#include "exec/cpu/marks.h"

/* Whether the pipeline sets or reads the marks of a join. */
static bool uses(const wl_program *p, int join) {
  bool found = p->source == WL_SOURCE_UNMATCHED && p->unmatched == join;
  for (int pc = 0; pc < p->n_code && !found; pc++)
    found = p->code[pc].op == WL_OP__Mark && p->code[pc].c == join;
  return found;
}

void wl_unmatched_close(wl_pipe *e, wl_device_state *s) {
  for (int k = 0; s->marks && k < e->p->n_joins; k++) {
    size_t n;
    (void)wl_marks_bits(e->marks, k, &n);
    wl_dev_free(e->device, s->marks[k], n);
  }
  s->marks = NULL;
}

wl_status wl_unmatched_open(wl_pipe *e, wl_device_state *s, wl_error *err) {
  const wl_program *p = e->p;
  wl_device *d = e->device;
  wl_status rc = WL_OK;
  if (!e->marks) return WL_OK;
  s->marks = WL_NEW_N(&s->arena, wl_u32 *, p->n_joins + 1);
  if (!s->marks) return wl_nomem(err);
  d->queue = 0;
  for (int k = 0; k < p->n_joins && !rc; k++) {
    size_t n;
    const wl_u64 *bits = wl_marks_bits(e->marks, k, &n);
    if (!uses(p, k)) continue;
    rc = wl_dev_alloc(d, n, (void **)&s->marks[k], err);
    if (!rc) rc = d->copy_in(d, s->marks[k], bits, n, err);
  }
  if (!rc) rc = d->finish(d, err); /* launches may use other queues */
  if (rc) wl_unmatched_close(e, s);
  return rc == WL_FULL ? wl_not_taken(err, "the device has no room for the marks of a join") : rc;
}

wl_status wl_unmatched_fetch(wl_pipe *e, const wl_device_state *s, wl_error *err) {
  wl_device *d = e->device;
  wl_status rc = WL_OK;
  d->queue = 0;
  for (int k = 0; s->marks && k < e->p->n_joins && !rc; k++) {
    size_t n;
    wl_u64 *bits = wl_marks_bits(e->marks, k, &n);
    if (s->marks[k]) rc = d->copy_out(d, bits, s->marks[k], n, err);
  }
  return rc;
}

int wl_unmatched_lists(const wl_launch *l, wl_klist *out) {
  const wl_program *p = l->e->p;
  int marked = p->joins[p->unmatched].source;
  for (int i = 0; i < l->low->n_ins; i++) {
    int source = l->low->ins[i];
    out[i] = (wl_klist){.plane = l->low->planes[source],
                        .of = source == marked ? WL_K_LIST_SCAN : WL_K_LIST_NONE};
  }
  return l->low->n_ins;
}
