/*
** The key codec: random layouts of keys of all kinds against wl_cmp_val. Words have the order of
** the keys, are equal if the keys are, and decode to the keys. The vector encoder gives the same
** words as the scalar one.
*/
#include "../tap.h"
#include "exec/cpu/encode.h"
#include <math.h>
#include <string.h>

static wl_u64 seed = 88172645463325252ULL;
static wl_u64 rnd(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

enum { MOST_KEYS = 6, ROWS = 200, TEXT = 12 };

static const struct {
  wl_i64 lo, hi; /* lo > hi: no integer */
} ranges[] = {
    {0, -1},
    {7, 7},
    {-3, 3},
    {0, 255},
    {-99, 1LL << 40},
    {WL_I64_MIN, WL_I64_MIN + 3},
    {WL_I64_MAX - 3, WL_I64_MAX},
    {WL_I64_MIN, WL_I64_MIN},
    {WL_I64_MAX, WL_I64_MAX},
    {WL_I64_MIN, -1},
    {0, WL_I64_MAX},
    {WL_I64_MIN + 1, WL_I64_MAX},
    {WL_I64_MIN, WL_I64_MAX - 1},
    {WL_I64_MIN, WL_I64_MAX},
};
enum { N_RANGES = sizeof ranges / sizeof *ranges };

/* A random key: its type, its place in the order, and a value for each row. */
typedef struct key {
  wl_reg reg;
  wl_domain domain;
  bool desc, null_last, prefix;
  wl_u8 coll;
  wl_val rows[ROWS];
  wl_u8 text[ROWS][TEXT];
  wl_u64 v[ROWS];
  wl_u32 n[ROWS];
  wl_u8 t[ROWS];
} key;

static double random_real(void) {
  static const double some[] = {0.0,     -0.0,     1.0,       -1.0,       5e-324, -5e-324,
                                1.7e308, -1.7e308, 0x1p-1022, 4294967296, 0x1p53, -0x1p53};
  if (rnd() % 16 == 0) return rnd() % 2 ? INFINITY : -INFINITY;
  if (rnd() % 2) return some[rnd() % (sizeof some / sizeof *some)];
  return ((double)(rnd() >> 11) * 0x1p-53 - 0.5) * 40;
}

static wl_i64 random_int(wl_i64 lo, wl_i64 hi) {
  wl_u64 last = (wl_u64)hi - (wl_u64)lo, x = rnd();
  if (rnd() % 4 == 0) x %= 3; /* near an end, and often equal */
  if (last != ~0ULL) x %= last + 1;
  return (wl_i64)(rnd() % 2 ? (wl_u64)lo + x : (wl_u64)hi - x);
}

static wl_val random_text(wl_u8 *room) {
  static const wl_u8 letters[] = {'a', 'A', 'b', 'B', ' ', 0, 0xff, '_'};
  wl_u32 n = (wl_u32)(rnd() % (TEXT + 1));
  for (wl_u32 i = 0; i < n; i++) room[i] = letters[rnd() % (rnd() % 2 ? 2 : sizeof letters)];
  return wl_val_make(rnd() % 4 ? WL_T_TEXT : WL_T_BLOB, (wl_u64)(size_t)room, n);
}

/* Any value, among them integers that reals can only round to. */
static wl_val random_any(wl_u8 *room) {
  if (rnd() % 3 == 0) return wl_real(random_real());
  if (rnd() % 3 == 0) return wl_int(random_int(0x1p53, 0x1p53 + 5));
  if (rnd() % 6 == 0) return wl_int(random_int(WL_I64_MIN, WL_I64_MAX));
  return random_text(room);
}

static void make_key(key *k, bool prefix) {
  int r = (int)(rnd() % (N_RANGES + 3));
  *k = (key){.desc = rnd() % 2,
             .null_last = rnd() % 2,
             .prefix = prefix,
             .coll = (wl_u8)(rnd() % 3),
             .reg = {.type = prefix         ? WL_R_ANY
                             : r < N_RANGES ? WL_R_INT
                                            : WL_R_REAL}};
  k->reg.nullable = rnd() % 2 || r == 0 || prefix;
  k->domain = wl_domain_real(-INFINITY, INFINITY, k->reg.nullable);
  if (r < N_RANGES) k->domain = wl_domain_int(ranges[r].lo, ranges[r].hi, k->reg.nullable);
  for (int i = 0; i < ROWS; i++) {
    bool null = k->reg.nullable && (rnd() % 5 == 0 || (r == 0 && !prefix));
    k->rows[i] = null            ? wl_null()
                 : prefix        ? random_any(k->text[i])
                 : r >= N_RANGES ? wl_real(random_real())
                                 : wl_int(random_int(ranges[r].lo, ranges[r].hi));
    k->v[i] = null ? rnd() : k->rows[i].v; /* what is stored for a NULL must not matter */
    k->n[i] = k->rows[i].n;
    k->t[i] = prefix ? k->rows[i].t : !null;
  }
}

/* How ORDER BY compares two rows. */
static int compare(const key *keys, int n, int a, int b) {
  for (int k = 0; k < n; k++) {
    wl_val x = keys[k].rows[a], y = keys[k].rows[b];
    if (x.t == WL_T_NULL || y.t == WL_T_NULL) {
      if (x.t == y.t) continue;
      return (x.t == WL_T_NULL) == keys[k].null_last ? 1 : -1;
    }
    int c = wl_cmp_val(x, y, keys[k].coll);
    if (c) return keys[k].desc ? -c : c;
  }
  return 0;
}

static int compare_words(const wl_u64 *a, const wl_u64 *b, int n) {
  for (int k = 0; k < n; k++)
    if (a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
  return 0;
}

static unsigned flags_of(const key *k) {
  return (k->desc ? WL_KEY_DESC : 0) | (k->null_last ? WL_KEY_NULL_LAST : 0);
}

static bool lay_out(wl_key_layout *l, const key *keys, int n) {
  for (int k = 0; k < n; k++) {
    unsigned flags = flags_of(&keys[k]) | (rnd() % 8 ? 0 : WL_KEY_NEW_WORD);
    if (keys[k].prefix) {
      if (wl_key_layout_add(l, k, keys[k].reg, &keys[k].domain, flags)) return false;
      wl_key_layout_add_prefix(l, k, keys[k].coll, flags);
    } else if (!wl_key_layout_add(l, k, keys[k].reg, &keys[k].domain, flags)) {
      return false;
    }
  }
  return true;
}

/* Decoding gives the value back; a zero is 0.0, or -0.0 if the caller says so. */
static bool decodes(const wl_key_layout *l, const key *keys, int n, int i, const wl_u64 *words) {
  for (int k = 0; k < n; k++) {
    wl_val v = keys[k].rows[i];
    if (keys[k].prefix) continue;
    bool minus = v.t == WL_T_REAL && v.v == 1ULL << 63;
    wl_val back = wl_key_layout_decode(l, k, words, minus);
    if (back.t != v.t || (v.t != WL_T_NULL && back.v != v.v)) return false;
    if (minus && wl_key_layout_decode(l, k, words, false).v != 0) return false;
  }
  return true;
}

static const char *check_layout(const key *keys, int n) {
  static wl_u64 vectors[(2 * MOST_KEYS + 1) * WL_VECTOR], words[ROWS][2 * MOST_KEYS];
  wl_key_part parts[2 * MOST_KEYS];
  wl_key_layout l = {.parts = parts};
  wl_vec vecs[MOST_KEYS];
  if (!lay_out(&l, keys, n)) return "a key has no layout";
  for (int k = 0; k < n; k++)
    vecs[k] = (wl_vec){.type = keys[k].reg.type,
                       .stride = 1,
                       .v = keys[k].v,
                       .n = keys[k].n,
                       .t = keys[k].reg.nullable ? keys[k].t : NULL};
  wl_encode_keys(&l, vecs, ROWS, vectors);
  for (int i = 0; i < ROWS; i++) {
    wl_val row[MOST_KEYS];
    for (int k = 0; k < n; k++) row[k] = keys[k].rows[i];
    wl_key_layout_encode(&l, row, words[i]);
    for (int w = 0; w < l.n_words; w++)
      if (vectors[w * WL_VECTOR + i] != words[i][w]) return "the vector encoder differs";
    if (!decodes(&l, keys, n, i, words[i])) return "decoding gives another value";
    wl_u64 used = wl_key_layout_used(&l, l.n_words - 1);
    if (used != l.used || (used && words[i][l.n_words - 1] >= used)) return "a word is too large";
  }
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < i; j++) {
      int want = compare(keys, n, i, j), have = compare_words(words[i], words[j], l.n_words);
      if (l.prefix ? want * have < 0 || (want == 0 && have) : want != have)
        return "words and keys are in different order";
    }
  return NULL;
}

/* ---- texts as words */

/* Compares two texts by their words, now and then behind what they have in common. all: however
** long that is. */
static int compare_text_words(const wl_key_part *p, wl_val a, wl_val b, bool all) {
  for (wl_u32 at = 0;;) {
    wl_u64 x = wl_text_word(p, a, at), y = wl_text_word(p, b, at);
    if (x != y) return x < y ? -1 : 1;
    wl_u32 next = wl_text_next(p, x, at);
    if (!next) return 0;
    wl_u32 most = all ? ~0u : next + (wl_u32)(rnd() % 20);
    if (next != WL_TEXT_AT_LENGTH) {
      wl_u32 common = wl_bytes_common(wl_bytes(a), a.n, wl_bytes(b), b.n, next, most, p->coll);
      if (common < next || common > most) return 2;
      if (rnd() % 2) next = common;
    }
    at = next;
  }
}

/* The same for values of any type, whose class comes first. */
static int compare_value_words(const wl_key_part *p, wl_val a, wl_val b) {
  wl_u64 x = wl_key_class(p, a.t), y = wl_key_class(p, b.t);
  for (wl_u32 at = 0; x == y;) {
    x = wl_value_word(p, a, at);
    y = wl_value_word(p, b, at);
    if (x == y && !(at = wl_value_next(p, a.t, x, at))) return 0;
  }
  return x < y ? -1 : 1;
}

/* A text, NULL, or with `any` a value of any type. Texts share their first bytes. */
static wl_val text_or_any(wl_u8 *room, wl_u32 shared, wl_u32 most, bool any) {
  static const wl_u8 letters[] = {'a', 'A', ' ', 0, 'Z', '[', '@', 0xff, 'z'};
  static const wl_i64 ints[] = {0, 1, 1LL << 53, -(1LL << 53), 1LL << 62, WL_I64_MAX, WL_I64_MIN};
  wl_u32 n = shared + (wl_u32)(rnd() % (most - shared + 1));
  wl_i64 i = (wl_i64)((wl_u64)ints[rnd() % 7] + rnd() % 5 - 2);
  for (wl_u32 b = 0; b < n; b++)
    room[b] = b < shared ? letters[b % 3] : letters[rnd() % (rnd() % 2 ? 2 : sizeof letters)];
  if (rnd() % 9 == 0) return wl_null();
  switch (any ? rnd() % 5 : 0) {
  case 1: return wl_int(i);
  case 2: return wl_real((double)i);
  case 3: return wl_real(rnd() % 2 ? (double)i * 0.5 : rnd() % 2 ? __builtin_inf() : -0.0);
  case 4: return wl_val_make(WL_T_BLOB, (wl_u64)(size_t)room, n);
  default: return wl_text(room, n);
  }
}

static void test_text_words(void) {
  enum { N = 120, LONG = 40 };
  static wl_u8 room[N][LONG];
  for (int kind = 0; kind < 6; kind++) {
    const char *wrong = NULL;
    int coll = kind % 3;
    bool any = kind >= 3;
    for (int round = 0; round < (TEST_SANITIZED ? 20 : 200) && !wrong; round++) {
      wl_key_part parts[2];
      wl_key_layout l = {.parts = parts};
      key k = {.desc = rnd() % 2, .null_last = rnd() % 2, .coll = (wl_u8)coll};
      if (any)
        wl_key_layout_add_value(&l, 0, k.coll, flags_of(&k));
      else
        wl_key_layout_add_text(&l, 0, k.coll, flags_of(&k));
      const wl_key_part *p = &parts[l.n_parts - 1];
      wl_u32 shared = (wl_u32)(rnd() % 20);
      for (int i = 0; i < N; i++) k.rows[i] = text_or_any(room[i], shared, LONG, any);
      for (int i = 0; i < N && !wrong; i++)
        for (int j = 0; j < N && !wrong; j++) {
          int want = compare(&k, 1, i, j);
          int have = any ? compare_value_words(p, k.rows[i], k.rows[j])
                         : compare_text_words(p, k.rows[i], k.rows[j], round % 2);
          if (have != want) wrong = "words and values are in different order";
          if (!any && wl_text_compare(p, k.rows[i], k.rows[j], 0) != want)
            wrong = "comparing gives another order";
        }
    }
    char name[60];
    snprintf(name, sizeof name, "keys: %s as words, collation %d", any ? "values" : "texts", coll);
    wrong ? tap_bad(name, "%s", wrong) : tap_ok(name);
  }
}

static void test_layouts(void) {
  static key keys[MOST_KEYS];
  int rounds = TEST_SANITIZED ? 200 : 2000;
  for (int n = 1; n <= MOST_KEYS; n++) {
    const char *wrong = NULL;
    for (int round = 0; round < rounds && !wrong; round++) {
      bool prefix = rnd() % 4 == 0;
      for (int k = 0; k < n; k++) make_key(&keys[k], prefix && k == n - 1);
      wrong = check_layout(keys, n);
    }
    char name[60];
    snprintf(name, sizeof name, "keys: random layouts of %d keys", n);
    if (wrong)
      tap_bad(name, "%s", wrong);
    else
      tap_ok(name);
  }
}

/* One value for all rows of a vector. */
static void test_constants(void) {
  static wl_u64 out[3 * WL_VECTOR];
  bool ok = true;
  for (int round = 0; round < 300; round++) {
    static key k;
    static wl_u8 none[WL_VECTOR];
    make_key(&k, false);
    wl_key_part parts[2];
    wl_key_layout l = {.parts = parts};
    ok &= lay_out(&l, &k, 1);
    wl_vec v = {.type = k.reg.type, .v = &k.v[0], .t = k.rows[0].t == WL_T_NULL ? none : NULL};
    wl_encode_keys(&l, &v, WL_VECTOR, out);
    wl_u64 words[2];
    wl_key_layout_encode(&l, &k.rows[0], words);
    for (int w = 0; w < l.n_words; w++)
      for (int i = 0; i < WL_VECTOR; i++) ok &= out[w * WL_VECTOR + i] == words[w];
  }
  CHECK("keys: constants", ok);
}

/* Lookups: a value out of range has no code. All others have the codes of the plain encoder. */
static void test_within(void) {
  static wl_u64 v[2][WL_VECTOR], plain[WL_VECTOR], words[WL_VECTOR];
  static wl_u8 t[WL_VECTOR], ok[WL_VECTOR];
  bool good = true;
  for (int round = 0; round < 2000; round++) {
    wl_key_part parts[4];
    wl_key_layout l = {.parts = parts};
    int r = (int)(rnd() % (N_RANGES + 1));
    bool real = r == N_RANGES, null = rnd() % 2, nulls = rnd() % 2, constant = rnd() % 8 == 0;
    unsigned flags = rnd() % 4 ? WL_KEY_NULL_LAST : (unsigned)rnd() % 4;
    wl_domain d[2] = {real ? wl_domain_real(-9, 9, null)
                           : wl_domain_int(ranges[r].lo, ranges[r].hi, null),
                      wl_domain_int(10, 20, false)};
    wl_key_layout_add(&l, 0, (wl_reg){real ? WL_R_REAL : WL_R_INT, null}, &d[0], flags);
    wl_key_layout_add(&l, 1, (wl_reg){WL_R_INT, false}, &d[1], WL_KEY_NULL_LAST);
    if (l.n_parts == 3) continue; /* a NULL part is never looked up */
    for (int i = 0; i < WL_VECTOR; i++) {
      wl_i64 lo = ranges[real ? 0 : r].lo, hi = ranges[real ? 0 : r].hi;
      v[0][i] = rnd() % 2 || lo > hi ? rnd() : (wl_u64)random_int(lo, hi);
      if (rnd() % 8 == 0) v[0][i] = rnd() % 2 ? (wl_u64)hi + 1 : (wl_u64)lo - 1;
      if (real) v[0][i] = wl_f64_bits(random_real());
      v[1][i] = 8 + rnd() % 15;
      t[i] = rnd() % 4 != 0;
    }
    wl_vec q[2] = {{.type = real ? WL_R_REAL : WL_R_INT, .stride = !constant, .v = v[0]},
                   {.type = WL_R_INT, .stride = 1, .v = v[1]}};
    if (nulls) q[0].t = t;
    wl_encode_part(&l.parts[0], true, &q[0], WL_VECTOR, plain);
    wl_encode_within(&l.parts[0], true, &q[0], WL_VECTOR, words, ok);
    for (int i = 0; i < WL_VECTOR; i++) {
      bool there = !nulls || t[i];
      wl_i64 x = (wl_i64)v[0][constant ? 0 : i];
      bool want = there ? real || (x >= ranges[r].lo && x <= ranges[r].hi) : null;
      good &= ok[i] == want && (!want || words[i] == plain[i]);
    }
    if (l.n_words > 1) continue;
    static wl_u8 first[WL_VECTOR];
    memcpy(first, ok, sizeof ok);
    wl_encode_part(&l.parts[1], false, &q[1], WL_VECTOR, plain);
    wl_encode_within(&l.parts[1], false, &q[1], WL_VECTOR, words, ok);
    for (int i = 0; i < WL_VECTOR; i++) {
      bool want = first[i] && v[1][i] >= 10 && v[1][i] <= 20;
      good &= ok[i] == want && (!want || words[i] == plain[i]);
    }
  }
  CHECK("keys: values out of range", good);
}

static int words_of(const wl_i64 *spans, int n, wl_u64 *used) {
  wl_key_part parts[8];
  wl_key_layout l = {.parts = parts};
  for (int k = 0; k < n; k++) {
    wl_domain d = wl_domain_int(0, spans[k] - 1, false);
    wl_key_layout_add(&l, k, (wl_reg){WL_R_INT, false}, &d, 0);
  }
  *used = l.used;
  return l.n_words;
}

/* Keys share a word while the product of their spans is below 2^64. */
static void test_packing(void) {
  wl_u64 used;
  CHECK("keys: small ranges share a word",
        words_of((wl_i64[]){100, 7, 1, 100}, 4, &used) == 1 && used == 70000);
  CHECK("keys: 2^64 values do not share a word",
        words_of((wl_i64[]){1LL << 32, 1LL << 32}, 2, &used) == 2 && used == 1ULL << 32);
  CHECK("keys: just below 2^64 values share a word",
        words_of((wl_i64[]){1LL << 32, (1LL << 32) - 1}, 2, &used) == 1 &&
            used == 0xffffffff00000000ULL);
  wl_key_part parts[2];
  wl_key_layout l = {.parts = parts};
  wl_domain d = wl_domain_int(WL_I64_MIN, WL_I64_MAX, true);
  wl_key_layout_add(&l, 0, (wl_reg){WL_R_INT, true}, &d, 0);
  CHECK("keys: any integer or NULL has two parts", l.n_parts == 2 && l.n_words == 2 && !l.used);
  wl_key_part_set_range(&l.parts[1], -5, 5);
  CHECK("keys: a smaller range", l.parts[1].span == 12 && wl_key_code(&l.parts[1], 5, 1) == 11);
  l.parts[1].null = false;
  wl_key_part_set_range(&l.parts[1], 1, 0);
  CHECK("keys: an empty range", l.parts[1].span == 1 && !wl_key_holds(&l.parts[1], 0, 1));
}

int main(void) {
  test_text_words();
  test_layouts();
  test_constants();
  test_within();
  test_packing();
  return tap_done();
}
