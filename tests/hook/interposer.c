/* A library that stands before acorn_hook and has a function with one of its names, as those that send a program's
 * connections through a proxy do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>

int interposed_connects;

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    int (*next)(int, __CONST_SOCKADDR_ARG, socklen_t);
    void *symbol = dlsym(RTLD_NEXT, "connect");
    memcpy(&next, &symbol, sizeof next);
    interposed_connects++;
    return next(fd, address, length);
}
