/* What clients need of a jar: cookie_jar.c. */
#ifndef ACO_HTTP_COOKIE_JAR_INTERNAL_H
#define ACO_HTTP_COOKIE_JAR_INTERNAL_H

#include "os/platform.h"

#include "aco/cookie_jar.h"

/* As aco_cookie_jar_get(); what has no room is left out. */
ACO__HIDDEN ssize_t aco__cookie_jar_put(aco_cookie_jar_t *jar, const char *url, char *to, size_t size);

#endif
