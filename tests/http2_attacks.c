/* What hostile clients do to a server of HTTP/2: frames that cost it something and bring nobody anything, heads that
 * grow when they are unpacked, windows that stay closed, requests of which two programs could understand different
 * things. The attacker writes bytes. After each attack the server serves others, and has its memory back. */
#define _GNU_SOURCE
#include "http_tests.h"

#include <aco/sync.h>
#include <signal.h>

enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
    UNKNOWN
};
enum { END_STREAM = 1, END_HEADERS = 4 };
enum { PROTOCOL_ERROR = 1, FLOW_CONTROL_ERROR = 3, REFUSED_STREAM = 7, ENHANCE_YOUR_CALM = 11, NONE = -1 };

static stage_t stage;
static uint64_t failures[ACO_HTTP_FAILURES];
static int handled;
static char big[200000];

/* ---- Bytes ---- */

static unsigned char bytes[1 << 21];
static size_t bytes_n;

static void put(const void *p, size_t n)
{
    CHECK(n <= sizeof bytes - bytes_n);
    memcpy(bytes + bytes_n, p, n);
    bytes_n += n;
}

static void frame(int type, int flags, unsigned id, const void *p, size_t n)
{
    const unsigned char head[9] = {(unsigned char)(n >> 16),  (unsigned char)(n >> 8),  (unsigned char)n,
                                   (unsigned char)type,       (unsigned char)flags,     (unsigned char)(id >> 24),
                                   (unsigned char)(id >> 16), (unsigned char)(id >> 8), (unsigned char)id};
    put(head, sizeof head);
    if (n)
        put(p, n);
}

static void number_frame(int type, unsigned id, unsigned number)
{
    const unsigned char p[4] = {(unsigned char)(number >> 24), (unsigned char)(number >> 16),
                                (unsigned char)(number >> 8), (unsigned char)number};
    frame(type, 0, id, p, sizeof p);
}

/* ":method" by its index in the static table, then scheme, path "/", authority "a". */
enum { GET_INDEX = 0x82, POST_INDEX = 0x83 };
static size_t put_head(unsigned char *at, int method)
{
    const unsigned char head[] = {(unsigned char)method, 0x86, 0x84, 1, 1, 'a'};
    memcpy(at, head, sizeof head);
    return sizeof head;
}

/* A literal field that is not indexed. */
static size_t put_field(unsigned char *at, const char *name, const char *value)
{
    size_t name_n = strlen(name), value_n = strlen(value);
    at[0] = 0;
    at[1] = (unsigned char)name_n;
    memcpy(at + 2, name, name_n);
    at[2 + name_n] = (unsigned char)value_n;
    memcpy(at + 3 + name_n, value, value_n);
    return 3 + name_n + value_n;
}

static void request(unsigned id, int method, int flags)
{
    unsigned char head[16];
    frame(HEADERS, flags, id, head, put_head(head, method));
}

/* Its method is a literal. */
static void request_by(unsigned id, const char *method)
{
    unsigned char head[32] = {2, (unsigned char)strlen(method)};
    size_t n = strlen(method), all = put_head(head + 1 + n, GET_INDEX) + 1 + n;
    head[0] = 2; /* ":method", by its name's index */
    head[1] = (unsigned char)n;
    memcpy(head + 2, method, n);
    frame(HEADERS, END_HEADERS | END_STREAM, id, head, all);
}

static void begin_attack(void)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    bytes_n = 0;
    put(preface, sizeof preface - 1);
    frame(SETTINGS, 0, 0, NULL, 0);
}

/* ---- What comes back ---- */

static int goaway_code, resets, reset_code, status_frames;

static int code_at(const char *p)
{
    const unsigned char *at = (const unsigned char *)p;
    return (int)((unsigned)at[0] << 24 | (unsigned)at[1] << 16 | (unsigned)at[2] << 8 | at[3]);
}

