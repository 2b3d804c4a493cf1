/*
** Times as SQLite's date functions see them: how a value is read as a time, what a modifier
** changes, and how a time becomes a year, a month and so on. Compiled by the host compiler, by
** nvcc and for the simulator.
**
** A time is a number of milliseconds since noon of the day -4713-11-24, a calendar date, a time of
** day, or several of these. SQLite keeps what was written until a step needs another form, and this
** can be seen: date('2023-02-31') may be that very text, and '24:00' has the hour 24. So a
** wl_moment says which of its forms count.
**
** Invariants:
** 1. If several forms count, they belong to the same time, but the date and the time of day may be
**    as they were written.
** 2. A function that returns 0 has found that there is no such time. The result of the date
**    function is NULL then.
** 3. Where versions of SQLite differ, `dialect` decides (dialect.h).
*/
#ifndef WL_DATE_MOMENT_H
#define WL_DATE_MOMENT_H

#include "value/value.h"

#define WL_DAY_MS   86400000LL
#define WL_NOON_MS  43200000LL
#define WL_EPOCH_MS 210866760000000LL /* 1970-01-01 */
#define WL_LAST_MS  464269060799999LL /* 9999-12-31 23:59:59.999 */

/* Where versions of SQLite differ. */
enum {
  WL_DATE_EARLY_YEARS = 1,  /* days before the year -99 follow the calendar exactly */
  WL_DATE_WHOLE_MONTHS = 2, /* without modifiers, a day past the end of its month is moved on */
  WL_DATE_CUT_SECONDS = 4,  /* a fraction of a second is at most 0.999 */
  WL_DATE_SUBSEC = 8,       /* the modifier 'subsec' */
  WL_DATE_SHIFTS = 16,      /* modifiers like '+0001-02-03 04:05' */
  WL_DATE_FLOOR = 32        /* the modifiers 'ceiling' and 'floor' */
};

typedef struct wl_moment {
  wl_i64 ms;
  double second; /* of the time of day; or the number, if is_number */
  wl_i32 year, month, day, hour, minute;
  wl_i32 zone; /* minutes that a time zone is ahead of UTC, to be taken off */
  wl_i32 over; /* days by which the day was past the end of its month */
  wl_u8 has_ms, has_date, has_time;
  wl_u8 is_number; /* a number without a meaning yet; has_ms: as a Julian day it is a time */
} wl_moment;

/* A modifier. */
typedef enum wl_date_step_kind {
  WL_STEP_AUTO,
  WL_STEP_JULIANDAY,
  WL_STEP_UNIXEPOCH,
  WL_STEP_WEEKDAY, /* n */
  WL_STEP_START_OF_DAY,
  WL_STEP_START_OF_MONTH,
  WL_STEP_START_OF_YEAR,
  WL_STEP_CLOCK,  /* '+HH:MM': ms */
  WL_STEP_ADD,    /* '+2 days': ms */
  WL_STEP_MONTHS, /* '+2.5 months': n months, then ms */
  WL_STEP_YEARS,
  WL_STEP_SHIFT, /* '+YYYY-MM-DD': n months, then ms */
  WL_STEP_CEILING,
  WL_STEP_FLOOR
} wl_date_step_kind;

typedef struct wl_date_step {
  wl_i64 ms;
  wl_i32 n;
  wl_u8 kind;
} wl_date_step;

/* ---- calendar */

/* The number of days from -4713-11-24 to a date (Meeus, Astronomical Algorithms, chapter 7). */
WL_FN wl_i32 wl_date_days(int dialect, wl_i32 year, wl_i32 month, wl_i32 day) {
  if (month <= 2) {
    year--;
    month += 12;
  }
  wl_i32 centuries = dialect & WL_DATE_EARLY_YEARS ? (year + 4800) / 100 - 48 : year / 100;
  wl_i32 skipped = dialect & WL_DATE_EARLY_YEARS ? 2 - centuries + (centuries + 48) / 4 - 12
                                                 : 2 - centuries + centuries / 4;
  return 36525 * (year + 4716) / 100 + 306001 * (month + 1) / 10000 + day + skipped - 1525;
}

