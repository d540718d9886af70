/* The client of HTTP/2 (include/aco/http.h) and servers that are no friends: what they refuse, when they leave, what
 * they send that no server should. No call waits for ever, and a connection that costs too much is cut. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "http_tests.h"

#include <signal.h>

/* ---- A server that sends frames as the tests have them ---- */

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };
enum { NO_ERROR = 0, REFUSED_STREAM = 7, HTTP_1_1_REQUIRED = 13 };
enum { FRAME_HEAD = 9 };

typedef struct frame {
    int type, flags, id;
    size_t n;
    unsigned char payload[1 << 15];
} frame_t;

static int listener;
static char port[8];
static int fd; /* the connection */
static int bytes_of_data; /* that have come */
static frame_t in; /* the frame that has come last */

static int send_frame(int type, int flags, int id, const void *payload, size_t n)
{
    unsigned char head[FRAME_HEAD] = {(unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n,
                                      (unsigned char)type, (unsigned char)flags};
    for (int i = 0; i < 4; i++)
        head[5 + i] = (unsigned char)((unsigned)id >> (24 - 8 * i));
    return aco_io_write_all(fd, head, FRAME_HEAD) < 0 || (n && aco_io_write_all(fd, payload, n) < 0) ? -1 : 0;
}

static void put32(unsigned char *to, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(number >> (24 - 8 * i));
}

static int send_number(int type, int id, uint32_t number)
{
    unsigned char payload[4];
    put32(payload, number);
    return send_frame(type, 0, id, payload, sizeof payload);
}

static int send_goaway(uint32_t last, uint32_t code)
{
    unsigned char payload[8];
    put32(payload, last);
    put32(payload + 4, code);
    return send_frame(GOAWAY, 0, 0, payload, sizeof payload);
}

static int send_setting(int id, uint32_t value)
{
    unsigned char payload[6] = {0, (unsigned char)id};
    put32(payload + 2, value);
    return send_frame(SETTINGS, 0, 0, payload, sizeof payload);
}

/* Whether a frame has come; it is in `in`. */
static int take_frame(void)
{
    unsigned char head[FRAME_HEAD];
    if (aco_io_read_exactly(fd, head, FRAME_HEAD) != FRAME_HEAD)
        return 0;
    in.n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    in.type = head[3];
    in.flags = head[4];
    in.id = (int)(((uint32_t)head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8]);
    CHECK(in.n <= sizeof in.payload);
    if (in.type == DATA)
        bytes_of_data += (int)in.n;
    return aco_io_read_exactly(fd, in.payload, in.n) == (ssize_t)in.n;
}

/* Waits for such a frame. Returns its stream; -1: the client has ended the connection. */
static int await(int type, int flags)
{
    while (take_frame()) {
        if (in.type == SETTINGS && !(in.flags & ACK))
            (void)send_frame(SETTINGS, ACK, 0, NULL, 0);
        if (in.type == type && (in.flags & flags) == flags)
            return in.id;
    }
    return -1;
}

static void take_connection(void)
{
    char preface[24];
    fd = aco_io_accept(listener);
    CHECK(fd >= 0);
    CHECK_EQ(aco_io_read_exactly(fd, preface, sizeof preface), (ssize_t)sizeof preface);
    CHECK(memcmp(preface, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", sizeof preface) == 0);
    bytes_of_data = 0;
}

static int begin_connection(void)
{
    take_connection();
    CHECK_EQ(send_frame(SETTINGS, 0, 0, NULL, 0), 0);
    return await(HEADERS, 0);
}

/* Reads until the client closes. */
static void end_connection(void)
{
    while (take_frame())
        ;
    CHECK_EQ(aco_io_close(fd), 0);
}

static int answer(int id)
{
    return send_frame(HEADERS, END_HEADERS | END_STREAM, id, "\x88", 1);
}

/* ---- Calls beside it ---- */

static aco_http_client_options_t options;
static aco_http_call_t call;
static char url[64];
static aco_http_client_t *client;

static void begin_client(void)
{
    client = aco_http_client_new(&options);
    CHECK(client != NULL);
}

static void end_client(void)
{
    aco_http_client_destroy(client);
    memset(&options, 0, sizeof options);
    memset(&call, 0, sizeof call);
    options.prior_knowledge = 1;
    call.url = url;
}

static void check_answer(int status)
{
    char part[100];
    aco_http_response_t *r = aco_http_call(client, &call);
    CHECK(r != NULL);
    CHECK_EQ(r->status, status);
    while (aco_http_response_read(r, part, sizeof part) > 0)
        ;
    aco_http_response_end(r);
}

/* The server's part runs beside. */
static aco_t *begin(aco_function_t server, const void *arg)
{
    aco_t *task = aco_spawn(server, (void *)(uintptr_t)arg, NULL);
    CHECK(task != NULL);
    begin_client();
    return task;
}

static void end(aco_t *task)
{
    end_client();
    CHECK_EQ(aco_join(task, NULL), 0);
}

/* ---- Requests that are sent once more ---- */

static void *refuses_once(void *arg)
{
    int id = begin_connection();
    CHECK_EQ(id, 1);
    CHECK_EQ(send_number(RST_STREAM, id, REFUSED_STREAM), 0);
    id = await(HEADERS, 0);
    CHECK_EQ(id, 3);
    CHECK_EQ(answer(id), 0);
    end_connection();
    return arg;
}

static void *leaves_at_once(void *arg)
{
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(send_goaway(0, NO_ERROR), 0);
    end_connection();
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(answer(1), 0);
    end_connection();
    return arg;
}

/* The request that has come is answered; the next one comes on another connection. */
static void *leaves_after_one(void *arg)
{
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(send_goaway(1, NO_ERROR), 0);
    CHECK_EQ(answer(1), 0);
    end_connection();
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(answer(1), 0);
    end_connection();
    return arg;
}

static void *leaves(void *arg)
{
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(send_goaway(1, NO_ERROR), 0);
    CHECK_EQ(answer(1), 0);
    end_connection();
    return arg;
}

static char large[8 << 20];
static int is_full; /* the connection takes no more */

/* While a large body is written, and with bytes of it that were not read: the connection is reset behind GOAWAY. A
 * request that nothing was sent of is made again. */
static void *leaves_in_a_hurry(void *arg)
{
    take_connection();
    CHECK_EQ(send_setting(4, 0x7fffffff), 0);
    CHECK_EQ(send_number(WINDOW_UPDATE, 0, 0x7fff0000), 0);
    CHECK_EQ(await(HEADERS, 0), 1);
    CHECK_EQ(await(DATA, 0), 1);
    for (int i = 0; i < 2000; i++) {
        is_full = i >= 1000;
        aco_task_yield();
    }
    CHECK_EQ(send_goaway(1, NO_ERROR), 0);
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(answer(1), 0);
    end_connection();
    return arg;
}

static void *leaves_while_idle(void *arg)
{
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(answer(1), 0);
    CHECK_EQ(send_goaway(1, NO_ERROR), 0);
    CHECK_EQ(aco_io_shutdown(fd, SHUT_WR), 0);
    end_connection();
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(answer(1), 0);
    end_connection();
    return arg;
}

static void *wants_http1(void *arg)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    int other;
    char part[600];
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(send_number(RST_STREAM, 1, HTTP_1_1_REQUIRED), 0);
    other = aco_io_accept(listener);
    CHECK(other >= 0);
    CHECK(aco_io_read(other, part, sizeof part) > 10);
    CHECK(memcmp(part, "GET / HTTP/1.1", 14) == 0);
    CHECK(aco_io_write_all(other, reply, sizeof reply - 1) > 0);
    end_connection();
    CHECK_EQ(aco_io_close(other), 0);
    return arg;
}

static void *always_refuses(void *arg)
{
    for (int id = begin_connection(); id > 0; id = await(HEADERS, 0))
        CHECK_EQ(send_number(RST_STREAM, id, REFUSED_STREAM), 0);
    CHECK_EQ(aco_io_close(fd), 0);
    return arg;
}

/* Asks by a large body, and meanwhile once more. */
static void *is_left(void *arg)
{
    const aco_http_call_t first = {.method = "POST", .url = url, .body = large, .length = sizeof large};
    CHECK(aco_http_call(client, &first) == NULL);
    return arg;
}

static void test_hurry(void)
{
    aco_t *task = begin(leaves_in_a_hurry, NULL), *other = aco_spawn(is_left, NULL, NULL);
    CHECK(other != NULL);
    while (!is_full)
        aco_task_yield();
    call.method = "POST";
    check_answer(200);
    CHECK_EQ(aco_join(other, NULL), 0);
    end(task);
}

static void test_retries(void)
{
    aco_t *task = begin(refuses_once, NULL);
    call.method = "POST"; /* nothing has been done */
    call.body = "abc";
    call.length = 3;
    check_answer(200);
    end(task);
    task = begin(leaves_at_once, NULL);
    call.method = "POST";
    check_answer(200);
    end(task);
    task = begin(leaves_after_one, NULL);
    check_answer(200);
    check_answer(200);
    end(task);
    task = begin(leaves, NULL);
    check_answer(200);
    end(task); /* the client has gone before the connection's reader */
    task = begin(leaves_while_idle, NULL);
    check_answer(200);
    aco_task_yield();
    check_answer(200);
    end(task);
    task = begin(wants_http1, NULL);
    check_answer(200);
    end(task);
    task = begin(always_refuses, NULL);
    CHECK(aco_http_call(client, &call) == NULL);
    CHECK_EQ(errno, ECONNREFUSED);
    end(task);
}

/* ---- Idle connections, consent, early responses ---- */

static void *pings_while_idle(void *arg)
{
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(answer(1), 0);
    CHECK_EQ(send_frame(PING, 0, 0, "12345678", 8), 0);
    CHECK_EQ(send_setting(4, 70000), 0);
    *(int *)arg = 1;
    CHECK_EQ(await(PING, ACK), 0); /* with the next request, at the latest */
    CHECK(memcmp(in.payload, "12345678", 8) == 0);
    CHECK_EQ(await(HEADERS, 0), 3);
    CHECK_EQ(answer(3), 0);
    end_connection();
    return NULL;
}

static void *is_silent(void *arg)
{
    (void)begin_connection();
    CHECK_EQ(await(PING, 0), 0);
    end_connection();
    return arg;
}

/* Sends consent; no byte of the body has come before. */
static void *consents(void *arg)
{
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(send_frame(PING, 0, 0, "12345678", 8), 0);
    CHECK_EQ(await(PING, ACK), 0);
    CHECK_EQ(bytes_of_data, 0);
    CHECK_EQ(send_frame(HEADERS, END_HEADERS, 1,
                        "\x08\x03"
                        "100",
                        5),
             0);
    CHECK_EQ(await(DATA, END_STREAM), 1);
    CHECK_EQ(bytes_of_data, 3);
    CHECK_EQ(answer(1), 0);
    end_connection();
    return arg;
}

/* Takes no body, and says so. */
static void *refuses_body(void *arg)
{
    take_connection();
    CHECK_EQ(send_setting(4, 1000), 0);
    CHECK_EQ(await(HEADERS, 0), 1);
    CHECK_EQ(await(DATA, 0), 1);
    CHECK_EQ(send_frame(HEADERS, END_HEADERS | END_STREAM, 1,
                        "\x08\x03"
                        "413",
                        5),
             0);
    end_connection();
    return arg;
}

static ssize_t gives_for_ever(void *arg, void *p, size_t n)
{
    (void)arg;
    memset(p, 'x', n);
    return (ssize_t)n;
}

static void test_connections(void)
{
    int has_pinged = 0;
    aco_t *task = begin(pings_while_idle, &has_pinged);
    check_answer(200);
    while (!has_pinged)
        aco_task_yield();
    check_answer(200);
    end(task);
    options.ping_time = 5 * ACO_MILLISECOND;
    task = begin(is_silent, NULL);
    CHECK(aco_http_call(client, &call) == NULL);
    CHECK_EQ(errno, ETIMEDOUT);
    end(task);
    task = begin(consents, NULL);
    call.method = "PUT";
    call.body = "abc";
    call.length = 3;
    call.continue_time = 100 * ACO_SECOND;
    check_answer(200);
    end(task);
    task = begin(refuses_body, NULL);
    call.method = "PUT";
    call.read_body = gives_for_ever;
    call.length = -1;
    check_answer(413);
    end(task);
}

/* ---- What no server should send ---- */

typedef struct piece {
    const char *name;
    int type, flags, id;
    const char *payload;
    size_t n;
    int repeats; /* until the client has had enough */
} piece_t;

#define TEXT(text) text, sizeof(text) - 1

static char zeros[16000];

static const piece_t floods[] = {
    {"SETTINGS", SETTINGS, 0, 0, TEXT("\0\3\0\0\0\1"), 1},
    {"empty SETTINGS", SETTINGS, 0, 0, NULL, 0, 1},
    {"PING", PING, 0, 0, TEXT("12345678"), 1},
    {"PING that answers", PING, ACK, 0, TEXT("12345678"), 1},
    {"PRIORITY", PRIORITY, 0, 3, TEXT("\0\0\0\1\1"), 1},
    {"WINDOW_UPDATE", WINDOW_UPDATE, 0, 1, TEXT("\0\0\0\1"), 1},
    {"windows", WINDOW_UPDATE, 0, 0, TEXT("\0\0\0\1"), 1},
    {"empty DATA", DATA, 0, 1, NULL, 0, 1},
    {"resets of what is unknown", RST_STREAM, 0, 2, TEXT("\0\0\0\1"), 1},
    {"interim responses", HEADERS, END_HEADERS, 1,
     TEXT("\x08\x03"
          "103"),
     1},
    {"CONTINUATION", CONTINUATION, 0, 1, zeros, 0, 1},
    {"CONTINUATION with bytes", CONTINUATION, 0, 1, zeros, sizeof zeros, 1},
    {"GOAWAY", GOAWAY, 0, 0, TEXT("\0\0\0\1\0\0\0\0"), 1},
    {"frames of unknown types", 77, 0, 0, zeros, 3, 1},
    {"padding", DATA, 8, 1, TEXT("\3\0\0\0"), 1},
};

static const piece_t wrongs[] = {
    {"no status", HEADERS, END_HEADERS, 1,
     TEXT("\x00\x01"
          "a\x01"
          "b"),
     0},
    {"a status of two digits", HEADERS, END_HEADERS, 1,
     TEXT("\x08\x02"
          "20"),
     0},
    {"101", HEADERS, END_HEADERS, 1,
     TEXT("\x08\x03"
          "101"),
     0},
    {"two statuses", HEADERS, END_HEADERS, 1, TEXT("\x88\x88"), 0},
    {"a request", HEADERS, END_HEADERS, 1, TEXT("\x82\x84\x86"), 0},
    {"a status behind a header", HEADERS, END_HEADERS, 1,
     TEXT("\x00\x01"
          "a\x01"
          "b\x88"),
     0},
    {"upper case", HEADERS, END_HEADERS, 1,
     TEXT("\x88\x00\x01"
          "A\x01"
          "b"),
     0},
    {"a line end", HEADERS, END_HEADERS, 1,
     TEXT("\x88\x00\x01"
          "a\x03"
          "b\nc"),
     0},
    {"connection", HEADERS, END_HEADERS, 1,
     TEXT("\x88\x00\x0a"
          "connection\x05"
          "close"),
     0},
    {"transfer-encoding", HEADERS, END_HEADERS, 1,
     TEXT("\x88\x00\x11"
          "transfer-encoding\x07"
          "chunked"),
     0},
    {"a body that is missing", HEADERS, END_HEADERS | END_STREAM, 1,
     TEXT("\x88\x0f\x0d\x01"
          "7"),
     0},
    {"a length that is none", HEADERS, END_HEADERS, 1,
     TEXT("\x88\x0f\x0d\x01"
          "x"),
     0},
    {"HPACK that is none", HEADERS, END_HEADERS, 1, TEXT("\xff\xff\xff\xff\xff\xff"), 0},
    {"an index beyond the tables", HEADERS, END_HEADERS, 1, TEXT("\x88\xfe"), 0},
    {"DATA first", DATA, 0, 1, TEXT("abc"), 0},
    {"DATA for nobody", DATA, 0, 9, TEXT("abc"), 0},
    {"a promise", PUSH_PROMISE, END_HEADERS, 1, TEXT("\0\0\0\2\x82\x84\x86"), 0},
    {"a response that nobody asked for", HEADERS, END_HEADERS, 5, TEXT("\x88"), 0},
    {"a window too large", SETTINGS, 0, 0, TEXT("\0\4\xff\xff\xff\xff"), 0},
    {"a window that overflows", WINDOW_UPDATE, 0, 0, TEXT("\x7f\xff\xff\xff"), 0},
    {"a stream's window that overflows", WINDOW_UPDATE, 0, 1, TEXT("\x7f\xff\xff\xff"), 0},
    {"a window that does not grow", WINDOW_UPDATE, 0, 0, TEXT("\0\0\0\0"), 0},
    {"SETTINGS of 5 bytes", SETTINGS, 0, 0, TEXT("\0\0\0\0\0"), 0},
    {"a PING of a stream", PING, 0, 1, TEXT("12345678"), 0},
    {"CONTINUATION of nothing", CONTINUATION, END_HEADERS, 1, TEXT("\x88"), 0},
    {"a frame too large", DATA, 0, 1, zeros, sizeof zeros, 0},
    {"a reset", RST_STREAM, 0, 1, TEXT("\0\0\0\2"), 0},
    {"a graceful reset", RST_STREAM, 0, 1, TEXT("\0\0\0\0"), 0},
};

enum { MOST_PIECES = 1 << 18 };

static long pieces; /* that were sent */

static void *sends_pieces(void *arg)
{
    const piece_t *piece = arg;
    CHECK_EQ(begin_connection(), 1);
    if (piece->type == CONTINUATION && piece->repeats)
        CHECK_EQ(send_frame(HEADERS, 0, 1, "\x88", 1), 0);
    else if (piece->repeats && piece->type == DATA)
        CHECK_EQ(send_frame(HEADERS, END_HEADERS, 1, "\x88", 1), 0);
    pieces = 0;
    do
        pieces++;
    while (send_frame(piece->type, piece->flags, piece->id, piece->payload, piece->n) == 0 && piece->repeats &&
           pieces < MOST_PIECES);
    end_connection();
    return NULL;
}

/* Whether the call has failed, at the head or in the body. */
static int fails(void)
{
    char part[1000];
    ssize_t n = -1;
    aco_http_response_t *r = aco_http_call(client, &call);
    while (r && (n = aco_http_response_read(r, part, sizeof part)) > 0)
        ;
    if (r)
        aco_http_response_end(r);
    return n < 0;
}

static void test_floods(void)
{
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        aco_t *task = begin(sends_pieces, &floods[i]);
        if (!fails())
            CHECK_TEXT("a flood that was borne", floods[i].name, "");
        end(task);
        if (pieces == MOST_PIECES)
            CHECK_TEXT("a flood without an end", floods[i].name, "");
    }
}

static void test_wrongs(void)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        aco_t *task;
        options.head_time = 20 * ACO_MILLISECOND; /* some of it is borne, and nothing follows */
        task = begin(sends_pieces, &wrongs[i]);
        if (!fails())
            CHECK_TEXT("a response that was borne", wrongs[i].name, "");
        end(task);
    }
}

