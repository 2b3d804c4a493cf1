#include "vm/gpu/limits.h"
#include "vm/run_impl.h"
wl_status wl_gpu_fits(const wl_program *p, const wl_device *d, wl_error *err){(void)p;(void)d;return wl_not_taken(err,"no");}
wl_device *wl_device_get(const char *k, wl_error *err){(void)k;wl_fail(err,WL_ERROR,"none");return 0;}
void wl_device_lock(wl_device *d){(void)d;} void wl_device_unlock(wl_device *d){(void)d;}
wl_status wl_run_device_wave(wl_run *r, wl_error *err){(void)r;return wl_not_taken(err,"no");}
void wl_run_device_close(wl_run *r){(void)r;}
