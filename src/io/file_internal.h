/* A call for a file: file.c makes it, and has it performed by the thread's io_uring or by a thread of the pool. */
#ifndef ACO_IO_FILE_INTERNAL_H
#define ACO_IO_FILE_INTERNAL_H

#include "io/uring.h"

#include "aco/file.h"

typedef enum file_operation {
    FILE_OPEN, FILE_READ, FILE_WRITE, FILE_SYNC, FILE_STAT, FILE_RENAME,
    FILE_TRUNCATE, FILE_LINK, FILE_UNLINK, FILE_MKDIR, FILE_RMDIR, FILE_OPEN_BENEATH /* these never go by io_uring */
} file_operation_t;

typedef struct file_call {
    file_operation_t operation;
    int fd;             /* -1: of a path */
    int flags;
    unsigned mode;
    int links;          /* ACO_FILE_…_LINKS */
    int64_t offset;     /* -1: the file's own. Of a truncation: the size */
    void *p;            /* of a stat(): where the kernel writes, for io_uring */
    size_t n;
    aco_file_status_t *status; /* for a stat(). This and the next two are behind the record */
    char *path, *other;
    ssize_t result;
    int error;          /* errno, if the result is -1 */
    void (*release)(void *call, void *result);
    struct file_call *next; /* in aco__io_t's list */
    size_t sz;
    aco__io_op_t op;
} file_call_t;

/* A time since 1970; one that has no number of nanoseconds (before 1677, after 2262) becomes the first or the last. */
static inline int64_t aco__file_ns(int64_t seconds, int64_t ns)
{
    return seconds >= INT64_MAX / ACO_SECOND   ? INT64_MAX
           : seconds <= INT64_MIN / ACO_SECOND ? INT64_MIN
                                               : seconds * ACO_SECOND + ns;
}

enum { LARGEST_STATX = 256 }; /* struct statx has this size for ever */

/* Fails with errno and a message that has the path. Scopes' errors have no message. */
ACO__HIDDEN int aco__io_fail_path(const char *call, const char *path);

#endif
