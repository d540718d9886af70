/* Forms: an input is the body of a request, whose parts a handler reads by aco/http_forms.h. It is sent twice: in one
 * piece, and in small ones, of a body in chunks or not, read in small pieces, too.
 *
 * The first byte tells what the others are:
 *   bits 0, 1  0 and 1: application/x-www-form-urlencoded; 2: multipart/form-data, each byte a piece of its syntax, or
 *              itself; 3: multipart/form-data, made of parts that the bytes tell: name, file name, content
 *   bits 2-4   the size of the pieces    bit 5  whether the body comes in chunks
 *
 * The properties: what is read does not depend on the pieces, or two programs could read two forms. A model, written
 * from the standards, reads the same of the first type. Parts that were made come back as they were. */
#define _GNU_SOURCE
#define FUZZ_NAME "forms"
#include "aco/group.h"
#include "aco/http_forms.h"
#include "aco/stream.h"
#include "fuzz.h"

enum { LOG = 1 << 16, BODY = 1 << 14, NAME = 64, PARTS = 8 };

static char logs[2][LOG], model[LOG], body[BODY], *log_at;
static size_t log_n, body_n, piece;
static int is_multipart, is_chunked;

static int fuzz_actor(void)
{
    return 0;
}

OUTLINE void note(const char *p, size_t n)
{
    n = n < LOG - log_n ? n : LOG - log_n;
    memcpy(log_at + log_n, p, n);
    log_n += n;
}

static void note_text(const char *what, const char *text)
{
    note(what, strlen(what));
    note(text ? text : "(none)", text ? strlen(text) : 6);
}

static void begin_log(char *log)
{
    log_at = log;
    log_n = 0;
    memset(log, 0, LOG);
}

/* ---- The model of application/x-www-form-urlencoded ---- */

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Decodes body[*i], which moves. -1: a wrong escape. */
static int decode(size_t *i)
{
    const char c = body[(*i)++];
    int high, low;
    if (c != '%')
        return c == '+' ? ' ' : (unsigned char)c;
    high = *i < body_n ? digit_of(body[(*i)++]) : -1;
    low = high >= 0 && *i < body_n ? digit_of(body[(*i)++]) : -1;
    return low < 0 ? -1 : high * 16 + low;
}

/* 0, or an errno. */
static int read_by_model(void)
{
    int parts = 0;
    for (size_t i = 0; i < body_n; i++) { /* behind each "&" */
        static char name[NAME + 1], value[BODY];
        size_t name_n = 0, n = 0;
        while (i < body_n && body[i] != '&' && body[i] != '=') {
            int byte = decode(&i);
            if (byte <= 0)
                return EBADMSG;
            if (name_n == NAME)
                return EFBIG;
            name[name_n++] = (char)byte;
        }
        if (name_n == 0 && (i == body_n || body[i] == '&'))
            continue;
        if (++parts > PARTS)
            return EFBIG;
        name[name_n] = 0;
        note_text("\n", name);
        for (i += i < body_n && body[i] == '='; i < body_n && body[i] != '&';) {
            int byte = decode(&i);
            if (byte < 0)
                return EBADMSG;
            value[n++] = (char)byte;
        }
        note(": ", 2);
        note(value, n);
    }
    return 0;
}

/* ---- The server ---- */

static void handle(aco_http_request_t *request, void *pieces)
{
    const aco_http_form_options_t options = {.max_head = is_multipart ? 256 : NAME, .max_parts = PARTS};
    aco_http_form_t *form = aco_http_form_open(request, &options);
    const aco_http_part_t *part = NULL;
    static char value[BODY];
    ssize_t n = 0;
    EXPECT(form != NULL);
    while (n == 0 && (part = aco_http_form_next(form)) != NULL) {
        size_t all = 0;
        note_text("\n", part->name);
        if (is_multipart) {
            note_text(" file ", part->file_name);
            note_text(" type ", part->type);
        }
        while ((n = aco_http_form_read(form, value + all, pieces ? piece : BODY - all)) > 0)
            all += (size_t)n;
        if (n == 0) {
            note(": ", 2);
            note(value, all);
        }
    }
    if (part || errno) { /* the same again */
        const int error = errno;
        EXPECT(!aco_http_form_next(form) && errno == error);
        note_text("\n", error == EBADMSG ? "wrong" : error == EFBIG ? "large" : "?");
    } else
        EXPECT(aco_http_reply(request, 200, NULL, NULL, 0) == 0);
}

static void *serve(void *end)
{
    static const aco_http_route_t routes[2][2] = {{{"POST", "/1", handle, NULL}, {NULL, NULL, NULL, NULL}},
                                                  {{"POST", "/2", handle, &piece}, {NULL, NULL, NULL, NULL}}};
    const aco_http_group_t groups[] = {{routes[0], NULL}, {routes[1], NULL}, {NULL, NULL}};
    const aco_http_server_options_t options = {.groups = groups, .failed = NULL};
    aco_http_server_t *server = aco_http_server_new(&options);
    EXPECT(server && aco_http_serve_connection(server, end, NULL, 0) == 0);
    aco_http_server_destroy(server);
    return NULL;
}

/* ---- The client ---- */

