/*
** The constants of the machines' prices as text, and the file in the user's cache directory: what
** is written is read again, and anything else is refused: damaged text, impossible numbers,
** folders and files that others could have written. Several processes write at once.
*/
#include "../tap.h"
#include "plan/user_cache.h"
#include "exec/gpu/calibrate.h"
#include "plan/constants.h"
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char preset[WL_CONSTANTS_TEXT];

/* ---- the text */

static bool near(double a, double b) {
  return fabs(a - b) < 1e-5;
}

static void test_round_trip(void) {
  wl_constants c, read;
  char text[WL_CONSTANTS_TEXT];
  wl_constants_init(&c);
  CHECK("constants: the defaults are sane", wl_constants_sane(&c));
  c.gpu_node_ns = 0.012345;
  c.pinned_in_rate = 53.25;
  wl_constants_print(&c, '\n', text, sizeof text);
  bool fine = wl_constants_parse(&read, text) && near(read.gpu_node_ns, c.gpu_node_ns) &&
              near(read.pinned_in_rate, c.pinned_in_rate) &&
              near(read.gpu_pipeline_ns, c.gpu_pipeline_ns);
  CHECK("constants: round trip", fine);
  const char *locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C"};
  for (int k = 0; k < 3; k++) {
    if (!setlocale(LC_ALL, locales[k])) continue;
    wl_constants_print(&c, '\n', text, sizeof text);
    fine &= wl_constants_parse(&read, text) && near(read.gpu_node_ns, c.gpu_node_ns);
  }
  setlocale(LC_ALL, "C");
  CHECK("constants: in every locale", fine);
  wl_constants_print(&c, ' ', text, 20);
  CHECK("constants: a short buffer", strlen(text) < 20);
}

/* The text with the value of one constant replaced. */
static void with_value(const char *name, const char *value, char *out, size_t n) {
  const char *at = strstr(preset, name), *end = at ? strchr(at, '\n') : NULL;
  if (at)
    snprintf(out, n, "%.*s%s=%s%s", (int)(at - preset), preset, name, value, end);
  else
    *out = 0;
}

static void test_refused(void) {
  static const char *const values[] = {
      "0",        "-1",  "nan",   "inf", "1e300", "1e3", "",
      "0x10",     ".",   "1.2.3", " 1",  "1 ",    "+1",  "99999999999999999999999",
      "0.000001", "1,5", "1;"};
  wl_constants c, before;
  char text[2 * WL_CONSTANTS_TEXT];
  memset(&c, 0x5a, sizeof c);
  before = c;
  for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
    char name[100];
    with_value("gpu_pipeline_ns", values[k], text, sizeof text);
    snprintf(name, sizeof name, "constants: \"%s\" is refused", values[k]);
    CHECK(name, *text && !wl_constants_parse(&c, text) && !memcmp(&c, &before, sizeof c));
  }
  with_value("gpu_pipeline_ns", "70000", text, sizeof text);
  CHECK("constants: a whole number is read",
        wl_constants_parse(&c, text) && c.gpu_pipeline_ns == 70000);
  size_t n = strlen(preset);
  int n_read = 0;
  for (size_t k = 0; k < n; k++) {
    snprintf(text, sizeof text, "%.*s", (int)k, preset);
    n_read += wl_constants_parse(&c, text);
  }
  CHECK("constants: no part of the text is read", n_read == 0);
  snprintf(text, sizeof text, "%s%s", preset, preset);
  CHECK("constants: twice is refused", !wl_constants_parse(&c, text));
  snprintf(text, sizeof text, "%sunknown=1\n", preset);
  CHECK("constants: an unknown name is refused", !wl_constants_parse(&c, text));
  n_read = 0;
  for (size_t k = 0; k < n; k++) { /* a changed byte gives sane numbers or nothing */
    snprintf(text, sizeof text, "%s", preset);
    text[k] = (char)(text[k] ^ 0x11);
    n_read += wl_constants_parse(&c, text) && !wl_constants_sane(&c);
  }
  CHECK("constants: a changed byte", n_read == 0);
}

/* ---- the file */

static char folder[200];

static void use_folder(const char *name) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  setenv("XDG_CACHE_HOME", path, 1);
}

static bool reads(const char *expect) {
  char text[2048];
  bool found = wl_user_cache_read("f.txt", text, sizeof text);
  return expect ? found && strcmp(text, expect) == 0 : !found;
}

static void command(const char *format) {
  char text[600];
  snprintf(text, sizeof text, format, folder);
  if (system(text)) tap_bad("file: a command of the test", "%s", text);
}

