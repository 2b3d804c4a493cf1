/*
** Plans of date functions; see plan.h.
*/
#include "value/date/plan.h"
#include "value/date/dialect.h"
#include <string.h>

/* ---- modifiers */

typedef struct planner {
  wl_vctx *x;
  int dialect;
  int index; /* of the modifier that is read, from 0 */
  wl_date_step *steps;
  int n_steps;
  bool subsec;
} planner;

static bool is_word(const wl_date_text *t, wl_u32 from, const char *word) {
  size_t n = strlen(word);
  return t->n - from == n && sqlite3_strnicmp((const char *)t->p + from, word, (int)n) == 0;
}
static bool begins(const wl_date_text *t, const char *word) {
  size_t n = strlen(word);
  return t->n >= n && sqlite3_strnicmp((const char *)t->p, word, (int)n) == 0;
}

static wl_date_answer add(planner *p, wl_date_step_kind kind, wl_i32 n, wl_i64 ms) {
  wl_date_step *s = &p->steps[p->n_steps++];
  memset(s, 0, sizeof *s); /* plans are compared as bytes */
  s->kind = (wl_u8)kind;
  s->n = n;
  s->ms = ms;
  return WL_DATE_PLANNED;
}

/* Whether n bytes of the text are a number. */
static bool number_at(planner *p, const wl_date_text *t, wl_u32 from, wl_u32 n, double *out) {
  wl_val number = wl_number(p->x, wl_text(t->p + from, n), WL_NUMBER_AFFINITY);
  *out = wl_val_f64(number);
  return number.t < WL_T_TEXT;
}

/* '+HH:MM:SS': the time of day in t from its position on. */
static wl_date_answer add_clock(planner *p, wl_date_text t, bool negative) {
  wl_moment m;
  memset(&m, 0, sizeof m);
  if (!wl_date_digit(wl_date_peek(&t, 0))) t.at++;
  if (!wl_date_read_time(&t, &m, p->dialect) || !wl_moment_settle(&m, p->dialect))
    return WL_DATE_IS_NULL;
  wl_i64 ms = (m.ms - WL_NOON_MS) % WL_DAY_MS;
  return add(p, WL_STEP_CLOCK, 0, negative ? -ms : ms);
}

/* '+YYYY-MM-DD', maybe with a time of day. The year has 4 or 5 digits. */
static wl_date_answer add_shift(planner *p, const wl_date_text *text, wl_u32 n_year) {
  enum { LAST_YEAR = 14712 };
  wl_date_text t = *text;
  wl_u8 sign = wl_date_peek(&t, 0);
  if (sign != '+' && sign != '-') return WL_DATE_IS_NULL;
  t.at = 1;
  wl_i32 year = wl_date_digits(&t, n_year);
  t.at++;
  wl_i32 month = wl_date_digits(&t, 2);
  if (year < 0 || year > LAST_YEAR || month < 0 || month > 11 || wl_date_peek(&t, 0) != '-')
    return WL_DATE_IS_NULL;
  t.at++;
  wl_i32 day = wl_date_digits(&t, 2);
  if (day < 0 || day > 30) return WL_DATE_IS_NULL;
  wl_i32 direction = sign == '-' ? -1 : 1;
  add(p, WL_STEP_SHIFT, direction * (year * 12 + month), direction * day * WL_DAY_MS);
  if (t.at == t.n) return WL_DATE_PLANNED;
  if (!wl_date_space(wl_date_peek(&t, 0))) return WL_DATE_IS_NULL;
  t.at++;
  return wl_date_digit(wl_date_peek(&t, 0)) ? add_clock(p, t, sign == '-') : WL_DATE_IS_NULL;
}

