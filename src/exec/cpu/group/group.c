/*
** Finding the group of each row; see group.h. It works on a vector of rows at a time: keys become
** words or values, words are hashed, the slots are prefetched, then looked up.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include "exec/cpu/encode.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_ENTRIES = 512 };

wl_status wl_groups_open(const wl_grouping *plan, wl_groups **out, wl_error *err) {
  wl_groups *g = *out = wl_mem_zalloc(sizeof *g);
  if (!g) return wl_nomem(err);
  g->plan = plan;
  g->last_run = &g->runs;
  g->file = -1;
  wl_arena_init(&g->arena);
  g->words = wl_mem_zalloc(((size_t)plan->words.n_words + 1) * WL_VECTOR * sizeof *g->words);
  g->scratch = wl_mem_alloc(3 * WL_VECTOR * sizeof *g->scratch);
  g->probe = wl_mem_zalloc(plan->width + 16);
  g->set_keys = wl_mem_zalloc(((size_t)plan->p->n_keys + 1) * sizeof *g->set_keys);
  bool ok = g->words && g->scratch && g->probe && g->set_keys;
  if (ok && plan->mode == MODE_DIRECT && !plan->scatter) {
    g->seen = wl_mem_zalloc(plan->n_direct + 8);
    g->table.entries = wl_mem_zalloc(plan->n_direct * plan->width + 16);
    ok = g->seen && g->table.entries;
  }
  if (ok && plan->n_sets) {
    g->sets = wl_mem_zalloc((size_t)plan->n_sets * sizeof *g->sets);
    ok = g->sets != NULL;
  }
  wl_status rc = ok ? WL_OK : wl_nomem(err);
  for (int k = 0; k < plan->n_sets && !rc; k++)
    rc = wl_groups_open(plan->sets[k], &g->sets[k], err);
  if (rc) {
    wl_groups_close(g);
    *out = NULL;
  }
  return rc;
}

bool wl_groups_number_rows(const wl_groups *g) {
  return g->plan->rows;
}

void wl_group_table_close(group_table *t) {
  wl_mem_free(t->entries);
  wl_mem_free(t->slots);
  memset(t, 0, sizeof *t);
}

void wl_groups_close(wl_groups *g) {
  if (!g) return;
  for (int k = 0; g->sets && k < g->plan->n_sets; k++) wl_groups_close(g->sets[k]);
  wl_mem_free(g->sets);
  wl_group_runs_free(g);
  if (g->file >= 0) close(g->file);
  wl_group_table_close(&g->table);
  wl_mem_free(g->seen);
  wl_mem_free(g->words);
  wl_mem_free(g->scratch);
  wl_mem_free(g->probe);
  wl_mem_free(g->set_keys);
  wl_arena_close(&g->arena);
  wl_mem_free(g);
}

/* ---- the hash table */

wl_u64 wl_group_hash_values(const wl_grouping *g, const wl_val *v) {
  wl_u64 h = 0;
  for (int k = 0; k < g->n_keys; k++) h = wl_hash_mix(h, wl_hash_val(v[k], g->colls[k]));
  return h;
}

wl_u64 wl_group_hash_entry(const wl_grouping *g, const wl_u8 *e) {
  const wl_u64 *w = (const wl_u64 *)(const void *)e;
  return g->mode == MODE_VALUES ? w[0] : hash_words(w, g->words.n_words);
}

static bool same_key(const wl_grouping *g, const wl_u8 *a, const wl_u8 *b) {
  if (g->mode == MODE_WORDS) {
    const wl_u64 *x = (const wl_u64 *)(const void *)a, *y = (const wl_u64 *)(const void *)b;
    for (int k = 0; k < g->words.n_words; k++)
      if (x[k] != y[k]) return false;
    return true;
  }
  const wl_val *x = (const wl_val *)(const void *)(a + 8),
               *y = (const wl_val *)(const void *)(b + 8);
  for (int k = 0; k < g->n_keys; k++)
    if (wl_cmp_val(x[k], y[k], g->colls[k]) != 0) return false;
  return true;
}

