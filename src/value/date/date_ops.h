/*
** The meaning of the date opcodes. A plan (plan.h) says what a call of a date function does,
** apart from its first argument. Opcodes get it as a constant blob.
**
** A format is a list of fields with bytes between them. Every field is a number before it is text.
** The numbers of all fields, in their order, form the digits of one integer, the code. As long as
** no field varies in width, codes are equal if and only if the texts are, and have the order of
** the texts. So rows can be grouped, sorted and compared by code, and only few of them become
** text.
**
** Invariants:
** 1. The text of a field depends on its number alone.
** 2. Field numbers are less than the field's radix, except those of kinds without a code.
*/
#ifndef WL_DATE_OPS_H
#define WL_DATE_OPS_H

#include "value/date/moment.h"

/*
** All kinds of fields: kind, letter in the format of a plan, radix (0: it has no code), most
** bytes of text. Letters are those of strftime(), except "_": the year as date() writes it; "q":
** seconds with milliseconds as datetime(…, 'subsec') writes them; "t": %s with milliseconds.
*/
#define WL_DATE_FIELDS(F)                                                                          \
  F(YEAR, 'Y', 21000, 5)                                                                           \
  F(YEAR4, '_', 21000, 5)                                                                          \
  F(MONTH, 'm', 13, 2)                                                                             \
  F(DAY, 'd', 32, 2)                                                                               \
  F(DAY_BLANK, 'e', 32, 2)                                                                         \
  F(HOUR, 'H', 25, 2)                                                                              \
  F(HOUR_BLANK, 'k', 25, 2)                                                                        \
  F(HOUR12, 'I', 13, 2)                                                                            \
  F(HOUR12_BLANK, 'l', 13, 2)                                                                      \
  F(MINUTE, 'M', 60, 2)                                                                            \
  F(SECOND, 'S', 61, 2)                                                                            \
  F(FRACTION, 'f', 60001, 6)                                                                       \
  F(SUBSECOND, 'q', 60001, 6)                                                                      \
  F(DAY_OF_YEAR, 'j', 367, 3)                                                                      \
  F(WEEKDAY, 'w', 7, 1)                                                                            \
  F(WEEKDAY7, 'u', 8, 1)                                                                           \
  F(WEEK_MONDAY, 'W', 54, 2)                                                                       \
  F(WEEK_SUNDAY, 'U', 54, 2)                                                                       \
  F(WEEK_ISO, 'V', 54, 2)                                                                          \
  F(YEAR_ISO, 'G', 21000, 5)                                                                       \
  F(YEAR_ISO2, 'g', 0, 3)                                                                          \
  F(NOON, 'p', 2, 2)                                                                               \
  F(NOON_LOWER, 'P', 2, 2)                                                                         \
  F(UNIX, 's', 0, 20)                                                                              \
  F(UNIX_MS, 't', 0, 20)

enum wl_date_field {
#define WL_DATE_FIELD(kind, letter, radix, bytes) WL_FIELD_##kind,
  WL_DATE_FIELDS(WL_DATE_FIELD)
#undef WL_DATE_FIELD
      WL_N_FIELDS
};

/* Codes start with the years before 0, which come first in text order. */
enum { WL_YEAR_ZERO = 11000 };

/* The opcode DateFields gets its fields packed into an integer: each as its kind + 1, the first in
** the lowest bits. The bit after the last place is the dialect's WL_DATE_EARLY_YEARS. */
enum { WL_FIELD_BITS = 5, WL_MOST_FIELDS = 11 };

WL_FN int wl_date_field_of(wl_u8 letter) {
  switch (letter) {
#define WL_DATE_FIELD(kind, letter, radix, bytes)                                                  \
  case letter: return WL_FIELD_##kind;
    WL_DATE_FIELDS(WL_DATE_FIELD)
#undef WL_DATE_FIELD
  default: return -1;
  }
}
WL_FN wl_i64 wl_date_radix(int field) {
  switch (field) {
#define WL_DATE_FIELD(kind, letter, radix, bytes)                                                  \
  case WL_FIELD_##kind: return radix;
    WL_DATE_FIELDS(WL_DATE_FIELD)
#undef WL_DATE_FIELD
  default: return 0;
  }
}