/* '+2.5 days' and the like: r of the unit whose name begins at `from`. */
static wl_date_answer add_units(planner *p, const wl_date_text *t, wl_u32 from, double r) {
  static const struct {
    const char *name;
    float most, seconds; /* floats, as in SQLite: the limits are not exact as such */
  } units[] = {{"second", 4.6427e+14F, 1},    {"minute", 7.7379e+12F, 60},
               {"hour", 1.2897e+11F, 3600},   {"day", 5373485.0F, 86400},
               {"month", 176546.0F, 2592000}, {"year", 14713.0F, 31536000}};
  enum { MONTH = 4, YEAR = 5, N_UNITS = 6 };
  while (from < t->n && wl_date_space(t->p[from])) from++;
  wl_u32 n = t->n - from;
  if (n < 3 || n > 10) return WL_DATE_IS_NULL;
  if (wl_to_lower(t->p[t->n - 1]) == 's') n--;
  wl_date_text name = {t->p + from, n, 0};
  int u = 0;
  while (u < N_UNITS && !is_word(&name, 0, units[u].name)) u++;
  if (u == N_UNITS || !(r > -units[u].most && r < units[u].most)) return WL_DATE_IS_NULL;
  double half = r < 0 ? -0.5 : 0.5;
  wl_i32 whole = u >= MONTH ? (wl_i32)r : 0;
  r -= whole;
  wl_i64 ms = (wl_i64)(r * 1000.0 * units[u].seconds + half);
  return add(p, u == MONTH ? WL_STEP_MONTHS : u == YEAR ? WL_STEP_YEARS : WL_STEP_ADD, whole, ms);
}

static wl_date_answer read_number_modifier(planner *p, const wl_date_text *t) {
  wl_u32 n = 1;
  bool shift = false;
  double r;
  for (; n < t->n && t->p[n] != ':' && !wl_date_space(t->p[n]); n++) {
    wl_date_text digits = {t->p, n, 1};
    if (p->dialect & WL_DATE_SHIFTS && t->p[n] == '-' && (n == 5 || n == 6)) {
      wl_i32 year = wl_date_digits(&digits, n - 1);
      shift = year >= 0 && year <= 14712;
      if (shift) break;
    }
  }
  if (!number_at(p, t, 0, n, &r)) return WL_DATE_IS_NULL;
  if (shift) return add_shift(p, t, n - 1);
  if (n < t->n && t->p[n] == ':') return add_clock(p, *t, t->p[0] == '-');
  return add_units(p, t, n, r);
}

static wl_date_answer read_modifier(planner *p, wl_val v) {
  wl_date_text t = {wl_bytes(v), 0, 0};
  double r;
  if (v.t == WL_T_NULL) return WL_DATE_IS_NULL;
  if (v.t != WL_T_TEXT) return WL_DATE_LEFT;
  while (t.n < v.n && t.p[t.n]) t.n++;
  if (is_word(&t, 0, "localtime") || is_word(&t, 0, "utc")) return WL_DATE_LEFT;
  wl_u8 first = wl_date_peek(&t, 0);
  if (wl_date_digit(first) || first == '+' || first == '-') return read_number_modifier(p, &t);
  static const struct {
    const char *word;
    wl_u8 kind, dialect;
    bool first; /* only as the first modifier */
  } words[] = {{"auto", WL_STEP_AUTO, 0, true},
               {"julianday", WL_STEP_JULIANDAY, 0, true},
               {"unixepoch", WL_STEP_UNIXEPOCH, 0, true},
               {"start of day", WL_STEP_START_OF_DAY, 0, false},
               {"start of month", WL_STEP_START_OF_MONTH, 0, false},
               {"start of year", WL_STEP_START_OF_YEAR, 0, false},
               {"ceiling", WL_STEP_CEILING, WL_DATE_FLOOR, false},
               {"floor", WL_STEP_FLOOR, WL_DATE_FLOOR, false}};
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (is_word(&t, 0, words[k].word) && (p->dialect & words[k].dialect) == words[k].dialect)
      return words[k].first && p->index > 0 ? WL_DATE_IS_NULL
                                            : add(p, (wl_date_step_kind)words[k].kind, 0, 0);
  if (p->dialect & WL_DATE_SUBSEC && (is_word(&t, 0, "subsec") || is_word(&t, 0, "subsecond"))) {
    p->subsec = true;
    return WL_DATE_PLANNED;
  }
  if (begins(&t, "weekday ") && number_at(p, &t, 8, t.n - 8, &r) && r >= 0.0 && r < 7.0 &&
      r == (int)r)
    return add(p, WL_STEP_WEEKDAY, (wl_i32)r, 0);
  return WL_DATE_IS_NULL;
}

