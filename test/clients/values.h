/*
** Values that random tables are made of, as SQL literals: the edges of every type. Shared by the
** random tests of queries (diff.c, fuzz.c).
*/
#ifndef TEST_VALUES_H
#define TEST_VALUES_H

#include <sqlite3.h>
#include <stdarg.h>

#include "../rng.h"
#include "../rows.h"

static char *format(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *s = must(sqlite3_vmprintf(fmt, ap));
  va_end(ap);
  return s;
}

#define PICK(r, a) ((a)[rng_below((r), (int)(sizeof(a) / sizeof((a)[0])))])

static const char *const wide_ints[] = {
    "127",        "128",         "-128",        "-129",        "255",        "256",
    "32767",      "32768",       "-32768",      "-32769",      "65535",      "65536",
    "2147483647", "2147483648",  "-2147483648", "-2147483649", "4294967295", "4294967296",
    "1000000007", "-1000000007", "3037000500",  "-3037000500"};
static const char *const edge_ints[] = {"0",
                                        "1",
                                        "-1",
                                        "9007199254740991",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "-9007199254740993",
                                        "9223372036854775807",
                                        "9223372036854775806",
                                        "-9223372036854775808",
                                        "-9223372036854775807",
                                        "4611686018427387904"};
static const char *const wild_reals[] = {"0.0",
                                         "-0.0",
                                         "1e308",
                                         "-1e308",
                                         "9e999",
                                         "-9e999",
                                         "5e-324",
                                         "1e-308",
                                         "0.1",
                                         "1e15",
                                         "123456789.123",
                                         "9007199254740992.0",
                                         "1e16",
                                         "-2.5",
                                         "9223372036854775807.0",
                                         "9.3e18",
                                         "-9223372036854775808.0",
                                         "1e19",
                                         "16777217.0",
                                         "0.5",
                                         "2.0",
                                         "1.0"};
static const char *const words[] = {"'a'",   "'b'",     "'abc'", "'ABC'",   "'Abc'", "'zebra'",
                                    "''",    "'abc  '", "'B'",   "'a_c'",   "'a%c'", "'ab'",
                                    "'a\\'", "'[a]'",   "'xyz'", "'abcabc'"};
static const char *const numeric_texts[] = {"'0'",
                                            "'1'",
                                            "'-1'",
                                            "' 12 '",
                                            "'1e5'",
                                            "'1.5'",
                                            "'.5'",
                                            "'12abc'",
                                            "'0x10'",
                                            "'-0.0'",
                                            "'5.'",
                                            "'1e'",
                                            "'007'",
                                            "'9007199254740993'",
                                            "'9223372036854775808'",
                                            "'1e400'"};
static const char *const odd_texts[] = {
    "CAST(x'610062' AS TEXT)",
    "CAST(x'00' AS TEXT)",
    "'é'",
    "'É'",
    "'日本語'",
    "'\xf0\x9f\x98\x80'",
    "' '",
    "'it''s'",
    "'a rather long text, longer than any short-string buffer would be'",
    "CAST(x'ff' AS TEXT)",
    "'\"quoted\"'",
    "'ab' || char(10) || 'c'"};
static const char *const blobs[] = {"x''", "x'00'", "x'6162'", "x'3132'", "x'ff'", "x'616200'"};

#endif
