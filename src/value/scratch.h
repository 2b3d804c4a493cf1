/* Scratch memory for text that is created while a vector of rows is computed. It is emptied between
** vectors. */
#ifndef WL_SCRATCH_H
#define WL_SCRATCH_H

#include "value/ops.h"

void wl_scratch_reset(wl_vctx *x); /* keeps the largest chunk */
void wl_scratch_close(wl_vctx *x);

#endif
