/* debug-yields N: N yields in each of three tasks, in a program with acorn_debug in it, which does nothing until it is
 * asked; debug-yields-without N: the same without the library. For debug_costs.py. */
#ifdef WITH_DEBUG
#include <aco/debug.h>
#endif
#include <aco/scheduler.h>
#include <stdio.h>
#include <stdlib.h>

static void *yields(void *count)
{
    for (long i = *(const long *)count; i > 0; i--)
        aco_yield();
    return count;
}

int main(int argc, char **argv)
{
    enum { TASKS = 3 };
    long n = argc == 2 ? atol(argv[1]) : 0;
    for (int i = 0; i < TASKS; i++)
        if (!aco_spawn(yields, &n, NULL))
            return fprintf(stderr, "%s\n", aco_error_message()), 1;
#ifdef WITH_DEBUG
    aco_debug_stop(); /* so that the linker takes the library */
#endif
    return aco_run();
}
