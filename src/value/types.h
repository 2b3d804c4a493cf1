/*
** Fixed-size types and function qualifiers, for headers that compile as C11, as CUDA C++ and with a
** run-time CUDA compiler. Needs no system header.
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

/* A large function. On a device it is called, not made part of its caller, which would need more
** registers. */
#ifdef __CUDACC__
#define WL_FN_CALLED static __device__ __noinline__
#else
#define WL_FN_CALLED WL_FN
#endif

/* A function with loops that is compiled for several vector widths. The loader picks one. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) &&     \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__linux__)
#define WL_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define WL_CLONES
#endif

#define WL_I64_MAX 9223372036854775807LL
#define WL_I64_MIN (-WL_I64_MAX - 1)

#endif
