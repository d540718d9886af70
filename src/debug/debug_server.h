/* debug_server.c: the thread that serves the pages. */
#ifndef ACO_DEBUG_SERVER_H
#define ACO_DEBUG_SERVER_H

#include "debug/page.h"

/* Whose object reads ACO_DEBUG: who refers to it is linked with that object in a static program, too. */
ACO__HIDDEN extern const char aco__debug_environment;

#endif