/* The date of a day number from 0 to 5373484. Divisions are of integers, where SQLite has reals;
** no quotient is so near to an integer that this could be seen. */
WL_FN void wl_date_of_days(int dialect, wl_i32 days, wl_i32 *year, wl_i32 *month, wl_i32 *day) {
  wl_i32 a;
  if (dialect & WL_DATE_EARLY_YEARS) {
    wl_i32 centuries = (4 * days + 128179) / 146097 - 52;
    a = days + 1 + centuries - (centuries + 100) / 4 + 25;
  } else {
    wl_i32 centuries = (4 * days - 7468865) / 146097;
    a = days + 1 + centuries - centuries / 4;
  }
  wl_i32 b = a + 1524, c = (20 * b - 2442) / 7305, d = 36525 * c / 100;
  wl_i32 e = (b - d) * 10000 / 306001;
  *day = b - d - 306001 * e / 10000;
  *month = e < 14 ? e - 1 : e - 13;
  *year = *month > 2 ? c - 4716 : c - 4715;
}

/* ---- from one form to another */

WL_FN void wl_moment_only_ms(wl_moment *m) {
  m->has_date = m->has_time = 0;
  m->zone = 0;
}

/* Computes the milliseconds. */
WL_FN int wl_moment_settle(wl_moment *m, int dialect) {
  if (m->has_ms) return 1;
  if (!m->has_date) m->year = 2000, m->month = m->day = 1;
  if (m->year < -4713 || m->year > 9999 || m->is_number) return 0;
  m->ms = wl_date_days(dialect, m->year, m->month, m->day) * WL_DAY_MS + WL_NOON_MS;
  m->has_ms = 1;
  if (!m->has_time) return 1;
  m->ms += m->hour * 3600000LL + m->minute * 60000LL + (wl_i64)(m->second * 1000 + 0.5);
  if (m->zone) {
    m->ms -= m->zone * 60000LL;
    wl_moment_only_ms(m);
  }
  return 1;
}

WL_FN int wl_moment_in_range(const wl_moment *m) {
  return m->ms >= 0 && m->ms <= WL_LAST_MS;
}

WL_FN int wl_moment_date(wl_moment *m, int dialect) {
  if (m->has_date) return 1;
  if (m->has_ms) {
    if (!wl_moment_in_range(m)) return 0;
    wl_date_of_days(dialect, (wl_i32)((m->ms + WL_NOON_MS) / WL_DAY_MS), &m->year, &m->month,
                    &m->day);
  } else {
    m->year = 2000, m->month = m->day = 1;
  }
  m->has_date = 1;
  return 1;
}

WL_FN int wl_moment_time(wl_moment *m, int dialect) {
  if (m->has_time) return 1;
  if (!wl_moment_settle(m, dialect)) return 0;
  wl_i32 ms = (wl_i32)((m->ms + WL_NOON_MS) % WL_DAY_MS);
  m->hour = ms / 3600000;
  m->minute = ms / 60000 % 60;
  m->second = (ms % 60000) / 1000.0;
  m->is_number = 0;
  m->has_time = 1;
  return 1;
}

WL_FN int wl_moment_fields(wl_moment *m, int dialect) {
  return wl_moment_date(m, dialect) && wl_moment_time(m, dialect);
}

/* Notes by how many days the date is past the end of its month. */
WL_FN void wl_moment_note_over(wl_moment *m) {
  wl_i32 length = 31;
  if (m->month == 4 || m->month == 6 || m->month == 9 || m->month == 11) length = 30;
  if (m->month == 2)
    length = m->year % 4 != 0 || (m->year % 100 == 0 && m->year % 400 != 0) ? 28 : 29;
  m->over = m->day > length ? m->day - length : 0;
}

/* ---- reading */

WL_FN void wl_moment_set_number(wl_moment *m, double r) {
  m->second = r;
  m->is_number = 1;
  if (r >= 0.0 && r < 5373484.5) {
    m->ms = (wl_i64)(r * 86400000.0 + 0.5);
    m->has_ms = 1;
  }
}

/* Text with a position. After the end come NULs, as in SQLite. */
typedef struct wl_date_text {
  const wl_u8 *p;
  wl_u32 n, at;
} wl_date_text;

