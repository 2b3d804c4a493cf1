/*
** A plugin whose device is the simulator under another name: for tests of how a device is opened,
** measured and chosen on a machine without one.
*/
#include "exec/gpu/device.h"
#include <stdio.h>

__attribute__((visibility("default"))) wl_status wl_device_open_cuda(wl_device *d, char *message,
                                                                     size_t n_message) {
  wl_error err = {0};
  wl_status rc = wl_device_open_sim(d, &err);
  if (rc) snprintf(message, n_message, "%.200s", err.text);
  snprintf(d->name, sizeof d->name, "a pretended device");
  snprintf(d->version, sizeof d->version, "version 1");
  return rc;
}
