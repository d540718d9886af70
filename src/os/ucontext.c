#if defined(ACO_CONFIG_UCONTEXT) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* the names of a ucontext_t's registers */
#endif
/* The fallback's switches (include/aco/arch/ucontext.h), under ACO_CONFIG_UCONTEXT.
 *
 * A side that leaves keeps a ucontext_t in the frame of leave(), on its own stack, so that it is copied with the rest of the
 * frames where a stack is shared. Its aco__context_t then has
 *   sp   where that frame ends
 *   pc   the address of `suspended`
 *   bp   the ucontext_t's address
 * With any other pc it has not begun: pc is a function, and the bytes right below sp are for makecontext().
 *
 * The signal mask is the thread's, as with the inline switches: setcontext() is made to load the one in force. */
#include "os/os.h"

#ifdef ACO_CONFIG_UCONTEXT

#include "aco/generator.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

/* The thread record, and behind it what crosses a switch. */
typedef struct record {
    aco__thread_t thread;
    uintptr_t tagged;
    void *value;
    uint32_t fp_control; /* the environment that crosses */
    uint16_t fp_control2;
    aco__context_t first; /* where the arriving side begins, if it does */
    aco__context_t peer;  /* of an exchange: the side that leaves */
} record_t;

static __thread record_t the_record;

/* The empty asm keeps a compiler that sees this body from taking two calls for one (docs/switch.md, 8). */
__attribute__((noinline)) aco__tls_ref_t aco__tls_ref_read(void)
{
    aco__tls_ref_t tls = (aco__tls_ref_t)&the_record;
    __asm__ volatile("" : "+r"(tls));
    return tls;
}

static record_t *record(void)
{
    return (record_t *)aco__tls_ref();
}

/* ---- The floating-point environment ---- */

#if !defined(__x86_64__) && !defined(__i386__)
/* Of libm, which a program that chooses a rounding direction has. */
__attribute__((weak)) int fegetround(void);
__attribute__((weak)) int fesetround(int direction);

void aco__fp_read(uint32_t *control, uint16_t *control2)
{
    *control = fegetround ? (uint32_t)fegetround() : 0;
    *control2 = 0;
}

void aco__fp_load(const uint32_t *control, const uint16_t *control2)
{
    (void)control2;
    if (fesetround)
        fesetround((int)*control);
}
#endif

/* ---- Leaving and arriving ---- */

static const char suspended;
const size_t aco__os_switch_frame = sizeof(ucontext_t) + 256;
ACO__HIDDEN extern const char aco__returned[1];
const char aco__returned[1]; /* entry functions return to aco__outermost() instead */

/* Of the coroutine layer: what to call where an entry function has returned, and where a cancellation has landed. */
static void (*entry_returned)(void);
static void (*cancel_landed)(void *exception);

void aco__os_outermost_calls(void (*returned)(void), void (*landed)(void *exception))
{
    entry_returned = returned;
    cancel_landed = landed;
}

/* The first frame of every stack. Unwinding ends there; why it has a personality stands in coroutine/entry.c. */
ACO__NO_SANITIZE void aco__outermost(void)
{
    const record_t *r = record();
    void (*generator)(void) = aco__generator_begin;
    void (*fn)(ACO__ARRIVAL_PARAMETERS);
#ifdef __GCC_HAVE_DWARF2_CFI_ASM
    __asm__ volatile(".cfi_personality 0x1b,aco__outermost_personality");
#endif
    if (memcmp(&r->first.pc, &generator, sizeof generator) == 0)
        aco__generator_begin();
    memcpy(&fn, &r->first.pc, sizeof fn);
    fn(r->tagged, r->value);
    entry_returned();
    abort();
}

/* The unwinder sets the stack pointer as it is in the function above, and comes as by a jump: on x86 that is not how a
 * function is called. */
ACO__HIDDEN void aco__cancel_landing(void);
#if defined(__x86_64__) || defined(__i386__)
__attribute__((force_align_arg_pointer))
#endif
void aco__cancel_landing(void)
{
    cancel_landed(aco__self()->cancel);
}

/* A function of its own, for the memory of `first` is needed on the way only. */
ACO__NO_SANITIZE __attribute__((noinline, noreturn)) static void begin_on(const aco__context_t *to)
{
    enum { ROOM = 1024 }; /* more than makecontext() writes; the frames below are nobody's business */
    ucontext_t first;
    record()->first = *to;
    getcontext(&first);
#if defined(__x86_64__) /* ends the chain of frame pointers */
    first.uc_mcontext.gregs[REG_RBP] = 0;
#elif defined(__i386__)
    first.uc_mcontext.gregs[REG_EBP] = 0;
#elif defined(__aarch64__)
    first.uc_mcontext.regs[29] = 0;
#endif
    first.uc_stack.ss_sp = (char *)to->sp - ROOM;
    first.uc_stack.ss_size = ROOM;
    first.uc_link = NULL;
    makecontext(&first, aco__outermost, 0);
    setcontext(&first);
    abort();
}

