/* The idle hook: tasks that wait for descriptors in an event loop of the program's own, here poll(). Where there is
 * acorn_io (aco/io.h), a program needs none of this. */
#include "aco.h"
#include "aco/scheduler.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "aco_assert_override.h"

enum { MOST = 64, LETTERS = 3 };

typedef struct watch {
    aco_t *task;
    short events; /* what came, 0: nothing yet */
} watch_t;

static struct pollfd polled[MOST];
static watch_t *watches[MOST]; /* on the stacks of the tasks that wait */
static nfds_t watched;

/* Waits until something is the matter with fd. Returns what, or -1. */
static int wait_for(int fd, short events)
{
    watch_t watch = {aco_get_co(), 0};
    if (watched == MOST) {
        errno = EAGAIN;
        return -1;
    }
    polled[watched] = (struct pollfd){fd, events, 0};
    watches[watched++] = &watch;
    while (!watch.events)
        aco_park("a file descriptor");
    return watch.events;
}

static int idle(void *ctx, int64_t timeout_ns)
{
    int64_t ms = timeout_ns < 0 ? -1 : timeout_ns / 1000000 + (timeout_ns % 1000000 != 0); /* never too early */
    (void)ctx;
    if (!watched)
        return 0; /* nothing can come from here */
    if (poll(polled, watched, ms < INT_MAX ? (int)ms : INT_MAX) < 0)
        return errno == EINTR ? 1 : -1;
    for (nfds_t i = watched; i-- > 0;)
        if (polled[i].revents) {
            watches[i]->events = polled[i].revents;
            aco_unpark(watches[i]->task);
            watches[i] = watches[--watched];
            polled[i] = polled[watched];
        }
    return 1; /* a hook that always returned 1 would turn every deadlock into a silent wait */
}

static void *reader(void *fd)
{
    char word[LETTERS];
    while (wait_for(*(int *)fd, POLLIN) > 0 && read(*(int *)fd, word, LETTERS) == LETTERS)
        printf("read: %.*s\n", LETTERS, word);
    printf("the other end is closed\n");
    return NULL;
}

static void *writer(void *fd)
{
    static const char *const words[] = {"one", "two", "six"};
    for (int i = 0; i < 3; i++) {
        assert(write(*(int *)fd, words[i], LETTERS) == LETTERS);
        aco_sleep(10 * ACO_MILLISECOND);
    }
    close(*(int *)fd);
    return NULL;
}

int main(void)
{
    const aco_options_t detached = {.flags = ACO_DETACHED};
    int ends[2];
    assert(pipe(ends) == 0 && aco_on_idle(idle, NULL) == 0);
    assert(aco_spawn(reader, &ends[0], &detached) && aco_spawn(writer, &ends[1], &detached));
    assert(aco_run() == 0);
    return close(ends[0]);
}
