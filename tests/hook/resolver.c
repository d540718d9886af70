/* Look-ups that last until the test opens the gate (tests/hook_names.c). */
#include <netdb.h>
#include <unistd.h>

unsigned resolver_gate_is_closed, resolver_at_gate;

static void wait_at_gate(void)
{
    __atomic_fetch_add(&resolver_at_gate, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&resolver_gate_is_closed, __ATOMIC_ACQUIRE))
        usleep(100);
    __atomic_fetch_sub(&resolver_at_gate, 1, __ATOMIC_ACQ_REL);
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
    (void)host, (void)port, (void)hints, (void)found;
    wait_at_gate();
    return EAI_NONAME;
}

int getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_room, char *port,
                socklen_t port_room, int flags)
{
    (void)address, (void)length, (void)host, (void)host_room, (void)port, (void)port_room, (void)flags;
    wait_at_gate();
    return EAI_NONAME;
}
