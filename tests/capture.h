/* What the program writes to stderr, kept in a file for a while. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int real_stderr, captured;
static char captured_text[1 << 16];

static inline void capture(void)
{
    char path[] = "/tmp/acorn_captured_XXXXXX";
    fflush(stderr);
    real_stderr = dup(2);
    captured = mkstemp(path);
    unlink(path);
    dup2(captured, 2);
}

static inline off_t captured_bytes(void)
{
    struct stat status;
    return fstat(captured, &status) == 0 ? status.st_size : 0;
}

/* What there is so far. */
static inline const char *look_at_captured(void)
{
    ssize_t n = pread(captured, captured_text, sizeof captured_text - 1, 0);
    captured_text[n > 0 ? n : 0] = 0;
    return captured_text;
}

/* Ends it: what there is. */
static inline const char *release(void)
{
    fflush(stderr);
    dup2(real_stderr, 2);
    look_at_captured();
    close(captured);
    close(real_stderr);
    return captured_text;
}

#endif