/* ---- formats */

static wl_u32 bytes_of(int field) {
  static const wl_u8 bytes[] = {
#define WL_DATE_FIELD(kind, letter, radix, bytes) bytes,
      WL_DATE_FIELDS(WL_DATE_FIELD)
#undef WL_DATE_FIELD
  };
  return bytes[field];
}

/* A format with the letters of plans as items; only counts them if items is NULL. */
typedef struct format {
  wl_u16 *items;
  wl_u32 n_items, n_text, needs_ms;
  wl_i64 fields;
  int n_fields;
} format;

static bool needs_ms(int field) {
  return (field >= WL_FIELD_DAY_OF_YEAR && field <= WL_FIELD_YEAR_ISO2) || field >= WL_FIELD_UNIX;
}

static void add_items(format *f, const char *text) {
  for (; *text; text++, f->n_items++) {
    int field = *text == '%' && text[1] != '%' ? wl_date_field_of((wl_u8)text[1]) : -1;
    if (f->items) f->items[f->n_items] = (wl_u16)(field < 0 ? (wl_u8)*text : 256 * (field + 1));
    if (*text == '%') text++;
    f->n_text += field < 0 ? 1 : bytes_of(field);
    if (field < 0) continue;
    f->needs_ms |= needs_ms(field);
    if (f->n_fields < WL_MOST_FIELDS)
      f->fields |= (wl_i64)(field + 1) << WL_FIELD_BITS * f->n_fields;
    f->n_fields++;
  }
}

/* Adds the items of a format of strftime(). */
static wl_date_answer add_strftime(format *out, const wl_u8 *f, wl_u32 n, bool subsec) {
  for (wl_u32 i = 0; i < n; i++) {
    char one[3] = {(char)f[i], 0, 0};
    const char *text = one;
    if (f[i] == '%') {
      if (++i == n || !wl_date_dialect_has_format(f[i])) return WL_DATE_IS_NULL;
      one[1] = (char)f[i];
      if (f[i] == 's' && subsec) text = "%t";
      if (f[i] == 'F') text = "%Y-%m-%d";
      if (f[i] == 'R') text = "%H:%M";
      if (f[i] == 'T') text = "%H:%M:%S";
      if (text == one && f[i] != '%' && (f[i] == 'J' || wl_date_field_of(f[i]) < 0))
        return WL_DATE_LEFT;
    }
    add_items(out, text);
  }
  return WL_DATE_PLANNED;
}

/* The format of a function other than strftime(). */
static const char *format_of(wl_date_function f, bool subsec) {
  switch (f) {
  case WL_DATE_DATE: return "%_-%m-%d";
  case WL_DATE_TIME: return subsec ? "%H:%M:%q" : "%H:%M:%S";
  case WL_DATE_DATETIME: return subsec ? "%_-%m-%d %H:%M:%q" : "%_-%m-%d %H:%M:%S";
  default: return "";
  }
}

/* ---- plans */