wl_i64 wl_group_look(const wl_grouping *g, const group_table *t, wl_u64 hash, const wl_u8 *e,
                     wl_u64 *slot) {
  wl_u64 at = hash & (t->n_slots - 1);
  for (;; at = (at + 1) & (t->n_slots - 1)) {
    wl_u64 s = t->slots[at];
    if ((wl_u32)s == 0) break;
    if ((s ^ hash) >> 32) continue;
    wl_i64 i = (wl_i64)(wl_u32)s - 1;
    if (!same_key(g, entry_at(g, t, i), e)) continue;
    *slot = at;
    return i;
  }
  *slot = at;
  return -1;
}

/* Makes room for entries, but not for slots. */
static wl_status entry_room(const wl_grouping *g, group_table *t, wl_i64 more) {
  wl_i64 want = t->n + more;
  if (want > 0x7ffffff0) return WL_NOMEM;
  if (want > t->size) {
    wl_i64 size = t->size ? t->size : FIRST_ENTRIES;
    while (size < want) size *= 2;
    wl_u8 *e = wl_mem_realloc(t->entries, (size_t)t->n * g->width, (size_t)size * g->width + 1);
    if (!e) return WL_NOMEM;
    t->entries = e;
    t->size = size;
  }
  return WL_OK;
}

wl_status wl_group_room(const wl_grouping *g, group_table *t, wl_i64 more) {
  wl_i64 want = t->n + more;
  if (entry_room(g, t, more)) return WL_NOMEM;
  if ((wl_u64)want * 4 <= t->n_slots * 3) return WL_OK;
  wl_u64 n = t->n_slots ? t->n_slots : 1024;
  while ((wl_u64)want * 4 > n * 3) n *= 2;
  wl_u64 *s = wl_mem_zalloc(n * sizeof *s);
  if (!s) return WL_NOMEM;
  for (wl_i64 i = 0; i < t->n; i++) {
    wl_u64 h = wl_group_hash_entry(g, entry_at(g, t, i)), at = h & (n - 1);
    while (s[at]) at = (at + 1) & (n - 1);
    s[at] = (h & ~0xffffffffULL) | (wl_u64)(i + 1);
  }
  wl_mem_free(t->slots);
  t->slots = s;
  t->n_slots = n;
  return WL_OK;
}

/* ---- runs on disk */

/* Opens an unnamed temporary file in TMPDIR. */
static int temporary_file(void) {
  const char *folder = secure_getenv("TMPDIR");
  char name[4096];
  if (!folder || !*folder) folder = "/tmp";
  if (snprintf(name, sizeof name, "%s/warplite-XXXXXX", folder) >= (int)sizeof name) return -1;
  int fd = mkostemp(name, O_CLOEXEC);
  if (fd >= 0) unlink(name);
  return fd;
}

