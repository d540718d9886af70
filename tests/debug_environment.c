/* ACO_DEBUG in the environment: of a program that is linked with the static library, of which it calls something else;
 * and (WITH_DLOPEN) of one that loads the shared library, its argument, by dlopen(), which must not wait for a
 * thread. */
#define _GNU_SOURCE
#ifdef WITH_DLOPEN
#include <dlfcn.h>
#else
#include <aco/debug.h>
#endif
#include "check.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int uses_library(const char *path)
{
#ifdef WITH_DLOPEN
    return dlopen(path, RTLD_NOW) == NULL;
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
        execv(argv[0], argv);
        _exit(3);
    }
    close(said[1]);
    address.sin_port = htons((uint16_t)port_of(said[0]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(end[1]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return check_result("debug_environment");
}
