/*
** Fibers: execution contexts with their own stacks, between which one OS thread switches. The
** simulator runs every GPU thread as a fiber.
**
** Invariants:
** 1. A fiber runs only on the OS thread that initialised it.
** 2. Its entry function never returns. A fiber that is not running may be closed, or initialised
**    again, wherever it is in its code.
** 3. The lowest words of a stack hold a canary. wl_fiber_overflowed() reports whether it was
**    overwritten. Below the canary there is a gap of WL_FIBER_GAP bytes, so that a small overflow
**    damages nothing else.
*/
#ifndef WL_FIBER_H
#define WL_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WL_FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WL_FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WL_FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WL_FIBER_TSAN 1
#endif

#if !defined(WL_FIBER_UCONTEXT) &&                                                                 \
    !(defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(__ILP32__))
#define WL_FIBER_UCONTEXT 1
#endif
#ifdef WL_FIBER_UCONTEXT
#include <ucontext.h>
#endif

/*
** Bytes of a stack, including the gap. Sanitizers widen frames and print their reports on the
** running stack. The 9 extra cache lines keep the same frames of neighbouring stacks out of the
** same cache set.
*/
#if defined(WL_FIBER_ASAN) || defined(WL_FIBER_TSAN)
#define WL_FIBER_STACK (256u * 1024u + 9u * 64u)
#else
#define WL_FIBER_STACK (64u * 1024u + 9u * 64u)
#endif
#define WL_FIBER_GAP 4096u

typedef struct wl_fiber {
  void *sp;             /* address of its saved registers while it is not running */
  unsigned char *stack; /* NULL: the OS thread's own stack */
  void (*entry)(void *arg);
  void *arg;
#ifdef WL_FIBER_UCONTEXT
  ucontext_t context;
#endif
#ifdef WL_FIBER_ASAN
  void *fake_stack;
  const void *low;
  size_t n_low;
#endif
#ifdef WL_FIBER_TSAN
  void *tsan;
#endif
} wl_fiber;

/* Makes f represent the calling OS thread, so that fibers can switch back to it. */
void wl_fiber_adopt(wl_fiber *f);

/* Prepares f to run entry(arg). f is all zero or was closed. stack has WL_FIBER_STACK bytes, is
** aligned to 64 bytes and belongs to the caller. Returns false if out of memory. */
bool wl_fiber_init(wl_fiber *f, void *stack, void (*entry)(void *arg), void *arg);

void wl_fiber_close(wl_fiber *f);

/* Switches from the running fiber `from` to `to`. Returns when a fiber switches back to `from`. For
** ThreadSanitizer, fibers are threads, and a switch orders nothing. */
void wl_fiber_switch(wl_fiber *from, wl_fiber *to);

/* What the running fiber has done so far comes before all that a fiber does which takes part in the
** same place later: `give` gives this promise, `take` gets it. Only ThreadSanitizer is told. */
#ifdef WL_FIBER_TSAN
void wl_fiber_give(void *place);
void wl_fiber_take(void *place);
#else
static inline void wl_fiber_give(void *place) {
  (void)place;
}
static inline void wl_fiber_take(void *place) {
  (void)place;
}
#endif

bool wl_fiber_overflowed(const wl_fiber *f);

#endif