static void *post(void *in_pieces)
{
    aco_stream_t *ends[2];
    aco_group_t group;
    char head[300], text[64];
    const size_t part = in_pieces ? piece : BODY;
    const int chunked = in_pieces && is_chunked;
    int n = snprintf(head, sizeof head, "POST /%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: %s\r\n",
                     in_pieces ? 2 : 1,
                     is_multipart ? "multipart/form-data; boundary=b" : "application/x-www-form-urlencoded");
    n += chunked ? snprintf(head + n, sizeof head - (size_t)n, "Transfer-Encoding: chunked\r\n\r\n")
                 : snprintf(head + n, sizeof head - (size_t)n, "Content-Length: %zu\r\n\r\n", body_n);
    EXPECT(aco_stream_pair(ends, 4 * BODY) == 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    EXPECT(aco_group_spawn(&group, serve, ends[1], NULL) != NULL);
    (void)aco_stream_write_all(ends[0], head, (size_t)n); /* it may be refused before all has come */
    for (size_t i = 0; i < body_n; i += part) {
        const size_t now = body_n - i < part ? body_n - i : part;
        n = snprintf(text, sizeof text, "%zx\r\n", now);
        if (chunked)
            (void)aco_stream_write_all(ends[0], text, (size_t)n);
        (void)aco_stream_write_all(ends[0], body + i, now);
        if (chunked)
            (void)aco_stream_write_all(ends[0], "\r\n", 2);
        aco_task_yield();
    }
    if (chunked)
        (void)aco_stream_write_all(ends[0], "0\r\n\r\n", 5);
    while (aco_stream_read(ends[0], head, sizeof head) > 0)
        continue;
    aco_stream_close(ends[0]);
    EXPECT(aco_group_end(&group) == 0);
    return NULL;
}

static void run_once(char *log, void *in_pieces)
{
    aco_t *task;
    begin_log(log);
    task = aco_spawn(post, in_pieces, NULL);
    EXPECT(task != NULL && aco_run() == 0 && aco_join(task, NULL) == 0);
}

/* ---- Bodies ---- */

static void add(const char *p, size_t n)
{
    n = n < BODY - body_n ? n : BODY - body_n;
    memcpy(body + body_n, p, n);
    body_n += n;
}

static void add_text(const char *text)
{
    add(text, strlen(text));
}

static void make_of_syntax(void)
{
    static const char *const tokens[] = {"\r\n--b",
                                         "--b",
                                         "\r\n",
                                         "--",
                                         "\r\n\r\n",
                                         "Content-Disposition: form-data; name=\"n\"",
                                         "; filename=\"f\"",
                                         "Content-Type: text/plain",
                                         "Content-Disposition: form-data",
                                         "; name=",
                                         "\"",
                                         "\\",
                                         ": ",
                                         " ",
                                         "\t",
                                         "Content-Transfer-Encoding: binary",
                                         "\r",
                                         "\n",
                                         "-",
                                         "b",
                                         "a=",
                                         "&",
                                         "%41",
                                         "%",
                                         "+",
                                         "=",
                                         "\r\n--b--",
                                         "\r\n--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n",
                                         "; x=y",
                                         "%0",
                                         "\r\n--b--\r\n",
                                         "\r\r\n--b"};
    while (!is_over()) {
        const unsigned byte = next();
        const char c = (char)byte;
        if (byte < 32)
            add_text(tokens[byte]);
        else
            add(&c, 1);
    }
}

/* Up to `most` bytes: of a name, none that its syntax knows; else any. */
static size_t take(char *to, size_t most, int is_name)
{
    size_t n = next() % (most + 1);
    for (size_t i = 0; i < n; i++) {
        to[i] = (char)next();
        if (is_name && (to[i] == '%' || (unsigned char)to[i] < ' ' || to[i] == 0x7f))
            to[i] = 'n';
    }
    return n;
}

static void add_quoted(const char *name, const char *text, size_t n)
{
    add_text(name);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == '\\')
            add("\\", 1);
        add(text + i, 1);
    }
    add("\"", 1);
}

/* Notes the parts in `model`. */
static void make_parts(void)
{
    add_text("--b");
    for (int parts = 0; parts < PARTS && !is_over(); parts++) {
        char text[3][256] = {{0}};
        const size_t name_n = take(text[0], 40, 1), file_n = take(text[1], 40, 1), n = take(text[2], 255, 0);
        if (memmem(text[2], n, "\r\n--b", 5))
            continue;
        add_quoted("\r\nContent-Disposition: form-data; name=\"", text[0], name_n);
        if (file_n)
            add_quoted("; filename=\"", text[1], file_n);
        add_text("\r\n\r\n");
        add(text[2], n);
        add_text("\r\n--b");
        note_text("\n", text[0]);
        note_text(" file ", file_n ? text[1] : NULL);
        note_text(" type ", NULL);
        note(": ", 2);
        note(text[2], n);
    }
    add_text("--\r\n");
}

static void fuzz_input(void)
{
    static const size_t pieces[] = {1, 2, 3, 5, 7, 16, 31, 100};
    const unsigned first = next(), kind = first & 3;
    is_multipart = kind >= 2;
    is_chunked = first >> 5 & 1;
    piece = pieces[first >> 2 & 7];
    body_n = 0;
    begin_log(model);
    if (kind == 3)
        make_parts();
    else
        make_of_syntax();
    if (!is_multipart) {
        const int error = read_by_model();
        if (error)
            note_text("\n", error == EBADMSG ? "wrong" : "large");
    }
    run_once(logs[0], NULL);
    if (tracing)
        fprintf(stderr, "%.*s\n%s\n", (int)body_n, body, logs[0]);
    run_once(logs[1], &piece);
    if (memcmp(logs[0], logs[1], LOG) != 0)
        fail(__LINE__, "in pieces of %zu bytes:\n%s\nand in one:\n%s", piece, logs[1], logs[0]);
    if (kind != 2 && memcmp(logs[0], model, LOG) != 0)
        fail(__LINE__, "it reads:\n%s\nand not:\n%s", logs[0], model);
}
