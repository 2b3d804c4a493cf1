/*
** Sorting rows by texts and by values of several types: ktargs.h. Included by kernels.h. In all
** kernels a thread processes one entry at a time, with a grid stride. They use no shared memory.
** Ordering: only wl_ties_skip uses atomics, a minimum, whose order does not matter.
*/
#ifndef WL_KTIES_H
#define WL_KTIES_H

#include "exec/gpu/kernels/kernels.h"

WL_FN wl_val kt_value(const wl_ktfield *f, wl_u64 row) {
  wl_u8 t = f->t ? f->t[row] : 1;
  if (f->type == WL_R_TEXT) t = t ? WL_T_TEXT : WL_T_NULL;
  return wl_val_make(t, f->v[row], f->n ? f->n[row] : 0);
}

/* The first field of the word of a place. */
WL_FN const wl_ktfield *kt_field(const wl_ktkey *key, wl_ktplace p) {
  return &key->fields[p.word ? key->ends[p.word - 1] : 0];
}

WL_FN wl_u64 kt_code(const wl_ktfield *f, wl_u64 row, wl_u32 at) {
  switch (f->part.kind) {
  case WL_PART_TEXT: return wl_text_word(&f->part, kt_value(f, row), at);
  case WL_PART_VALUE: return wl_value_word(&f->part, kt_value(f, row), at);
  case WL_PART_CLASS: return wl_key_class(&f->part, f->t ? f->t[row] : 1);
  default: return wl_key_code(&f->part, f->v[row], !f->t || f->t[row]);
  }
}

/* The word of a row at a place. */
WL_FN wl_u64 kt_word(const wl_ktkey *key, wl_ktplace p, wl_u64 row) {
  wl_u64 word = 0;
  for (const wl_ktfield *f = kt_field(key, p), *end = key->fields + key->ends[p.word]; f < end; f++)
    word = wl_key_append(&f->part, word, kt_code(f, row, p.at));
  return word;
}

/* Moves a place on, after a row whose word there is `word`. Returns whether there is another. */
WL_FN int kt_next(const wl_ktkey *key, wl_ktplace *p, wl_u64 row, wl_u64 word) {
  const wl_ktfield *f = kt_field(key, *p);
  wl_u32 at = 0;
  if (f->part.kind == WL_PART_TEXT) at = wl_text_next(&f->part, word, p->at);
  if (f->part.kind == WL_PART_VALUE) at = wl_value_next(&f->part, kt_value(f, row).t, word, p->at);
  p->at = at;
  p->word += !at;
  return p->word < key->n_words;
}

WL_FN wl_ktplace kt_place(const wl_kties *t, wl_u64 entry) {
  wl_ktplace first = {0, 0};
  return t->place ? t->place[entry] : first;
}

WL_KERNEL_OF(wl_ties_skip, wl_ktskip, 512) {
  const wl_kties *t = &args->t;
  KO_EACH(i, t->n) {
    wl_ktplace p = t->place[i];
    wl_u32 run = t->run[i], first = t->start[run], common = p.at;
    const wl_ktfield *f = kt_field(&args->key, p);
    if (i == first) continue;
    wl_val a = kt_value(f, t->row[first]), b = kt_value(f, t->row[i]);
    int bytes = f->part.kind == WL_PART_TEXT || f->part.kind == WL_PART_VALUE;
    if (bytes && a.t >= WL_T_TEXT && b.t == a.t && p.at != WL_TEXT_AT_LENGTH) {
      wl_u32 most = simt_load_u32(&t->common[run]);
      if (most - p.at > args->step) most = p.at + args->step;
      common = wl_bytes_common(wl_bytes(a), a.n, wl_bytes(b), b.n, p.at, most,
                               a.t == WL_T_TEXT ? f->part.coll : WL_COLL_BINARY);
    }
    if (common < simt_load_u32(&t->common[run])) (void)simt_atomic_min_u32(&t->common[run], common);
  }
}

