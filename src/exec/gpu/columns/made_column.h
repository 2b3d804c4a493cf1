/*
** Columns that a device makes: results of its sinks, which later pipelines read where they are.
** Their values have 8 bytes, with a bitmap of those that are not NULL, or, if they have several
** types, with a tag each. Texts are in a heap, as in the copy of a table's column. The host gets them
** only if it asks (wl_column_fetch), or if the device needs the memory.
*/
#ifndef WL_MADE_COLUMN_H
#define WL_MADE_COLUMN_H

#include "column/rows.h"
#include "exec/gpu/columns/devcol.h"

/* Makes a column of n_rows values, which are in the domain: integers or reals, and NULL where the
** domain has it. dict: the integers are codes of it; the column takes over the reference. Kernels
** then write to k->data, and to k->tags if the domain has both types, else to k->valid if it has
** NULL. The caller holds the lock of
** the device. */
wl_status wl_made_column(wl_device *d, const wl_domain *domain, wl_i64 n_rows, struct wl_dict *dict,
                         wl_column **out, wl_kcol *k, wl_error *err) WL_MUST;

/* Makes a column of n_rows texts, or of values of any type, as from->type says. `from` has them on
** the device: texts are addresses with lengths, and other values have the length 0. Their bytes are
** copied. The host waits once, for the number of bytes. */
wl_status wl_made_texts(wl_device *d, const wl_domain *domain, wl_i64 n_rows, const wl_kout *from,
                        wl_column **out, wl_error *err) WL_MUST;

/* Says what its values are, when they are known. */
void wl_made_set_domain(wl_column *c, const wl_domain *values);

#endif