/* ---- Bombs, and bodies beyond what the client takes ---- */

/* A field of 4000 bytes in the table, then named again and again. */
static void *sends_bomb(void *arg)
{
    static unsigned char bomb[16000];
    size_t n = 0;
    CHECK_EQ(begin_connection(), 1);
    bomb[n++] = 0x88;
    bomb[n++] = 0x40;
    bomb[n++] = 1;
    bomb[n++] = 'a';
    bomb[n++] = 0x7f; /* 4000 = 127 + 3873 */
    bomb[n++] = 0xa1;
    bomb[n++] = 0x1e;
    memset(bomb + n, 'b', 4000);
    n += 4000;
    memset(bomb + n, 0xbe, sizeof bomb - n);
    CHECK_EQ(send_frame(HEADERS, END_HEADERS | END_STREAM, 1, bomb, sizeof bomb), 0);
    end_connection();
    return arg;
}

/* Sends a body that nobody reads, beyond the windows. */
static void *overflows(void *arg)
{
    CHECK_EQ(begin_connection(), 1);
    CHECK_EQ(send_frame(HEADERS, END_HEADERS, 1, "\x88", 1), 0);
    for (pieces = 0; send_frame(DATA, 0, 1, zeros, sizeof zeros) == 0 && pieces < MOST_PIECES; pieces++)
        ;
    end_connection();
    return arg;
}