WL_KERNEL_OF(wl_ties_words, wl_ktwords, 512) {
  const wl_kties *t = &args->t;
  KO_EACH(i, t->n) {
    wl_u32 row = t->row ? t->row[i] : t->list ? t->list[i] : (wl_u32)i;
    wl_ktplace p = kt_place(t, i);
    if (t->row && p.at != WL_TEXT_AT_LENGTH) {
      p.at = t->common[t->run[i]];
      t->place[i] = p;
    }
    wl_u64 word = kt_word(&args->key, p, row);
    args->keys[i] = word;
    args->values[i] = t->row ? (wl_u32)i : row;
    if (args->words) args->words[i] = word;
  }
}

WL_KERNEL_OF(wl_ties_runs, wl_ktruns, 512) {
  KO_EACH(i, args->n) args->keys[i] = args->run[args->values[i]];
}

/* The word of the j-th entry in the new order, and its run. */
WL_FN wl_u64 kt_sorted(const wl_ktsplit *a, wl_u64 j, wl_u32 *run) {
  *run = a->t.run ? a->t.run[a->values[j]] : 0;
  return a->words ? a->words[a->values[j]] : a->sorted[j];
}

WL_FN int kt_same(const wl_ktsplit *a, wl_u64 i, wl_u64 j) {
  wl_u32 x, y;
  return kt_sorted(a, i, &x) == kt_sorted(a, j, &y) && x == y;
}

/* Whether entry j is among the first `most` rows, or may be equal to the last of them. */
WL_FN int kt_needed(const wl_ktsplit *a, wl_u64 j) {
  wl_u64 lo = 0, hi = j; /* search for the number of slots before a->most */
  if ((a->t.slot ? a->t.slot[j] : j) < a->most) return 1;
  if (!a->t.slot) {
    lo = a->most;
  } else {
    while (lo < hi) {
      wl_u64 mid = (lo + hi) / 2;
      if (a->t.slot[mid] < a->most)
        lo = mid + 1;
      else
        hi = mid;
    }
  }
  return lo > 0 && kt_same(a, lo - 1, j);
}

WL_KERNEL_OF(wl_ties_split, wl_ktsplit, 512) {
  const wl_kties *t = &args->t;
  KO_EACH(j, t->n) {
    wl_u32 entry = args->values[j], row = t->row ? t->row[entry] : entry;
    int head = j == 0 || !kt_same(args, j - 1, j);
    int tied = !head || (j + 1 < t->n && kt_same(args, j, j + 1));
    if (tied) {
      wl_u32 run;
      wl_u64 word = kt_sorted(args, j, &run);
      wl_ktplace p = kt_place(t, entry);
      tied = kt_next(&args->key, &p, row, word) && kt_needed(args, j);
    }
    args->keep[j] = (wl_u32)tied;
    args->head[j] = (wl_u32)(tied && head);
    if (args->out) args->out[t->slot[j]] = row;
  }
}

WL_KERNEL_OF(wl_ties_next, wl_ktsplit, 512) {
  const wl_kties *t = &args->t, *to = &args->to;
  KO_EACH(j, t->n) {
    if (!args->keep[j]) continue;
    wl_u32 entry = args->values[j], run;
    wl_u64 word = kt_sorted(args, j, &run), i = args->kept[j];
    wl_ktplace p = kt_place(t, entry);
    to->row[i] = t->row ? t->row[entry] : entry;
    to->slot[i] = t->slot ? t->slot[j] : (wl_u32)j;
    run = (wl_u32)args->heads[j] + args->head[j] - 1;
    (void)kt_next(&args->key, &p, to->row[i], word);
    to->place[i] = p;
    to->run[i] = run;
    if (args->head[j]) {
      to->start[run] = (wl_u32)i;
      to->common[run] = 0xffffffffu;
    }
  }
}

#endif
