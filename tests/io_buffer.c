/* Buffered reading and writing (include/aco/io_buffer.h): bounds of the buffer, ends of the stream, what a scope that
 * ends leaves, lent buffers. All with buffers of the caller's and lent ones, and with short results and
 * interruptions. */
#include "replace.h" /* first */

#include "io_tests.h"

#include <aco/io_buffer.h>

/* ---- The system ---- */

static int storms, is_short; /* each other call is interrupted; few bytes at once */

static int is_interrupted(void)
{
    static unsigned calls;
    if (!storms || ++calls % 2)
        return 0;
    errno = EINTR;
    return 1;
}

static size_t part_of(size_t n)
{
    return is_short && n > 3 ? 3 : n;
}

FAILING(ssize_t, read, (int fd, void *p, size_t n), (fd, p, part_of(n)), is_interrupted(), -1)
FAILING(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, part_of(n)), is_interrupted(), -1)
FAILING(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, part_of(n), flags), is_interrupted(), -1)

/* ---- Reading ---- */

enum { SIZE = 16 };
static char memory[SIZE]; /* the caller's buffer */
static void *given;       /* it, or NULL: a lent one */

/* ---- Descriptors, or streams that nobody knows to be descriptors ---- */

static int by_stream;
static aco_stream_t read_one, written_one;

static ssize_t own_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    return aco_io_read_at(stream->fd, p, n, location);
}

static ssize_t own_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    return aco_io_write_at(stream->fd, p, n, location);
}

static int own_wait_readable(aco_stream_t *stream, const char *location)
{
    return aco_io_wait_readable_at(stream->fd, location);
}

static const aco_stream_functions_t own = {.read = own_read, .write = own_write, .wait_readable = own_wait_readable};

static void open_reader(aco_io_reader_t *r, int fd)
{
    read_one = (aco_stream_t){&own, fd};
    if (by_stream)
        aco_io_reader_open_stream(r, &read_one, given, SIZE);
    else
        aco_io_reader_open(r, fd, given, SIZE);
}

static void open_writer(aco_io_writer_t *w, int fd, void *buffer, size_t size)
{
    written_one = (aco_stream_t){&own, fd};
    if (by_stream)
        aco_io_writer_open_stream(w, &written_one, buffer, size);
    else
        aco_io_writer_open(w, fd, buffer, size);
}

/* ---- Reading it ---- */

typedef struct source {
    int fd;
    const char *text;
    size_t piece;
} source_t;

static void *writes_pieces(void *arg)
{
    const source_t *s = arg;
    size_t left = strlen(s->text);
    const char *at = s->text;
    while (left > 0) {
        size_t n = left < s->piece ? left : s->piece;
        CHECK_EQ(aco_io_write_all(s->fd, at, n), (ssize_t)n);
        at += n;
        left -= n;
        aco_task_yield();
    }
    CHECK_EQ(aco_io_shutdown(s->fd, SHUT_WR), 0);
    return NULL;
}

/* Calls read(reader) while `text` comes in pieces of this size. */
static void with_text(const char *text, size_t piece, void (*read_it)(aco_io_reader_t *r))
{
    int pair[2];
    source_t source = {0, text, piece};
    aco_io_reader_t r;
    aco_group_t group;
    make_pair(pair, SOCK_STREAM);
    source.fd = pair[1];
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, writes_pieces, &source);
    open_reader(&r, pair[0]);
    read_it(&r);
    aco_io_reader_close(&r);
    aco_group_end(&group);
    close_both(pair);
}

static void is_line(aco_io_reader_t *r, const char *wanted)
{
    char *line = NULL;
    CHECK_EQ(aco_io_reader_line(r, &line), wanted ? (ssize_t)strlen(wanted) : 0);
    CHECK(wanted ? line && strcmp(line, wanted) == 0 : !line);
}

static void reads_lines(aco_io_reader_t *r)
{
    static const char *const wanted[] = {"one", "", "two\r", "\rthree", "", "fifteen_bytes__", "four", NULL, NULL};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        is_line(r, wanted[i]);
}

