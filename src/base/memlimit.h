/*
** How much memory this process may use: the minimum of the machine's memory, the limits of the
** cgroups that it runs in (a container, a service), and its resource limits.
*/
#ifndef WL_MEMLIMIT_H
#define WL_MEMLIMIT_H

#include <stddef.h>

size_t wl_memlimit(void);
/* The lowest limit of all cgroups, versions 1 and 2, from the process's own up to the root, or
** SIZE_MAX. root: the folder with /proc and the mounts of /sys; "" except in tests. */
size_t wl_memlimit_cgroup(const char *root);

#endif