/* Appends a run's entries to the file and frees them. */
static wl_status write_run(wl_groups *g, group_run *r, wl_i64 n_bytes) {
  if (g->file < 0) g->file = temporary_file();
  if (g->file < 0) return WL_NOT_TAKEN;
  for (wl_i64 at = 0; at < n_bytes;) {
    ssize_t n = pwrite(g->file, r->entries + at, (size_t)(n_bytes - at), g->n_file + at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return WL_NOT_TAKEN;
    at += n;
  }
  r->offset = g->n_file;
  g->n_file += n_bytes;
  wl_mem_free(r->entries);
  r->entries = NULL;
  return WL_OK;
}

wl_status wl_group_read(const wl_groups *g, const group_run *r, wl_i64 from, wl_i64 to,
                        wl_u8 *room) {
  size_t width = g->plan->width, n_bytes = (size_t)(to - from) * width;
  if (r->entries) {
    memcpy(room, r->entries + (size_t)from * width, n_bytes);
    return WL_OK;
  }
  for (size_t at = 0; at < n_bytes;) {
    ssize_t n =
        pread(g->file, room + at, n_bytes - at, r->offset + (wl_i64)((size_t)from * width + at));
    if (n <= 0) return WL_NOT_TAKEN;
    at += (size_t)n;
  }
  return WL_OK;
}

bool wl_group_over(const wl_groups *g, wl_i64 share) {
  const wl_grouping *p = g->plan;
  return p->left && g->n_bytes + (wl_i64)g->arena.n_bytes + g->table.size * (wl_i64)p->width +
                            (wl_i64)g->table.n_slots * 8 >
                        p->left / p->n_workers / share;
}

wl_status wl_group_set_aside(wl_groups *g) {
  const wl_grouping *p = g->plan;
  group_table *t = &g->table;
  if (t->n == 0) return WL_OK;
  wl_i64 n_bytes = t->n * (wl_i64)p->width;
  group_run *r = wl_mem_zalloc(sizeof *r);
  wl_u8 *part = wl_mem_alloc((size_t)t->n);
  g->n_bytes += n_bytes;
  bool writes = wl_group_over(g, 2);
  if (r && !writes) r->entries = wl_group_slab_alloc(g, (size_t)n_bytes);
  if (r && !r->entries) {
    r->own = true;
    r->entries = wl_mem_alloc((size_t)n_bytes + 1);
  }
  if (!r || !part || !r->entries) {
    if (r && r->own) wl_mem_free(r->entries);
    wl_mem_free(r);
    wl_mem_free(part);
    return WL_NOMEM;
  }
  for (wl_i64 i = 0; i < t->n; i++) {
    part[i] = (wl_u8)(wl_group_hash_entry(p, entry_at(p, t, i)) >> PART_SHIFT);
    r->starts[part[i] + 1]++;
  }
  for (int k = 0; k < N_PARTS; k++) r->starts[k + 1] += r->starts[k];
  wl_u32 at[N_PARTS];
  memcpy(at, r->starts, sizeof at);
  for (wl_i64 i = 0; i < t->n; i++)
    memcpy(r->entries + (size_t)at[part[i]]++ * p->width, entry_at(p, t, i), p->width);
  wl_mem_free(part);
  *g->last_run = r;
  g->last_run = &r->next;
  if (writes) {
    wl_status rc = write_run(g, r, n_bytes);
    if (rc) return rc;
    g->n_bytes -= n_bytes;
  }
  g->n_set_aside += t->n;
  /* If nearly every row is a new group, looking it up in the table does not pay. */
  if (p->mode == MODE_WORDS && t->n > g->n_rows / 4 * 3) g->blind = true;
  g->n_rows = 0;
  t->n = 0;
  if (!g->blind) memset(t->slots, 0, t->n_slots * sizeof *t->slots);
  return WL_OK;
}

/* ---- finding */

static wl_status find_direct(wl_groups *g, const wl_i64 *rows, int n, wl_u32 *out) {
  const wl_grouping *p = g->plan;
  wl_u8 *restrict seen = g->seen;
  if (p->has_first) {
    for (int i = 0; i < n; i++) {
      wl_u64 k = g->words[i];
      if (!seen[k]) *entry_first(p, g->table.entries + k * p->width) = rows[i];
      seen[k] = 1;
      out[i] = (wl_u32)k;
    }
    return WL_OK;
  }
  for (int i = 0; i < n; i++) {
    seen[g->words[i]] = 1;
    out[i] = (wl_u32)g->words[i];
  }
  return WL_OK;
}

/* A bit for each real key of a row that is -0.0. */
static wl_u64 signs_of(const wl_grouping *p, const wl_vec *keys, int i) {
  wl_u64 signs = 0;
  for (int k = 0; k < p->words.n_parts; k++) {
    if (p->words.parts[k].kind != WL_PART_REAL) continue;
    const wl_vec *q = &keys[p->words.parts[k].key];
    if (q->v[q->stride ? i : 0] == 1ULL << 63 && (!q->t || q->t[i]))
      signs |= 1ULL << p->words.parts[k].key;
  }
  return signs;
}

static void new_entry(wl_groups *g, int i, wl_i64 row) {
  const wl_grouping *p = g->plan;
  wl_u8 *e = entry_at(p, &g->table, g->table.n++);
  memset(e, 0, p->width);
  for (int k = 0; k < p->words.n_words; k++)
    ((wl_u64 *)(void *)e)[k] = g->words[(size_t)k * WL_VECTOR + i];
  if (p->has_first) *entry_first(p, e) = row;
  if (p->has_signs) *entry_signs(p, e) = signs_of(p, g->keys, i);
}

/* Makes every row a new entry. Entries with equal keys are merged when the runs are joined. */
static wl_status find_blindly(wl_groups *g, const wl_i64 *rows, int n, wl_u32 *out) {
  for (int i = 0; i < n; i++) {
    out[i] = (wl_u32)g->table.n;
    new_entry(g, i, rows[i]);
  }
  return WL_OK;
}

static wl_status find_words(wl_groups *g, const wl_i64 *rows, int n, wl_u32 *out) {
  const wl_grouping *p = g->plan;
  group_table *t = &g->table;
  wl_u64 *hash = g->scratch, mask = t->n_slots - 1;
  const wl_u64 *words = g->words;
  int n_words = p->words.n_words;
  if (n_words == 1)
    for (int i = 0; i < n; i++) hash[i] = wl_hash_mix(0, words[i]);
  else
    for (int i = 0; i < n; i++) {
      wl_u64 h = 0;
      for (int k = 0; k < n_words; k++) h = wl_hash_mix(h, words[(size_t)k * WL_VECTOR + i]);
      hash[i] = h;
    }
  for (int i = 0; i < n; i++) __builtin_prefetch(&t->slots[hash[i] & mask]);
  for (int i = 0; i < n; i++) {
    wl_u64 h = hash[i], at = h & mask;
    for (;; at = (at + 1) & mask) {
      wl_u64 s = t->slots[at];
      if ((wl_u32)s == 0) {
        t->slots[at] = (h & ~0xffffffffULL) | (wl_u64)(t->n + 1);
        out[i] = (wl_u32)t->n;
        new_entry(g, i, rows[i]);
        break;
      }
      if ((s ^ h) >> 32) continue;
      const wl_u64 *have = (const wl_u64 *)(const void *)entry_at(p, t, (wl_i64)(wl_u32)s - 1);
      int k = 0;
      while (k < n_words && have[k] == words[(size_t)k * WL_VECTOR + i]) k++;
      if (k < n_words) continue;
      out[i] = (wl_u32)s - 1;
      break;
    }
  }
  return WL_OK;
}

/* Copies text so that it outlives the vector it came from. */
static wl_status keep(wl_groups *g, wl_val *v) {
  if (v->t < WL_T_TEXT) return WL_OK;
  char *p = wl_arena_strndup(&g->arena, (const char *)wl_bytes(*v), v->n);
  if (!p) return WL_NOMEM;
  v->v = (wl_u64)(size_t)p;
  return WL_OK;
}

/* Finds or creates the group of a row. e is an entry outside the table with the row's values. */
static wl_status find_value(wl_groups *g, wl_u8 *e, wl_i64 row, wl_u32 *out) {
  const wl_grouping *p = g->plan;
  group_table *t = &g->table;
  wl_u64 h = wl_group_hash_values(p, entry_values(e)), slot;
  *(wl_u64 *)(void *)e = h;
  wl_i64 i = wl_group_look(p, t, h, e, &slot);
  if (i < 0) {
    i = t->n;
    for (int k = 0; k < p->n_keys; k++)
      if (keep(g, &entry_values(e)[k])) return WL_NOMEM;
    *entry_first(p, e) = row;
    memcpy(entry_at(p, t, i), e, p->width);
    t->slots[slot] = (h & ~0xffffffffULL) | (wl_u64)(i + 1);
    t->n++;
  }
  *out = (wl_u32)i;
  return WL_OK;
}

static wl_status find_values(wl_groups *g, const wl_i64 *rows, int n, wl_u32 *out) {
  const wl_grouping *p = g->plan;
  wl_u8 *e = g->probe;
  wl_status rc = WL_OK;
  for (int i = 0; i < n && !rc; i++) {
    for (int k = 0; k < p->n_keys; k++) entry_values(e)[k] = wl_vec_get(&g->keys[k], i);
    rc = find_value(g, e, rows[i], &out[i]);
  }
  return rc;
}

/* Makes room in the table for a vector's groups. Sets the table aside if it is too full. */
static wl_status make_room(wl_groups *g, int n) {
  const wl_grouping *p = g->plan;
  wl_status rc = WL_OK;
  if (g->table.n + n > p->most && !p->whole) rc = wl_group_set_aside(g);
  if (rc) return rc;
  if (p->whole && wl_group_over(g, 1)) return WL_NOT_TAKEN;
  g->n_rows += n;
  return g->blind ? entry_room(p, &g->table, n) : wl_group_room(p, &g->table, n);
}

wl_status wl_groups_find(wl_groups *g, const wl_vec *keys, const wl_i64 *rows, int n, wl_u32 *out) {
  const wl_grouping *p = g->plan;
  /* The text and full sums that groups point to are always in memory. The one group of a query
  ** without GROUP BY always has room for a few of them. */
  if (p->left && (p->p->n_keys || p->whole) && (wl_i64)g->arena.n_bytes > p->left / p->n_workers)
    return WL_NOT_TAKEN;
  g->keys = keys;
  if (p->p->n_keys == 0) {
    if (p->has_first && !g->seen[0] && n) *entry_first(p, g->table.entries) = rows[0];
    g->seen[0] |= n > 0;
    return WL_OK;
  }
  if (p->mode != MODE_VALUES) wl_encode_keys(&p->words, keys, n, g->words);
  if (p->scatter) return wl_group_scatter(g, rows, n);
  if (p->mode == MODE_DIRECT) return find_direct(g, rows, n, out);
  wl_status rc = make_room(g, n);
  if (rc) return rc;
  return p->mode == MODE_VALUES ? find_values(g, rows, n, out)
         : g->blind             ? find_blindly(g, rows, n, out)
                                : find_words(g, rows, n, out);
}

/* ---- DISTINCT aggregates: a set of (group, value) */

/* Lists the rows whose value is not NULL; the other rows do not count. Returns their number. */
static int pack(const wl_vec *v, int n, wl_u16 *keep_row) {
  int m = 0;
  for (int i = 0; i < n; i++) {
    keep_row[m] = (wl_u16)i;
    m += wl_vec_get(v, i).t != WL_T_NULL;
  }
  return m;
}

wl_status wl_group_set_add(wl_groups *g, int set, const wl_vec *v, const wl_i64 *rows, int n) {
  wl_groups *s = g->sets[set];
  const wl_grouping *p = s->plan, *groups = g->plan;
  wl_u16 kept[WL_VECTOR];
  wl_u32 found[WL_VECTOR];
  wl_i64 at[WL_VECTOR];
  bool all = !v->t && v->stride;
  int m = all ? n : pack(v, n, kept);
  if (m == 0) return WL_OK;
  bool lists = s->blind && p->only_words && wl_group_slabs_fit(p) && !wl_group_over(s, 2);
  if (p->mode != MODE_DIRECT && !lists) {
    wl_status rc = make_room(s, m);
    if (rc) return rc;
  }
  for (int i = 0; i < m; i++) at[i] = rows[all ? i : kept[i]];
  if (p->mode == MODE_VALUES) {
    wl_u8 *e = s->probe;
    wl_status rc = WL_OK;
    for (int i = 0; i < m && !rc; i++) {
      int r = all ? i : kept[i];
      for (int k = 0; k < p->n_keys - 1; k++)
        entry_values(e)[k] = groups->mode == MODE_VALUES
                                 ? wl_vec_get(&g->keys[k], r)
                                 : wl_int((wl_i64)g->words[(size_t)k * WL_VECTOR + r]);
      entry_values(e)[p->n_keys - 1] = wl_vec_get(v, r);
      rc = find_value(s, e, at[i], &found[i]);
    }
    return rc;
  }
  /* The group's words, then the value: in its own word, or as the last digit of the group's. */
  const wl_key_part *part = &p->words.parts[p->words.n_parts - 1];
  wl_u64 *value = g->scratch + 2 * WL_VECTOR;
  for (int i = 0; i < m; i++) value[i] = v->v[v->stride ? (all ? i : kept[i]) : 0];
  for (int k = 0; k < groups->words.n_words && groups->words.n_parts; k++)
    for (int i = 0; i < m; i++)
      s->words[(size_t)k * WL_VECTOR + i] = g->words[(size_t)k * WL_VECTOR + (all ? i : kept[i])];
  bool own = p->words.n_parts == 1 || p->words.parts[p->words.n_parts - 2].word != part->word;
  /* A set records only the sign of the value, not the signs of the groups' keys. */
  static const wl_u64 zero;
  for (int k = 0; k < part->key; k++) s->set_keys[k] = (wl_vec){.v = &zero};
  s->set_keys[part->key] = (wl_vec){.type = v->type, .stride = 1, .v = value};
  wl_encode_part(part, own, &s->set_keys[part->key], m, s->words + (size_t)part->word * WL_VECTOR);
  s->keys = s->set_keys;
  return p->mode == MODE_DIRECT ? find_direct(s, at, m, found)
         : lists                ? wl_group_words_add(s, s->words, m)
         : s->blind             ? find_blindly(s, at, m, found)
                                : find_words(s, at, m, found);
}
