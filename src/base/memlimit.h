/*
** How much memory this process may use: the least of what the machine has, what the cgroups that it
** runs in allow (a container, a service), and its own resource limits.
*/
#ifndef WL_MEMLIMIT_H
#define WL_MEMLIMIT_H

#include <stddef.h>

size_t wl_memlimit(void);
/* The least limit of all cgroups, versions 1 and 2, from the process's own up to the root, or
** SIZE_MAX. root: where /proc and the mounts of /sys are found, "" but in tests. */
size_t wl_memlimit_cgroup(const char *root);

#endif
