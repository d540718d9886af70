/* Every message means the same to the library as to the reader of http_reader.h, a second one that knows the RFCs only:
 * method, target, each field, the body, where the next message begins; or it is refused. Inputs are the corpus of
 * verification/fuzz/http.c, every byte at every place of some templates, and random changes of these.
 *
 * http_differential CORPUS [COUNT [SEED]]: so many random inputs. */
#define _GNU_SOURCE
#include "http_tests.h"

#include "http_reader.h"
#include "random.h"

#include <aco/sync.h>
#include <dirent.h>

enum { MESSAGES = 16, ROOM = 2 * READER_TEXT };

/* ---- An input, and how it is read: a stream in memory ---- */

typedef struct bytes {
    char p[READER_TEXT];
    size_t n;
} bytes_t;

static bytes_t input;
static size_t input_at, piece; /* what was read; how much at most at once */
static char replies[1 << 16];
static size_t replies_n;
static int opened; /* streams of clients */
static aco_semaphore_t closed = ACO_SEMAPHORE_INIT(0);

static ssize_t memory_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    (void)stream;
    (void)location;
    n = n < piece ? n : piece;
    n = n < input.n - input_at ? n : input.n - input_at;
    memcpy(p, input.p + input_at, n);
    input_at += n;
    return (ssize_t)n;
}

static ssize_t memory_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    size_t part = n < sizeof replies - 1 - replies_n ? n : sizeof replies - 1 - replies_n;
    (void)stream;
    (void)location;
    memcpy(replies + replies_n, p, part);
    replies_n += part;
    replies[replies_n] = 0;
    return (ssize_t)n;
}

static void memory_close(aco_stream_t *stream)
{
    aco_io_close(stream->fd);
    free(stream);
}

static void server_close(aco_stream_t *stream)
{
    memory_close(stream);
    aco_semaphore_release(&closed);
}

static size_t unread; /* bytes of the input before this one, which still are there when its connection is used again */

static int memory_has_input(aco_stream_t *stream)
{
    (void)stream;
    return unread > 0;
}

static aco_stream_t *server_open(int fd, void *arg)
{
    static const aco_stream_functions_t functions = {.read = memory_read, .write = memory_write, .close = server_close};
    (void)arg;
    return own_stream(fd, &functions);
}

/* ---- What there was in a message ---- */

typedef struct view {
    char head[ROOM]; /* the first line and the fields, as text */
    size_t head_n;
    char body[READER_TEXT];
    size_t body_n;
    int failed; /* the body */
} view_t;

static view_t seen[MESSAGES], read_one; /* the library's, the reader's */
static int seen_n;

static void put(view_t *view, const char *p, size_t n)
{
    n = n < sizeof view->head - view->head_n ? n : sizeof view->head - view->head_n;
    memcpy(view->head + view->head_n, p, n);
    view->head_n += n;
}

static void put_text(view_t *view, const char *text)
{
    put(view, text, strlen(text));
}

static void put_headers(view_t *view, const aco_http_header_t *headers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        put_text(view, headers[i].name);
        put_text(view, ": ");
        put_text(view, headers[i].value);
        put_text(view, "\n");
    }
}

static void put_number(view_t *view, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d ", number);
    put_text(view, text);
}

static view_t *next_view(void)
{
    view_t *view = &seen[seen_n < MESSAGES - 1 ? seen_n : MESSAGES - 1];
    seen_n++;
    view->head_n = view->body_n = 0;
    view->failed = 0;
    return view;
}

static void view_read(view_t *view, const reader_message_t *m)
{
    view->head_n = 0;
    if (m->method) {
        put(view, m->method, m->method_n);
        put_text(view, " ");
        put(view, m->target, m->target_n);
        put_text(view, " ");
    } else {
        put_number(view, m->status);
    }
    put_number(view, m->minor);
    put_text(view, "\n");
    for (size_t i = 0; i < m->field_count; i++) {
        put(view, m->fields[i].name, m->fields[i].name_n);
        put_text(view, ": ");
        put(view, m->fields[i].value, m->fields[i].value_n);
        put_text(view, "\n");
    }
}

