/* Where libc's own functions are: look_up.c. */
#ifndef ACO_LIBC_LOOK_UP_H
#define ACO_LIBC_LOOK_UP_H

#include "libc/libc.h"

/* libc's function behind the hooks; the same, or a sanitizer's that must see the calls. Both take the loader's lock. */
ACO__HIDDEN void *aco__libc_plain(const char *name);
ACO__HIDDEN void *aco__libc_seen(const char *name);
/* The first definition in the dynamic linker's order, which calls by this name reach; whether it is a hook. */
ACO__HIDDEN void *aco__libc_first(const char *name);
ACO__HIDDEN int aco__libc_is_hooked(const char *name);
/* The function for an early call. */
ACO__HIDDEN void *aco__libc_look_up(const char *name);
/* Whether a sanitizer's functions are linked with the hooks, or loaded with them: known without a look-up. */
ACO__HIDDEN int aco__libc_is_intercepted(void);

ACO__HIDDEN void aco__hook_find_sanitizer(void);
/* Whether the program has a sanitizer's functions; whether the hooks are found before them and libc's. */
ACO__HIDDEN int aco__hook_is_sanitized(void);
ACO__HIDDEN int aco__hook_is_first(void);
/* Whether the caller is the sanitizer's library. gcc's opens files while it reports, with locks held. */
ACO__HIDDEN int aco__hook_is_sanitizers(const void *caller);

#endif