static void test_file(void) {
  use_folder("new/deep");
  CHECK("file: no folder above is made", !wl_user_cache_write("f.txt", "x\n") && reads(NULL));
  use_folder("new");
  CHECK("file: the folder is made", wl_user_cache_write("f.txt", "one\n") && reads("one\n"));
  CHECK("file: it is replaced", wl_user_cache_write("f.txt", "two\n") && reads("two\n"));
  command("test $(ls -A %1$s/new/warplite | wc -l) -eq 1");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", folder, 1);
  CHECK("file: HOME", wl_user_cache_write("f.txt", "home\n") && reads("home\n"));
  command("grep -q home %1$s/.cache/warplite/f.txt");
  unsetenv("HOME");
  CHECK("file: no HOME", !wl_user_cache_write("f.txt", "x\n") && reads(NULL));
  setenv("HOME", "relative", 1);
  CHECK("file: a relative HOME", !wl_user_cache_write("f.txt", "x\n") && reads(NULL));
  setenv("HOME", folder, 1);
  setenv("XDG_CACHE_HOME", "relative", 1);
  CHECK("file: a relative XDG_CACHE_HOME does not count", reads("home\n"));
  use_folder("new");
  command("chmod 0770 %1$s/new/warplite");
  CHECK("file: a folder that others may write in",
        !wl_user_cache_write("f.txt", "x\n") && reads(NULL));
  command("chmod 0700 %1$s/new/warplite; chmod 0666 %1$s/new/warplite/f.txt");
  CHECK("file: a file that others may write", reads(NULL));
  CHECK("file: … is replaced", wl_user_cache_write("f.txt", "three\n") && reads("three\n"));
  command("rm %1$s/new/warplite/f.txt; mkfifo -m 600 %1$s/new/warplite/f.txt");
  CHECK("file: a pipe", reads(NULL));
  command("rm %1$s/new/warplite/f.txt; echo four >%1$s/other; chmod 600 %1$s/other; "
          "ln -s %1$s/other %1$s/new/warplite/f.txt");
  CHECK("file: a link", reads(NULL));
  CHECK("file: a link is replaced, not followed",
        wl_user_cache_write("f.txt", "five\n") && reads("five\n"));
  command("grep -q four %1$s/other");
  command("mkdir %1$s/linked; ln -s %1$s/new/warplite %1$s/linked/warplite");
  use_folder("linked");
  CHECK("file: a folder that is a link", !wl_user_cache_write("f.txt", "x\n") && reads(NULL));
  command("echo file >%1$s/flat");
  use_folder("flat");
  CHECK("file: a folder that is a file", !wl_user_cache_write("f.txt", "x\n") && reads(NULL));
  use_folder("new");
  command("printf 'a\\0b' >%1$s/new/warplite/f.txt");
  CHECK("file: a NUL in it", reads(NULL));
  command("head -c 5000 /dev/zero | tr '\\0' a >%1$s/new/warplite/f.txt");
  CHECK("file: it is too long", reads(NULL));
  command(": >%1$s/new/warplite/f.txt");
  CHECK("file: it is empty", reads(NULL));
  if (geteuid() == 0) {
    tap_skip("file: a folder without write permission", "root may write anywhere");
    return;
  }
  command("chmod 0500 %1$s/new/warplite");
  CHECK("file: a folder without write permission", !wl_user_cache_write("f.txt", "x\n"));
  command("chmod 0700 %1$s/new/warplite");
}

/* Writes whole texts of one letter, many times. */
static int write_often(char letter) {
  char text[1000];
  memset(text, letter, sizeof text - 1);
  text[sizeof text - 1] = 0;
  for (int k = 0; k < 300; k++)
    if (!wl_user_cache_write("f.txt", text)) return 1;
  return 0;
}

static void test_at_once(void) {
  use_folder("new");
  pid_t pids[3];
  int failed = 0, mixed = 0, read = 0;
  fflush(stdout);
  (void)wl_user_cache_write("f.txt", "start");
  for (int k = 0; k < 3; k++)
    if ((pids[k] = fork()) == 0) _exit(write_often((char)('a' + k)));
  for (int k = 0; k < 2000; k++) {
    char text[2048];
    bool found = wl_user_cache_read("f.txt", text, sizeof text);
    read += found;
    if (found && strcmp(text, "start") && (strlen(text) != 999 || text[0] != text[998])) mixed++;
  }
  for (int k = 0; k < 3; k++) {
    int status = -1;
    waitpid(pids[k], &status, 0);
    failed += status != 0;
  }
  CHECK("file: three processes write at once", failed == 0);
  CHECK("file: readers see a whole text", mixed == 0 && read == 2000);
  command("test $(ls -A %1$s/new/warplite | wc -l) -eq 1");
}

/* The name depends on what the numbers depend on. */
static void test_name(void) {
  static wl_device a, b;
  char first[64], second[64];
  snprintf(a.name, sizeof a.name, "one");
  b = a;
  wl_calibrate_name(&a, first, sizeof first);
  wl_calibrate_name(&b, second, sizeof second);
  CHECK("file: the name is the same for the same device", strcmp(first, second) == 0);
  snprintf(b.name, sizeof b.name, "two");
  wl_calibrate_name(&b, second, sizeof second);
  CHECK("file: another device has another name", strcmp(first, second) != 0);
  b = a;
  snprintf(b.version, sizeof b.version, "driver 2");
  wl_calibrate_name(&b, second, sizeof second);
  CHECK("file: another driver has another name", strcmp(first, second) != 0);
  CHECK("file: the name is no path", !strchr(first, '/') && first[0] != '.');
}

int main(void) {
  wl_constants c;
  wl_constants_init(&c);
  wl_constants_print(&c, '\n', preset, sizeof preset);
  char here[] = "constants.XXXXXX";
  if (!mkdtemp(here) || !getcwd(folder, sizeof folder - sizeof here - 1)) return 1;
  strcat(strcat(folder, "/"), here);
  test_round_trip();
  test_refused();
  test_file();
  test_at_once();
  test_name();
  command("rm -rf %1$s");
  return tap_done();
}
