/* A strict reader of JSON (RFC 8259), which walks over a text. */
#ifndef ACO_JSON_READER_H
#define ACO_JSON_READER_H

#include "base/invariants.h"

#include <stddef.h>

enum { JSON_KEY = 64 }; /* bytes of a key; a longer one is cut */

/* After the first fault nothing is read any more, and each call returns 0. */
typedef struct aco__json {
    const char *text, *at; /* the whole text, which ends with a 0; the next value, perhaps behind space */
    const char *fault; /* NULL: none */
} aco__json_t;

/* Goes to the next member of an object ('{'), whose key it stores, or of an array ('['); *count is 0 at the beginning
 * and counts them. 1: its value is to be read; 0: there are no more. */
ACO__HIDDEN int aco__json_next(aco__json_t *json, char open, int *count, char key[JSON_KEY]);
/* Each reads a value of one kind; another kind is a fault. A string of less than `size` bytes, without a NUL; text that
 * is no UTF-8 stays as it is. */
ACO__HIDDEN void aco__json_string(aco__json_t *json, char *text, size_t size);
ACO__HIDDEN double aco__json_number(aco__json_t *json);
ACO__HIDDEN int aco__json_bool(aco__json_t *json);
/* Any value, of objects and arrays at most 32 in each other. */
ACO__HIDDEN void aco__json_skip(aco__json_t *json);
/* The next byte that is no space: what kind of value comes. */
ACO__HIDDEN char aco__json_peek(aco__json_t *json);
/* What was read last is wrong, for this reason, a constant; the first fault stays. */
ACO__HIDDEN void aco__json_fail(aco__json_t *json, const char *reason);

#endif