/* ---- Disagreements ---- */

static int met[FREEDOMS], refused[FREEDOMS]; /* how many messages had each, and were refused */
static unsigned long inputs, failures;

static void print_bytes(const char *what, const char *p, size_t n)
{
    fprintf(stderr, "  %s: \"", what);
    for (size_t i = 0; i < n; i++)
        if (p[i] >= ' ' && p[i] < 0x7f && p[i] != '"' && p[i] != '\\')
            fputc(p[i], stderr);
        else if (p[i] == '\r' || p[i] == '\n')
            fprintf(stderr, p[i] == '\r' ? "\\r" : "\\n");
        else
            fprintf(stderr, "\\%03o", (unsigned char)p[i]);
    fprintf(stderr, "\"\n");
}

/* 0 */
static int disagree(const reader_message_t *m, const view_t *view, const char *what)
{
    enum { SHOWN = 20 };
    check_failures++;
    if (failures++ >= SHOWN)
        return 0;
    fprintf(stderr, "input %lu, in pieces of %zu: %s\n", inputs, piece < input.n ? piece : input.n, what);
    print_bytes("input", input.p, input.n);
    view_read(&read_one, m);
    fprintf(stderr, "  the reader: %s %s\n",
            m->kind == READER_WHOLE  ? "a message"
            : m->kind == READER_PART ? "a part"
                                     : "wrong,",
            m->wrong ? m->wrong : "");
    print_bytes("its head", read_one.head, read_one.head_n);
    print_bytes("its body", m->body, m->body_n);
    if (view) {
        print_bytes("the library's head", view->head, view->head_n);
        print_bytes("its body", view->body, view->body_n);
    }
    print_bytes("replies", replies, replies_n < 300 ? replies_n : 300);
    return 0;
}

static void note_freedoms(const reader_message_t *m, int is_refused)
{
    for (int i = 0; i < FREEDOMS; i++) {
        met[i] += (m->freedoms >> i) & 1;
        refused[i] += is_refused && (m->freedoms >> i) & 1;
    }
}

/* Whether what the library saw is what the reader understands. */
static int is_same(const reader_message_t *m, const view_t *view)
{
    view_read(&read_one, m);
    if (view->head_n != read_one.head_n || memcmp(view->head, read_one.head, read_one.head_n) != 0)
        return disagree(m, view, "another head");
    if (m->kind != READER_WHOLE)
        return view->failed ? 1 : disagree(m, view, "a body without its end, or a wrong one, was taken");
    note_freedoms(m, view->failed);
    if (view->failed && m->freedoms)
        return 1;
    if (view->failed)
        return disagree(m, view, "the body was refused");
    return view->body_n == m->body_n && memcmp(view->body, m->body, m->body_n) == 0 ? 1
                                                                                    : disagree(m, view, "another body");
}

/* ---- The server ---- */

static void look(aco_http_request_t *request, void *arg)
{
    view_t *view = next_view();
    ssize_t n;
    (void)arg;
    put_text(view, request->method);
    put_text(view, " ");
    put_text(view, request->target);
    put_text(view, " ");
    put_number(view, request->minor);
    put_text(view, "\n");
    put_headers(view, request->headers, request->header_count);
    while ((n = aco_http_request_read(request, view->body + view->body_n, sizeof view->body - view->body_n)) > 0)
        view->body_n += (size_t)n;
    view->failed = n < 0;
    if (!view->failed)
        aco_http_reply(request, 200, NULL, NULL, 0);
}

/* The status of the last reply; 0: there is none. */
static int last_status(void)
{
    int status = 0;
    for (const char *at = replies; (at = strstr(at, "HTTP/1.1 ")) != NULL; at += 9)
        status = atoi(at + 9);
    return status;
}

