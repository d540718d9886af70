/* Access logs of HTTP servers: a line for each request, in one or several files. In the library acorn_http.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static const aco_access_log_file_t files[] = {{"access.log", ACO_ACCESS_LOG_COMBINED}, {NULL, 0}};
 *   aco_access_log_t *log = aco_access_log_new(files, NULL);
 *   server.log = aco_access_log_add;
 *   server.log_arg = log;
 *
 * A thread of the log writes all files. Who adds a line waits neither for it nor for a disk: if the thread is behind
 * and the queue of a file is full, the line is dropped and counted. To rotate: rename the files, then call
 * aco_access_log_rotate(), for example after a SIGHUP (aco/process.h: a task waits for the signal).
 *
 * Formats. Times are UTC.
 *   - common, combined: as Apache has them. Quotes, backslashes and bytes outside of ASCII's printable ones are escaped
 *     (\xHH), so that a client cannot forge a line. Status 000: there was no reply.
 *   - JSON: an object on each line, with "time", "client", "method", "target", "host", "route" (the pattern, or null),
 *     "status", "sent" (bytes of the reply's body), "duration_ns", "referer", "user_agent". Bytes beyond ASCII become
 *     \u00HH.
 * Of each text the first 1024 bytes are logged.
 *
 * A disk that is full costs lines; the file may then have a part of one, but the next line begins a line of its own. So
 * does a pipe (also /dev/stdout can be one) of which nothing is read for a second. A named pipe without a reader cannot
 * be opened: ENXIO.
 *
 * Threads. The servers of several threads may share a log: all calls but aco_access_log_destroy() may be made on any
 * thread, at the same time. The child of a fork() has no such thread: it must not use the log, and makes its own. */
#ifndef ACO_ACCESS_LOG_H
#define ACO_ACCESS_LOG_H

#include "http.h"

ACO__BEGIN_C

typedef struct aco_access_log_s aco_access_log_t;

enum { ACO_ACCESS_LOG_COMMON, ACO_ACCESS_LOG_COMBINED, ACO_ACCESS_LOG_JSON };

typedef struct aco_access_log_file_s {
    const char *path; /* it is made with the rights 0640, and appended to; NULL: the end of a list */
    int format;       /* ACO_ACCESS_LOG_… */
} aco_access_log_file_t;

/* Zeros are the defaults. */
typedef struct aco_access_log_options_s {
    size_t queue;           /* bytes of lines that wait for each file, at most: 256 KiB; at least 32 KiB */
    int64_t delay;          /* ns after which a line is written, at most: 100 ms. Less than 0: none */
    void *aco__reserved[2]; /* reserved fields are 0 */
} aco_access_log_options_t;

typedef struct aco_access_log_stats_s {
    uint64_t dropped; /* lines for which a queue had no room */
    uint64_t failed;  /* files that could not be opened anew (the old one is used on), or written: lines are lost */
    int error;        /* the errno of the last of these failures; 0: none */
} aco_access_log_stats_t;

/* Opens the files and begins the log's thread. The list is copied. Returns the log; on error NULL with errno EINVAL
 * (no file, an unknown format, a queue out of bounds, a reserved field), ENOMEM, EAGAIN (no thread), or one of
 * open(). */
ACO_API aco_access_log_t *aco_access_log_new(const aco_access_log_file_t *files,
                                             const aco_access_log_options_t *options);
/* Writes what waits, ends the thread and closes the files. Blocks the calling thread meanwhile. All servers that use
 * the log must have ended. NULL: nothing happens. */
ACO_API void aco_access_log_destroy(aco_access_log_t *log);

/* Adds a line for a request whose reply has been made, to each file. `log` is an aco_access_log_t: the function is a
 * server's `log`. Never waits. */
ACO_API void aco_access_log_add(const aco_http_request_t *request, void *log);

/* Lines that are added from now on go to files that are opened anew; earlier ones still go to the old ones. Does not
 * wait: the log's thread does it soon. */
ACO_API void aco_access_log_rotate(aco_access_log_t *log);

/* Stores the counts so far in *stats. */
ACO_API void aco_access_log_stats(aco_access_log_t *log, aco_access_log_stats_t *stats);

ACO__END_C

#endif