/* Takes the last field off a code. */
WL_FN wl_i64 wl_date_take(int field, wl_u64 *code) {
  wl_u64 all = *code;
  switch (field) {
#define WL_DATE_FIELD(kind, letter, radix, bytes)                                                  \
  case WL_FIELD_##kind:                                                                            \
    *code = radix ? all / (radix ? radix : 1) : 0;                                                 \
    return radix ? (wl_i64)(all % (radix ? radix : 1)) : 0;
    WL_DATE_FIELDS(WL_DATE_FIELD)
#undef WL_DATE_FIELD
  default: return 0;
  }
}

/* ---- plans */

enum { WL_DATE_AS_TEXT, WL_DATE_AS_JULIANDAY, WL_DATE_AS_UNIX, WL_DATE_AS_UNIX_MS };

/* A plan is this header, its steps, and the items of its format: bytes, or fields as 256 * (kind +
** 1). */
typedef struct wl_date_plan {
  wl_i64 fields; /* packed; 0: there are too many */
  wl_u8 gives;   /* WL_DATE_AS_… */
  wl_u8 dialect; /* how the running SQLite differs from others */
  wl_u8 n_steps;
  wl_u8 n_modifiers; /* some modifiers are no step */
  wl_u32 n_items;
  wl_u32 n_text;   /* the most bytes that the result can have */
  wl_u32 needs_ms; /* the result needs more than the date and the time of day */
} wl_date_plan;

WL_FN wl_date_plan wl_date_plan_of(wl_val b) {
  wl_date_plan p;
  memcpy(&p, wl_bytes(b), sizeof p);
  return p;
}
WL_FN wl_date_step wl_date_step_of(wl_val b, wl_u32 k) {
  wl_date_step s;
  memcpy(&s, wl_bytes(b) + sizeof(wl_date_plan) + k * sizeof s, sizeof s);
  return s;
}
WL_FN wl_u16 wl_date_item(wl_val b, const wl_date_plan *p, wl_u32 k) {
  wl_u16 item;
  memcpy(&item, wl_bytes(b) + sizeof *p + p->n_steps * sizeof(wl_date_step) + k * sizeof item,
         sizeof item);
  return item;
}
WL_FN int wl_date_item_field(wl_u16 item) { /* -1: the item is a byte */
  return item / 256 - 1;
}

/* ---- numbers of fields */

/* A year as a number that has the order of its text. strftime() writes years before 0 with at least
** three digits: "-999" comes after "-1000". */
WL_FN wl_i32 wl_date_year_number(wl_i32 year, int field) {
  if (year >= 0) return WL_YEAR_ZERO + year;
  wl_i32 n = -year;
  if (field == WL_FIELD_YEAR4) return n;
  return n < 1000 ? n * 11 : n / 10 * 11 + 1 + n % 10;
}
/* Days since January 1 of the moment's year. */
WL_FN wl_i32 wl_date_day_of_year(const wl_moment *m, int dialect) {
  wl_i64 first = wl_date_days(dialect, m->year, 1, 1) * WL_DAY_MS + WL_NOON_MS +
                 m->hour * 3600000LL + m->minute * 60000LL + (wl_i64)(m->second * 1000 + 0.5);
  return (wl_i32)((m->ms - first + WL_NOON_MS) / WL_DAY_MS);
}
/* Days since Monday. */
WL_FN wl_i32 wl_date_after_monday(const wl_moment *m) {
  return (wl_i32)((m->ms + WL_NOON_MS) / WL_DAY_MS) % 7;
}
WL_FN wl_i32 wl_date_after_sunday(const wl_moment *m) {
  return (wl_i32)((m->ms + 3 * WL_NOON_MS) / WL_DAY_MS) % 7;
}
/* The Thursday of the moment's week, whose year has the week. */
WL_FN wl_moment wl_date_thursday(const wl_moment *m, int dialect) {
  wl_moment t = *m;
  t.ms += (3 - wl_date_after_monday(m)) * WL_DAY_MS;
  t.has_date = 0;
  wl_moment_date(&t, dialect);
  return t;
}