static void reads_parts(aco_io_reader_t *r)
{
    const char *peeked;
    char *part, text[8];
    size_t done = 9;
    CHECK(aco_io_reader_peek(r, 3, &peeked) >= 3);
    CHECK(memcmp(peeked, "a=1", 3) == 0);
    FAILS_WITH(aco_io_reader_peek(r, SIZE + 1, &peeked), ENOBUFS);
    CHECK(strstr(aco_error_message(), "aco_io_reader_peek: the buffer's 16 bytes") != NULL);
    aco_io_reader_consume(r, 2);
    CHECK_EQ(aco_io_reader_until(r, ';', &part), 2);
    CHECK(memcmp(part, "1;", 2) == 0);
    CHECK_EQ(aco_io_reader_read_exactly(r, text, 4, &done), 4);
    CHECK(memcmp(text, "b=23", 4) == 0 && done == 4);
    CHECK_EQ(aco_io_reader_until(r, ';', &part), 1);
    CHECK_EQ(aco_io_reader_until(r, ';', &part), 16); /* the whole buffer */
    CHECK(memcmp(part, "123456789012345;", 16) == 0);
    FAILS_WITH(aco_io_reader_until(r, ';', &part), ENOBUFS); /* and one more */
    CHECK(!part);
    CHECK_EQ(aco_io_reader_peek(r, SIZE, &peeked), SIZE); /* it is still there */
    aco_io_reader_consume(r, 1000);
    CHECK_EQ(aco_io_reader_until(r, ';', &part), 1);
    CHECK_EQ(aco_io_reader_peek(r, 0, &peeked), (ssize_t)(r->end - r->begin));
    CHECK_EQ(aco_io_reader_peek(r, 8, &peeked), 3); /* the stream ends */
    CHECK(memcmp(peeked, "end", 3) == 0);
    CHECK_EQ(aco_io_reader_until(r, ';', &part), 3);
    CHECK(memcmp(part, "end", 3) == 0);
    CHECK_EQ(aco_io_reader_until(r, ';', &part), 0);
    CHECK(!part);
    CHECK_EQ(aco_io_reader_peek(r, 1, &peeked), 0);
}

static char all[100];

static void reads_all(aco_io_reader_t *r) /* some by the buffer, some past it */
{
    size_t at = 0;
    ssize_t n = 1;
    for (int i = 0; n > 0; i++) {
        n = aco_io_reader_read(r, all + at, i % 2 ? 5 : 40);
        CHECK(n >= 0 && n <= (i % 2 ? 5 : 40));
        at += (size_t)n;
    }
    CHECK_EQ(at, 70);
    CHECK_EQ(aco_io_reader_read(r, all, 0), 0);
}

static void reads_exactly(aco_io_reader_t *r)
{
    size_t done = 0;
    char byte;
    CHECK_EQ(aco_io_reader_read_exactly(r, &byte, 1, NULL), 1);
    CHECK_EQ(byte, '0');
    CHECK_EQ(aco_io_reader_read_exactly(r, all, sizeof all, &done), 69);
    CHECK_EQ(done, 69);
}

static void reads_nothing(aco_io_reader_t *r)
{
    char *part;
    is_line(r, NULL);
    CHECK_EQ(aco_io_reader_until(r, ';', &part), 0);
    CHECK_EQ(aco_io_reader_read(r, all, 1), 0);
}

static void reads_last_line(aco_io_reader_t *r)
{
    char *line;
    const char *bytes;
    FAILS_WITH(aco_io_reader_line(r, &line), ENOBUFS); /* no room for the 0 */
    CHECK(!line);
    CHECK_EQ(aco_io_reader_peek(r, SIZE, &bytes), SIZE);
    aco_io_reader_consume(r, 1);
    is_line(r, "123456789abcdef");
}