/* Nothing of this message came to a handler. 1; 0: the library should not have refused it, or did not say so. */
static int may_be_refused(const reader_message_t *m, size_t at)
{
    int status = last_status(), is_error = status >= 400 && status < 600;
    if (m->kind == READER_WHOLE && !m->freedoms)
        return disagree(m, NULL, "it was refused");
    if (m->kind == READER_PART)
        return status < 400 || is_error ? 1 : disagree(m, NULL, "the status");
    note_freedoms(m, 1);
    while (at < input.n && (input.p[at] == '\r' || input.p[at] == '\n'))
        at++;
    if (!is_error && memmem(input.p + at, input.n - at, "\r\n\r\n", 4)) /* else the library may wait for more */
        return disagree(m, NULL, "there is no status of an error");
    return 1;
}

static void compare_requests(void)
{
    static reader_message_t m;
    size_t at = 0;
    for (int i = 0; at < input.n && i < MESSAGES - 1; i++) {
        reader_request(&m, input.p + at, input.n - at);
        if (seen_n <= i) {
            may_be_refused(&m, at);
            return;
        }
        if (!m.has_head) {
            disagree(&m, &seen[i], "a head without its end, or a wrong one, was taken");
            return;
        }
        if (!is_same(&m, &seen[i]))
            return;
        if (m.kind != READER_WHOLE || seen[i].failed || !m.persists) {
            if (seen_n > i + 1)
                disagree(&m, &seen[i + 1], "a message behind the last one");
            return;
        }
        at += m.end;
    }
}

static char listener_name[64];

/* The next input, in pieces of this size. */
static void give(const bytes_t *bytes, size_t at_once)
{
    if (bytes != &input)
        input = *bytes;
    input_at = replies_n = 0;
    replies[0] = 0;
    seen_n = 0;
    piece = at_once;
    inputs++;
}

static void ask_server(const bytes_t *bytes, size_t at_once)
{
    int fd;
    give(bytes, at_once);
    fd = aco_io_dial("unix", listener_name, NULL, NULL);
    CHECK(fd >= 0);
    aco_semaphore_acquire(&closed);
    aco_io_close(fd);
    compare_requests();
}

/* ---- The client ---- */

static aco_http_client_t *client;
static char url[ACO_IO_ADDRESS_SIZE + 16];

/* What a call finds. */
static void call_once(void)
{
    aco_http_call_t call = {.url = url};
    aco_http_response_t *response = aco_http_call(client, &call);
    view_t *view;
    ssize_t n;
    if (!response)
        return;
    view = next_view();
    put_number(view, response->status);
    put_number(view, response->minor);
    put_text(view, "\n");
    put_headers(view, response->headers, response->header_count);
    while ((n = aco_http_response_read(response, view->body + view->body_n, sizeof view->body - view->body_n)) > 0)
        view->body_n += (size_t)n;
    view->failed = n < 0;
    aco_http_response_end(response);
}

/* A connection that goes on carries another response. */
static void check_kept(const reader_message_t *m)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    static bytes_t before;
    int opened_before = opened;
    before = input;
    unread = input.n - input_at;
    memcpy(input.p, answer, input.n = sizeof answer - 1);
    input_at = 0;
    call_once();
    if (seen_n != 2 || seen[1].body_n != 2 || memcmp(seen[1].body, "ok", 2) != 0 || seen[1].failed) {
        input = before;
        disagree(m, seen_n == 2 ? &seen[1] : NULL, "the next response is refused, or another one");
    } else if ((opened == opened_before) != m->persists) {
        input = before;
        disagree(m, NULL, m->persists ? "the connection does not go on" : "the connection goes on");
    }
    input = before;
    unread = 0;
}

