/* Promises: in a run, files are on a simulated disk. A crash keeps what fsync() has made durable, and of the rest what
 * the seed decides. Programs that forget an fsync() are found. */
#include "sim_checks.h"

#include "aco/file.h"
#include "aco/io.h"
#include "aco/scope.h"
#include "aco/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { RUNS = 300 };

/* One of the seeds fails for this reason. */
static void is_found(aco_sim_function_t scenario, void *arg, const char *reason)
{
    aco_sim_stats_t stats;
    capture();
    CHECK(aco_sim_run(scenario, arg, RUNS, &stats, NULL) == -1);
    release();
    CHECK(is_in(stats.reason, reason));
}

#define NEEDS(sim, condition) ((condition) ? 0 : aco_sim_fail(sim, #condition))

/* ---- A write-ahead log ---- */

/* What one forgets who writes it. */
typedef enum fault { NONE, NO_SYNC, NO_FOLDER_SYNC, NO_SUM, TRUSTS_SECOND_SYNC } fault_t;

enum { RECORDS = 8, MOST_TEXT = 6000 };

typedef struct record { /* before its text */
    uint32_t number, length, sum;
} record_t;

typedef struct log {
    fault_t fault;
    int fd;
    int64_t end;
    uint32_t acknowledged;      /* so many records must be there after a crash */
} log_t;

static uint32_t sum_of(const char *p, size_t n)
{
    uint32_t sum = 17;
    while (n-- > 0)
        sum = sum * 31 + (unsigned char)*p++;
    return sum;
}

/* Its length and bytes follow from the number. */
static uint32_t text_of(uint32_t number, char *text)
{
    uint32_t n = 1 + number * 977 % MOST_TEXT;
    for (uint32_t i = 0; i < n; i++)
        text[i] = (char)('a' + (number + i) % 26);
    return n;
}

static int sync_folder(const char *path)
{
    int folder = aco_file_open(path, O_RDONLY | O_DIRECTORY, 0), done;
    done = aco_file_sync(folder);
    return aco_io_close(folder) == 0 ? done : -1;
}

static int create_log(log_t *log)
{
    if (aco_dir_make("data", 0777) != 0 && errno != EEXIST)
        return -1;
    log->fd = aco_file_open("data/log", O_RDWR | O_CREAT, 0666);
    if (log->fd < 0 || log->fault == NO_FOLDER_SYNC)
        return log->fd < 0 ? -1 : 0;
    return sync_folder("data") == 0 ? sync_folder("/") : -1;
}

static int write_all(int fd, const char *p, size_t n, int64_t offset)
{
    while (n > 0) {
        ssize_t written = aco_file_pwrite(fd, p, n, offset);
        if (written <= 0)
            return -1;
        p += written;
        offset += written;
        n -= (size_t)written;
    }
    return 0;
}

static int read_all(int fd, char *p, size_t n, int64_t offset)
{
    while (n > 0) {
        ssize_t got = aco_file_pread(fd, p, n, offset);
        if (got <= 0)
            return -1;
        p += got;
        offset += got;
        n -= (size_t)got;
    }
    return 0;
}

/* 0: it is acknowledged. */
static int append_record(log_t *log, uint32_t number)
{
    char bytes[sizeof(record_t) + MOST_TEXT];
    record_t record = {number, text_of(number, bytes + sizeof record), 0};
    size_t n = sizeof record + record.length;
    record.sum = sum_of(bytes + sizeof record, record.length);
    memcpy(bytes, &record, sizeof record);
    if (write_all(log->fd, bytes, n, log->end) != 0)
        return -1;
    if (log->fault != NO_SYNC && aco_file_sync(log->fd) != 0 &&
        (log->fault != TRUSTS_SECOND_SYNC || aco_file_sync(log->fd) != 0))
        return -1;
    log->end += (int64_t)n;
    log->acknowledged = number;
    return 0;
}

