/*
** Where the CUDA plugin is looked for: beside the library, wherever the process has gone since,
** and nowhere else. The decoy is a shared library that is no plugin; warplite_devices says so if
** it was loaded.
**
** Also what is said about a driver that is too old.
**
** Invariant: every case runs in a process of its own with a copy of the library, which looks for
** its plugin once.
*/
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "../tap.h"

static char root[] = "plugin.XXXXXX";

static bool copy(const char *from, const char *to) {
  char block[1 << 16];
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  size_t n;
  bool right = in && out;
  while (right && (n = fread(block, 1, sizeof block, in)) > 0)
    right = fwrite(block, 1, n, out) == n;
  if (in) fclose(in);
  return !(out && fclose(out)) && right;
}

/* Loads the copy by that name, changes to a folder, and asks for the devices. */
static int ask(const char *library, const char *folder, const char *expect) {
  sqlite3 *db = NULL;
  sqlite3_stmt *stmt = NULL;
  char *message = NULL;
  if (sqlite3_open(":memory:", &db)) return 1;
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  if (sqlite3_load_extension(db, library, "sqlite3_warplite_init", &message)) {
    fprintf(stderr, "%s\n", message);
    return 2;
  }
  if (chdir(folder)) return 3;
  if (sqlite3_prepare_v2(db,
                         "SELECT group_concat(status) FROM warplite_devices d WHERE kind='cuda'",
                         -1, &stmt, NULL))
    return 4;
  const char *why =
      sqlite3_step(stmt) == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
  if (why && strstr(why, expect)) return 0;
  fprintf(stderr, "%s\n", why ? why : "no reason");
  return 5;
}

static void check(const char *name, const char *setting, const char *value, const char *start,
                  const char *library, const char *folder, const char *expect) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    if (setting) setenv(setting, value, 1);
    if (start && chdir(start)) _exit(6);
    execl("/proc/self/exe", "plugin", "--ask", library, folder ? folder : ".", expect, NULL);
    _exit(7);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  if (status)
    tap_bad(name, "status %d, errno %s", WIFEXITED(status) ? WEXITSTATUS(status) : status,
            strerror(errno));
  else
    tap_ok(name);
}

int main(int argc, char **argv) {
  char from[4096], path[8192], plugin[8192], driver[8192];
  const char *none = "no CUDA plugin", *decoy = "not a warplite plugin";
  if (argc == 5 && !strcmp(argv[1], "--ask")) return ask(argv[2], argv[3], argv[4]);
  if (argc < 2 || !realpath(argv[1], from) || !mkdtemp(root) || chdir(root)) return 1;
  snprintf(plugin, sizeof plugin, "%s/libwarplite_cuda.so", from);
  snprintf(driver, sizeof driver, "%s/old_driver", from);
  strcat(from, "/libwarplite.so");
  bool made = !mkdir("lib", 0700) && !mkdir("hostile", 0700) && !mkdir("hostile/lib", 0700) &&
              !mkdir("beside", 0700) && copy(from, "lib/libwarplite.so") &&
              copy(from, "hostile/libwarplite_cuda.so") &&
              copy(from, "hostile/lib/libwarplite_cuda.so") &&
              copy(from, "beside/libwarplite.so") && copy(from, "beside/libwarplite_cuda.so") &&
              realpath("hostile", path);
  if (!CHECK("set-up", made)) return 1;
  check("beside the library", NULL, NULL, NULL, "beside/libwarplite.so", NULL, decoy);
  check("beside the library, after a change of folder", NULL, NULL, NULL, "beside/libwarplite.so",
        "hostile", decoy);
  check("a relative path and a change of folder", NULL, NULL, NULL, "lib/libwarplite.so", "hostile",
        none);
  check("the current folder", NULL, NULL, "hostile", "../lib/libwarplite.so", NULL, none);
  check("an empty entry of LD_LIBRARY_PATH", "LD_LIBRARY_PATH", ":", "hostile",
        "../lib/libwarplite.so", NULL, none);
  check("WARPLITE_PLUGINS", "WARPLITE_PLUGINS", path, NULL, "lib/libwarplite.so", NULL, decoy);
  check("a relative WARPLITE_PLUGINS and a change of folder", "WARPLITE_PLUGINS", "lib", NULL,
        "lib/libwarplite.so", "hostile", none);
  if (access(plugin, R_OK) == 0)
    check("a driver that is too old", "LD_LIBRARY_PATH", driver, NULL, from, NULL,
          "the CUDA driver is too old: it supports CUDA 11.4, and ");
  else
    tap_skip("a driver that is too old", "the plugin was not built");
  if (chdir("..") == 0) {
    snprintf(path, sizeof path, "rm -rf '%s'", root);
    if (system(path)) return 1;
  }
  return tap_done();
}
