/* Says which exported functions are assembly (coroutine/entry.c): coroutine/exports.c has no bodies for those. */
#ifndef ACO_FORMS_H
#define ACO_FORMS_H

#ifndef ACO_CONFIG_LIBACO_ONLY /* it has few exported functions, all in C */
#if defined(__x86_64__) && defined(__ELF__) && !defined(ACO_CONFIG_DYNAMIC_TLS) && !defined(ACO_CONFIG_UCONTEXT)
#define ACO__SWITCHES_IN_ASSEMBLY
#endif
#if !defined(__x86_64__) && !defined(__i386__) && !defined(ACO_CONFIG_UCONTEXT)
#define ACO__DEFER_IN_ASSEMBLY
#endif
#endif

#endif