wl_date_answer wl_date_plan_make(wl_arena *arena, wl_vctx *x, wl_date_function f,
                                 wl_val strftime_format, const wl_val *modifiers, int n_modifiers,
                                 wl_val *out) {
  enum { MOST_MODIFIERS = 100 };
  planner p = {.x = x};
  if (n_modifiers > MOST_MODIFIERS || !wl_date_dialect(&p.dialect)) return WL_DATE_LEFT;
  if (f == WL_DATE_STRFTIME && strftime_format.t == WL_T_NULL) return WL_DATE_IS_NULL;
  if (f == WL_DATE_STRFTIME && strftime_format.t != WL_T_TEXT) return WL_DATE_LEFT;
  p.steps = WL_NEW_N(arena, wl_date_step, 2 * n_modifiers + 1);
  if (!p.steps) return WL_DATE_NO_MEMORY;
  wl_date_answer answer = WL_DATE_PLANNED;
  for (; p.index < n_modifiers; p.index++) {
    wl_date_answer a = read_modifier(&p, modifiers[p.index]);
    if (a == WL_DATE_LEFT) return a; /* even if another one is wrong: its order may matter */
    if (a != WL_DATE_PLANNED) answer = a;
  }
  const wl_u8 *from = wl_bytes(strftime_format);
  wl_u32 n_from = 0;
  bool strftime = f == WL_DATE_STRFTIME;
  while (strftime && n_from < strftime_format.n && from[n_from]) n_from++;
  if (n_from > x->max_text / 20) return WL_DATE_LEFT; /* the text may exceed SQLite's limit */
  format items = {0};
  wl_date_answer a = strftime ? add_strftime(&items, from, n_from, p.subsec) : WL_DATE_PLANNED;
  if (a == WL_DATE_LEFT) return a;
  if (answer != WL_DATE_PLANNED || a != WL_DATE_PLANNED) return WL_DATE_IS_NULL;
  if (!strftime) add_items(&items, format_of(f, p.subsec));
  wl_date_plan plan = {.fields = items.n_fields > WL_MOST_FIELDS ? 0 : items.fields,
                       .gives = f == WL_DATE_JULIANDAY   ? WL_DATE_AS_JULIANDAY
                                : f != WL_DATE_UNIXEPOCH ? WL_DATE_AS_TEXT
                                : p.subsec               ? WL_DATE_AS_UNIX_MS
                                                         : WL_DATE_AS_UNIX,
                       .dialect = (wl_u8)p.dialect,
                       .n_steps = (wl_u8)p.n_steps,
                       .n_modifiers = (wl_u8)n_modifiers,
                       .n_items = items.n_items,
                       .n_text = items.n_text};
  if (plan.fields && p.dialect & WL_DATE_EARLY_YEARS)
    plan.fields |= (wl_i64)WL_DATE_EARLY_YEARS << WL_FIELD_BITS * WL_MOST_FIELDS;
  plan.needs_ms = items.needs_ms || plan.gives != WL_DATE_AS_TEXT;
  size_t n_steps = (size_t)p.n_steps * sizeof *p.steps;
  size_t n = sizeof plan + n_steps + items.n_items * sizeof *items.items;
  wl_u8 *blob = wl_arena_alloc(arena, n);
  if (!blob) return WL_DATE_NO_MEMORY;
  memcpy(blob, &plan, sizeof plan);
  if (n_steps) memcpy(blob + sizeof plan, p.steps, n_steps);
  format written = {.items = (wl_u16 *)(void *)(blob + sizeof plan + n_steps)};
  if (strftime)
    a = add_strftime(&written, from, n_from, p.subsec);
  else
    add_items(&written, format_of(f, p.subsec));
  *out = wl_val_make(WL_T_BLOB, (wl_u64)(size_t)blob, (wl_u32)n);
  return a;
}

wl_val wl_date_plan_after(wl_arena *arena, wl_val plan, int n) {
  wl_date_plan p = wl_date_plan_of(plan);
  size_t skipped = (size_t)n * sizeof(wl_date_step);
  wl_u8 *blob = wl_arena_alloc(arena, plan.n);
  if (!blob) return wl_null();
  p.n_steps = (wl_u8)(p.n_steps - n);
  memcpy(blob, &p, sizeof p);
  memcpy(blob + sizeof p, wl_bytes(plan) + sizeof p + skipped, plan.n - sizeof p - skipped);
  return wl_val_make(WL_T_BLOB, (wl_u64)(size_t)blob, plan.n - (wl_u32)skipped);
}