/* Goes on in `to`, in the floating-point environment that is in force. */
ACO__NO_SANITIZE __attribute__((noreturn)) static void go(const aco__context_t *to, uintptr_t tagged, void *value)
{
    record_t *r = record();
    r->tagged = tagged;
    r->value = value;
    aco__fp_read(&r->fp_control, &r->fp_control2);
    if (to->pc == (const void *)&suspended) {
        ucontext_t *there = to->bp;
        sigprocmask(SIG_SETMASK, NULL, &there->uc_sigmask);
        setcontext(there);
        abort();
    }
    begin_on(to);
}

/* The same, keeping in *from that its caller comes back by `here`. */
ACO__NO_SANITIZE __attribute__((noinline, noreturn))
static void go_from(aco__context_t *from, ucontext_t *here, const aco__context_t *to, uintptr_t tagged, void *value)
{
    from->sp = __builtin_dwarf_cfa(); /* the caller's stack pointer */
    from->pc = (void *)(uintptr_t)&suspended;
    from->bp = here;
    go(to, tagged, value);
}

/* The same, coming back: returns the word, and in *passed the value, of the side that comes. */
ACO__NO_SANITIZE static __attribute__((noinline)) uintptr_t leave(aco__context_t *from, const aco__context_t *to, uintptr_t tagged,
                                                                 void **value_ref)
{
    ucontext_t here;
    volatile int left = 0;
    record_t *r;
    getcontext(&here); /* here the other side comes too */
    if (!left) {
        left = 1;
        go_from(from, &here, to, tagged, *value_ref);
    }
    r = record();
    aco__fp_change(&r->fp_control, &r->fp_control2);
    *value_ref = r->value;
    return r->tagged;
}

/* ---- The switches ---- */

static int exchanges_fp(const aco_t *co, int fp)
{
    return fp && !(co->aco__state & ACO__SHARES_FP);
}

uintptr_t aco__switch_resume(aco__tls_ref_t tls, aco_t *co, void **value_ref, int fp)
{
    aco__thread_t *self = aco__self_at(tls);
    self->running = co;
    if (exchanges_fp(co, fp)) {
        aco__fp_read(&self->fp_control, &self->fp_control2);
        aco__fp_change(&co->aco__fp_control, &co->aco__fp_control2);
    }
    return leave(&self->resumer, &co->aco__self, (uintptr_t)co, value_ref);
}

uintptr_t aco__switch_yield(aco__tls_ref_t tls, aco_t *co, void **value_ref, int fp)
{
    aco__thread_t *self = aco__self_at(tls);
    self->running = NULL;
    if (exchanges_fp(co, fp)) {
        aco__fp_read(&co->aco__fp_control, &co->aco__fp_control2);
        aco__fp_change(&self->fp_control, &self->fp_control2);
    }
    return leave(&co->aco__self, &self->resumer, (uintptr_t)co, value_ref);
}

uintptr_t aco__switch_transfer(aco__tls_ref_t tls, aco_t *from, aco_t *co, void **value_ref, int fp)
{
    aco__thread_t *self = aco__self_at(tls);
    self->running = co;
    if (exchanges_fp(co, fp)) {
        aco__fp_read(&from->aco__fp_control, &from->aco__fp_control2);
        aco__fp_change(&co->aco__fp_control, &co->aco__fp_control2);
    }
    return leave(&from->aco__self, &co->aco__self, (uintptr_t)co, value_ref);
}

void aco__switch_exit(aco__tls_ref_t tls, uintptr_t tagged, void *value)
{
    aco__thread_t *self = aco__self_at(tls);
    self->running = NULL;
    go(&self->resumer, tagged, value);
}

void aco__switch_enter(aco__tls_ref_t tls, aco_t *co, uintptr_t tagged, void *value)
{
    (void)tls;
    go(&co->aco__self, tagged, value);
}

/* Begins a coroutine of aco_create(). */
ACO__HIDDEN void aco__begin_entry(ACO__ARRIVAL_PARAMETERS);
void aco__begin_entry(ACO__ARRIVAL_PARAMETERS)
{
    ((aco_t *)tagged)->fp();
}

/* ---- Generators ---- */

void aco__generator_begin(void)
{
    const record_t *r = record();
    const aco__context_t *consumer = &r->peer;
    void *const *start = r->first.sp;
    aco_generator_function_t *fn;
    memcpy(&fn, &start[ACO__START_FUNCTION], sizeof fn);
    fn(consumer->sp, consumer->pc, consumer->bp, consumer->base, start[ACO__START_ARGUMENT]);
}

void aco__switch_swap(aco__context_t *peer, void **value_ref)
{
    aco__context_t to = *peer;
    leave(&record()->peer, &to, 0, value_ref);
    *peer = record()->peer;
}

void aco__switch_swap_last(const aco__context_t *peer, void *value)
{
    record()->peer.pc = NULL;
    go(peer, 0, value);
}

#endif
