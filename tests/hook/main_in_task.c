/* A library for LD_PRELOAD, before acorn_hook: main() of any program runs in a hooked task. */
#define _GNU_SOURCE
#include <aco/hook.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*main_t)(int argc, char **argv, char **environment);
typedef int (*start_t)(main_t main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                       void (*linker_fini)(void), void *stack_end);

static main_t programs_main;
static struct {
    int argc;
    char **argv, **environment;
} arguments;

static void *runs_main(void *unused)
{
    (void)unused;
    if (aco_hook_begin() != 0) {
        fprintf(stderr, "main_in_task: %s\n", aco_error_message());
        exit(99);
    }
    exit(programs_main(arguments.argc, arguments.argv, arguments.environment));
}

static int main_in_task(int argc, char **argv, char **environment)
{
    aco_options_t options = {0};
    options.stack_size = 8 << 20;
    arguments.argc = argc;
    arguments.argv = argv;
    arguments.environment = environment;
    if (!aco_spawn(runs_main, NULL, &options) || aco_run() != 0)
        fprintf(stderr, "main_in_task: %s\n", aco_error_message());
    return 98;
}

int __libc_start_main(main_t main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*linker_fini)(void), void *stack_end);
int __libc_start_main(main_t main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*linker_fini)(void), void *stack_end)
{
    void *symbol = dlsym(RTLD_NEXT, "__libc_start_main");
    start_t start;
    memcpy(&start, &symbol, sizeof start);
    programs_main = main;
    return start(main_in_task, argc, argv, init, fini, linker_fini, stack_end);
}
