/* preload MODE [LIBRARY]: a program that is not linked with acorn_hook. The environment may name it in LD_PRELOAD.
 *   hooked LIBRARY    it does: the read() of LIBRARY (reader.c), which is loaded later, waits only for the task
 *   deepbind LIBRARY  it does: loaded with RTLD_DEEPBIND, LIBRARY finds libc's read() first
 *   interposed        it does, behind interposer.c: acorn_io calls that one's connect(), which the program chose
 *   none              it does not
 *   late LIBRARY      it does not: LIBRARY, acorn_hook itself, is loaded later, and refuses
 *   refused           a sanitizer comes first: acorn_hook refuses */
#define _GNU_SOURCE
#include <aco/hook.h>
#include <aco/io.h>
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

static int (*hook_begin)(void);
static const char *mode;
static void *library;
static int ends[2];

static int is_mode(const char *name)
{
    return strcmp(mode, name) == 0;
}

/* For pointers to functions, which ISO C does not convert. */
static void find(void *function, void *from, const char *name)
{
    void *symbol = dlsym(from, name);
    memcpy(function, &symbol, sizeof symbol);
}

static void *writes(void *unused)
{
    CHECK_EQ(write(ends[1], "x", 1), 1);
    return unused;
}

static void read_by_library(void)
{
    ssize_t (*reader_read)(int fd, void *p, size_t n);
    void *(*reader_calls)(void);
    int (*hook_stats)(aco_hook_stats_t *stats);
    char byte = 0;
    aco_hook_stats_t stats;
    aco_t *task;
    find(&reader_read, library, "reader_read");
    find(&reader_calls, library, "reader_calls");
    find(&hook_stats, RTLD_DEFAULT, "aco_hook_stats");
    CHECK_EQ(pipe(ends), 0);
    task = aco_spawn(writes, NULL, NULL);
    CHECK_EQ(reader_calls() == dlsym(RTLD_DEFAULT, "read"), is_mode("hooked"));
    if (is_mode("deepbind"))
        aco_task_yield(); /* else the thread would block forever */
    CHECK_EQ(reader_read(ends[0], &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(hook_stats(&stats), 0);
    CHECK_EQ(stats.waits, is_mode("hooked"));
    CHECK_EQ(aco_join(task, NULL), 0);
}

/* The count of interposer.c; NULL: it is not there. */
static int *connects;

static void *dials(void *unused)
{
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL), fd;
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    CHECK_EQ(hook_begin(), 0);
    fd = aco_io_dial("tcp4", "127.0.0.1", strrchr(address, ':') + 1, NULL);
    CHECK(fd >= 0 && connects && *connects == 1);
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK_EQ(aco_io_close(listener), 0);
    return unused;
}

static void *begins(void *unused)
{
    if (is_mode("late") || is_mode("refused")) {
        CHECK_EQ(hook_begin(), -1);
        CHECK_EQ(errno, ENOTSUP);
        fprintf(stderr, "%s\n", aco_error_message());
        return unused;
    }
    if (is_mode("interposed"))
        return dials(unused);
    CHECK_EQ(hook_begin(), 0);
    read_by_library();
    return unused;
}

int main(int argc, char **argv)
{
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    mode = argc > 1 ? argv[1] : "";
    alarm(20);
    if (argc > 2) {
        library = dlopen(argv[2], RTLD_NOW | (is_mode("late") ? RTLD_GLOBAL : is_mode("deepbind") ? RTLD_DEEPBIND : 0));
        CHECK(library != NULL);
    }
    find(&hook_begin, RTLD_DEFAULT, "aco_hook_begin");
    connects = dlsym(RTLD_DEFAULT, "interposed_connects");
    CHECK_EQ(hook_begin == NULL, is_mode("none"));
    if (!hook_begin)
        return check_result("preload");
    CHECK(aco_spawn(begins, NULL, &detached) != NULL);
    CHECK_EQ(aco_run(), 0);
    return check_result("preload");
}