static void reading(void)
{
    static const char seventy[] = "0123456789012345678901234567890123456789012345678901234567890123456789";
    for (size_t piece = 1; piece <= 64; piece *= 2) {
        with_text("one\n\ntwo\r\r\n\rthree\n\r\nfifteen_bytes__\nfour", piece, reads_lines);
        with_text("a=1;b=23;123456789012345;1234567890123456;end", piece, reads_parts);
        memset(all, 0, sizeof all);
        with_text(seventy, piece, reads_all);
        CHECK(memcmp(all, seventy, 70) == 0);
        with_text(seventy, piece, reads_exactly);
        CHECK(memcmp(all, seventy + 1, 69) == 0);
        with_text("0123456789abcdef", piece, reads_last_line);
        with_text("", piece, reads_nothing);
    }
}

/* ---- Writing ---- */

static void *receives_all(void *fd)
{
    CHECK_EQ(aco_io_read_exactly((int)(intptr_t)fd, all, sizeof all), 61);
    return NULL;
}

static void writing(void)
{
    static const char wanted[] = "abc-42-0123456789abcdef123456789012345601234567890123456789xy";
    int pair[2];
    aco_io_writer_t w;
    aco_group_t group;
    memset(all, 0, sizeof all);
    make_pair(pair, SOCK_STREAM);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, receives_all, (void *)(intptr_t)pair[0]);
    open_writer(&w, pair[1], given, SIZE);
    CHECK_EQ(aco_io_writer_flush(&w), 0); /* nothing yet */
    CHECK_EQ(aco_io_writer_write(&w, "", 0), 0);
    CHECK_EQ(aco_io_writer_write(&w, "abc", 3), 0);
    CHECK_EQ(aco_io_writer_print(&w, "-%d-", 42), 0);
    CHECK_EQ(w.end, 7);
    CHECK_EQ(aco_io_writer_write(&w, "0123456789", 10), 0); /* does not fit: the others are flushed */
    CHECK_EQ(w.end, 10);
    CHECK_EQ(aco_io_writer_print(&w, "%s", "abcdef"), 0); /* would fit without its 0 */
    CHECK_EQ(w.end, 6);
    CHECK_EQ(aco_io_writer_write(&w, "1234567890123456", 16), 0); /* fills it */
    CHECK_EQ(w.end, 16);
    FAILS_WITH(aco_io_writer_print(&w, "%s", "1234567890123456"), ENOBUFS);
    CHECK(given || !w.buffer);
    CHECK_EQ(aco_io_writer_write(&w, "01234567890123456789", 20), 0); /* too large: at once */
    CHECK_EQ(w.end, 0);
    CHECK_EQ(aco_io_writer_write(&w, "xy", 2), 0);
    CHECK_EQ(aco_io_writer_flush(&w), 0);
    CHECK(given || !w.buffer); /* nothing to hold */
    CHECK_EQ(aco_io_writer_write(&w, "lost", 4), 0);
    aco_io_writer_close(&w);
    CHECK_EQ(aco_io_shutdown(pair[1], SHUT_WR), 0);
    aco_group_end(&group);
    CHECK_EQ(sizeof wanted - 1, 61);
    CHECK(memcmp(all, wanted, sizeof wanted - 1) == 0);
    close_both(pair);
}

/* ---- What a scope that ends leaves ---- */

static void *reads_a_line(void *arg)
{
    is_line(arg, "later");
    return NULL;
}

static void *reads_much(void *arg)
{
    char bytes[SIZE];
    ssize_t n = aco_io_reader_read(arg, bytes, SIZE); /* as much as the buffer has: not by way of it */
    while (IS_SIMULATED && n > 0 && n < 4) /* by segments */
        n += aco_io_reader_read(arg, bytes, SIZE);
    CHECK_EQ(n, 4);
    return NULL;
}