/* ---- codes */

wl_i64 wl_date_n_codes(wl_val plan, bool years) {
  const wl_i64 most = 1LL << 62;
  wl_date_plan p = wl_date_plan_of(plan);
  wl_i64 n = 1;
  if (p.gives != WL_DATE_AS_TEXT || p.fields == 0) return 0;
  for (wl_u32 k = 0; k < p.n_items; k++) {
    int field = wl_date_item_field(wl_date_item(plan, &p, k));
    if (field < 0) continue;
    wl_i64 radix = wl_date_radix(field);
    /* years before 0 differ in width, so a byte that comes before all digits must follow them */
    wl_u16 next = k + 1 < p.n_items ? wl_date_item(plan, &p, k + 1) : 0;
    bool varies = field == WL_FIELD_YEAR || field == WL_FIELD_YEAR_ISO;
    if (varies && !years && next >= '0') return 0;
    if (radix == 0 || n > most / radix) return 0;
    n *= radix;
  }
  return n;
}

/* ---- what the text depends on */

/* Of the fields of a format, from coarse to fine. */
enum { DAYS = 1, HOURS = 2, MINUTES = 4, FINER = 8 };

static int needs_of(int field) {
  switch (field) {
  case WL_FIELD_HOUR:
  case WL_FIELD_HOUR_BLANK:
  case WL_FIELD_HOUR12:
  case WL_FIELD_HOUR12_BLANK:
  case WL_FIELD_NOON:
  case WL_FIELD_NOON_LOWER: return HOURS;
  case WL_FIELD_MINUTE: return MINUTES;
  case WL_FIELD_SECOND:
  case WL_FIELD_FRACTION:
  case WL_FIELD_SUBSECOND:
  case WL_FIELD_UNIX:
  case WL_FIELD_UNIX_MS: return FINER;
  default: return DAYS;
  }
}

/* Whether steps keep days apart: equal days become equal days. *resets: the time of day has no
** effect. */
static bool keeps_days(wl_val plan, const wl_date_plan *p, bool *resets) {
  *resets = false;
  for (int k = 0; k < p->n_steps; k++) {
    wl_date_step s = wl_date_step_of(plan, (wl_u32)k);
    if (s.kind <= WL_STEP_UNIXEPOCH || (!*resets && s.ms % WL_DAY_MS != 0)) return false;
    *resets |= s.kind >= WL_STEP_START_OF_DAY && s.kind <= WL_STEP_START_OF_YEAR;
  }
  return true;
}

wl_date_unit wl_date_depends(wl_val plan) {
  wl_date_plan p = wl_date_plan_of(plan);
  bool resets, keeps = keeps_days(plan, &p, &resets);
  int needs = p.gives == WL_DATE_AS_TEXT ? 0 : FINER;
  for (wl_u32 k = 0; k < p.n_items; k++) {
    int field = wl_date_item_field(wl_date_item(plan, &p, k));
    if (field >= 0) needs |= needs_of(field);
  }
  if (keeps && (resets || !(needs & ~DAYS))) return WL_DATE_BY_DAY;
  if (p.n_steps || needs & (DAYS | FINER)) return WL_DATE_BY_MS;
  return needs & MINUTES ? WL_DATE_BY_MINUTE : WL_DATE_BY_HOUR;
}

bool wl_date_ascends(wl_val plan) {
  static const char *const orders[] = {"mdHMS", "mdHMf", "mdHMq", "jHMS"};
  wl_date_plan p = wl_date_plan_of(plan);
  wl_u64 fields = (wl_u64)p.fields, mask = (1 << WL_FIELD_BITS) - 1;
  int first = (int)(fields & mask) - 1;
  if (p.n_steps || p.gives != WL_DATE_AS_TEXT) return false;
  if (first != WL_FIELD_YEAR && first != WL_FIELD_YEAR4) return false;
  for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
    int n = 1;
    const char *order = orders[k];
    while (n < WL_MOST_FIELDS && order[n - 1] &&
           (int)(fields >> WL_FIELD_BITS * n & mask) - 1 == wl_date_field_of((wl_u8)order[n - 1]))
      n++;
    if (n < WL_MOST_FIELDS && (fields >> WL_FIELD_BITS * n & mask) == 0) return true;
  }
  return false;
}