/* Reads the record at the end of the part that is known. 1; 0: there is none, or it is torn. */
static int read_record(aco_sim_t *sim, log_t *log, uint32_t number)
{
    char text[MOST_TEXT], expected[MOST_TEXT];
    record_t record;
    if (read_all(log->fd, (char *)&record, sizeof record, log->end) != 0 || record.number != number ||
        record.length > MOST_TEXT || read_all(log->fd, text, record.length, log->end + (int64_t)sizeof record) != 0)
        return 0;
    if (log->fault != NO_SUM && record.sum != sum_of(text, record.length))
        return 0;
    if (record.length != text_of(number, expected) || memcmp(text, expected, record.length) != 0)
        aco_sim_fail(sim, "a torn record is taken for a whole one");
    log->end += (int64_t)(sizeof record + record.length);
    return 1;
}

/* After a crash: all acknowledged records are there. What follows is cut off. Returns the number of the last one. */
static uint32_t recover(aco_sim_t *sim, log_t *log)
{
    uint32_t number = 0;
    log->end = 0;
    if (create_log(log) != 0)
        return (void)aco_sim_fail(sim, "the log cannot be opened"), 0;
    while (read_record(sim, log, number + 1))
        number++;
    if (number < log->acknowledged)
        aco_sim_fail(sim, "an acknowledged record is lost");
    NEEDS(sim, aco_file_truncate(log->fd, log->end) == 0 && aco_file_sync(log->fd) == 0);
    log->acknowledged = number;
    return number;
}

static void *write_records(void *arg)
{
    log_t *log = arg;
    for (uint32_t i = log->acknowledged + 1; i <= RECORDS && append_record(log, i) == 0; i++)
        ;
    return NULL;
}

/* A writer, and a crash at some time; five times. */
static void log_scenario(aco_sim_t *sim, void *arg)
{
    log_t log = {*(fault_t *)arg, -1, 0, 0};
    aco_sim_disk_t disk = {0};
    disk.short_transfers = 0.1;
    NEEDS(sim, aco_sim_disk(sim, "*", &disk) == 0);
    for (int i = 0; i < 5; i++) {
        aco_t *writer;
        recover(sim, &log);
        disk.sync_errors = log.fault == TRUSTS_SECOND_SYNC ? 0.3 : 0;
        NEEDS(sim, aco_sim_disk(sim, "*", &disk) == 0);
        writer = aco_spawn(write_records, &log, NULL);
        aco_sleep((int64_t)aco_sim_random(sim, 20 * ACO_MILLISECOND));
        NEEDS(sim, aco_sim_disk_crash(sim) == 0);
        aco_join(writer, NULL);
        NEEDS(sim, aco_io_close(log.fd) == 0);
        disk.sync_errors = 0;
        NEEDS(sim, aco_sim_disk(sim, "*", &disk) == 0);
    }
    recover(sim, &log);
    aco_io_close(log.fd);
}

static void log_is_durable(void)
{
    fault_t fault = NONE;
    passes(log_scenario, &fault, RUNS);
    fault = NO_SYNC;
    is_found(log_scenario, &fault, "an acknowledged record is lost");
    fault = NO_FOLDER_SYNC;
    is_found(log_scenario, &fault, "an acknowledged record is lost");
    fault = NO_SUM;
    is_found(log_scenario, &fault, "a torn record is taken for a whole one");
    fault = TRUSTS_SECOND_SYNC;
    is_found(log_scenario, &fault, "an acknowledged record is lost");
}

/* ---- A file that is replaced ---- */

static int put(const char *path, const char *text, int is_synced)
{
    int fd = aco_file_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666), done;
    done = fd < 0 ? -1 : write_all(fd, text, strlen(text), 0);
    if (is_synced)
        done |= aco_file_sync(fd);
    return aco_io_close(fd) == 0 ? done : -1;
}

static const char *get(const char *path, char *text, size_t room)
{
    int fd = aco_file_open(path, O_RDONLY, 0);
    ssize_t n = fd < 0 ? -1 : aco_file_read(fd, text, room - 1);
    if (n < 0)
        strcpy(text, fd < 0 ? "none" : "error");
    else
        text[n] = 0;
    aco_io_close(fd);
    return text;
}

