#if defined(ACO_CONFIG_UCONTEXT) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* the names of a ucontext_t's registers */
#endif
/* The fallback's switches (include/aco/arch/ucontext.h), under ACO_CONFIG_UCONTEXT.
 *
 * The leaving side keeps a ucontext_t in the frame of leave(), on its own stack. On a share stack it is thus copied
 * with the other frames. The side's aco__context_t then has
 *   sp   the end of that frame
 *   pc   the address of `suspended`
 *   bp   the address of the ucontext_t
 * With any other pc the context has not begun: pc is a function, and the bytes right below sp are free for
 * makecontext().
 *
 * The signal mask belongs to the thread, like with the inline switches: go() makes setcontext() load the mask in
 * force. */
#include "os/os.h"

#ifdef ACO_CONFIG_UCONTEXT

#include "aco/generator.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

/* The thread record, followed by what a switch passes from the leaving to the arriving side. */
typedef struct record {
    aco__thread_t thread;
    uintptr_t tagged;
    void *value;
    uint32_t fp_control; /* the floating-point environment in force */
    uint16_t fp_control2;
    aco__context_t first; /* where the arriving side begins, if it has not begun */
    aco__context_t peer;  /* of a peer swap: the leaving side */
} record_t;

static __thread record_t the_record;

/* The empty asm keeps a compiler that sees this body from merging two calls into one (docs/switch.md, rule 8). */
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
/* In libm. A program that sets a rounding direction links it. */
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
ACO__HIDDEN_EXTERN const char aco__returned[1];
const char aco__returned[1]; /* with this switch entry functions return to aco__outermost() */

/* Functions of the coroutine layer: the first runs after an entry function has returned, the second after a
 * cancellation has reached the first frame. */
static void (*entry_returned)(void);
static void (*cancel_landed)(void *exception);

void aco__os_outermost_calls(void (*returned)(void), void (*landed)(void *exception))
{
    entry_returned = returned;
    cancel_landed = landed;
}

/* The first frame of every stack. Unwinding ends here; coroutine/entry.c says why it has a personality. */
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

/* The unwinder sets the stack pointer to its value in the function above and jumps here. On x86 the pointer is then not
 * aligned as at a function's entry. */
ACO__HIDDEN_EXTERN void aco__cancel_landing(void);
#if defined(__x86_64__) || defined(__i386__)
__attribute__((force_align_arg_pointer))
#endif
void aco__cancel_landing(void)
{
    cancel_landed(aco__self()->cancel);
}

/* A separate function, so that `first` occupies the stack only until the switch. */
ACO__NO_SANITIZE __attribute__((noinline, noreturn)) static void begin_on(const aco__context_t *to)
{
    enum { ROOM = 1024 }; /* more than makecontext() writes; nothing below it is in use */
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

/* Continues `to` in the floating-point environment that is in force. */
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

/* The same, but stores in *from that its caller continues by `here`. */
ACO__NO_SANITIZE __attribute__((noinline, noreturn))
static void go_from(aco__context_t *from, ucontext_t *here, const aco__context_t *to, uintptr_t tagged, void *value)
{
    from->sp = __builtin_dwarf_cfa(); /* the caller's stack pointer */
    from->pc = (void *)(uintptr_t)&suspended;
    from->bp = here;
    go(to, tagged, value);
}

/* The same, but returns when another side switches back. Returns that side's tagged coroutine pointer and stores its
 * value in *value_ref. */
ACO__NO_SANITIZE static __attribute__((noinline)) uintptr_t leave(aco__context_t *from, const aco__context_t *to,
                                                                  uintptr_t tagged, void **value_ref)
{
    ucontext_t here;
    volatile int left = 0;
    record_t *r;
    getcontext(&here); /* the other side arrives here too */
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

static int swaps_fp(const aco_t *co, int fp)
{
    return fp && !(co->aco__state & ACO__SHARES_FP);
}

uintptr_t aco__switch_resume(aco__tls_ref_t tls, aco_t *co, void **value_ref, int fp)
{
    aco__thread_t *self = aco__self_at(tls);
    self->running = co;
    if (swaps_fp(co, fp)) {
        aco__fp_read(&self->fp_control, &self->fp_control2);
        aco__fp_change(&co->aco__fp_control, &co->aco__fp_control2);
    }
    return leave(&self->resumer, &co->aco__self, (uintptr_t)co, value_ref);
}

uintptr_t aco__switch_yield(aco__tls_ref_t tls, aco_t *co, void **value_ref, int fp)
{
    aco__thread_t *self = aco__self_at(tls);
    self->running = NULL;
    if (swaps_fp(co, fp)) {
        aco__fp_read(&co->aco__fp_control, &co->aco__fp_control2);
        aco__fp_change(&self->fp_control, &self->fp_control2);
    }
    return leave(&co->aco__self, &self->resumer, (uintptr_t)co, value_ref);
}

uintptr_t aco__switch_transfer(aco__tls_ref_t tls, aco_t *from, aco_t *co, void **value_ref, int fp)
{
    aco__thread_t *self = aco__self_at(tls);
    self->running = co;
    if (swaps_fp(co, fp)) {
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

/* Begins a coroutine made by aco_create(). */
ACO__HIDDEN_EXTERN void aco__begin_entry(ACO__ARRIVAL_PARAMETERS);
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