/* Seconds in milliseconds, rounded as SQLite's printf('%.3f') rounds them. It has rules of its own
** where a value is about half-way between two milliseconds, so it is asked then. */
WL_FN wl_i32 wl_date_round_seconds(wl_vctx *x, double s) {
  if (s > 59.999) s = 59.999;
  double ms = s * 1000.0, rest = ms - (double)(wl_i32)ms;
  if (rest < 0.499999 || rest > 0.500001) return (wl_i32)(ms + 0.5);
#ifndef __CUDACC__
  if (x && x->conv) return wl_conv_seconds(s);
#endif
  if (x) wl_vctx_fail(x, WL_FAULT_DATE);
  return 0;
}

/* The number of a field. The moment has all its forms. */
WL_FN_CALLED wl_i64 wl_date_number(wl_vctx *x, int field, const wl_moment *m, int dialect) {
  switch (field) {
  case WL_FIELD_YEAR:
  case WL_FIELD_YEAR4: return wl_date_year_number(m->year, field);
  case WL_FIELD_MONTH: return m->month;
  case WL_FIELD_DAY:
  case WL_FIELD_DAY_BLANK: return m->day;
  case WL_FIELD_HOUR:
  case WL_FIELD_HOUR_BLANK: return m->hour;
  case WL_FIELD_HOUR12:
  case WL_FIELD_HOUR12_BLANK: return m->hour > 12 ? m->hour - 12 : m->hour == 0 ? 12 : m->hour;
  case WL_FIELD_MINUTE: return m->minute;
  case WL_FIELD_SECOND: return (wl_i32)m->second;
  case WL_FIELD_FRACTION: return wl_date_round_seconds(x, m->second);
  case WL_FIELD_SUBSECOND: return (wl_i32)(1000.0 * m->second + 0.5);
  case WL_FIELD_DAY_OF_YEAR: return wl_date_day_of_year(m, dialect) + 1;
  case WL_FIELD_WEEKDAY: return wl_date_after_sunday(m);
  case WL_FIELD_WEEKDAY7: return wl_date_after_monday(m) + 1;
  case WL_FIELD_WEEK_MONDAY:
    return (wl_date_day_of_year(m, dialect) - wl_date_after_monday(m) + 7) / 7;
  case WL_FIELD_WEEK_SUNDAY:
    return (wl_date_day_of_year(m, dialect) - wl_date_after_sunday(m) + 7) / 7;
  case WL_FIELD_WEEK_ISO: {
    wl_moment t = wl_date_thursday(m, dialect);
    return wl_date_day_of_year(&t, dialect) / 7 + 1;
  }
  case WL_FIELD_YEAR_ISO: return wl_date_year_number(wl_date_thursday(m, dialect).year, field);
  case WL_FIELD_YEAR_ISO2: return wl_date_thursday(m, dialect).year % 100;
  case WL_FIELD_NOON:
  case WL_FIELD_NOON_LOWER: return m->hour >= 12;
  case WL_FIELD_UNIX: return m->ms / 1000 - WL_EPOCH_MS / 1000;
  default: return m->ms - WL_EPOCH_MS;
  }
}

/* ---- text of fields */

/* At least `width` digits or leading blanks. Returns the number of bytes. */
WL_FN wl_u32 wl_date_write_padded(wl_u8 *to, wl_u64 n, wl_u32 width, wl_u8 pad) {
  wl_u8 buf[20];
  wl_u32 k = 0, at = 0;
  do buf[k++] = (wl_u8)('0' + n % 10);
  while ((n /= 10) != 0);
  while (k < width) buf[k++] = pad;
  while (k > 0) to[at++] = buf[--k];
  return at;
}
WL_FN wl_u32 wl_date_write_two(wl_u8 *to, wl_u32 n, wl_u8 pad) {
  to[0] = (wl_u8)(n < 10 ? pad : '0' + n / 10);
  to[1] = (wl_u8)('0' + n % 10);
  return 2;
}
/* A number with sign, at least `width` bytes. */
WL_FN wl_u32 wl_date_write_signed(wl_u8 *to, wl_i64 n, wl_u32 width) {
  if (n >= 0) return wl_date_write_padded(to, (wl_u64)n, width, '0');
  to[0] = '-';
  return 1 + wl_date_write_padded(to + 1, (wl_u64)-n, width > 0 ? width - 1 : 0, '0');
}
/* SS.SSS */
WL_FN wl_u32 wl_date_write_seconds(wl_u8 *to, wl_u32 ms) {
  wl_date_write_two(to, ms / 1000 % 100, '0');
  to[2] = '.';
  wl_date_write_padded(to + 3, ms % 1000, 3, '0');
  return 6;
}

