/*
** Finds conditions that an OR implies: conditions that every branch requires, and conditions on one
** source that every branch has in some form. They are added to WHERE so that they can join and
** filter early. The OR itself stays. One of the rewrites of a query.
**
**     (a = b AND x = 1) OR (a = b AND x = 2 AND y > 3)
**     implies a = b, and x = 1 OR x = 2
*/
#include "plan/rewrite/rewrite_impl.h"

enum { MAX_BRANCHES = 32 };

static int branches(wl_bexpr *e, wl_bexpr **out, int n) {
  if (e->kind == WL_B_OR) {
    n = branches(e->a, out, n);
    return n < MAX_BRANCHES ? branches(e->b, out, n) : n;
  }
  if (n < MAX_BRANCHES) out[n] = e;
  return n + 1;
}

static bool has_conjunct(const wl_bexpr *e, const wl_bexpr *x) {
  if (e->kind == WL_B_AND) return has_conjunct(e->a, x) || has_conjunct(e->b, x);
  return wl_bexpr_same(e, x);
}

/* The conjuncts of e that read only these sources, as one condition. NULL: there are none. */
static wl_status terms_over(wl_edit *to, wl_bexpr *e, wl_u64 sources, wl_bexpr **out) {
  if (e->kind == WL_B_AND) {
    wl_status rc = terms_over(to, e->a, sources, out);
    return rc ? rc : terms_over(to, e->b, sources, out);
  }
  return wl_bexpr_sources(e) == sources ? wl_edit_and(to, out, e) : WL_OK;
}

/* The conjuncts of the first branch that all other branches also have. */
static wl_status common_terms(wl_edit *to, wl_bexpr *e, wl_bexpr **list, int n, wl_bexpr **terms) {
  if (e->kind == WL_B_AND) {
    wl_status rc = common_terms(to, e->a, list, n, terms);
    return rc ? rc : common_terms(to, e->b, list, n, terms);
  }
  for (int k = 1; k < n; k++)
    if (!has_conjunct(list[k], e)) return WL_OK;
  return wl_edit_and(to, terms, e);
}

static wl_status imply(wl_edit *to, wl_bexpr *e, wl_bexpr **terms) {
  wl_bexpr *list[MAX_BRANCHES];
  if (e->kind == WL_B_AND) {
    wl_status rc = imply(to, e->a, terms);
    return rc ? rc : imply(to, e->b, terms);
  }
  if (e->kind != WL_B_OR) return WL_OK;
  wl_u64 all = wl_bexpr_sources(e);
  int n = branches(e, list, 0);
  if (n > MAX_BRANCHES || (all & (all - 1)) == 0) return WL_OK;
  wl_status rc = common_terms(to, list[0], list, n, terms);
  for (int s = 0; s < to->q->n_sources && !rc; s++) {
    wl_bexpr *any = NULL;
    int k = 0;
    for (; k < n && (all >> s & 1) && !rc; k++) {
      wl_bexpr *part = NULL;
      rc = terms_over(to, list[k], 1ULL << s, &part);
      if (rc || !part) break;
      if (any)
        rc = wl_edit_binary(to, WL_B_OR, WL_OP_OR, any, part, &any);
      else
        any = part;
    }
    if (!rc && k == n && any) rc = wl_edit_and(to, terms, any);
  }
  return rc;
}

wl_status wl_rewrite_implied_terms(wl_edit *to) {
  wl_query *q = to->q;
  wl_bexpr *more = NULL;
  if (!q->where || q->n_sources < 2) return WL_OK;
  wl_status rc = imply(to, q->where, &more);
  return rc || !more ? rc : wl_edit_and(to, &q->where, more);
}
