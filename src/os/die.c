/* The last message of a process that the library cannot serve: alike on all systems. */
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

void aco__os_die(const char *what)
{
    static const char prefix[] = "acorn: ";
    aco__os_message(prefix, sizeof prefix - 1);
    aco__os_message(what, strlen(what));
    aco__os_message("\n", 1);
    abort();
}