static void compare_responses(void)
{
    static reader_message_t m;
    size_t at = 0;
    int interim = 0;
    do { /* interim responses are dropped */
        reader_response(&m, input.p + at, input.n - at, 0);
        if (m.kind == READER_WHOLE)
            at += m.end;
        interim |= (int)(m.status < 200 ? m.freedoms : 0);
    } while (m.kind == READER_WHOLE && m.status < 200);
    m.freedoms |= (unsigned)interim;
    if (!seen_n) {
        if (m.kind == READER_WHOLE && !m.freedoms)
            disagree(&m, NULL, "it was refused");
        note_freedoms(&m, 1);
        return;
    }
    if (!m.has_head)
        disagree(&m, &seen[0], "a head without its end, or a wrong one, was taken");
    else if (is_same(&m, &seen[0]) && m.kind == READER_WHOLE && !seen[0].failed) {
        m.persists = m.persists && at == input.n;
        check_kept(&m);
    }
}

static void ask_client(const bytes_t *bytes, size_t at_once)
{
    give(bytes, at_once);
    call_once();
    compare_responses();
}

/* Connections close by themselves, and leave no port in use. */
static aco_stream_t *client_open(int fd, const char *host, void *arg)
{
    static const aco_stream_functions_t functions = {
        .read = memory_read, .write = memory_write, .close = memory_close, .has_input = memory_has_input};
    static const struct linger reset = {1, 0};
    (void)host;
    (void)arg;
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    opened++;
    return own_stream(fd, &functions);
}

/* Holds each connection until the next one comes. */
static void *accepts(void *listener)
{
    int last = -1, fd;
    while ((fd = aco_io_accept(*(const int *)listener)) >= 0) {
        if (last >= 0)
            aco_io_close(last);
        last = fd;
    }
    if (last >= 0)
        aco_io_close(last);
    return NULL;
}

/* ---- Inputs ---- */

typedef struct template
{
    const char *text;
    int is_response;
}
template_t;

static const template_t templates[] = {
    {"GET /a?b HTTP/1.1\r\nA:\r\nHost: h:1\r\nB: \t c d \r\n\r\n", 0},
    {"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n", 0},
    {"POST /a HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n"
     "3;a=b\r\nabc\r\n1a;c=\"d\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nT:\r\n\r\nGET / HTTP/1.0\r\n\r\n",
     0},
    {"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n\r\nGET http://h/2 HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n", 0},
    {"HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /%41 HTTP/1.0\r\n\r\n", 0},
    {"HTTP/1.1 200 OK\r\nA:\r\nContent-Length: 2\r\nB: c\r\n\r\nok", 1},
    {"HTTP/1.1 103 E\r\nA:\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nT: "
     "u\r\n\r\n",
     1},
    {"HTTP/1.0 404 No\r\nConnection: close\r\n\r\nbody", 1},
    {"HTTP/1.1 200 OK\nA:\nB: \t c \nTransfer-Encoding: chunked\n\n2\r\nok\r\n0\r\n\r\n", 1},
};
enum { TEMPLATES = sizeof templates / sizeof *templates };

/* What random changes do not always find. */
static const template_t others[] = {
    {"GET / HTTP/1.1\r\nHost: h,i\r\n\r\n", 0},
    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 0},
    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1 ; a = b\r\na\r\n1;;\r\nb\r\n0\r\n\r\n", 0},
    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;;\r\nb\r\n0\r\n\r\n", 0},
    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n", 0},
    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nConnection: close\r\n\r\n"
     "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
     0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nConnection: close\r\n\r\n", 1},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: x\r\n\r\n", 1},
    {"HTTP/1.1 103 E\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1},
    {"HTTP/1.1 204 No\r\nContent-Length: x\r\n\r\n", 1},
    {"HTTP/1.1 600 No\r\nContent-Length: 0\r\n\r\n", 1},
    {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 1},
    {"HTTP/1.1 200 OK\nA:\nB: \t c \t\nContent-Length: 2\n\nok", 1},
    {"HTTP/1.1 103\n\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\n\r\n2\r\nok\r\n0\r\nT: u\r\n\r\n", 1},
    {"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nok\r\n0\r\n\r\n", 1},
    {"HTTP/1.1 200 OK\nConnection: x,\n close\nContent-Length: 0\n\n", 1},
    {"HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 2\n\nok", 1},
};

