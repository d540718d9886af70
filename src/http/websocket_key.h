/* The answer to the key of WebSocket's handshake: websocket_key.c. */
#ifndef ACO_HTTP_WEBSOCKET_KEY_H
#define ACO_HTTP_WEBSOCKET_KEY_H

#include "os/platform.h"

enum { HTTP_WEBSOCKET_KEY = 24 }; /* characters */
/* Writes the answer to the key of a handshake: the end of what is written. */
ACO__HIDDEN char *aco__http_put_accepted(char *at, const char *key);

#endif
