/*
** How the running SQLite's date functions differ from those of other versions. It is found by
** experiment, once per process.
*/
#ifndef WL_DATE_DIALECT_H
#define WL_DATE_DIALECT_H

#include "base/sqlite.h"
#include "value/ops.h"
#include <stdbool.h>

/* The bits of value/date/moment.h. False: the running SQLite gives other answers than date_ops.h.
 */
bool wl_date_dialect(int *out);

/* Whether strftime() has this letter after a %. */
bool wl_date_dialect_has_format(wl_u8 letter);

#endif
