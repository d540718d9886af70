/* Until a thread of this program sleeps in aco_run(): what comes next has to wake it. For tests of that wake, in the
 * place of a sleep that is long enough most of the time. Include this before what is public. */
#ifndef ASLEEP_H
#define ASLEEP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "scheduler/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

typedef struct sleeper {
    const aco__tasks_t *tasks;
    pid_t thread;
} sleeper_t;

/* The kernel's number of the calling thread; elsewhere than on Linux any number but 0, which is no thread. */
static inline pid_t this_thread(void)
{
#ifdef __linux__
    return (pid_t)syscall(SYS_gettid);
#else
    return 1;
#endif
}

/* The calling thread, which has spawned a task or has opened its scheduler. */
static inline sleeper_t this_sleeper(void)
{
    sleeper_t me = {aco__tasks(aco__self()), this_thread()};
    return me;
}

/* Whether it is in a call of the system that waits. Where the system does not tell, what the scheduler says must do. */
static inline int is_in_a_wait(pid_t thread)
{
    char path[64], text[512];
    const char *end;
    ssize_t n;
    int fd;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 1;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] == 'S';
}

/* Who looks all the time takes a loaded machine's processors from the thread that is to fall asleep. */
static inline void until_asleep(const sleeper_t *of)
{
    const struct timespec between_looks = {0, 50000};
    while (!__atomic_load_n(&of->tasks->is_asleep, __ATOMIC_SEQ_CST) || !is_in_a_wait(of->thread))
        nanosleep(&between_looks, NULL);
}

#endif
