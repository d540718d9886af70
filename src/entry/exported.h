/* Which exported functions are assembly, in this folder: C does not define them then. */
#ifndef ACO_EXPORTED_H
#define ACO_EXPORTED_H

/* aco_resume(), aco_send(), aco_yield(), aco_yield1() and aco_yield_value(). */
#if defined(__x86_64__) && defined(__ELF__) && !defined(ACO_CONFIG_UCONTEXT) && !defined(ACO_CONFIG_DYNAMIC_TLS)
#define ACO__SWITCHES_IN_ASSEMBLY
#endif

/* aco_defer(), where return addresses are passed in a register. */
#if !defined(__x86_64__) && !defined(__i386__) && !defined(ACO_CONFIG_UCONTEXT)
#define ACO__DEFER_IN_ASSEMBLY
#endif

#endif
