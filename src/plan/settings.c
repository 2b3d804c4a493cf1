/*
** The settings by name, for warplite_set(), the shell's -set and WARPLITE_SET.
*/
#include "plan/place.h"
#include "base/memlimit.h"
#include "base/threads.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that a thread may need. With little memory there are fewer threads than cores. */
#define MEMORY_PER_THREAD ((size_t)48 << 20)

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

void wl_settings_init(wl_settings *s) {
  memset(s, 0, sizeof *s);
  size_t memory = wl_memlimit();
  s->threads = (int)smaller((size_t)wl_threads_cores(), memory / MEMORY_PER_THREAD + 1);
  s->host_budget = (wl_i64)(memory / 2);
  s->keep = true;
  s->device_budget = 0; /* the free memory of the device, minus a reserve */
  /* One block is copied in, one runs, one is copied out. */
  s->transfer.stream_blocks = 3;
  s->transfer.pinned = 1;
}

static wl_status choose(const char *name, const char *value, const char *const *words, int *out,
                        wl_error *err) {
  char list[80] = "";
  for (int i = 0; words[i]; i++) {
    if (strcmp(words[i], value) == 0) {
      *out = i;
      return WL_OK;
    }
    if (i) strcat(list, ", ");
    strcat(list, words[i]);
  }
  return wl_fail(err, WL_ERROR, "warplite: setting %s cannot be '%.40s'; it is one of %s", name,
                 value, list);
}

/* Parses an integer, which may end in K, M, G or T. */
static wl_status number(const char *name, const char *value, wl_i64 least, wl_i64 most, wl_i64 *out,
                        wl_error *err) {
  char *end;
  errno = 0;
  long long n = strtoll(value, &end, 10);
  static const char units[] = "KMGT";
  const char *unit = *end & ~32 ? strchr(units, *end & ~32) : NULL;
  int shift = unit ? 10 * (int)(unit - units + 1) : 0;
  if (unit) end++;
  if (end == value || *end || errno || n < 0 || n > most >> shift || n << shift < least)
    return wl_fail(err, WL_ERROR,
                   "warplite: setting %s cannot be '%.40s'; it is a number from %lld to %lld", name,
                   value, least, most);
  *out = n << shift;
  return WL_OK;
}

wl_status wl_settings_set(wl_settings *s, const char *name, const char *value, wl_error *err) {
  static const char *const engines[] = {"auto", "cpu", "gpu", "sqlite", NULL};
  static const char *const devices[] = {"cuda", "sim", NULL};
  static const char *const routes[] = {"cost", "always", NULL};
  static const char *const calibrates[] = {"auto", "off", "now", NULL};
  static const char *const bits[] = {"0", "1", NULL};
  static const char *const transfers[] = {"auto", "serial", "stream", "mapped", "cached", NULL};
  /* Powers of two, because the kernel halves them; at least a warp; at most the kernel's limit. */
  static const char *const threads[] = {"0", "32", "64", "128", "256", "512", NULL};
  int k = 0;
  wl_i64 n = 0;
  wl_status rc;
  if (!name || !value)
    return wl_fail(err, WL_ERROR, "warplite: a setting needs a name and a value");
  if (strcmp(name, "engine") == 0) {
    rc = choose(name, value, engines, &k, err);
    if (!rc) s->engine = (wl_engine)k;
  } else if (strcmp(name, "device") == 0) {
    rc = choose(name, value, devices, &k, err);
    if (!rc) s->device = (wl_device_kind)k;
  } else if (strcmp(name, "route") == 0) {
    rc = choose(name, value, routes, &k, err);
    if (!rc) s->route = (wl_route_mode)k;
  } else if (strcmp(name, "strict") == 0) {
    rc = choose(name, value, bits, &k, err);
    if (!rc) s->strict = k;
  } else if (strcmp(name, "keep") == 0) {
    rc = choose(name, value, bits, &k, err);
    if (!rc) s->keep = k;
  } else if (strcmp(name, "calibrate") == 0) {
    rc = choose(name, value, calibrates, &k, err);
    if (!rc) s->calibrate = (wl_calibration)k;
  } else if (strcmp(name, "threads") == 0) {
    rc = number(name, value, 1, 256, &n, err);
    if (!rc) s->threads = (int)n;
  } else if (strcmp(name, "host_budget") == 0) {
    rc = number(name, value, 1 << 16, (wl_i64)1 << 50, &n, err);
    if (!rc) s->host_budget = n;
  } else if (strcmp(name, "device_budget") == 0) {
    /* 0: the memory that was free on the device when it was opened */
    rc = strcmp(value, "0") == 0 ? WL_OK : number(name, value, 1 << 16, (wl_i64)1 << 50, &n, err);
    if (!rc) s->device_budget = n;
  } else if (strcmp(name, "transfer") == 0) {
    rc = choose(name, value, transfers, &k, err);
    if (!rc) s->transfer.mode = (wl_transfer_mode)k;
  } else if (strcmp(name, "stream_blocks") == 0) {
    rc = number(name, value, 1, WL_STREAM_BLOCKS_MOST, &n, err);
    if (!rc) s->transfer.stream_blocks = (int)n;
  } else if (strcmp(name, "pinned") == 0) {
    rc = choose(name, value, bits, &k, err);
    if (!rc) s->transfer.pinned = k;
  } else if (strcmp(name, "block_threads") == 0) {
    rc = choose(name, value, threads, &k, err);
    if (!rc) s->transfer.block_threads = atoi(threads[k]);
  } else {
    rc =
        wl_fail(err, WL_ERROR,
                "warplite: unknown setting '%.40s'; there are engine, device, route, strict, keep, "
                "threads, host_budget, device_budget, transfer, stream_blocks, pinned, "
                "block_threads, calibrate",
                name);
  }
  return rc;
}

wl_status wl_settings_list(wl_settings *s, const char *list, wl_error *err) {
  while (*list) {
    char name[64], value[64];
    size_t n = strcspn(list, ",");
    const char *eq = memchr(list, '=', n);
    size_t n_name = eq ? (size_t)(eq - list) : n, n_value = eq ? n - n_name - 1 : 0;
    if (n && (!eq || n_name >= sizeof name || n_value >= sizeof value))
      return wl_fail(err, WL_ERROR, "warplite: '%.*s' is not name=value", n > 60 ? 60 : (int)n,
                     list);
    if (n) {
      memcpy(name, list, n_name);
      name[n_name] = 0;
      memcpy(value, eq + 1, n_value);
      value[n_value] = 0;
      wl_status rc = wl_settings_set(s, name, value, err);
      if (rc) return rc;
    }
    list += n;
    if (*list == ',') list++;
  }
  return WL_OK;
}