/* A year from its number. Numbers that no year has become texts between those of their
** neighbours. */
WL_FN wl_u32 wl_date_write_year(wl_u8 *to, wl_i32 number, int field) {
  if (number >= WL_YEAR_ZERO) {
    wl_date_write_two(to, (wl_u32)(number - WL_YEAR_ZERO) / 100, '0');
    wl_date_write_two(to + 2, (wl_u32)(number - WL_YEAR_ZERO) % 100, '0');
    return 4;
  }
  to[0] = '-';
  if (field == WL_FIELD_YEAR4)
    return 1 + wl_date_write_padded(to + 1, (wl_u64)(number < 9999 ? number : 9999), 4, '0');
  wl_date_write_padded(to + 1, (wl_u64)(number / 11), 3, '0');
  if (number % 11 == 0) return 4;
  to[4] = (wl_u8)('0' + number % 11 - 1);
  return 5;
}

/* The text of a field. It does not decrease as the number grows, for all numbers below the radix.
 */
WL_FN_CALLED wl_u32 wl_date_write(int field, wl_i64 number, wl_u8 *to) {
  switch (field) {
  case WL_FIELD_YEAR:
  case WL_FIELD_YEAR4:
  case WL_FIELD_YEAR_ISO: return wl_date_write_year(to, (wl_i32)number, field);
  case WL_FIELD_DAY_BLANK:
  case WL_FIELD_HOUR_BLANK:
  case WL_FIELD_HOUR12_BLANK: return wl_date_write_two(to, (wl_u32)number, ' ');
  case WL_FIELD_FRACTION:
  case WL_FIELD_SUBSECOND: return wl_date_write_seconds(to, (wl_u32)number);
  case WL_FIELD_DAY_OF_YEAR: return wl_date_write_padded(to, (wl_u64)number, 3, '0');
  case WL_FIELD_WEEKDAY:
  case WL_FIELD_WEEKDAY7: to[0] = (wl_u8)('0' + number); return 1;
  case WL_FIELD_YEAR_ISO2: return wl_date_write_signed(to, number, 2);
  case WL_FIELD_NOON:
  case WL_FIELD_NOON_LOWER: {
    int lower = field == WL_FIELD_NOON ? 0 : 32;
    to[0] = (wl_u8)((number ? 'P' : 'A') + lower);
    to[1] = (wl_u8)('M' + lower);
    return 2;
  }
  case WL_FIELD_UNIX: return wl_date_write_signed(to, number, 0);
  case WL_FIELD_UNIX_MS: {
    wl_u64 ms = (wl_u64)(number < 0 ? -number : number);
    wl_u32 n = number < 0;
    to[0] = '-';
    n += wl_date_write_padded(to + n, ms / 1000, 1, '0');
    to[n++] = '.';
    return n + wl_date_write_padded(to + n, ms % 1000, 3, '0');
  }
  default: return wl_date_write_two(to, (wl_u32)number, '0');
  }
}

/* The number of bytes of that text. For fields that have codes. */
WL_FN wl_u32 wl_date_width(int field, wl_i64 number) {
  switch (field) {
  case WL_FIELD_YEAR:
  case WL_FIELD_YEAR_ISO: return number >= WL_YEAR_ZERO || number % 11 == 0 ? 4 : 5;
  case WL_FIELD_YEAR4: return number >= WL_YEAR_ZERO ? 4 : 5;
  case WL_FIELD_FRACTION:
  case WL_FIELD_SUBSECOND: return 6;
  case WL_FIELD_DAY_OF_YEAR: return 3;
  case WL_FIELD_WEEKDAY:
  case WL_FIELD_WEEKDAY7: return 1;
  default: return 2;
  }
}