static void replace_scenario(aco_sim_t *sim, void *arg)
{
    int is_synced = arg != NULL;
    char text[16];
    put("config", "old", 1);
    NEEDS(sim, sync_folder("/") == 0);
    put("config.new", "new", is_synced);
    NEEDS(sim, aco_file_rename("config.new", "config") == 0);
    NEEDS(sim, strcmp(get("config", text, sizeof text), "new") == 0);
    NEEDS(sim, aco_sim_disk_crash(sim) == 0);
    get("config", text, sizeof text);
    if (strcmp(text, "old") != 0 && strcmp(text, "new") != 0)
        aco_sim_fail(sim, "the file is neither old nor new");
    if (aco_file_stat("config.new", &(aco_file_status_t){0}) == 0 && strcmp(text, "old") != 0)
        aco_sim_fail(sim, "the file has two names");
}

static void replacing_is_atomic(void)
{
    passes(replace_scenario, "synced", RUNS);
    is_found(replace_scenario, NULL, "the file is neither old nor new");
}

/* ---- Names ---- */

/* A crash may take back anything that is not durable, but what is left is a tree. */
static void names_scenario(aco_sim_t *sim, void *arg)
{
    static const char *const names[] = {"a", "b", "a/a", "a/b", "b/a", "b/b", "a/a/a"};
    aco_dir_entry_t entry;
    aco_dir_t *dir;
    (void)arg;
    NEEDS(sim, aco_dir_make("kept", 0777) == 0 && put("kept/file", "x", 1) == 0);
    NEEDS(sim, sync_folder("kept") == 0 && sync_folder("/") == 0);
    for (int i = 0; i < 30; i++) {
        const char *one = names[aco_sim_random(sim, 7)], *other = names[aco_sim_random(sim, 7)];
        switch (aco_sim_random(sim, 6)) {
        case 0:
            (void)aco_dir_make(one, 0777);
            break;
        case 1:
            (void)aco_file_rename(one, other);
            break;
        case 2:
            (void)(aco_dir_remove(one) == 0 || aco_file_unlink(one) == 0);
            break;
        case 3:
            (void)aco_file_link(one, other);
            break;
        case 4:
            (void)sync_folder(one);
            break;
        default:
            (void)put(one, "text", aco_sim_random(sim, 2) != 0);
        }
    }
    NEEDS(sim, aco_sim_disk_crash(sim) == 0);
    NEEDS(sim, aco_file_stat("kept/file", &(aco_file_status_t){0}) == 0);
    dir = aco_dir_open("/");
    while (dir && aco_dir_read(dir, &entry) == 1)
        NEEDS(sim, strlen(entry.name) == 1 || strcmp(entry.name, "kept") == 0);
    NEEDS(sim, aco_dir_close(dir) == 0);
}

/* ---- Faults ---- */

static void full_disk(aco_sim_t *sim, void *arg)
{
    static const char page[4096];
    aco_sim_disk_t disk = {0};
    int fd = aco_file_open("file", O_RDWR | O_CREAT, 0666);
    (void)arg;
    disk.capacity = 3 * sizeof page;
    NEEDS(sim, aco_sim_disk(sim, "*", &disk) == 0);
    NEEDS(sim, aco_file_pwrite(fd, page, sizeof page, 0) == sizeof page);
    NEEDS(sim, aco_file_pwrite(fd, page, sizeof page, 10 * sizeof page + 1) == sizeof page); /* a hole is free */
    NEEDS(sim, aco_file_pwrite(fd, page, sizeof page, 4 * sizeof page) == -1 && errno == ENOSPC);
    NEEDS(sim, aco_file_pwrite(fd, page, 100, 0) == 100);
    NEEDS(sim, aco_file_truncate(fd, 0) == 0);
    NEEDS(sim, aco_file_pwrite(fd, page, sizeof page, 4 * sizeof page) == sizeof page);
    NEEDS(sim, aco_file_truncate(fd, ((int64_t)1 << 30) + 1) == -1 && errno == EFBIG);
    NEEDS(sim, aco_io_close(fd) == 0);
}

