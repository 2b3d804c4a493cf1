/*
** Measures what this machine and a device take for the pieces of work that prices are made of
** (plan/constants.h), once; the numbers are kept in a file (plan/user_cache.h) for later processes.
**
** Invariants:
** 1. It takes some 50 ms: every measurement has a share of time, and stops after the run that uses
**    it up. A device so slow that one run takes longer is measured with fewer rows.
** 2. It leaves no memory behind, on the host or on the device.
** 3. It asks nothing of SQLite, if wl_rounding_get() has been called before, so it may run in any
**    thread.
*/
#ifndef WL_CALIBRATE_H
#define WL_CALIBRATE_H

#include "exec/gpu/device.h"
#include "plan/constants.h"

/* Where constants come from. */
typedef enum wl_constants_from {
  WL_CONSTANTS_PRESET,
  WL_CONSTANTS_FILE,
  WL_CONSTANTS_MEASURED
} wl_constants_from;

/* The name of the file: a hash of what the numbers depend on, the models of CPU and GPU, the number
** of cores, the versions of driver and library. */
void wl_calibrate_name(const wl_device *d, char *out, size_t n);

/* Takes the numbers of the file, unless `again`, or measures and writes the file. The defaults if
** nothing can be measured. Takes the device's lock for that. */
wl_constants_from wl_calibrate(wl_device *d, bool again, wl_constants *out);

#endif
