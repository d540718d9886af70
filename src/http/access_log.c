/* Access logs: queues of lines, and the thread that writes them.
 *
 * Each file has two buffers: lines are added to one while the thread writes the other. The lock is held to add a line,
 * and to exchange the buffers, never while something is written. The first line wakes the thread, which then gathers
 * more until the delay is over or a buffer is half full: under load that is few wakes and few writes. */
#define _GNU_SOURCE
#include "base/reserved.h"
#include "base/invariants.h"
#include "http/access_line.h"
#include "os/condition.h"
#include "system/own_thread.h"
#include "system/system.h"

#include "aco/detail/for_libraries.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static const char new_call[] = "aco_access_log_new";
enum { LONGEST_WAIT_MS = 1000 }; /* for who reads a pipe */

typedef struct log_file {
    int fd, format;
    char *path;
    char *buffers[2]; /* lines are added to the first; the thread has the second, without the lock */
    size_t n; /* bytes in the first */
    size_t old; /* so many of them were there at the last wish to rotate */
    size_t taken, taken_old; /* the same of the second */
    unsigned char is_torn; /* the thread's: the file ends within a line, the rest of which could not be written */
} log_file_t;

struct aco_access_log_s {
    pthread_mutex_t lock;
    pthread_cond_t news; /* for the thread */
    pthread_t thread;
    size_t sz, queue, count;
    int64_t delay;
    aco_access_log_stats_t stats;
    unsigned char is_closing, wants_rotation, is_urgent, has_lines;
    char *line; /* room for one, when a queue may not have that */
    log_file_t files[]; /* behind them: that room, paths, buffers */
};

/* ---- The thread ---- */

/* A pipe that nobody reads is no log. */
static int open_log(const char *path)
{
    return aco__system.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
}

/* Whether a pipe has room again: other files must not wait for long. */
static int has_room(int fd)
{
    struct pollfd look = {fd, POLLOUT, 0};
    if (aco__system.poll(&look, 1, LONGEST_WAIT_MS) > 0)
        return 1;
    errno = EAGAIN;
    return 0;
}

static void note_failure(aco_access_log_t *log)
{
    int error = errno;
    aco__system.pthread_mutex_lock(&log->lock);
    log->stats.failed++;
    log->stats.error = error;
    aco__system.pthread_mutex_unlock(&log->lock);
}

/* How many bytes it has written; fewer than `n` after an error. */
static size_t write_bytes(aco_access_log_t *log, int fd, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t written = aco__system.write(fd, p + done, n - done);
        if (written < 0 && (errno == EINTR || (errno == EAGAIN && has_room(fd))))
            continue;
        if (written == 0)
            errno = EIO;
        if (written <= 0) {
            note_failure(log);
            break;
        }
        done += (size_t)written;
    }
    return done;
}

/* What follows a torn line begins a line of its own. */
static void write_lines(aco_access_log_t *log, log_file_t *file, const char *lines, size_t n)
{
    size_t done;
    if (n == 0 || (file->is_torn && write_bytes(log, file->fd, "\n", 1) == 0))
        return;
    file->is_torn = 0;
    done = write_bytes(log, file->fd, lines, n);
    if (done)
        file->is_torn = lines[done - 1] != '\n';
}

static void reopen(aco_access_log_t *log, log_file_t *file)
{
    int fd = open_log(file->path);
    if (fd < 0) {
        note_failure(log);
        return;
    }
    (void)aco__system.close(file->fd);
    file->fd = fd;
    file->is_torn = 0;
}

/* Takes the lines of a file. The lock is held. */
static void take_lines(log_file_t *file, int rotates)
{
    char *lines = file->buffers[0];
    file->taken = file->n;
    file->taken_old = rotates ? file->old : file->n;
    file->buffers[0] = file->buffers[1];
    file->buffers[1] = lines;
    file->n = file->old = 0;
}

/* Writes what there is. The lock is held, except meanwhile. */
static void write_all(aco_access_log_t *log)
{
    int rotates = log->wants_rotation;
    log->wants_rotation = log->is_urgent = log->has_lines = 0;
    for (size_t i = 0; i < log->count; i++)
        take_lines(&log->files[i], rotates);
    aco__system.pthread_mutex_unlock(&log->lock);
    for (size_t i = 0; i < log->count; i++) {
        log_file_t *file = &log->files[i];
        write_lines(log, file, file->buffers[1], file->taken_old);
        if (rotates)
            reopen(log, file);
        write_lines(log, file, file->buffers[1] + file->taken_old, file->taken - file->taken_old);
    }
    aco__system.pthread_mutex_lock(&log->lock);
}

static void *writes(void *arg)
{
    aco_access_log_t *log = arg;
    aco__system.pthread_mutex_lock(&log->lock);
    while (!log->is_closing || log->has_lines || log->wants_rotation) {
        int64_t until;
        while (!log->is_closing && !log->has_lines && !log->wants_rotation)
            aco__system.pthread_cond_wait(&log->news, &log->lock);
        until = aco_after(log->delay);
        while (!log->is_closing && !log->is_urgent && !log->wants_rotation && aco_now() < until)
            (void)aco__os_condition_wait(&log->news, &log->lock, until);
        write_all(log);
    }
    aco__system.pthread_mutex_unlock(&log->lock);
    return NULL;
}