static void bad_disk(aco_sim_t *sim, void *arg)
{
    int fd = aco_file_open("file", O_RDWR | O_CREAT, 0666), failed = 0;
    aco_sim_disk_t disk = {0};
    char bytes[100];
    (void)arg;
    disk.read_errors = disk.write_errors = disk.sync_errors = 0.5;
    NEEDS(sim, aco_sim_disk(sim, "*", &disk) == 0);
    for (int i = 0; i < 100; i++) {
        ssize_t n = i % 3 == 0   ? aco_file_pwrite(fd, "text", 4, 0)
                    : i % 3 == 1 ? aco_file_pread(fd, bytes, sizeof bytes, 0)
                                 : aco_file_sync(fd);
        failed += n < 0;
        NEEDS(sim, n >= 0 || errno == EIO);
    }
    NEEDS(sim, failed > 10 && failed < 90);
    NEEDS(sim, aco_sim_disk(sim, "*", NULL) == 0 && aco_file_sync(fd) == 0);
    NEEDS(sim, aco_io_close(fd) == 0);
}

/* The rest of a short write is written by who checks its result. */
static void short_writes(aco_sim_t *sim, void *arg)
{
    aco_sim_disk_t disk = {0};
    char text[16];
    int fd = aco_file_open("file", O_WRONLY | O_CREAT, 0666);
    disk.short_transfers = 0.1;
    NEEDS(sim, aco_sim_disk(sim, "*", &disk) == 0);
    if (arg)
        (void)aco_file_pwrite(fd, "hello", 5, 0);
    else
        NEEDS(sim, write_all(fd, "hello", 5, 0) == 0);
    NEEDS(sim, aco_io_close(fd) == 0 && aco_sim_disk(sim, "*", NULL) == 0);
    if (strcmp(get("file", text, sizeof text), "hello") != 0)
        aco_sim_fail(sim, "the text is short");
}

/* What was open before a crash is dead. */
static void dead_files(aco_sim_t *sim, void *arg)
{
    int fd = aco_file_open("file", O_RDWR | O_CREAT, 0666);
    aco_dir_t *dir = aco_dir_open("/");
    aco_dir_entry_t entry;
    char byte = 0;
    (void)arg;
    NEEDS(sim, aco_sim_disk_crash(sim) == 0);
    NEEDS(sim, aco_file_write(fd, &byte, 1) == -1 && errno == EIO);
    NEEDS(sim, aco_file_pread(fd, &byte, 1, 0) == -1 && errno == EIO);
    NEEDS(sim, aco_file_sync(fd) == -1 && errno == EIO);
    NEEDS(sim, aco_file_truncate(fd, 0) == -1 && errno == EIO);
    NEEDS(sim, aco_dir_read(dir, &entry) == -1 && errno == EIO);
    NEEDS(sim, aco_dir_close(dir) == 0 && aco_io_close(fd) == 0);
}

/* ---- Waits ---- */

static void slow_disk(aco_sim_t *sim, void *arg)
{
    int64_t began = aco_now();
    aco_sim_disk_t disk = {{ACO_SECOND, ACO_SECOND}, 0, 0, 0, 0, 0, 0, {NULL}};
    char byte = 'x';
    aco_scope_t scope;
    int fd;
    (void)arg;
    NEEDS(sim, aco_sim_disk(sim, "*", &disk) == 0);
    fd = aco_file_open("file", O_RDWR | O_CREAT, 0666);
    NEEDS(sim, aco_now() - began == ACO_SECOND);
    (void)aco_scope_begin(&scope, aco_now() + ACO_SECOND / 2);
    NEEDS(sim, aco_file_sync(fd) == -1 && errno == ETIMEDOUT);
    NEEDS(sim, aco_now() - began == ACO_SECOND * 3 / 2);
    NEEDS(sim, aco_file_write(fd, &byte, 1) == -1 && errno == ETIMEDOUT);
    (void)aco_scope_end(&scope);
    NEEDS(sim, aco_file_write(fd, &byte, 1) == 1);
    NEEDS(sim, aco_io_close(fd) == 0);
}