static void look_at_frames(void)
{
    goaway_code = reset_code = NONE;
    resets = status_frames = 0;
    for (size_t at = 0; at + 9 <= got_n;) {
        size_t n = (size_t)(unsigned)code_at(got + at) >> 8;
        int type = got[at + 3];
        if (at + 9 + n > got_n)
            break;
        if (type == GOAWAY && (goaway_code <= 0))
            goaway_code = code_at(got + at + 13);
        if (type == RST_STREAM) {
            resets++;
            reset_code = code_at(got + at + 9);
        }
        status_frames += type == HEADERS;
        at += 9 + n;
    }
}

/* Sends all, and reads until the server closes. `ends`: the client has no more to say. */
static void attack(int ends)
{
    int fd = dial(&stage);
    (void)aco_io_write_all(fd, bytes, bytes_n);
    if (ends)
        (void)aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    look_at_frames();
    aco_io_close(fd);
}

/* ---- The server ---- */

static void hello(aco_http_request_t *r, void *arg)
{
    (void)arg;
    handled++;
    (void)aco_http_reply(r, 200, NULL, "hello", 5); /* it fails if the client was cut off meanwhile */
}

static void reads(aco_http_request_t *r, void *arg)
{
    char part[100];
    handled++;
    while (aco_http_request_read(r, part, sizeof part) > 0)
        ;
    (void)arg;
}

static void replies_big(aco_http_request_t *r, void *arg)
{
    handled++;
    (void)arg;
    (void)aco_http_reply(r, 200, NULL, big, sizeof big);
}

/* A reply whose end is a frame of its own. */
static void replies_nothing(aco_http_request_t *r, void *arg)
{
    handled++;
    (void)arg;
    CHECK_EQ(aco_http_reply_begin(r, 200, NULL, -1), 0);
}

static void sleeps_and_replies(aco_http_request_t *r, void *arg)
{
    CHECK_EQ(aco_sleep(80 * ACO_MILLISECOND), 0);
    hello(r, arg);
}

static int ended;
static aco_event_t all_have_ended, has_failed;
static void is_late(aco_http_request_t *r, void *arg)
{
    (void)aco_http_next(r);
    (void)arg;
    if (++ended == 100)
        aco_event_set(&all_have_ended);
}

/* What the handler has of the trailers stays as it is when more of them come. */
static aco_event_t has_first;
static void keeps_trailer(aco_http_request_t *r, void *arg)
{
    const char *first;
    while (!(first = aco_http_request_trailer(r, "x-first")))
        aco_task_yield();
    aco_event_set(&has_first);
    while (!aco_http_request_trailer(r, "x-last"))
        aco_task_yield();
    CHECK(aco_http_request_trailer(r, "x-first") != NULL);
    CHECK_TEXT("the first trailer", first, "the value of the first trailer");
    hello(r, arg);
}

static void ignores_failure(const aco_http_failure_t *failure, void *arg)
{
    if (failure->kind == ACO_HTTP_REFUSED)
        aco_event_set(&has_failed);
    (void)arg;
}

static const aco_http_time_limit_t short_time = {20 * ACO_MILLISECOND, NULL, NULL};
static const aco_http_middleware_t in_time[] = {
    {is_late, NULL}, {aco_http_limit_time, (void *)(uintptr_t)&short_time}, {NULL, NULL}};
static const aco_http_route_t limited[] = {{"LIM", "/", replies_big, NULL}, {NULL, NULL, NULL, NULL}};
static const aco_http_group_t groups[] = {{limited, in_time}, {NULL, NULL}};
static const aco_http_route_t routes[] = {{"GET", "/", hello, NULL},
                                          {"POST", "/", reads, NULL},
                                          {"PUT", "/", replies_big, NULL},
                                          {"NOT", "/", replies_nothing, NULL},
                                          {"SLP", "/", sleeps_and_replies, NULL},
                                          {"TRL", "/", keeps_trailer, NULL},
                                          {NULL, NULL, NULL, NULL}};

static void begin(void)
{
    memset(&stage.server, 0, sizeof stage.server);
    memset(failures, 0, sizeof failures);
    handled = ended = 0;
    aco_event_reset(&all_have_ended);
    aco_event_reset(&has_failed);
    stage.server.groups = groups;
    stage.server.failures = failures;
    stage.server.failed = ignores_failure;
    start(&stage, routes);
    begin_attack();
}

