/*
** The limits of cgroups, from copies of /proc and /sys as containers and services have them.
*/
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tap.h"
#include "base/memlimit.h"

static char root[] = "memlimit.XXXXXX";

/* Writes a file below the root, making its folders. */
static void put(const char *path, const char *text) {
  char name[1024];
  snprintf(name, sizeof name, "%s%s", root, path);
  for (char *p = name + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
    *p = 0;
    mkdir(name, 0700);
  }
  FILE *f = fopen(name, "w");
  if (!f || fputs(text, f) < 0 || fclose(f)) tap_bad("set-up", "cannot write %s", name);
}

static void clear(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'/*", root);
  if (system(command)) tap_bad("set-up", "cannot clear %s", root);
}

static void check(const char *name, size_t expect) {
  size_t got = wl_memlimit_cgroup(root);
  if (got == expect)
    tap_ok(name);
  else
    tap_bad(name, "%zu instead of %zu", got, expect);
  clear();
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MEMORY                                                                                  \
  "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
#define V1_OTHERS "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"

static void check_version_2(void) {
  put("/proc/self/cgroup", "0::/\n");
  put("/proc/self/mountinfo", "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n" V2_MOUNT);
  put("/sys/fs/cgroup/memory.max", "262144000\n");
  check("a container's own root", 262144000);

  put("/proc/self/cgroup", "0::/user.slice/app.service/inner\n");
  put("/proc/self/mountinfo", V2_MOUNT);
  put("/sys/fs/cgroup/user.slice/app.service/inner/memory.max", "max\n");
  put("/sys/fs/cgroup/user.slice/app.service/memory.max", "500000000\n");
  put("/sys/fs/cgroup/user.slice/memory.max", "400000000\n");
  check("the least of all ancestors", 400000000);

  put("/proc/self/cgroup", "0::/a\n");
  put("/proc/self/mountinfo", V2_MOUNT);
  put("/sys/fs/cgroup/a/memory.max", "500000000\n");
  put("/sys/fs/cgroup/a/memory.high", "300000000\n");
  check("memory.high", 300000000);

  put("/proc/self/cgroup", "0::/a\n");
  put("/proc/self/mountinfo", V2_MOUNT);
  put("/sys/fs/cgroup/a/memory.max", "max\n");
  check("no limit", SIZE_MAX);

  put("/proc/self/cgroup", "0::/../../other\n");
  put("/proc/self/mountinfo", V2_MOUNT);
  put("/sys/fs/cgroup/memory.max", "700000000\n");
  check("a cgroup outside the namespace", 700000000);

  put("/proc/self/cgroup", "0::/a b/c\n");
  put("/proc/self/mountinfo", "30 23 0:26 / /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n");
  put("/mnt/my groups/a b/memory.max", "123456789\n");
  check("blanks in the paths", 123456789);
}

static void check_version_1(void) {
  put("/proc/self/cgroup", "9:cpu:/\n4:memory:/app/worker\n0::/\n");
  put("/proc/self/mountinfo", V1_OTHERS V1_MEMORY);
  put("/sys/fs/cgroup/memory/app/worker/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "250000000\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/cpu/memory.limit_in_bytes", "1\n");
  check("version 1, an ancestor", 250000000);

  put("/proc/self/cgroup", "4:cpuset,memory:/docker/abc\n");
  put("/proc/self/mountinfo",
      "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,cpuset,memory\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "100000000\n");
  check("version 1, a mount of a part", 100000000);

  put("/proc/self/cgroup", "4:memory:/elsewhere\n");
  put("/proc/self/mountinfo",
      "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "110000000\n");
  check("version 1, a mount of another part", 110000000);

  put("/proc/self/cgroup", "4:memory:/app\n0::/app\n");
  put("/proc/self/mountinfo", V1_MEMORY V2_MOUNT);
  put("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "300000000\n");
  put("/sys/fs/cgroup/app/memory.max", "200000000\n");
  check("both versions", 200000000);
}

static void check_damage(void) {
  check("no files at all", SIZE_MAX);
  put("/proc/self/cgroup", "0::\nnonsense\n:::::\n0\n");
  put("/proc/self/mountinfo", "x\n1 2 3 4 5\n1 2 3 4 5 6 - cgroup2\n" V2_MOUNT);
  put("/sys/fs/cgroup/memory.max", "minus\n");
  check("lines that say nothing", SIZE_MAX);
}

int main(void) {
  if (!mkdtemp(root)) return 1;
  check_version_2();
  check_version_1();
  check_damage();
  CHECK("the process's own limit", wl_memlimit() > 0 && wl_memlimit() < SIZE_MAX);
  rmdir(root);
  return tap_done();
}
