/* endpoint.c: sockets, and who has which address. Each node has its own ports and names. */
#ifndef ACO_ENDPOINT_H
#define ACO_ENDPOINT_H

#include "sim/socket_address.h"
#include "sim/byte_queue.h"
#include "sim/opened.h"

#include <sys/time.h>

typedef enum aco__sim_state {
    ACO__SIM_FRESH, ACO__SIM_LISTENS, ACO__SIM_CONNECTING, ACO__SIM_CONNECTED,
    ACO__SIM_RESET              /* or the connection has failed */
} aco__sim_state_t;

struct aco__sim_socket;

/* What TCP's segments ask of the stream that sends them. */
typedef struct aco__sim_sender {
    void (*pump)(aco_sim_t *sim, struct aco__sim_socket *socket); /* sends what the peer has room for, then the end */
    void (*cut)(aco_sim_t *sim, struct aco__sim_socket *socket); /* the network resets the connection on its way */
    /* What it has sent was lost too often. The peer is not told. */
    void (*time_out)(struct aco__sim_socket *socket);
} aco__sim_sender_t;

/* What a socket of streams sends: a queue of bytes that have arrived, then those on their way, then those that the
 * peer has no room for. */
typedef struct aco__sim_pipe {
    aco__sim_bytes_t bytes;
    size_t arrived, sent;       /* how many have; sent: arrived ones included */
    int64_t last;               /* when what was sent last arrives: nothing overtakes it */
    int has_sent_end, end_has_arrived;
    int losses;                 /* so often what was sent last was lost; 0: it was not */
    void (*lost)(aco_sim_t *, aco__sim_file_t *, uint64_t); /* what is sent again */
    size_t lost_size;
    int waits_for_link;         /* until it has room */
    const struct aco__sim_sender *sender;
} aco__sim_pipe_t;

typedef struct aco__sim_datagram {
    struct aco__sim_datagram *next, **place; /* place: what points to it, while it is on its way */
    aco__sim_address_t from, to;
    struct aco__sim_passed *passed; /* descriptors that go along; NULL: none */
    size_t n;
    char bytes[];
} aco__sim_datagram_t;

typedef struct aco__sim_option {
    int level, option, value;
} aco__sim_option_t;

enum { ACO__SIM_MOST_OPTIONS = 12 };

/* What the system remembers of a port of TCP: shared_port.c. */
typedef struct aco__sim_sharing {
    int is_shared;              /* the last one to bind or to begin to listen had SO_REUSEPORT */
    aco__sim_address_t address; /* its own, or that of one before, which covers it */
    int only_ipv6;              /* of who has the address */
} aco__sim_sharing_t;

typedef struct aco__sim_socket {
    aco__sim_file_t file;
    int family, type;           /* AF_…, SOCK_… */
    aco__sim_address_t local, remote; /* remote: of the peer, or the one to be */
    aco__links_t same_port;     /* sockets that are bound to a port with this remainder */
    int error;                  /* SO_ERROR */
    int reuses_address, reuses_port, only_ipv6;
    int port_was_given;         /* by the system or its listener: it did not ask for one, and a reset frees it */
    aco__sim_sharing_t sharing; /* of its port, while it has one */
    int send_size, receive_size; /* SO_SNDBUF, SO_RCVBUF */
    struct linger linger;
    struct timeval limits[2];   /* SO_RCVTIMEO, SO_SNDTIMEO: only kept. acorn_hook reads them */
    aco__sim_option_t options[ACO__SIM_MOST_OPTIONS]; /* that have no effect */
    int options_count;
    int cannot_read, cannot_write; /* by shutdown(), a reset, or a peer's end on a unix socket */
    int is_closed;              /* no descriptor is left */
    int lacks_room;             /* a write has found too little room: its end is an event */

    aco__sim_state_t state;     /* of streams, and so are the next ones */
    struct aco__sim_socket *peer; /* it is held; NULL: none, or both are closed */
    aco__sim_pipe_t out;
    struct aco__sim_passed *passed; /* by a unix socket: descriptors that go along with bytes in `out` */
    int has_peer_user;          /* SO_PEERCRED tells of it, for good: it listens, or has had a connection */
    int has_end;                /* the peer's end has arrived */
    int64_t end_came;           /* when */
    int has_ended_first;        /* its own end was sent before that */
    struct aco__sim_kept *kept; /* its address, if that is kept: time_wait.c */
    int is_told;                /* connect() has returned 0 */
    uint64_t attempts;          /* of connect() */
    int64_t asked_at;           /* when the request for a connection was sent last */
    int has_lost_reset;         /* the peer does not know that there is no connection any more */
    int backlog, half_open;     /* of a listener */
    int is_deaf;                /* it drops requests for connections */
    aco__links_t accepted;      /* a listener: sockets that wait for accept(); another: its place there */
    struct aco__sim_socket *listener; /* it is held, until the connection can be accepted */

    aco__sim_datagram_t *received, *coming; /* of datagrams: a queue, and those that it has sent */
    size_t received_size;
} aco__sim_socket_t;