/* It still serves. */
static void end(void)
{
    ask(&stage, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    CHECK_HAS("hello");
    stop(&stage);
}

/* ---- Floods ---- */

enum { FLOOD = 5000 };

static void rapid_reset(unsigned i)
{
    request(2 * i + 1, GET_INDEX, END_HEADERS | END_STREAM);
    number_frame(RST_STREAM, 2 * i + 1, 8);
}

/* CVE-2025-8671: the server resets each stream, because the client breaks a rule on it. */
static void wrong_lengths(unsigned i)
{
    unsigned char head[64];
    size_t n = put_head(head, POST_INDEX);
    n += put_field(head + n, "content-length", "1");
    frame(HEADERS, END_HEADERS, 2 * i + 1, head, n);
    frame(DATA, END_STREAM, 2 * i + 1, NULL, 0);
}

static void overflows_of_streams(unsigned i)
{
    request(2 * i + 1, POST_INDEX, END_HEADERS);
    number_frame(WINDOW_UPDATE, 2 * i + 1, 0x7fffffff);
}

static void pings(unsigned i)
{
    (void)i;
    frame(PING, 0, 0, "12345678", 8);
}

static void settings(unsigned i)
{
    (void)i;
    frame(SETTINGS, 0, 0, NULL, 0);
}

static void priorities(unsigned i)
{
    frame(PRIORITY, 0, 2 * i + 1, "\0\0\0\0\1", 5);
}

static void empty_data(unsigned i)
{
    if (i == 0)
        request(1, POST_INDEX, END_HEADERS);
    frame(DATA, 0, 1, NULL, 0);
}

static void unknown_frames(unsigned i)
{
    (void)i;
    frame(UNKNOWN + 20, 0, 0, big, 100);
}

static void window_updates(unsigned i)
{
    (void)i;
    number_frame(WINDOW_UPDATE, 0, 1);
}

static void continuations(unsigned i)
{
    unsigned char head[16];
    if (i == 0)
        frame(HEADERS, 0, 1, head, put_head(head, GET_INDEX));
    else
        frame(CONTINUATION, 0, 1, NULL, 0);
}

/* Heads that are wrong: each stream is reset. */
static void wrong_heads(unsigned i)
{
    frame(HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, "\x82\x86", 2);
}

static void *floods_are_cut_off(void *arg)
{
    static void (*const floods[])(unsigned) = {rapid_reset,    wrong_lengths, overflows_of_streams, pings,
                                               settings,       priorities,    empty_data,           unknown_frames,
                                               window_updates, continuations, wrong_heads};
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        begin();
        for (unsigned n = 0; n < FLOOD; n++)
            floods[i](n);
        attack(0);
        if (goaway_code != ENHANCE_YOUR_CALM)
            fprintf(stderr, "flood %zu: code %d\n", i, goaway_code);
        CHECK_EQ(goaway_code, ENHANCE_YOUR_CALM);
        CHECK(handled <= 1100);
        CHECK_EQ(failures[ACO_HTTP_REFUSED], 1);
        end();
    }
    return arg;
}

/* Many frames for much use are no flood. */
static void *use_is_no_flood(void *arg)
{
    begin();
    for (unsigned i = 0; i < 90; i++) {
        request(2 * i + 1, GET_INDEX, END_HEADERS | END_STREAM);
        for (unsigned n = 0; n < 10; n++)
            pings(n);
    }
    attack(1);
    CHECK_EQ(goaway_code, NONE);
    CHECK_EQ(handled, 90);
    CHECK_EQ(status_frames, 90);
    end();
    return arg;
}

/* ---- Heads ---- */