/* ---- from a value to a moment */

/* Reads a text of the form YYYY-MM-DD or YYYY-MM-DD HH:MM:SS. 0: it is another one, or a time that
** needs a closer look. This is only a faster way for most texts. */
WL_FN int wl_date_read_plain(const wl_u8 *p, wl_u32 n, wl_moment *m) {
  wl_u32 d[14], bad;
  if ((n != 10 && n != 19) || p[4] != '-' || p[7] != '-') return 0;
  d[0] = p[0], d[1] = p[1], d[2] = p[2], d[3] = p[3];
  d[4] = p[5], d[5] = p[6], d[6] = p[8], d[7] = p[9];
  for (int k = 8; k < 14; k++) d[k] = '0';
  if (n == 19) {
    if ((p[10] != ' ' && p[10] != 'T') || p[13] != ':' || p[16] != ':') return 0;
    d[8] = p[11], d[9] = p[12], d[10] = p[14], d[11] = p[15], d[12] = p[17], d[13] = p[18];
  }
  bad = 0;
  for (int k = 0; k < 14; k++) {
    d[k] -= '0';
    bad |= d[k] > 9;
  }
  m->year = (wl_i32)(d[0] * 1000 + d[1] * 100 + d[2] * 10 + d[3]);
  m->month = (wl_i32)(d[4] * 10 + d[5]);
  m->day = (wl_i32)(d[6] * 10 + d[7]);
  m->hour = (wl_i32)(d[8] * 10 + d[9]);
  m->minute = (wl_i32)(d[10] * 10 + d[11]);
  m->second = (wl_i32)(d[12] * 10 + d[13]);
  bad |= m->month < 1 || m->month > 12 || m->day < 1;
  if (m->day > 28) /* bits 1, 3, 5, 7, 8, 10 and 12: the months with 31 days */
    bad |= m->month == 2 || m->day > 30 + (0x15aa >> (m->month & 15) & 1);
  bad |= m->hour > 23 || d[10] > 5 || d[12] > 5;
  m->has_date = m->has_time = (wl_u8)!bad;
  return !bad;
}

/* Reads a value. 0: it is no time, or a fault was set. */
WL_FN_CALLED int wl_date_read(wl_vctx *x, wl_val a, int dialect, wl_moment *m) {
  if (a.t == WL_T_NULL) return 0;
  if (a.t < WL_T_TEXT) {
    wl_moment_set_number(m, wl_val_f64(a));
    return 1;
  }
  wl_date_text t = {wl_bytes(a), 0, 0};
  while (t.n < a.n && t.p[t.n]) t.n++; /* SQLite reads up to a NUL */
  wl_moment empty = *m;
  if (wl_date_read_date(&t, m, dialect)) return 1;
  *m = empty;
  t.at = 0;
  if (wl_date_read_time(&t, m, dialect)) return 1;
  *m = empty;
  if (wl_date_is_now(&t, dialect)) {
    wl_vctx_fail(x, x->conv ? WL_FAULT_SQL : WL_FAULT_DATE);
    return 0;
  }
  wl_val number = wl_number(x, wl_text(t.p, t.n), WL_NUMBER_AFFINITY);
  if (number.t >= WL_T_TEXT) return 0;
  wl_moment_set_number(m, wl_val_f64(number));
  return 1;
}

/* The moment that the plan makes of a value, with all forms that its result needs. */
WL_FN_CALLED int wl_date_moment(wl_vctx *x, wl_val a, wl_val b, const wl_date_plan *p,
                                wl_moment *m) {
  const wl_moment none = {0};
  *m = none;
  if (a.t == WL_T_TEXT && wl_date_read_plain(wl_bytes(a), a.n, m)) {
    /* its time is between the years 0 and 9999 */
    if (p->n_steps == 0) return p->needs_ms ? wl_moment_settle(m, p->dialect) : 1;
  } else if (!wl_date_read(x, a, p->dialect, m)) {
    return 0;
  }
  for (wl_u32 k = 0; k < p->n_steps; k++)
    if (!wl_moment_step(m, wl_date_step_of(b, k), p->dialect)) return 0;
  if (!wl_moment_settle(m, p->dialect) || !wl_moment_in_range(m)) return 0;
  if (p->dialect & WL_DATE_WHOLE_MONTHS && p->n_modifiers == 0 && m->day > 28) m->has_date = 0;
  return wl_moment_fields(m, p->dialect);
}