static void test_bombs(void)
{
    aco_http_response_t *r;
    char part[100];
    ssize_t n;
    aco_t *task = begin(sends_bomb, NULL);
    CHECK(fails());
    end(task);
    task = begin(overflows, NULL);
    r = aco_http_call(client, &call);
    CHECK(r != NULL);
    while (pieces < 100) /* of 16000 bytes; the window has less */
        aco_task_yield();
    while ((n = aco_http_response_read(r, part, sizeof part)) > 0)
        ;
    CHECK(n < 0);
    aco_http_response_end(r);
    end(task);
}

static void *meets_servers(void *arg)
{
    char address[ACO_IO_ADDRESS_SIZE];
    listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    CHECK(listener >= 0);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    snprintf(port, sizeof port, "%s", strchr(address, ':') + 1);
    snprintf(url, sizeof url, "http://127.0.0.1:%s/", port);
    options.prior_knowledge = 1;
    call.url = url;
    test_retries();
    test_hurry();
    test_connections();
    test_floods();
    test_wrongs();
    test_bombs();
    CHECK_EQ(aco_io_close(listener), 0);
    return arg;
}

int main(void)
{
    static const aco_function_t tests[] = {meets_servers};
    signal(SIGPIPE, SIG_IGN);
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http2_client_peers");
}
