/*
** ORDER BY and DISTINCT in the kernels. The interpreter's output is stored by column. It is sorted
** as a list of row numbers: a kernel makes keys, the device's radix sort orders keys and row
** numbers, and the columns are moved last. In all kernels a thread processes one row at a time,
** with a grid stride. They use no shared memory and need no order among threads.
*/
#ifndef WL_KORDER_H
#define WL_KORDER_H

#include "exec/gpu/kernels/kernels.h"

#define KO_EACH(i, n)                                                                              \
  for (wl_u64 i = (wl_u64)simt_bid() * simt_bdim() + simt_tid(),                                   \
              ko_step = (wl_u64)simt_gdim() * simt_bdim();                                         \
       i < (n); i += ko_step)

/* A word of a row's sort key, from the fields [first, end). */
WL_FN wl_u64 ko_word(const wl_kofield *fields, wl_u32 first, wl_u32 end, wl_u64 row) {
  wl_u64 word = 0;
  for (wl_u32 k = first; k < end; k++) {
    const wl_kofield *f = &fields[k];
    word = wl_key_append(&f->part, word, wl_key_code(&f->part, f->v[row], !f->t || f->t[row]));
  }
  return word;
}

WL_KERNEL_OF(wl_order_keys, wl_kokeys, 512) {
  KO_EACH(i, args->n) {
    wl_u32 row = args->from ? args->from[i] : (wl_u32)i;
    args->keys[i] = ko_word(args->fields, 0, args->n_fields, row);
    if (!args->from) args->rows[i] = row;
  }
}

WL_KERNEL_OF(wl_order_first, wl_kofirst, 512) {
  KO_EACH(i, args->n) {
    wl_u32 row = args->rows[i];
    int same = i > 0;
    for (wl_u32 w = 0; w < args->n_words && same; w++) {
      wl_u32 first = w ? args->ends[w - 1] : 0;
      same = ko_word(args->fields, first, args->ends[w], row) ==
             ko_word(args->fields, first, args->ends[w], args->rows[i - 1]);
    }
    args->keep[row] = (wl_u32)!same;
  }
}

WL_KERNEL_OF(wl_order_kept, wl_kokept, 512) {
  KO_EACH(i, args->n) {
    if (args->keep[i]) args->rows[args->places[i]] = (wl_u32)i;
  }
}

WL_KERNEL_OF(wl_order_permute, wl_kopermute, 512) {
  KO_EACH(i, args->n) {
    wl_u64 row = args->rows[i];
    if (args->width == 8)
      ((wl_u64 *)(void *)args->to)[i] = ((const wl_u64 *)(const void *)args->from)[row];
    else if (args->width == 4)
      ((wl_u32 *)(void *)args->to)[i] = ((const wl_u32 *)(const void *)args->from)[row];
    else
      args->to[i] = args->from[row];
  }
}

#endif
