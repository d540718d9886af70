/* Chooses the unwinder: the program's, LLVM's from an archive, a loaded library's, or on Windows the system's. */
#include "coroutine/unwinder.h"

#include <string.h>

#ifdef _WIN32

#ifdef __clang__
#pragma weak __unw_init_local
#pragma weak _Unwind_GetGR
extern int __unw_init_local(void *cursor, void *context);

/* Stands in for _Unwind_GetCFA(), which is in a member of LLVM's library that nothing else here links. */
static _Unwind_Word get_sp(struct _Unwind_Context *context)
{
    enum { RSP = 7 };
    return _Unwind_GetGR(context, RSP);
}
#endif

/* `arg` is the exception, which at_frame() expects. */
static _Unwind_Reason_Code forced_unwind(struct _Unwind_Exception *exception, _Unwind_Stop_Fn stop, void *arg)
{
    (void)arg;
    aco__seh_forced_unwind(exception, stop);
}

/* LLVM's unwinder, if the program has it. Else the system's, which calls libgcc's handlers. */
const aco__unwinder_t *aco__unwinder(void)
{
    static const aco__unwinder_t seh = {aco__seh_backtrace, aco__seh_get_cfa, aco__seh_get_region_start,
                                        _Unwind_SetGR,      _Unwind_SetIP,    forced_unwind};
#ifdef __clang__
    static const aco__unwinder_t llvm = {aco__seh_backtrace, get_sp,        _Unwind_GetRegionStart,
                                         _Unwind_SetGR,      _Unwind_SetIP, _Unwind_ForcedUnwind};
    if (__unw_init_local)
        return &llvm;
#endif
    return &seh;
}

#else

#define OWN(name) _Unwind_##name,
static const aco__unwinder_t own_unwinder = {UNWINDER(OWN)};

#ifdef __ELF__
/* LLVM's unwinder in an archive: Backtrace and GetCFA are in a member that throwing and cleaning up do not need, so the
 * linker leaves it out. These two replace them with functions of the other members. */
#pragma weak __unw_getcontext
#pragma weak __unw_init_local
#pragma weak __unw_step
extern int __unw_getcontext(void *context);
extern int __unw_init_local(void *cursor, void *context);
extern int __unw_step(void *cursor);

static _Unwind_Reason_Code llvm_backtrace(_Unwind_Trace_Fn visit, void *arg)
{
#ifdef __powerpc64__
    enum { WORDS = 192 }; /* LLVM 22 needs 167 and 179; on other targets at most 67 and 79 */
#else
    enum { WORDS = 96 };
#endif
    uint64_t context[WORDS], cursor[WORDS];
    __unw_getcontext(context);
    __unw_init_local(cursor, context);
    while (__unw_step(cursor) > 0)
        if (visit((struct _Unwind_Context *)(void *)cursor, arg) != _URC_NO_REASON)
            break;
    return _URC_END_OF_STACK;
}

#ifdef EHABI
#pragma weak _Unwind_GetRegionStart
static const aco__unwinder_t llvm_unwinder = {llvm_backtrace, _Unwind_VRS_Get, _Unwind_VRS_Set, _Unwind_ForcedUnwind};
#else
#pragma weak _Unwind_GetGR
static _Unwind_Word llvm_get_cfa(struct _Unwind_Context *context)
{
    enum { UNW_REG_SP = -2 }; /* of <libunwind.h>, which some compilers lack */
    return _Unwind_GetGR(context, UNW_REG_SP);
}

static const aco__unwinder_t llvm_unwinder = {llvm_backtrace, llvm_get_cfa,   _Unwind_GetRegionStart,
                                         _Unwind_SetGR,  _Unwind_SetIP, _Unwind_ForcedUnwind, _Unwind_GetIP};
#endif
#endif

/* The program's unwinder; else one in a library that was loaded later, or is loaded now if `load`. Weak references do
 * not find that one if its symbols were not made global. */
static const aco__unwinder_t *find_unwinder(int load)
{
#define NAME(name) "_Unwind_" #name,
    static aco__unwinder_t found;
    static const char *const names[] = {UNWINDER(NAME)};
    void *symbols[sizeof names / sizeof *names];
    _Static_assert(sizeof symbols == sizeof found, "a pointer for each name");
    if (aco_likely(own_unwinder.ForcedUnwind && own_unwinder.Backtrace))
        return &own_unwinder;
#ifdef __ELF__
    if (own_unwinder.ForcedUnwind && __unw_step)
        return &llvm_unwinder;
#endif
    aco__lock();
    if (!found.ForcedUnwind && aco__os_loaded_unwinder(names, symbols, sizeof names / sizeof *names, load))
        memcpy(&found, symbols, sizeof found);
    aco__unlock();
    return &found;
}

const aco__unwinder_t *aco__unwinder(void)
{
    return find_unwinder(0);
}

const aco__unwinder_t *aco__unwinder_loaded(void)
{
    return find_unwinder(1);
}

#endif

char *aco__frame_sp(struct _Unwind_Context *context)
{
#ifdef EHABI /* there _Unwind_GetCFA() may return the caller's CFA */
    uint32_t sp;
    aco__unwinder()->VRS_Get(context, _UVRSC_CORE, 13, _UVRSD_UINT32, &sp);
    return (char *)sp;
#elif defined(__s390x__) /* LLVM's returns the caller's stack pointer, libgcc's the CFA, a save area above that */
    enum { SAVE_AREA = 160 };
    return (char *)aco__unwinder()->GetCFA(context) + (__unw_step ? SAVE_AREA : 0);
#else
    return (char *)aco__unwinder()->GetCFA(context);
#endif
}

/* On Arm the exception has this address too, but LLVM's unwinder stores it there later than libgcc's. */
uintptr_t aco__frame_function(struct _Unwind_Context *context, const struct _Unwind_Exception *exception)
{
#ifdef EHABI
    return __unw_step ? (uintptr_t)_Unwind_GetRegionStart(context) : exception->pr_cache.fnstart;
#else
    (void)exception;
    return (uintptr_t)aco__unwinder()->GetRegionStart(context);
#endif
}

char *aco__traced_frame_sp(struct _Unwind_Context *context)
{
#ifdef _WIN32
    return (char *)aco__seh_get_cfa(context);
#else
    return aco__frame_sp(context);
#endif
}
