/*
** See user_cache.h.
*/
#include "plan/user_cache.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ONLY_OTHERS = S_IWGRP | S_IWOTH };

/* The folder that programs share: an absolute path. secure_getenv() gives nothing to a process
** that has more rights than its user. */
static bool shared_folder(char *out, size_t size) {
  const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
  int n = -1;
  if (cache && *cache == '/')
    n = snprintf(out, size, "%s", cache);
  else if (home && *home == '/')
    n = snprintf(out, size, "%s/.cache", home);
  return n > 0 && (size_t)n < size;
}

/* Whether an open file is the user's own, of this kind, and nobody else can write to it. */
static bool is_own(int fd, mode_t kind) {
  struct stat st;
  return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind && st.st_uid == geteuid() &&
         (st.st_mode & ONLY_OTHERS) == 0;
}

/* Opens our folder; with `make`, makes it and the shared one if they are missing. -1: it cannot. */
static int open_folder(bool make) {
  char path[PATH_MAX];
  if (!shared_folder(path, sizeof path)) return -1;
  if (make && mkdir(path, 0700) && errno != EEXIST) return -1;
  int shared = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (shared < 0) return -1;
  if (make) (void)mkdirat(shared, "warplite", 0700);
  int fd = openat(shared, "warplite", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  close(shared);
  if (fd >= 0 && is_own(fd, S_IFDIR)) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static size_t read_all(int fd, char *out, size_t size) {
  size_t n = 0;
  ssize_t got;
  while (n < size && ((got = read(fd, out + n, size - n)) > 0 || (got < 0 && errno == EINTR)))
    n += got > 0 ? (size_t)got : 0;
  return n;
}

bool wl_user_cache_read(const char *name, char *out, size_t size) {
  int folder = open_folder(false);
  if (folder < 0) return false;
  /* not to wait for the other end of a pipe */
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  close(folder);
  if (fd < 0) return false;
  size_t n = is_own(fd, S_IFREG) ? read_all(fd, out, size) : 0;
  close(fd);
  if (n == 0 || n >= size) return false;
  out[n] = 0;
  return strlen(out) == n;
}

static bool write_all(int fd, const char *text) {
  size_t n = strlen(text);
  while (n) {
    ssize_t wrote = write(fd, text, n);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text += wrote;
    n -= (size_t)wrote;
  }
  return true;
}

bool wl_user_cache_write(const char *name, const char *text) {
  static atomic_uint n_written;
  char other[NAME_MAX + 1];
  int n = snprintf(other, sizeof other, "%s.%ld.%u.new", name, (long)getpid(),
                   atomic_fetch_add(&n_written, 1));
  int folder = n > 0 && n < (int)sizeof other ? open_folder(true) : -1;
  if (folder < 0) return false;
  (void)unlinkat(folder, other, 0); /* from a process of the same number that was killed */
  int fd = openat(folder, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool done = fd >= 0 && write_all(fd, text);
  if (fd >= 0 && close(fd)) done = false;
  if (done) done = renameat(folder, other, folder, name) == 0;
  if (!done && fd >= 0) (void)unlinkat(folder, other, 0);
  close(folder);
  return done;
}
