/*
** Small files in the user's cache directory: $XDG_CACHE_HOME/warplite, or ~/.cache/warplite. They
** only save work: whoever reads one checks it, and goes on without it.
**
** Invariants:
** 1. No failure is an error. Nothing is read or written if there is no absolute path, or if the
**    process has more rights than its user (setuid, setgid, capabilities).
** 2. The folder belongs to the user and nobody else can write in it; it is no symbolic link. So
**    does a file that is read.
** 3. A file is written under another name and then renamed: readers see all of it or the one
**    before.
*/
#ifndef WL_USER_CACHE_H
#define WL_USER_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a whole file as text with a NUL at the end. False if it cannot be read, is empty or larger
** than size - 1, or has a NUL. name has no slash. */
bool wl_user_cache_read(const char *name, char *out, size_t size);
/* Makes the folder if it is missing, and replaces the file. False: nothing has changed. */
bool wl_user_cache_write(const char *name, const char *text);

#endif
