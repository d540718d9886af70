/* A server's end without its wait of 20 ms for handshakes that have begun (src/http/backlog.c), in tests of hundreds
 * of servers whose clients have connected before: by the linker's --wrap=aco__http_close_door. */
#ifndef NO_HANDSHAKES_H
#define NO_HANDSHAKES_H

#include <stdint.h>

int64_t __real_aco__http_close_door(int listener);
int64_t __wrap_aco__http_close_door(int listener);
int64_t __wrap_aco__http_close_door(int listener)
{
    return __real_aco__http_close_door(listener) ? 1 : 0;
}

#endif
