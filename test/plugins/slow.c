/*
** A plugin that takes a second to find out that there is no device.
*/
#include "exec/gpu/device.h"
#include <stdio.h>
#include <time.h>

__attribute__((visibility("default"))) wl_status wl_device_open_cuda(wl_device *d, char *message,
                                                                     size_t n_message) {
  struct timespec second = {1, 0};
  nanosleep(&second, NULL);
  snprintf(message, n_message, "a slow plugin");
  return WL_NOT_TAKEN;
}
