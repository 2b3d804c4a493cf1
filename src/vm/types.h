/*
** Integer types by width, for code that is compiled for the host and for a GPU alike.
** No standard header is used, so that a run-time kernel compiler needs none.
*/
#ifndef WL_TYPES_H
#define WL_TYPES_H

typedef unsigned char wl_u8;
typedef signed char wl_i8;
typedef unsigned short wl_u16;
typedef short wl_i16;
typedef unsigned int wl_u32;
typedef int wl_i32;
typedef unsigned long long wl_u64;
typedef long long wl_i64;

#endif
