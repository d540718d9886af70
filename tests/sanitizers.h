/* Which sanitizer a test is built with: UNDER_ASAN and UNDER_TSAN, 1 or 0; SANITIZED: either of them. Under ASan each
 * coroutine on a share stack has one of its own: the given one has no owner, and nothing is saved. */
#ifndef SANITIZERS_H
#define SANITIZERS_H

#if defined(__has_feature)
#define SANITIZERS_HAS(feature) __has_feature(feature)
#else
#define SANITIZERS_HAS(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || SANITIZERS_HAS(address_sanitizer)
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || SANITIZERS_HAS(thread_sanitizer)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif
#define SANITIZED (UNDER_ASAN || UNDER_TSAN)

#endif