/* A scope that ends in the middle of a call: the call may be made, or not, and leaves nothing open. */
static void ended_calls(aco_sim_t *sim, void *arg)
{
    aco_scope_t scope;
    int fd;
    (void)arg;
    for (int i = 0; i < 20; i++) {
        (void)aco_scope_begin(&scope, aco_now() + (int64_t)aco_sim_random(sim, ACO_MILLISECOND));
        fd = aco_file_open("file", O_WRONLY | O_CREAT, 0666);
        if (fd >= 0)
            (void)aco_file_write(fd, "hello", 5);
        (void)aco_scope_end(&scope);
        if (fd >= 0)
            NEEDS(sim, aco_io_close(fd) == 0);
    }
}

/* ---- The calls of aco/io.h ---- */

/* They move the file's own position. */
static void own_position(aco_sim_t *sim, void *arg)
{
    int fd = aco_file_open("file", O_RDWR | O_CREAT | O_APPEND, 0666), copy;
    char text[16] = "";
    (void)arg;
    NEEDS(sim, aco_io_write_all(fd, "hello", 5) == 5);
    NEEDS(sim, aco_file_write(fd, ", world", 7) == 7);
    copy = aco_file_open("file", O_RDONLY, 0);
    NEEDS(sim, aco_io_read_exactly(copy, text, 5) == 5 && strcmp(text, "hello") == 0);
    NEEDS(sim, aco_file_read(copy, text, sizeof text) == 7 && memcmp(text, ", world", 7) == 0);
    NEEDS(sim, aco_io_read(copy, text, 1) == 0);
    NEEDS(sim, aco_io_close(fd) == 0 && aco_io_close(copy) == 0);
}

/* ---- What there is not ---- */

static void open_device(aco_sim_t *sim, void *arg)
{
    (void)sim;
    CHECK(aco_file_open(arg, O_RDONLY, 0) == -1 && errno == ENOSYS);
}

static void leave_open(aco_sim_t *sim, void *arg)
{
    NEEDS(sim, aco_file_open(arg, O_WRONLY | O_CREAT, 0666) >= 0);
}

static void misuse(aco_sim_t *sim, void *arg)
{
    aco_sim_disk_t bad = {0};
    (void)arg;
    CHECK(aco_sim_disk(NULL, "*", NULL) == -1 && errno == EINVAL);
    CHECK(aco_sim_disk_crash(NULL) == -1 && errno == EINVAL);
    CHECK(aco_sim_disk(sim, "other", NULL) == -1 && errno == EINVAL);
    bad.latency.min = 1;
    CHECK(aco_sim_disk(sim, "*", &bad) == -1 && errno == EINVAL);
    bad.latency.min = 0;
    bad.read_errors = 1.5;
    CHECK(aco_sim_disk(sim, "*", &bad) == -1 && errno == EINVAL);
    bad.read_errors = 0;
    bad.sector = 1024;
    CHECK(aco_sim_disk(sim, "*", &bad) == -1 && errno == EINVAL);
    bad.sector = 512;
    bad.aco__reserved[1] = &bad;
    CHECK(aco_sim_disk(sim, "*", &bad) == -1 && errno == EINVAL);
}

int main(void)
{
    log_is_durable();
    replacing_is_atomic();
    passes(names_scenario, NULL, RUNS);
    passes(full_disk, NULL, 20);
    passes(bad_disk, NULL, 50);
    passes(short_writes, NULL, RUNS);
    is_found(short_writes, "once", "the text is short");
    passes(dead_files, NULL, 20);
    passes(slow_disk, NULL, 20);
    passes(ended_calls, NULL, RUNS);
    passes(own_position, NULL, 50);
    is_found(open_device, "/dev/null", "aco_file_open() is not simulated: it needs open()");
    is_found(leave_open, "file", "descriptors that were not closed: 1; the first is ");
    passes(misuse, NULL, 1);
    return check_result("sim_disk");
}