/* ---- Lines ---- */

/* The lock is held. */
static void add_to(aco_access_log_t *log, log_file_t *file, const aco__access_t *access)
{
    size_t room = log->queue - file->n, n;
    char *end = file->buffers[0] + file->n, *begin = room < ACCESS_LINE ? log->line : end;
    n = (size_t)(aco__access_put(begin, access, file->format) - begin);
    ACO__ASSERT(n <= ACCESS_LINE);
    if (n > room) {
        log->stats.dropped++;
        return;
    }
    if (begin != end)
        memcpy(end, begin, n);
    file->n += n;
    if (file->n > log->queue / 2)
        log->is_urgent = 1;
}

void aco_access_log_add(const aco_http_request_t *request, void *arg)
{
    aco_access_log_t *log = arg;
    aco__access_t access;
    int was_empty, was_urgent;
    aco__access_of(&access, request);
    aco__system.pthread_mutex_lock(&log->lock);
    was_empty = !log->has_lines;
    was_urgent = log->is_urgent;
    for (size_t i = 0; i < log->count; i++)
        add_to(log, &log->files[i], &access);
    log->has_lines = 1;
    if (was_empty || (log->is_urgent && !was_urgent))
        aco__system.pthread_cond_signal(&log->news);
    aco__system.pthread_mutex_unlock(&log->lock);
}

void aco_access_log_rotate(aco_access_log_t *log)
{
    aco__system.pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < log->count; i++)
        log->files[i].old = log->files[i].n;
    log->wants_rotation = 1;
    aco__system.pthread_cond_signal(&log->news);
    aco__system.pthread_mutex_unlock(&log->lock);
}

void aco_access_log_stats(aco_access_log_t *log, aco_access_log_stats_t *stats)
{
    aco__system.pthread_mutex_lock(&log->lock);
    *stats = log->stats;
    aco__system.pthread_mutex_unlock(&log->lock);
}

/* ---- Opening, closing ---- */

static void free_log(aco_access_log_t *log)
{
    for (size_t i = 0; i < log->count; i++)
        if (log->files[i].fd >= 0)
            (void)aco__system.close(log->files[i].fd);
    pthread_cond_destroy(&log->news);
    pthread_mutex_destroy(&log->lock);
    aco__service_free(log, log->sz);
}

/* Opens the files; the room for their paths and buffers is at `at`. 0, or -1 and errno. */
static int open_files(aco_access_log_t *log, const aco_access_log_file_t *files, char *at)
{
    for (size_t i = 0; i < log->count; i++)
        log->files[i].fd = -1;
    for (size_t i = 0; i < log->count; i++) {
        log_file_t *file = &log->files[i];
        // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): `count` counts those that have one
        size_t n = strlen(files[i].path) + 1;
        file->format = files[i].format;
        file->buffers[0] = at;
        file->buffers[1] = at + log->queue;
        file->path = memcpy(at + 2 * log->queue, files[i].path, n);
        at += 2 * log->queue + n;
        file->fd = open_log(file->path);
        if (file->fd < 0)
            return aco__service_fail(errno, new_call, file->path);
    }
    return 0;
}

aco_access_log_t *aco_access_log_new(const aco_access_log_file_t *files, const aco_access_log_options_t *options)
{
    static const aco_access_log_options_t defaults;
    const aco_access_log_options_t *o = options ? options : &defaults;
    size_t count = 0, queue = o->queue ? o->queue : 256 << 10, sz = sizeof(aco_access_log_t) + ACCESS_LINE;
    aco_access_log_t *log;
    int is_wrong = ACO__RESERVED_IS_SET(o) || queue < ACCESS_LINE || queue > SIZE_MAX / 1024;
    for (; files && files[count].path && !is_wrong; count++) {
        is_wrong |= files[count].format < 0 || files[count].format > ACO_ACCESS_LOG_JSON || count == 100;
        sz += sizeof(log_file_t) + 2 * queue + strlen(files[count].path) + 1;
    }
    if (is_wrong || !count) {
        aco__service_fail(EINVAL, new_call, "a file, the queue, or a reserved field");
        return NULL;
    }
    log = aco__service_allocate(&sz, new_call);
    if (!log)
        return NULL;
    memset(log, 0, sizeof *log + count * sizeof(log_file_t));
    log->sz = sz;
    log->count = count;
    log->queue = queue;
    log->delay = o->delay < 0 ? 0 : o->delay ? o->delay : 100 * ACO_MILLISECOND;
    pthread_mutex_init(&log->lock, NULL);
    aco__os_condition_init(&log->news);
    log->line = (char *)(log->files + count);
    if (open_files(log, files, log->line + ACCESS_LINE) == 0) {
        const int error = aco__own_thread(&log->thread, 0, writes, log);
        if (!error)
            return log;
        (void)aco__service_fail(error, new_call, "no thread");
    }
    free_log(log);
    return NULL;
}

void aco_access_log_destroy(aco_access_log_t *log)
{
    if (!log)
        return;
    aco__system.pthread_mutex_lock(&log->lock);
    log->is_closing = 1;
    aco__system.pthread_cond_signal(&log->news);
    aco__system.pthread_mutex_unlock(&log->lock);
    aco__system.pthread_join(log->thread, NULL);
    free_log(log);
}