static void ended_scopes(void)
{
    enum { MUCH = 1 << 20 };
    static char much[MUCH], received[MUCH];
    int tcp[2];
    char *line;
    size_t done = 9;
    aco_io_reader_t r;
    aco_io_writer_t w;
    aco_scope_t scope;
    aco_group_t group;
    make_tcp(tcp);
    open_reader(&r, tcp[0]);
    CHECK_EQ(aco_io_write_all(tcp[1], "part", 4), 4);
    aco_scope_begin(&scope, aco_after(2 * ACO_MILLISECOND));
    FAILS_WITH(aco_io_reader_line(&r, &line), ETIMEDOUT);
    FAILS_WITH(aco_io_reader_line(&r, &line), ETIMEDOUT);
    aco_scope_end(&scope);
    CHECK_EQ(aco_io_write_all(tcp[1], "ly\n", 3), 3);
    is_line(&r, "partly"); /* nothing was lost */
    CHECK_EQ(aco_io_write_all(tcp[1], "1234", 4), 4);
    aco_scope_begin(&scope, aco_after(2 * ACO_MILLISECOND));
    FAILS_WITH(aco_io_reader_read_exactly(&r, all, 5, &done), ETIMEDOUT);
    CHECK_EQ(done, 4);
    aco_scope_end(&scope);
    aco_group_begin(&group, ACO_KEEP_GOING); /* a task that waits with nothing in the buffer holds none that is lent */
    member(&group, reads_a_line, &r);
    aco_sleep(ACO_MILLISECOND);
    CHECK(r.buffer == given);
    CHECK_EQ(aco_io_write_all(tcp[1], "later\n", 6), 6);
    aco_group_end(&group);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_much, &r);
    aco_sleep(ACO_MILLISECOND);
    CHECK(r.buffer == given);
    CHECK_EQ(aco_io_write_all(tcp[1], "much", 4), 4);
    aco_group_end(&group);
    aco_io_reader_close(&r);

    for (int i = 0; i < MUCH; i++)
        much[i] = (char)(i % 251);
    open_writer(&w, tcp[0], NULL, MUCH);
    CHECK_EQ(setsockopt(tcp[0], SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int)), 0);
    /* Room for some segments, of 64 KiB on loopback: for less than one, the kernel waits for a fifth of a second. */
    CHECK_EQ(setsockopt(tcp[1], SOL_SOCKET, SO_RCVBUF, &(int){MUCH / 8}, sizeof(int)), 0);
    CHECK_EQ(aco_io_writer_write(&w, much, MUCH), 0);
    aco_scope_begin(&scope, aco_after(2 * ACO_MILLISECOND));
    FAILS_WITH(aco_io_writer_flush(&w), ETIMEDOUT);
    FAILS_WITH(aco_io_writer_write(&w, much, MUCH), ETIMEDOUT); /* no room; and nothing of it was taken */
    aco_scope_end(&scope);
    CHECK(w.end > 0 && w.end < MUCH);
    done = MUCH - w.end;
    CHECK_EQ(aco_io_read_exactly(tcp[1], received, done), (ssize_t)done);
    CHECK(memcmp(w.buffer, much + done, w.end) == 0 && memcmp(received, much, done) == 0);
    aco_io_writer_close(&w);
    close_both(tcp);
}

static void *tests(void *unused)
{
    for (int how = 0; how < 16; how++) {
        given = how & 1 ? NULL : memory;
        is_short = how & 2;
        storms = how & 4;
        by_stream = how & 8;
        reading();
        writing();
        if (!is_short) /* which takes the whole buffer apart */
            ended_scopes();
    }
    return unused;
}

/* Outside of tasks nothing waits. */
static void root_context(void)
{
    int ends[2];
    char *line;
    aco_io_reader_t r;
    make_pipe(ends);
    aco_io_reader_open(&r, ends[0], NULL, SIZE);
    FAILS_WITH(aco_io_reader_line(&r, &line), EPERM);
    CHECK(!r.buffer);
    CHECK_EQ(write(ends[1], "r\n", 2), 2);
    is_line(&r, "r");
    aco_io_reader_close(&r);
    FAILS_WITH(aco_io_reader_line((aco_io_reader_open(&r, -1, NULL, SIZE), &r), &line), EBADF);
    close_both(ends);
}

int main(void)
{
    static const aco_function_t subjects[] = {tests};
    if (IS_SIMULATED)
        run_task(warms_up, NULL); /* puts the simulation's calls into the table, before those that replace them */
    REPLACE(read);
    REPLACE(write);
    REPLACE(send);
    CHECK(aco_io_poll_fd() >= 0);
    root_context();
    run_tests(subjects, 1, count_descriptors());
    return check_result("io_buffer");
}