/* A file that is one. */
static inline aco__sim_socket_t *aco__sim_socket_of(aco__sim_file_t *file)
{
    return (aco__sim_socket_t *)file;
}

/* SO_ERROR, which is told once. */
static inline int aco__sim_take_error(aco__sim_socket_t *socket)
{
    int error = socket->error;
    socket->error = 0;
    return error;
}

enum { ACO__SIM_PORTS = 64 };

typedef struct aco__sim_kept aco__sim_kept_t;

typedef struct aco__sim_ports {
    aco__sim_kept_t *kept, *last_kept; /* addresses after a connection's end, the oldest first */
    aco__links_t by_port[ACO__SIM_PORTS]; /* sockets, by the remainder of the port; names are in the first one */
} aco__sim_ports_t;

ACO__HIDDEN void aco__sim_ports_begin(aco_sim_t *sim);

/* A new socket without a descriptor; NULL and errno. Its buffers have no sizes yet. `flags`: O_…. */
ACO__HIDDEN aco__sim_socket_t *aco__sim_socket_new(aco_sim_t *sim, const aco__sim_type_t *kind, int family, int type,
                                                   int flags);

/* A list of sockets, by `same_port`: all that have the port are in it, and others. */
static inline aco__links_t *aco__sim_with_port(aco__sim_ports_t *ports, uint16_t port)
{
    return &ports->by_port[port % ACO__SIM_PORTS];
}

/* Gives the socket an address; port 0: a free one. 0, or -1 and errno. */
ACO__HIDDEN int aco__sim_endpoint_bind(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *address);
/* Gives a socket without an address the one from which it sends to `to`. */
ACO__HIDDEN int aco__sim_endpoint_choose(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *to);
/* The node to which the socket sends what goes to this address. */
ACO__HIDDEN aco_sim_node_t *aco__sim_endpoint_node(const aco__sim_socket_t *socket, const aco__sim_address_t *to);
/* 0 if what the socket sends can go to `to`; else -1 and errno. */
ACO__HIDDEN int aco__sim_endpoint_reaches(const aco__sim_socket_t *socket, const aco__sim_address_t *to);
/* The address from which something goes to `to`, which the socket reaches. */
ACO__HIDDEN aco__sim_address_t aco__sim_endpoint_source(const aco__sim_socket_t *socket, const aco__sim_address_t *to);
/* The same address as another one. */
ACO__HIDDEN void aco__sim_endpoint_share(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *address);
ACO__HIDDEN void aco__sim_endpoint_release(aco__sim_socket_t *socket);
/* It is bound, and is to listen. 0; or -1 and errno: another socket, or the end of one, keeps it from its address. */
ACO__HIDDEN int aco__sim_endpoint_listen(aco_sim_t *sim, aco__sim_socket_t *socket);
/* Who gets what the socket sends to `to`: a listener, or a socket of datagrams, which may be connected to `source`.
 * NULL: none. */
ACO__HIDDEN aco__sim_socket_t *aco__sim_endpoint_find(const aco__sim_socket_t *from, const aco__sim_address_t *to,
                                                      const aco__sim_address_t *source);

#endif