/* What random inputs are made of besides. */
static const char *const parts[] = {"\r\n",
                                    "\n",
                                    "\r",
                                    " ",
                                    "\t",
                                    ":",
                                    ";",
                                    ",",
                                    "=",
                                    "\"",
                                    "%",
                                    "/",
                                    "0",
                                    "1",
                                    "\r\n\r\n",
                                    "0\r\n\r\n",
                                    "A:\r\n",
                                    "Host: h\r\n",
                                    "Host: i\r\n",
                                    "Content-Length: 3\r\n",
                                    "Content-Length: 0\r\n",
                                    "Content-Length: 3, 3\r\n",
                                    "Transfer-Encoding: chunked\r\n",
                                    "Transfer-Encoding: gzip, chunked\r\n",
                                    "Transfer-Encoding:\tchunked\t\r\n",
                                    "Transfer-Encoding: , chunked\r\n",
                                    "Connection: close\r\n",
                                    "Connection: keep-alive\r\n",
                                    "Connection: close, keep-alive\r\n",
                                    "Expect: 100-continue\r\n",
                                    "Expect: x\r\n",
                                    "\r\n folded\r\n",
                                    "HTTP/1.0",
                                    "HTTP/1.1",
                                    "HTTP/1.2",
                                    "RTSP/1.0",
                                    "GET",
                                    "POST",
                                    "HEAD",
                                    "OPTIONS",
                                    "*",
                                    "http://h",
                                    "ftp://h/",
                                    "/../",
                                    "%00",
                                    "204",
                                    "304",
                                    "100",
                                    "\x80",
                                    "\x7f",
                                    "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
                                    "Upgrade: x\r\nConnection: upgrade\r\n"};

static void try(const bytes_t *bytes, int is_response, size_t at_once)
{
    if (is_response)
        ask_client(bytes, at_once);
    else
        ask_server(bytes, at_once);
}

static void ask_corpus(const char *path)
{
    static bytes_t bytes;
    DIR *folder = opendir(path);
    struct dirent *entry;
    int count = 0;
    CHECK(folder != NULL);
    while (folder && (entry = readdir(folder)) != NULL) {
        char name[1024], first[1];
        FILE *file;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        file = *entry->d_name == '.' ? NULL : fopen(name, "rb");
        if (!file)
            continue;
        if (fread(first, 1, 1, file) == 1) { /* it tells the fuzzer which side is meant */
            bytes.n = fread(bytes.p, 1, sizeof bytes.p, file);
            for (int side = 0; side < 2; side++) {
                try(&bytes, side, SIZE_MAX);
                try(&bytes, side, 1);
            }
            count++;
        }
        fclose(file);
    }
    if (folder)
        closedir(folder);
    CHECK(count > 50);
}

static void ask_others(void)
{
    static bytes_t bytes;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bytes.n = strlen(others[i].text);
        memcpy(bytes.p, others[i].text, bytes.n);
        try(&bytes, others[i].is_response, SIZE_MAX);
        try(&bytes, others[i].is_response, 1);
    }
}

static void ask_every_byte(void)
{
    static bytes_t bytes;
    for (int t = 0; t < TEMPLATES; t++) {
        bytes.n = strlen(templates[t].text);
        memcpy(bytes.p, templates[t].text, bytes.n);
        try(&bytes, templates[t].is_response, SIZE_MAX);
        try(&bytes, templates[t].is_response, 1);
        for (size_t i = 0; i < bytes.n; i++) {
            char before = bytes.p[i];
            for (int byte = 0; byte < 256; byte++) {
                bytes.p[i] = (char)byte;
                try(&bytes, templates[t].is_response, byte % 3 ? SIZE_MAX : 1);
            }
            bytes.p[i] = before;
        }
    }
}

/* Puts `n` bytes in the place of `gone` ones. */
static void replace(bytes_t *bytes, size_t at, size_t gone, const char *p, size_t n)
{
    if (bytes->n - gone + n > sizeof bytes->p / 4)
        return;
    memmove(bytes->p + at + n, bytes->p + at + gone, bytes->n - at - gone);
    memcpy(bytes->p + at, p, n);
    bytes->n += n - gone;
}