/* A field of 4000 bytes goes into the table, and then each byte stands for it. */
static void put_bomb(unsigned id, size_t times)
{
    static unsigned char head[16384];
    size_t n = put_head(head, GET_INDEX);
    if (id == 1) {
        head[n++] = 0x40;
        head[n++] = 1;
        head[n++] = 'x';
        head[n++] = 0x7f; /* 127 + 3873 */
        head[n++] = 0xa1;
        head[n++] = 0x1e;
        memset(head + n, 'v', 4000);
        n += 4000;
    }
    memset(head + n, 0xbe, times);
    frame(HEADERS, END_HEADERS | END_STREAM, id, head, n + times);
}

static void *heads_do_not_explode(void *arg)
{
    begin();
    put_bomb(1, 10000); /* 40 MB */
    put_bomb(3, 4); /* beyond max_head */
    put_bomb(5, 1);
    attack(1);
    CHECK_EQ(resets, 1);
    CHECK_EQ(status_frames, 2); /* 431, and that it is no POST's */
    CHECK_EQ(handled, 1);
    end();
    return arg;
}

static void *heads_have_a_time(void *arg)
{
    unsigned char head[16];
    begin();
    stop(&stage);
    stage.server.head_time = 20 * ACO_MILLISECOND;
    start(&stage, routes);
    frame(HEADERS, 0, 1, head, put_head(head, GET_INDEX));
    attack(0);
    CHECK_EQ(failures[ACO_HTTP_SLOW], 1);
    end();
    return arg;
}