/* ---- opcodes */

/* The result of a plan. */
WL_FN wl_val wl_op_Date(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)c;
  wl_date_plan p = wl_date_plan_of(b);
  wl_moment m;
  if (!wl_date_moment(x, a, b, &p, &m)) return wl_null();
  if (p.gives == WL_DATE_AS_JULIANDAY) return wl_real((double)m.ms / 86400000.0);
  if (p.gives == WL_DATE_AS_UNIX) return wl_int(m.ms / 1000 - WL_EPOCH_MS / 1000);
  if (p.gives == WL_DATE_AS_UNIX_MS) return wl_real((double)(m.ms - WL_EPOCH_MS) / 1000.0);
  wl_u8 *to = wl_scratch(x, p.n_text);
  wl_u32 n = 0;
  if (!to) return wl_null();
  for (wl_u32 k = 0; k < p.n_items; k++) {
    wl_u16 item = wl_date_item(b, &p, k);
    int field = wl_date_item_field(item);
    if (field < 0)
      to[n++] = (wl_u8)item;
    else
      n += wl_date_write(field, wl_date_number(x, field, &m, p.dialect), to + n);
  }
  return wl_text(to, n);
}

WL_FN wl_i64 wl_date_code(wl_vctx *x, wl_i64 fields, const wl_moment *m, int dialect) {
  wl_u64 left = (wl_u64)fields & (((wl_u64)1 << WL_FIELD_BITS * WL_MOST_FIELDS) - 1);
  wl_i64 code = 0;
  for (; left; left >>= WL_FIELD_BITS) {
    int field = (int)(left & ((1 << WL_FIELD_BITS) - 1)) - 1;
    code = code * wl_date_radix(field) + wl_date_number(x, field, m, dialect);
  }
  return code;
}

/* The code of the text, without the text. */
WL_FN wl_val wl_op_DateCode(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)c;
  wl_date_plan p = wl_date_plan_of(b);
  wl_moment m;
  if (!wl_date_moment(x, a, b, &p, &m)) return wl_null();
  return wl_int(wl_date_code(x, p.fields, &m, p.dialect));
}

/* The code of a time that is given by its milliseconds. */
WL_FN wl_i64 wl_op_DateFields(wl_i64 ms, wl_i64 fields) {
  int dialect = (int)(fields >> WL_FIELD_BITS * WL_MOST_FIELDS & WL_DATE_EARLY_YEARS);
  wl_moment m = {0};
  if (ms < 0 || ms > WL_LAST_MS) return 0;
  m.ms = ms;
  m.has_ms = 1;
  wl_moment_fields(&m, dialect);
  return wl_date_code(0, fields, &m, dialect);
}

/* The text of a code. It is written from its end, where the code has its last field. */
WL_FN wl_val wl_op_DateText(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)c;
  if (a.t != WL_T_INT) return wl_null();
  wl_date_plan p = wl_date_plan_of(b);
  wl_u64 code = a.v;
  wl_u8 *end = wl_scratch(x, p.n_text);
  if (!end) return wl_null();
  end += p.n_text;
  wl_u8 *at = end;
  for (wl_u32 k = p.n_items; k-- > 0;) {
    wl_u16 item = wl_date_item(b, &p, k);
    int field = wl_date_item_field(item);
    if (field < 0) {
      *--at = (wl_u8)item;
      continue;
    }
    wl_i64 number = wl_date_take(field, &code);
    at -= wl_date_width(field, number);
    wl_date_write(field, number, at);
  }
  return wl_text(at, (wl_u32)(end - at));
}

#endif
