/*
** Converts a value to a rowid.
*/
#include "tablet/table/table_impl.h"
#include "value/conv.h"

wl_status wl_row_rowid(wl_tablets *t, wl_val v, bool *integer, wl_i64 *out, wl_error *err) {
  if (!t->values.conv) {
    wl_status rc = wl_conv_take(&t->values.conv, err);
    if (rc) return rc;
  }
  t->fault = WL_FAULT_NONE;
  v = wl_store_affinity(&t->values, 'D', v);
  if (t->fault) return wl_nomem(err);
  *integer = v.t == WL_T_INT;
  if (*integer) *out = (wl_i64)v.v;
  return WL_OK;
}