WL_FN wl_u8 wl_date_peek(const wl_date_text *t, wl_u32 ahead) {
  return (wl_u8)(t->at + ahead < t->n ? t->p[t->at + ahead] : 0);
}
WL_FN int wl_date_digit(wl_u8 c) {
  return c >= '0' && c <= '9';
}
WL_FN int wl_date_space(wl_u8 c) {
  return c == ' ' || (c >= 9 && c <= 13);
}
WL_FN void wl_date_skip_spaces(wl_date_text *t) {
  while (wl_date_space(wl_date_peek(t, 0))) t->at++;
}
/* A number of exactly n digits, or -1. */
WL_FN wl_i32 wl_date_digits(wl_date_text *t, wl_u32 n) {
  wl_i32 v = 0;
  if (t->at + n > t->n) return -1;
  for (wl_u32 k = 0; k < n; k++) {
    wl_u8 c = t->p[t->at + k];
    if (!wl_date_digit(c)) return -1;
    v = v * 10 + (c - '0');
  }
  t->at += n;
  return v;
}
/* HH:MM */
WL_FN int wl_date_hour_minute(wl_date_text *t, wl_i32 most, wl_i32 *hour, wl_i32 *minute) {
  *hour = wl_date_digits(t, 2);
  if (*hour < 0 || *hour > most || wl_date_peek(t, 0) != ':') return 0;
  t->at++;
  *minute = wl_date_digits(t, 2);
  return *minute >= 0 && *minute <= 59;
}

/* A time zone, or nothing, up to the end of the text. */
WL_FN int wl_date_read_zone(wl_date_text *t, wl_moment *m) {
  wl_i32 hour, minute;
  wl_date_skip_spaces(t);
  wl_u8 c = wl_date_peek(t, 0);
  m->zone = 0;
  if (c == 0) return t->at >= t->n;
  if (c != '+' && c != '-' && c != 'Z' && c != 'z') return 0;
  t->at++;
  if (c == '+' || c == '-') {
    if (!wl_date_hour_minute(t, 14, &hour, &minute)) return 0;
    m->zone = c == '-' ? -(hour * 60 + minute) : hour * 60 + minute;
  }
  wl_date_skip_spaces(t);
  return t->at >= t->n;
}

/* HH:MM, HH:MM:SS or HH:MM:SS.FFF, up to the end of the text. The fraction is computed with the
** steps of SQLite, so that it has the same roundings. */
WL_FN int wl_date_read_time(wl_date_text *t, wl_moment *m, int dialect) {
  wl_i32 hour, minute, second = 0;
  double fraction = 0.0, scale = 1.0;
  if (!wl_date_hour_minute(t, 24, &hour, &minute)) return 0;
  if (wl_date_peek(t, 0) == ':') {
    t->at++;
    second = wl_date_digits(t, 2);
    if (second < 0 || second > 59) return 0;
    if (wl_date_peek(t, 0) == '.' && wl_date_digit(wl_date_peek(t, 1))) {
      for (t->at++; wl_date_digit(wl_date_peek(t, 0)); t->at++) {
        fraction = fraction * 10.0 + wl_date_peek(t, 0);
        fraction = fraction - '0';
        scale *= 10.0;
      }
      fraction /= scale;
      if (fraction != fraction) return 0; /* hundreds of digits: SQLite finds no such time */
      if (dialect & WL_DATE_CUT_SECONDS && fraction > 0.999) fraction = 0.999;
    }
  }
  if (!wl_date_read_zone(t, m)) return 0;
  m->has_ms = m->is_number = 0;
  m->has_time = 1;
  m->hour = hour;
  m->minute = minute;
  m->second = second + fraction;
  return 1;
}

/* YYYY-MM-DD, alone or before a time. */
WL_FN int wl_date_read_date(wl_date_text *t, wl_moment *m, int dialect) {
  int negative = wl_date_peek(t, 0) == '-';
  if (negative) t->at++;
  wl_i32 year = wl_date_digits(t, 4);
  if (year < 0 || wl_date_peek(t, 0) != '-') return 0;
  t->at++;
  wl_i32 month = wl_date_digits(t, 2);
  if (month < 1 || month > 12 || wl_date_peek(t, 0) != '-') return 0;
  t->at++;
  wl_i32 day = wl_date_digits(t, 2);
  if (day < 1 || day > 31) return 0;
  while (wl_date_space(wl_date_peek(t, 0)) || wl_date_peek(t, 0) == 'T') t->at++;
  if (t->at < t->n && !wl_date_read_time(t, m, dialect)) return 0;
  m->has_ms = 0;
  m->has_date = 1;
  m->year = negative ? -year : year;
  m->month = month;
  m->day = day;
  wl_moment_note_over(m);
  return m->zone == 0 || wl_moment_settle(m, dialect);
}

