/* ACO_DEBUG in the environment: of a program that is linked with the static library, of which it calls something else;
 * (WITH_DLOPEN) of one that loads the shared library, its argument, by dlopen(), which must not wait for a thread; and
 * (WITH_PRELOAD) of one that knows nothing of it: the shared library, its argument, is loaded by LD_PRELOAD. */
#define _GNU_SOURCE
#if defined(WITH_DLOPEN)
#include <dlfcn.h>
#elif defined(WITH_PRELOAD)
#include <aco/sync.h>
#include <pthread.h>
#else
#include <aco/debug.h>
#endif
#include "check.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef WITH_PRELOAD
static aco_event_t never = ACO_EVENT_INIT;

static void *waits(void *unused)
{
    return aco_event_wait(&never) == 0 ? unused : NULL;
}

static void *sleeps(void *unused)
{
    while (aco_sleep(20 * ACO_MILLISECOND) == 0)
        continue;
    return unused;
}

static void *runs(void *unused)
{
    const aco_options_t options = {.name = "unprepared"};
    CHECK(aco_spawn(waits, NULL, &options) && aco_spawn(sleeps, NULL, NULL));
    CHECK_EQ(aco_run(), 0);
    return unused;
}
#endif

static int uses_library(const char *path)
{
#if defined(WITH_DLOPEN)
    return dlopen(path, RTLD_NOW) == NULL;
#elif defined(WITH_PRELOAD)
    pthread_t thread;
    (void)path;
    return pthread_create(&thread, NULL, runs, NULL); /* it ends with the process */
#else
    (void)path;
    return aco_metric_counter("some", "Some.", ACO_METRIC_COUNT, NULL) == NULL;
#endif
}

/* The port that stands in what the child says. */
static int port_of(int fd)
{
    static const char begin[] = "http://127.0.0.1:";
    char text[1024] = "";
    size_t n = 0;
    ssize_t got;
    while (n < sizeof text - 1 && !strchr(text, '\n') && (got = read(fd, text + n, sizeof text - 1 - n)) > 0) {
        n += (size_t)got;
        text[n] = 0;
    }
    CHECK(strstr(text, begin) != NULL);
    return strstr(text, begin) ? atoi(strstr(text, begin) + sizeof begin - 1) : 0;
}

#ifdef WITH_PRELOAD
/* The page of tasks has the task's name, sooner or later. */
static void shows_task(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    static const char request[] =
        "GET /debug/pprof/tasks?debug=2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static char page[1 << 16];
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    do {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        size_t n = 0;
        ssize_t got;
        CHECK_EQ(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
        CHECK_EQ(write(fd, request, sizeof request - 1), (ssize_t)sizeof request - 1);
        while (n < sizeof page - 1 && (got = read(fd, page + n, sizeof page - 1 - n)) > 0)
            n += (size_t)got;
        page[n] = 0;
        close(fd);
    } while (strstr(page, " 200 ") && !strstr(page, "\"unprepared\" [waits for event "));
    CHECK(strstr(page, "\"unprepared\" [waits for event ") != NULL);
    CHECK(strstr(page, "\nwaits(...)\n") != NULL);
}
#else
static void shows_task(int port)
{
    (void)port;
}
#endif

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int said[2], end[2], status = -1, fd = socket(AF_INET, SOCK_STREAM, 0);
    char c;
    pid_t child;
    if (getenv("ACO_DEBUG"))
        return uses_library(argc > 1 ? argv[1] : "") || read(0, &c, 1) != 0;
    CHECK(pipe(said) == 0 && pipe(end) == 0);
    child = fork();
    if (child == 0) {
        dup2(said[1], 2);
        dup2(end[0], 0);
        close(end[1]);
        setenv("ACO_DEBUG", "127.0.0.1:0", 1);
#ifdef WITH_PRELOAD
        setenv("LD_PRELOAD", argv[1], 1);
#endif
        execv(argv[0], argv);
        _exit(3);
    }
    close(said[1]);
    address.sin_port = htons((uint16_t)port_of(said[0]));
    shows_task(ntohs(address.sin_port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(end[1]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return check_result("debug_environment");
}