wl_i64 wl_date_reach(wl_val plan) {
  const wl_i64 all = 2 * WL_LAST_MS;
  wl_date_plan p = wl_date_plan_of(plan);
  wl_i64 reach = 0;
  for (int k = 0; k < p.n_steps; k++) {
    wl_date_step s = wl_date_step_of(plan, (wl_u32)k);
    wl_i64 ms = s.ms < 0 ? -s.ms : s.ms, n = s.n < 0 ? -s.n : s.n;
    if (ms > all || n > 14713 * 12) return all;
    reach += ms + n * 366 * WL_DAY_MS; /* n may be years */
    if (s.kind == WL_STEP_START_OF_YEAR) reach += 366 * WL_DAY_MS;
    if (s.kind == WL_STEP_START_OF_MONTH || s.kind == WL_STEP_FLOOR) reach += 31 * WL_DAY_MS;
    if (reach > all) return all;
  }
  return reach + 7 * WL_DAY_MS;
}

/* ---- in words */

static const char *step_words(wl_arena *a, wl_date_step s) {
  static const char *const words[] = {"auto",         "julianday",      "unixepoch",     "weekday",
                                      "start of day", "start of month", "start of year", "add",
                                      "add",          "months",         "years",         "months",
                                      "ceiling",      "floor"};
  double seconds = (double)s.ms / 1000.0;
  switch (s.kind) {
  case WL_STEP_WEEKDAY: return wl_arena_printf(a, "weekday %d", s.n);
  case WL_STEP_CLOCK:
  case WL_STEP_ADD: return wl_arena_printf(a, "%+.15g s", seconds);
  case WL_STEP_MONTHS:
  case WL_STEP_YEARS:
  case WL_STEP_SHIFT:
    return s.ms ? wl_arena_printf(a, "%+d %s %+.15g s", s.n, words[s.kind], seconds)
                : wl_arena_printf(a, "%+d %s", s.n, words[s.kind]);
  default: return words[s.kind];
  }
}

const char *wl_date_plan_words(wl_arena *a, wl_val plan) {
  static const char letters[] = {
#define WL_DATE_FIELD(kind, letter, radix, bytes) letter,
      WL_DATE_FIELDS(WL_DATE_FIELD)
#undef WL_DATE_FIELD
  };
  static const char *const numbers[] = {"", "julianday", "unixepoch", "unixepoch"};
  enum { MOST_ITEMS = 40 };
  wl_date_plan p = wl_date_plan_of(plan);
  char text[2 * MOST_ITEMS + 1];
  int n = 0;
  for (wl_u32 k = 0; k < p.n_items && k < MOST_ITEMS; k++) {
    wl_u16 item = wl_date_item(plan, &p, k);
    int field = wl_date_item_field(item);
    if (field >= 0 || item == '%') text[n++] = '%';
    /* the private letters of plans look like the formats that they stand for */
    text[n++] = field < 0                     ? (char)item
                : field == WL_FIELD_YEAR4     ? 'Y'
                : field == WL_FIELD_SUBSECOND ? 'f'
                : field == WL_FIELD_UNIX_MS   ? 's'
                                              : letters[field];
  }
  text[n] = 0;
  const char *s = p.gives == WL_DATE_AS_TEXT ? wl_arena_printf(a, "'%s'", text) : numbers[p.gives];
  for (wl_u32 k = 0; k < p.n_steps && s; k++)
    s = wl_arena_printf(a, "%s, %s", s, step_words(a, wl_date_step_of(plan, k)));
  return s;
}
