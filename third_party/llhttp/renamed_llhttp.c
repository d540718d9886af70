/* llhttp for acorn_http, the second half: under other names. Both halves declare the same functions differently. */
#include "renamed.h"
#include "llhttp.c"
