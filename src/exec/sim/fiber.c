/*
** The context switch. On x86-64 and aarch64 it saves only the registers that a C function must
** preserve. It does not save the signal mask: that needs a system call, which makes ucontext about
** fifteen times slower. It does not save the floating-point control words either, because kernels
** never change them.
*/
#include "exec/sim/fiber.h"
#include <stdint.h>
#include <string.h>

#ifdef WL_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
/* The fiber that was left. Its stack's bounds are known only after the switch. */
static _Thread_local wl_fiber *switched_from;
#endif
#ifdef WL_FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define CANARY       0x5afec0de5afec0deull
#define CANARY_WORDS 8

#ifndef WL_FIBER_UCONTEXT

/* Saves the running context and puts its stack pointer in *save. Resumes the context at load. */
void wl_fiber_swap(void **save, void *load);
/* Where a new fiber starts: calls the function in its frame with the argument in its frame. */
void wl_fiber_boot(void);

#ifdef __x86_64__
/*
** The frame, from sp up: r15 r14 r13 r12 rbx rbp, return address. It jumps instead of returning,
** because the branch predictor expects a return to match its call.
*/
__asm__(".text\n"
        ".p2align 4\n"
        ".globl wl_fiber_swap\n"
        ".hidden wl_fiber_swap\n"
        ".type wl_fiber_swap, @function\n"
        "wl_fiber_swap:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  popq %rcx\n"
        "  jmp *%rcx\n"
        ".size wl_fiber_swap, .-wl_fiber_swap\n"
        ".p2align 4\n"
        ".globl wl_fiber_boot\n"
        ".hidden wl_fiber_boot\n"
        ".type wl_fiber_boot, @function\n"
        "wl_fiber_boot:\n"
        "  movq %r12, %rdi\n"
        "  callq *%r13\n"
        "  ud2\n"
        ".size wl_fiber_boot, .-wl_fiber_boot\n");

enum { FRAME_WORDS = 8, FRAME_ARG = 3, FRAME_ENTRY = 2, FRAME_RETURN = 6 };
#else
/* The frame, from sp up: x19 to x30 (x30 is the return address), then d8 to d15. */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl wl_fiber_swap\n"
        ".hidden wl_fiber_swap\n"
        ".type wl_fiber_swap, %function\n"
        "wl_fiber_swap:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n"
        "  stp x21, x22, [sp, #16]\n"
        "  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n"
        "  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n"
        "  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n"
        "  ldp x21, x22, [sp, #16]\n"
        "  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n"
        "  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n"
        "  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size wl_fiber_swap, .-wl_fiber_swap\n"
        ".p2align 4\n"
        ".globl wl_fiber_boot\n"
        ".hidden wl_fiber_boot\n"
        ".type wl_fiber_boot, %function\n"
        "wl_fiber_boot:\n"
        "  mov x0, x19\n"
        "  blr x20\n"
        "  brk #1\n"
        ".size wl_fiber_boot, .-wl_fiber_boot\n");

enum { FRAME_WORDS = 20, FRAME_ARG = 0, FRAME_ENTRY = 1, FRAME_RETURN = 11 };
#endif
#endif

/* Tells the sanitizers that a switch has arrived in this fiber. */
static void arrive(wl_fiber *self) {
#ifdef WL_FIBER_ASAN
  __sanitizer_finish_switch_fiber(self->fake_stack, &switched_from->low, &switched_from->n_low);
#else
  (void)self;
#endif
}

static void first_steps(void *p) {
  wl_fiber *self = (wl_fiber *)p;
  arrive(self);
  self->entry(self->arg);
}

#ifdef WL_FIBER_UCONTEXT
/* makecontext passes only ints, so the pointer comes in two halves. */
static void first_steps_context(unsigned high, unsigned low) {
  first_steps((void *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low));
}
#endif

void wl_fiber_adopt(wl_fiber *f) {
  memset(f, 0, sizeof *f);
#ifdef WL_FIBER_TSAN
  f->tsan = __tsan_get_current_fiber();
#endif
}

bool wl_fiber_init(wl_fiber *f, void *stack, void (*entry)(void *arg), void *arg) {
  memset(f, 0, sizeof *f);
  f->stack = (unsigned char *)stack;
  f->entry = entry;
  f->arg = arg;
#ifdef WL_FIBER_ASAN
  /* The frames of an abandoned fiber leave poisoned red zones in its stack. */
  __asan_unpoison_memory_region(stack, WL_FIBER_STACK);
  f->low = f->stack + WL_FIBER_GAP;
  f->n_low = WL_FIBER_STACK - WL_FIBER_GAP;
#endif
#ifdef WL_FIBER_TSAN
  f->tsan = __tsan_create_fiber(0);
  if (!f->tsan) return false;
#endif
  uint64_t *canary = (uint64_t *)(f->stack + WL_FIBER_GAP);
  for (int i = 0; i < CANARY_WORDS; i++) canary[i] = CANARY;
#ifdef WL_FIBER_UCONTEXT
  if (getcontext(&f->context) != 0) return false;
  f->context.uc_stack.ss_sp = f->stack + WL_FIBER_GAP;
  f->context.uc_stack.ss_size = WL_FIBER_STACK - WL_FIBER_GAP;
  f->context.uc_link = NULL;
  uintptr_t p = (uintptr_t)f;
  makecontext(&f->context, (void (*)(void))first_steps_context, 2, (unsigned)(p >> 16 >> 16),
              (unsigned)p);
#else
  /* Both architectures need sp to be a multiple of 16 when wl_fiber_boot makes its call. */
  void **frame = (void **)(f->stack + WL_FIBER_STACK - 64) - FRAME_WORDS;
#ifdef __x86_64__
  frame++; /* six registers and the return address: seven words popped in all */
#endif
  memset(frame, 0, sizeof(void *) * (FRAME_RETURN + 1));
  void (*first)(void *) = first_steps;
  void (*boot)(void) = wl_fiber_boot;
  frame[FRAME_ARG] = f;
  memcpy(&frame[FRAME_ENTRY], &first, sizeof first);
  memcpy(&frame[FRAME_RETURN], &boot, sizeof boot);
  f->sp = frame;
#endif
  return true;
}

void wl_fiber_close(wl_fiber *f) {
#ifdef WL_FIBER_TSAN
  if (f->tsan && f->stack) __tsan_destroy_fiber(f->tsan);
#endif
#ifdef WL_FIBER_ASAN
  if (f->stack) __asan_unpoison_memory_region(f->stack, WL_FIBER_STACK);
#endif
  memset(f, 0, sizeof *f);
}

void wl_fiber_switch(wl_fiber *from, wl_fiber *to) {
#ifdef WL_FIBER_ASAN
  switched_from = from;
  __sanitizer_start_switch_fiber(&from->fake_stack, to->low, to->n_low);
#endif
#ifdef WL_FIBER_TSAN
  __tsan_switch_to_fiber(to->tsan, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef WL_FIBER_UCONTEXT
  swapcontext(&from->context, &to->context);
#else
  wl_fiber_swap(&from->sp, to->sp);
#endif
  arrive(from);
}

#ifdef WL_FIBER_TSAN
void wl_fiber_give(void *place) {
  __tsan_release(place);
}
void wl_fiber_take(void *place) {
  __tsan_acquire(place);
}
#endif

bool wl_fiber_overflowed(const wl_fiber *f) {
  const uint64_t *canary = (const uint64_t *)(f->stack + WL_FIBER_GAP);
  uint64_t differ = 0;
  for (int i = 0; i < CANARY_WORDS; i++) differ |= canary[i] ^ CANARY;
  return differ != 0;
}
