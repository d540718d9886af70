/* Replaces the C library's assert() by one that holds under NDEBUG too, and adds short names for its relatives, as
 * libaco documents them. For application sources only, and the last of their includes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ACO_ASSERT_OVERRIDE_H
#define ACO_ASSERT_OVERRIDE_H

#include "aco.h"

#undef likely
#undef unlikely
#undef assert
#undef assertptr
#undef assertalloc_bool
#undef assertalloc_ptr

#define likely(x) aco_likely(x)
#define unlikely(x) aco_unlikely(x)
#define assert(EX) aco_assert(EX)
#define assertptr(ptr) aco_assertptr(ptr)
#define assertalloc_bool(b) aco_assertalloc_bool(b)
#define assertalloc_ptr(ptr) aco_assertalloc_ptr(ptr)

#endif