static void change(bytes_t *bytes, random_t *random)
{
    char copy[32];
    size_t at = below(random, (unsigned)bytes->n + 1), left = bytes->n - at;
    size_t some = below(random, left < sizeof copy ? (unsigned)left + 1 : sizeof copy);
    const char *part = parts[below(random, sizeof parts / sizeof *parts)];
    switch (below(random, 6)) {
    case 0:
        replace(bytes, at, some, "", 0);
        break;
    case 1:
        copy[0] = (char)draw(random);
        replace(bytes, at, left > 0, copy, 1);
        break;
    case 2: /* twice */
        memcpy(copy, bytes->p + at, some);
        replace(bytes, at, 0, copy, some);
        break;
    case 3:
        replace(bytes, at, some < 4 ? some : 0, part, strlen(part));
        break;
    default: { /* at the beginning of a line */
        const char *line = memchr(bytes->p + at, '\n', left);
        replace(bytes, line ? (size_t)(line + 1 - bytes->p) : at, 0, part, strlen(part));
        break;
    }
    }
}

static void ask_random(unsigned long count, uint64_t seed)
{
    static const size_t pieces[] = {1, 2, 3, 7, SIZE_MAX, SIZE_MAX};
    static bytes_t bytes;
    random_t random = {seed};
    for (unsigned long i = 0; i < count; i++) {
        const template_t *from = &templates[below(&random, TEMPLATES)];
        bytes.n = strlen(from->text);
        memcpy(bytes.p, from->text, bytes.n);
        for (unsigned n = 1 + below(&random, 4); n > 0; n--)
            change(&bytes, &random);
        try(&bytes, from->is_response, pieces[below(&random, sizeof pieces / sizeof *pieces)]);
    }
}

/* ---- The program ---- */

static const char *corpus;
static unsigned long random_count = 20000;
static uint64_t random_seed = 1;

static void *compares(void *arg)
{
    static const aco_http_route_t all[] = {{NULL, "/*", look, NULL}, {NULL, "*", look, NULL}, {NULL, NULL, NULL, NULL}};
    stage_t stage = {.server = {.routes = all, .open = server_open, .max_body = -1, .max_streams = -1}};
    aco_http_client_options_t options = {.max_redirects = -1, .open = client_open};
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = aco_io_listen("tcp4", "127.0.0.1", "0", NULL);
    aco_group_t group;
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, accepts, &listener);
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    snprintf(url, sizeof url, "https://%s/", address);
    client = aco_http_client_new(&options);
    snprintf(listener_name, sizeof listener_name, "@acorn-differential-%d", (int)getpid());
    stage.listener = aco_io_listen("unix", listener_name, NULL, NULL);
    CHECK(stage.listener >= 0 && client != NULL);
    stage.task = aco_spawn(serves, &stage, NULL);
    aco_task_yield();
    ask_corpus(corpus);
    ask_others();
    ask_every_byte();
    ask_random(random_count, random_seed);
    aco_http_client_destroy(client);
    stop(&stage);
    aco_scope_cancel(&group.scope);
    aco_group_end(&group);
    aco_io_close(listener);
    return arg;
}

int main(int argc, char **argv)
{
    static const aco_function_t tests[] = {compares};
    corpus = argc > 1 ? argv[1] : "";
    random_count = argc > 2 ? strtoul(argv[2], NULL, 0) : random_count;
    random_seed = argc > 3 ? strtoull(argv[3], NULL, 0) : random_seed;
    run_http_tests(tests, 1);
    for (int i = 0; i < FREEDOMS; i++) {
        printf("%7d of %d refused: %s, %s\n", refused[i], met[i], reader_freedoms[i].section, reader_freedoms[i].what);
        CHECK(met[i] > 0); /* otherwise nobody needs it */
    }
    printf("%lu inputs, %lu disagreements\n", inputs, failures);
    return check_result("http_differential");
}
