/* Notes about sockets, with addresses as people write them. */
#include "sim/world.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static void write_unix_name(const aco__sim_address_t *address, char text[ACO__SIM_NOTE_TEXT])
{
    size_t n = address->name_length < ACO__SIM_NOTE_TEXT ? address->name_length : ACO__SIM_NOTE_TEXT - 1;
    memcpy(text, address->name, n);
    text[n] = 0;
    if (n && !text[0]) /* an abstract name */
        text[0] = '@';
    if (!n)
        snprintf(text, ACO__SIM_NOTE_TEXT, "a socket without a name");
}

static void write_address(const aco__sim_address_t *address, char text[ACO__SIM_NOTE_TEXT])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    int is_ipv4 = IN6_IS_ADDR_V4MAPPED(&address->ip);
    if (address->family != AF_INET6) {
        write_unix_name(address, text);
        return;
    }
    (void)inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? (const void *)&address->ip.s6_addr[12] : &address->ip, ip,
                    sizeof ip);
    snprintf(text, ACO__SIM_NOTE_TEXT, is_ipv4 ? "%s:%u" : "[%s]:%u", ip, address->port);
}

void aco__sim_note_socket(aco_sim_t *sim, aco__sim_noted_t kind, const aco__sim_socket_t *socket, int64_t value,
                          const aco__sim_address_t *address)
{
    char text[ACO__SIM_NOTE_TEXT] = "";
    if (!sim->notes.is_wanted)
        return;
    if (address)
        write_address(address, text);
    aco__sim_note(sim, kind, socket->file.number, value, text);
}