/* Whether the text is one of SQLite's words for the current time. */
WL_FN int wl_date_is_now(const wl_date_text *t, int dialect) {
  const char *words[3] = {"now", "subsec", "subsecond"};
  for (int w = 0; w < (dialect & WL_DATE_SUBSEC ? 3 : 1); w++) {
    wl_u32 k = 0;
    while (k < t->n && words[w][k] && wl_to_lower(t->p[k]) == (wl_u8)words[w][k]) k++;
    if (k == t->n && !words[w][k]) return 1;
  }
  return 0;
}

/* ---- modifiers */

WL_FN void wl_moment_add_months(wl_moment *m, wl_i32 n) {
  m->month += n;
  wl_i32 years = m->month > 0 ? (m->month - 1) / 12 : (m->month - 12) / 12;
  m->year += years;
  m->month -= years * 12;
}

/* Adds years or months to the date, which may leave the range of years, and then ms. */
WL_FN int wl_moment_shift(wl_moment *m, wl_i32 years, wl_i32 months, wl_i64 ms, int dialect) {
  if (!wl_moment_fields(m, dialect)) return 0;
  m->year += years;
  wl_moment_add_months(m, months);
  m->has_ms = 0;
  wl_moment_note_over(m);
  if (!wl_moment_settle(m, dialect)) return 0;
  m->ms += ms;
  wl_moment_only_ms(m);
  return 1;
}

WL_FN int wl_moment_start_of(wl_moment *m, int kind, int dialect) {
  if (!m->has_ms && !m->has_date && !m->has_time) return 0;
  if (!wl_moment_date(m, dialect)) return 0;
  m->has_time = 1;
  m->hour = m->minute = 0;
  m->second = 0.0;
  m->zone = 0;
  m->has_ms = m->is_number = 0;
  if (kind != WL_STEP_START_OF_DAY) m->day = 1;
  if (kind == WL_STEP_START_OF_YEAR) m->month = 1;
  return 1;
}

/* Moves to the next day of the week, 0 being Sunday, unless it is one. */
WL_FN int wl_moment_weekday(wl_moment *m, wl_i32 weekday, int dialect) {
  if (!wl_moment_fields(m, dialect)) return 0;
  m->zone = 0;
  m->has_ms = 0;
  if (!wl_moment_settle(m, dialect)) return 0;
  wl_i64 is = (m->ms + 3 * WL_NOON_MS) / WL_DAY_MS % 7;
  if (is > weekday) is -= 7;
  m->ms += (weekday - is) * WL_DAY_MS;
  wl_moment_only_ms(m);
  return 1;
}

/* Gives a number the meaning of seconds since 1970. */
WL_FN int wl_moment_unix(wl_moment *m) {
  double r = m->second * 1000.0 + 210866760000000.0;
  if (!(r >= 0.0 && r < 464269060800000.0)) return 0;
  wl_moment_only_ms(m);
  m->ms = (wl_i64)(r + 0.5);
  m->has_ms = 1;
  m->is_number = 0;
  return 1;
}

WL_FN int wl_moment_step(wl_moment *m, wl_date_step s, int dialect) {
  switch (s.kind) {
  case WL_STEP_AUTO:
    if (!m->is_number || m->has_ms) {
      m->is_number = 0;
      return 1;
    }
    return m->second >= -210866760000.0 && m->second <= 253402300799.0 && wl_moment_unix(m);
  case WL_STEP_JULIANDAY:
    if (!m->is_number || !m->has_ms) return 0;
    m->is_number = 0;
    return 1;
  case WL_STEP_UNIXEPOCH: return m->is_number && wl_moment_unix(m);
  case WL_STEP_WEEKDAY: return wl_moment_weekday(m, s.n, dialect);
  case WL_STEP_START_OF_DAY:
  case WL_STEP_START_OF_MONTH:
  case WL_STEP_START_OF_YEAR: return wl_moment_start_of(m, s.kind, dialect);
  case WL_STEP_SHIFT: return wl_moment_shift(m, 0, s.n, s.ms, dialect);
  default: break;
  }
  if (!wl_moment_settle(m, dialect)) return 0;
  switch (s.kind) {
  case WL_STEP_MONTHS: return wl_moment_shift(m, 0, s.n, s.ms, dialect);
  case WL_STEP_YEARS: return wl_moment_shift(m, s.n, 0, s.ms, dialect);
  case WL_STEP_FLOOR: m->ms -= m->over * WL_DAY_MS; break;
  default: m->ms += s.ms; break;
  }
  if (s.kind == WL_STEP_ADD || s.kind == WL_STEP_CEILING) m->over = 0;
  wl_moment_only_ms(m);
  return 1;
}

#endif
