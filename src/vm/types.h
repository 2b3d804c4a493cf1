/*
** Fixed-size types and function qualifiers for headers that compile as C11, as CUDA C++
** and under a run-time CUDA compiler: no system header is needed.
*/
#ifndef WL_TYPES_H
#define WL_TYPES_H

typedef signed char wl_i8;
typedef unsigned char wl_u8;
typedef short wl_i16;
typedef unsigned short wl_u16;
typedef int wl_i32;
typedef unsigned int wl_u32;
typedef long long wl_i64;
typedef unsigned long long wl_u64;

#ifndef WL_FN
#ifdef __CUDACC__
#define WL_FN static __device__ __forceinline__
#else
#define WL_FN __attribute__((unused)) static inline
#endif
#endif

#define WL_I64_MAX 9223372036854775807LL
#define WL_I64_MIN (-WL_I64_MAX - 1)

#endif
