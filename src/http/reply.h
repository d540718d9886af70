/* Replies: reply.c. */
#ifndef ACO_HTTP_REPLY_H
#define ACO_HTTP_REPLY_H

#include "http/request.h"

/* A reply that the server itself makes, with a short text. 0, or -1 and errno. */
ACO__SWITCHES ACO__HIDDEN int aco__http_answer(aco__http_exchange_t *x, int status, const char *location);

#endif
