/* llhttp for acorn_http, the first half: under other names. */
#include "renamed.h"
#include "api.c"
#include "http.c"
