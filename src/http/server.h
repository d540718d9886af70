/* A server: server.c. */
#ifndef ACO_HTTP_SERVER_H
#define ACO_HTTP_SERVER_H

#include "base/invariants.h"
#include "http/text.h"

#include "aco/group.h"
#include "aco/sync.h"

struct aco_http_server_s {
    aco_http_server_options_t options; /* with the defaults filled in */
    size_t sz;
    struct aco__http_connection *first; /* all of them: server_connection.c */
    struct aco__http_workspace *unflushed; /* they have output of earlier replies while their handlers run */
    struct aco__http_workspace *spare; /* memory for requests: http1_server.c */
    aco_group_t group;
    aco_t *keeper; /* NULL: the server has no listener, and its connections are other tasks' */
    aco_event_t group_has_begun;
    int taken; /* a connection that was accepted and has no task yet; -1: none */
    int reserve; /* aco__http_reserve() */
    struct aco__http_address *taken_address; /* that counts it; NULL: none */
    struct aco__http_addresses *addresses; /* NULL: connections of one address have no limit */
    struct aco__http_member *member; /* of options.balance: balance.c. NULL: none */
    struct aco__http_drain *drains, *left_drains; /* drain.c's */
    int serving; /* connections within max_connections, if max_refused bounds the others */
    int encoders; /* of replies that are compressed at the moment */
    size_t streams, buffered; /* HTTP/2: of all connections: requests; bytes of their bodies, also in calls of gRPC */
    size_t fresh_streams; /* of these, those whose tasks have not begun */
    unsigned char is_draining; /* stopped: handlers are told */
    unsigned char is_ending; /* replies end their connections */
    unsigned char measures; /* handlers are measured: balance.c */
    /* A request took long if this is less than the time from its begin to the end of the idle_time behind it. */
    int64_t suspect_after;
    unsigned char is_left; /* aco_http_serve() could not wait: the keeper frees this record */
    int64_t idle_until; /* when it ends: connections without a request are closed */
    aco__http_date_t date;
};

#endif