/* Of these, a server behind this one could understand something else. */
static void *ambiguous_requests_are_reset(void *arg)
{
    static const struct {
        const char *name, *value;
        const char *data; /* NULL: none */
        int is_trailer;
    } wrong[] = {
        {"content-length", "5", "1234", 0},
        {"content-length", "3", "1234", 0},
        {"content-length", "x", "1234", 0},
        {"transfer-encoding", "chunked", "0\r\n\r\n", 0},
        {"connection", "close", NULL, 0},
        {"x-a", "a\r\nx-b: b", NULL, 0},
        {"x-a", "a\nb", NULL, 0},
        {"X-A", "a", NULL, 0},
        {"x a", "a", NULL, 0},
        {"te", "gzip", NULL, 0},
        {":path", "/", NULL, 0},
        {":other", "a", NULL, 0},
        {":path", "/", "1234", 1},
        {"connection", "close", "1234", 1},
        {"x-a", "a\r\nb", "1234", 1},
        {"upgrade", "websocket", NULL, 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        unsigned char head[64], field[64];
        size_t n = put_head(head, POST_INDEX), field_n = put_field(field, wrong[i].name, wrong[i].value);
        begin();
        if (!wrong[i].is_trailer) {
            memcpy(head + n, field, field_n);
            n += field_n;
        }
        frame(HEADERS, END_HEADERS | (wrong[i].data ? 0 : END_STREAM), 1, head, n);
        if (wrong[i].data)
            frame(DATA, wrong[i].is_trailer ? 0 : END_STREAM, 1, wrong[i].data, strlen(wrong[i].data));
        if (wrong[i].is_trailer)
            frame(HEADERS, END_HEADERS | END_STREAM, 1, field, field_n);
        attack(1);
        if (resets < 1 || reset_code != PROTOCOL_ERROR || status_frames)
            fprintf(stderr, "request %zu: %d resets, code %d, %d\n", i, resets, reset_code, status_frames);
        CHECK(resets >= 1 && reset_code == PROTOCOL_ERROR && !status_frames);
        end();
    }
    return arg;
}

/* Hosts that differ are refused by a reply. */
static void *hosts_do_not_differ(void *arg)
{
    unsigned char head[64];
    size_t n = put_head(head, GET_INDEX);
    begin();
    n += put_field(head + n, "host", "b");
    frame(HEADERS, END_HEADERS | END_STREAM, 1, head, n);
    attack(1);
    CHECK_EQ(handled, 0);
    CHECK_EQ(status_frames, 1);
    end();
    return arg;
}

/* ---- Windows ---- */

/* The client's windows stay closed: handlers end when write_time is over, however many. */
static void *closed_windows_end(void *arg)
{
    unsigned char head[16];
    begin();
    stop(&stage);
    stage.server.write_time = 20 * ACO_MILLISECOND;
    stage.server.idle_time = 50 * ACO_MILLISECOND;
    start(&stage, routes);
    frame(SETTINGS, 0, 0, "\0\4\0\0\0\0", 6);
    for (unsigned i = 0; i < 100; i++) {
        size_t n = put_head(head, 0x82);
        head[0] = 2; /* ":method", by its name's index, as a literal */
        memmove(head + 5, head + 1, n - 1);
        memcpy(head + 1, "\3PUT", 4);
        frame(HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, head, n + 4);
    }
    attack(0);
    CHECK_EQ(handled, 100);
    CHECK_EQ(resets, 100);
    CHECK_EQ(failures[ACO_HTTP_SLOW], 100);
    end();
    return arg;
}

static void *windows_do_not_overflow(void *arg)
{
    begin();
    number_frame(WINDOW_UPDATE, 0, 0x7fffffff);
    attack(0);
    CHECK_EQ(goaway_code, FLOW_CONTROL_ERROR);
    end();
    begin(); /* more data than the window has room for */
    request(1, POST_INDEX, END_HEADERS);
    for (int i = 0; i < 10; i++)
        frame(DATA, 0, 1, big, 16384);
    attack(1);
    CHECK(goaway_code <= 0 && (resets == 0 || reset_code == FLOW_CONTROL_ERROR));
    end();
    return arg;
}

/* A window that opens by single bytes. */
static void *narrow_windows_end(void *arg)
{
    begin();
    frame(SETTINGS, 0, 0, "\0\4\0\0\0\0", 6);
    request(1, GET_INDEX, END_HEADERS | END_STREAM);
    for (int i = 0; i < FLOOD; i++)
        number_frame(WINDOW_UPDATE, 0, 1);
    attack(0);
    CHECK_EQ(goaway_code, ENHANCE_YOUR_CALM);
    end();
    return arg;
}

/* The end of a reply needs a window, too, if it is a frame of its own. */
static void *closed_windows_end_replies(void *arg)
{
    begin();
    stop(&stage);
    stage.server.write_time = 20 * ACO_MILLISECOND;
    stage.server.idle_time = 50 * ACO_MILLISECOND;
    start(&stage, routes);
    frame(SETTINGS, 0, 0, "\0\4\0\0\0\0", 6);
    for (unsigned i = 0; i < 10; i++)
        request_by(2 * i + 1, "NOT");
    attack(0);
    CHECK_EQ(handled, 10);
    CHECK_EQ(resets, 10);
    end();
    return arg;
}

/* Trailers of a stream that the server has reset are not read, but they have come. */
static void *ignored_heads_have_come(void *arg)
{
    unsigned char head[64], trailer[16];
    size_t n = put_head(head, POST_INDEX);
    int fd;
    begin();
    stop(&stage);
    stage.server.head_time = 20 * ACO_MILLISECOND;
    stage.server.idle_time = 50 * ACO_MILLISECOND;
    start(&stage, routes);
    request_by(1, "SLP");
    n += put_field(head + n, "x a", "a");
    frame(HEADERS, END_HEADERS, 3, head, n);
    fd = dial(&stage);
    (void)aco_io_write_all(fd, bytes, bytes_n);
    got_n = 0;
    do {
        CHECK((n = (size_t)aco_io_read(fd, got + got_n, 1000)) > 0);
        got_n += n;
        look_at_frames();
    } while (!resets);
    bytes_n = 0;
    frame(HEADERS, END_HEADERS | END_STREAM, 3, trailer, put_field(trailer, "x-sum", "1"));
    (void)aco_io_write_all(fd, bytes, bytes_n);
    read_to_end(fd);
    look_at_frames();
    aco_io_close(fd);
    CHECK_EQ(status_frames, 1);
    CHECK_EQ(failures[ACO_HTTP_SLOW], 0);
    end();
    return arg;
}

/* A head that comes in two parts, between which the server looks for streams that are over. */
static void *heads_may_come_in_parts(void *arg)
{
    int fd;
    begin();
    request(1, GET_INDEX, END_HEADERS | END_STREAM);
    fd = dial(&stage);
    CHECK(aco_io_write_all(fd, bytes, bytes_n - 2) > 0);
    CHECK(aco_io_read(fd, got, 1) > 0); /* the first part was read */
    CHECK(aco_io_write_all(fd, bytes + bytes_n - 2, 2) > 0);
    (void)aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    aco_io_close(fd);
    CHECK_EQ(handled, 1);
    CHECK(memmem(got, got_n, "hello", 5) != NULL);
    end();
    return arg;
}

static void *trailers_come_in_parts(void *arg)
{
    unsigned char head[32], field[256];
    size_t n = 4 + put_head(head + 4, GET_INDEX);
    int fd;
    begin();
    aco_event_reset(&has_first);
    memcpy(head, "\2\3TRL", 5); /* the method, in place of its index */
    frame(HEADERS, END_HEADERS, 1, head, n);
    frame(HEADERS, END_STREAM, 1, field, put_field(field, "x-first", "the value of the first trailer"));
    fd = dial(&stage);
    CHECK(aco_io_write_all(fd, bytes, bytes_n) > 0);
    CHECK_EQ(aco_event_wait(&has_first), 0);
    bytes_n = 0;
    for (int i = 0; i < 3; i++)
        frame(CONTINUATION, 0, 1, field, put_field(field, "x-more", "more bytes than the first memory has room for"));
    frame(CONTINUATION, END_HEADERS, 1, field, put_field(field, "x-last", "1"));
    CHECK(aco_io_write_all(fd, bytes, bytes_n) > 0);
    (void)aco_io_shutdown(fd, SHUT_WR);
    read_to_end(fd);
    aco_io_close(fd);
    CHECK_EQ(handled, 1);
    end();
    return arg;
}

/* Windows that are wide open, and a client that reads nothing, until more than the sockets hold is on its way. */
static void begin_big_replies(const char *method)
{
    begin();
    frame(SETTINGS, 0, 0, "\0\4\0\x10\0\0", 6);
    number_frame(WINDOW_UPDATE, 0, 0x7f000000);
    for (unsigned i = 0; i < 100; i++)
        request_by(2 * i + 1, method);
}

/* A handler's time is over while the bytes that it sends are in a frame that waits for the client. */
static void *late_handlers_take_their_bytes_back(void *arg)
{
    int fd;
    begin_big_replies("LIM");
    fd = dial(&stage);
    (void)aco_io_write_all(fd, bytes, bytes_n);
    CHECK_EQ(aco_event_wait(&all_have_ended), 0);
    (void)aco_io_shutdown(fd, SHUT_WR);
    while (aco_io_read(fd, got, sizeof got) > 0)
        ;
    aco_io_close(fd);
    end();
    return arg;
}

/* Streams are refused, and the client does not read it. */
static void *unread_refusals_are_cut_off(void *arg)
{
    int fd;
    begin_big_replies("LIM");
    fd = dial(&stage);
    (void)aco_io_write_all(fd, bytes, bytes_n);
    CHECK_EQ(aco_event_wait(&all_have_ended), 0);
    bytes_n = 0;
    for (unsigned i = 100; i < 100 + FLOOD; i++)
        request(2 * i + 1, GET_INDEX, END_HEADERS | END_STREAM);
    (void)aco_io_write_all(fd, bytes, bytes_n);
    CHECK_EQ(aco_event_wait_until(&has_failed, aco_after(60 * ACO_SECOND)), 0);
    aco_io_close(fd);
    end();
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {
        floods_are_cut_off,           use_is_no_flood,
        heads_do_not_explode,         heads_have_a_time,
        ambiguous_requests_are_reset, hosts_do_not_differ,
        closed_windows_end,           windows_do_not_overflow,
        narrow_windows_end,           closed_windows_end_replies,
        ignored_heads_have_come,      late_handlers_take_their_bytes_back,
        unread_refusals_are_cut_off,  heads_may_come_in_parts,
        trailers_come_in_parts,
    };
    signal(SIGPIPE, SIG_IGN);
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http2_attacks");
}
