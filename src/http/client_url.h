/* URLs as clients use them: client_url.c. */
#ifndef ACO_HTTP_CLIENT_URL_H
#define ACO_HTTP_CLIENT_URL_H

#include "os/platform.h"

enum { CLIENT_HOST = 256, CLIENT_PORT = 6, CLIENT_TARGET = 4096, CLIENT_URL = CLIENT_TARGET + 512, CLIENT_USER = 256 };

typedef struct aco__http_client_url {
    int is_tls;
    char host[CLIENT_HOST];    /* without brackets, and without a zone, which means nothing to others */
    char address[CLIENT_HOST]; /* what is dialed: the host, with its zone */
    char port[CLIENT_PORT];    /* never empty */
    char text[CLIENT_URL];     /* the whole of it, without user and fragment */
    size_t target_at;          /* in the text: path and query */
} aco__http_client_url_t;

/* Takes a URL apart. `user`: CLIENT_USER bytes for "name:password", which becomes "" if there is none; NULL: there must
 * be none. 0, or -1 and errno. */
ACO__HIDDEN int aco__http_client_url_set(aco__http_client_url_t *url, const char *text, int may_be_tls, char *user);
/* Goes where a redirect leads. Servers send spaces and UTF-8 without escapes, and browsers follow: these get escapes.
 * 0, or -1 and errno. */
ACO__HIDDEN int aco__http_client_url_redirect(aco__http_client_url_t *url, const char *to, int may_be_tls);

/* The URLs of a call, the last one first, each with the status of its response. */
typedef struct aco__http_hop {
    struct aco__http_hop *before;
    size_t sz;
    int status;
    char url[];
} aco__http_hop_t;
/* Adds one. 0, or -1 and errno. */
ACO__HIDDEN int aco__http_add_hop(aco__http_hop_t **last, const char *url, int status);
ACO__HIDDEN void aco__http_free_hops(aco__http_hop_t *last);

#endif
