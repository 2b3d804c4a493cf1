/*
** `warplite run [--explain] [--set NAME=VALUE,...] PROGRAM ARGUMENT...`: runs another program with
** the preload library, which lies in the folder of libwarplite.
*/
#include "shell.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CANNOT_RUN = 126, NOT_FOUND = 127 }; /* exit codes, as of env(1) */

static int fails(int code, const char *text, const char *what) {
  fprintf(stderr, "warplite run: %s%s\n", text, what);
  return code;
}

/* The preload library's path. The caller frees it. NULL: there is none. */
static char *preload_path(void) {
  static const char name[] = "libwarplite_preload.so";
  Dl_info info;
  if (!dladdr((void *)warplite_version, &info)) return NULL;
  char *own = realpath(info.dli_fname, NULL);
  char *slash = own ? strrchr(own, '/') : NULL;
  char *path = slash ? malloc((size_t)(slash - own) + 1 + sizeof name) : NULL;
  if (path) {
    memcpy(path, own, (size_t)(slash - own) + 1);
    memcpy(path + (slash - own) + 1, name, sizeof name);
  }
  free(own);
  if (path && access(path, R_OK) == 0) return path;
  free(path);
  return NULL;
}

/* Sets a variable to TEXT, or to TEXT SEPARATOR and what it was. */
static bool put_before(const char *name, const char *text, char separator) {
  const char *before = getenv(name);
  if (!before || !*before) return setenv(name, text, 1) == 0;
  size_t n = strlen(text) + strlen(before) + 2;
  char *joined = malloc(n);
  if (!joined) return false;
  snprintf(joined, n, "%s%c%s", text, separator, before);
  bool ok = setenv(name, joined, 1) == 0;
  free(joined);
  return ok;
}

/* Finds a program as execvp() does. The caller frees the path. NULL: not found. */
static char *find_program(const char *name) {
  if (strchr(name, '/')) return strdup(name);
  const char *path = getenv("PATH");
  while (path && *path) {
    size_t n = strcspn(path, ":"), size = n + strlen(name) + 2;
    char *file = malloc(size);
    if (!file) return NULL;
    snprintf(file, size, "%.*s/%s", (int)n, path, name);
    if (access(file, X_OK) == 0) return file;
    free(file);
    path += n + (path[n] == ':');
  }
  return NULL;
}

/* Says why the program will run without warplite, if that can be seen in its file. */
static void warn(const char *name) {
  char *file = find_program(name);
  FILE *f = file ? fopen(file, "rb") : NULL;
  struct stat st;
  Elf64_Ehdr head;
  Elf64_Phdr part;
  if (f && fstat(fileno(f), &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID)))
    fprintf(stderr, "warplite run: %s runs with other rights than yours, so without warplite\n",
            name);
  if (f && fread(&head, sizeof head, 1, f) == 1 && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
      head.e_ident[EI_CLASS] == ELFCLASS64 && fseek(f, (long)head.e_phoff, SEEK_SET) == 0) {
    bool dynamic = false;
    for (int i = 0; i < head.e_phnum && fread(&part, sizeof part, 1, f) == 1; i++)
      dynamic |= part.p_type == PT_INTERP;
    if (!dynamic)
      fprintf(stderr, "warplite run: %s is linked statically, so it runs without warplite\n", name);
  }
  if (f) fclose(f);
  free(file);
}

int wl_run_program(int argc, char **argv) {
  const char *mode = "1";
  int i = 2;
  for (; i < argc && argv[i][0] == '-'; i++) {
    const char *option = argv[i] + 1 + (argv[i][1] == '-');
    if (strcmp(option, "explain") == 0)
      mode = "explain";
    else if (strcmp(option, "set") == 0 && i + 1 < argc)
      put_before("WARPLITE_SET", argv[++i], ',');
    else
      return fails(1, "unknown option: ", argv[i]);
  }
  if (i >= argc)
    return fails(1,
                 "usage: warplite run [--explain] [--set NAME=VALUE,...] PROGRAM "
                 "ARGUMENT...",
                 "");
  char *library = preload_path();
  if (!library) return fails(1, "libwarplite_preload.so is not beside libwarplite.so", "");
  bool ok = put_before("LD_PRELOAD", library, ':') && setenv("WARPLITE_RUN", mode, 1) == 0;
  free(library);
  if (!ok) return fails(1, "out of memory", "");
  warn(argv[i]);
  execvp(argv[i], argv + i);
  int code = errno == ENOENT ? NOT_FOUND : CANNOT_RUN;
  fprintf(stderr, "warplite run: %s: %s\n", argv[i], strerror(errno));
  return code;
}
