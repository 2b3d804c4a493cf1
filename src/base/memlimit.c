/*
** Memory limits; see memlimit.h.
**
** /proc/self/cgroup says which cgroup the process is in, a line for each hierarchy:
**     4:memory:/app      version 1, with the controllers that the hierarchy has
**     0::/app            version 2
** /proc/self/mountinfo says where a hierarchy is mounted, and which of its cgroups is the root of
** that mount:
**     35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
*/
#include "base/memlimit.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_PATH = 4096, MOST_LINE = 3 * MOST_PATH };

static FILE *open_below(const char *root, const char *path) {
  char name[2 * MOST_PATH];
  int n = snprintf(name, sizeof name, "%s%s", root, path);
  return n > 0 && n < (int)sizeof name ? fopen(name, "re") : NULL;
}

/* Whether a comma-separated list contains the word. */
static bool has_word(const char *list, const char *word) {
  size_t n = strlen(word);
  for (const char *at = list; at; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, word, n) == 0 && (at[n] == 0 || at[n] == ',')) return true;
  }
  return false;
}

/* Decodes \ooo: mountinfo writes blanks and some other characters as three octal digits. */
static void unescape(char *s) {
  char *to = s;
  for (; *s; s++) {
    if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
      *to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
      s += 3;
    } else {
      *to++ = *s;
    }
  }
  *to = 0;
}

/* Reads a line of mountinfo. If it is the wanted hierarchy, returns its root and its folder. */
static bool read_mount(char *line, bool v2, char **root, char **folder) {
  char *field[5], *rest = line, *kind;
  for (int i = 0; i < 5; i++)
    if (!(field[i] = strsep(&rest, " "))) return false;
  rest = rest ? strstr(rest, " - ") : NULL;
  if (!rest) return false;
  rest += 3;
  kind = strsep(&rest, " ");
  strsep(&rest, " "); /* the source */
  if (!rest || strcmp(kind, v2 ? "cgroup2" : "cgroup") != 0) return false;
  if (!v2 && !has_word(rest, "memory")) return false;
  unescape(*root = field[3]);
  unescape(*folder = field[4]);
  return true;
}

static size_t read_limit(const char *root, const char *folder, const char *file) {
  char path[2 * MOST_PATH], text[64] = "";
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *f = open_below(root, path);
  if (!f) return SIZE_MAX;
  char *got = fgets(text, sizeof text, f);
  fclose(f);
  if (!got || text[0] < '0' || text[0] > '9') return SIZE_MAX; /* "max" */
  errno = 0;
  unsigned long long n = strtoull(text, NULL, 10);
  return errno || n == 0 || n > SIZE_MAX ? SIZE_MAX : (size_t)n;
}

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

/* The lowest limit from a cgroup's folder up to where the hierarchy is mounted. */
static size_t limit_upwards(const char *root, const char *mount, const char *cgroup, bool v2) {
  static const char *const files[2][2] = {{"memory.limit_in_bytes", NULL},
                                          {"memory.max", "memory.high"}};
  char folder[2 * MOST_PATH];
  size_t least = SIZE_MAX, n_mount = strlen(mount);
  int n = snprintf(folder, sizeof folder, "%s%s", mount, cgroup);
  if (n < 0 || n >= MOST_PATH) return SIZE_MAX;
  for (;;) {
    for (int i = 0; i < 2 && files[v2][i]; i++)
      least = smaller(least, read_limit(root, folder, files[v2][i]));
    char *slash = strrchr(folder, '/');
    if (!slash || (size_t)(slash - folder) < n_mount) return least;
    *slash = 0;
  }
}

/* The lowest limit of a hierarchy in /proc/self/cgroup, over all its mounts. */
static size_t hierarchy_limit(const char *root, char *cgroup, bool v2) {
  char line[MOST_LINE], *top, *folder;
  size_t least = SIZE_MAX;
  FILE *f = open_below(root, "/proc/self/mountinfo");
  if (!f) return SIZE_MAX;
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    if (!read_mount(line, v2, &top, &folder)) continue;
    /* The mount may show only a part of the hierarchy, as in a container. */
    size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    bool inside = strncmp(cgroup, top, n) == 0 && (cgroup[n] == '/' || cgroup[n] == 0);
    if (strncmp(cgroup, "/..", 3) == 0) inside = false;
    const char *below = inside ? cgroup + n : "";
    least = smaller(least, limit_upwards(root, folder, strcmp(below, "/") ? below : "", v2));
  }
  fclose(f);
  return least;
}

size_t wl_memlimit_cgroup(const char *root) {
  char line[MOST_LINE];
  size_t least = SIZE_MAX;
  FILE *f = open_below(root, "/proc/self/cgroup");
  if (!f) return SIZE_MAX;
  while (fgets(line, sizeof line, f)) {
    char *rest = line;
    line[strcspn(line, "\n")] = 0;
    const char *number = strsep(&rest, ":"), *controllers = strsep(&rest, ":");
    if (!number || !controllers || !rest) continue;
    bool v2 = strcmp(number, "0") == 0 && !*controllers;
    if (v2 || has_word(controllers, "memory"))
      least = smaller(least, hierarchy_limit(root, rest, v2));
  }
  fclose(f);
  return least;
}

size_t wl_memlimit(void) {
  static const int resources[] = {RLIMIT_AS, RLIMIT_DATA};
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  size_t least = pages > 0 && size > 0 ? (size_t)pages * (size_t)size : (size_t)8 << 30;
  struct rlimit r;
  for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
    if (getrlimit(resources[i], &r) == 0 && r.rlim_cur != RLIM_INFINITY)
      least = smaller(least, r.rlim_cur);
  return smaller(least, wl_memlimit_cgroup(""));
}
