/* Forms that an HTTP server receives (include/aco/http_forms.h). With arguments it is a server of io/http_curl.py. */
#define _GNU_SOURCE
#include <aco/http_forms.h>
#include "http_tests.h"
#include "random.h"

static aco_http_form_options_t form_options;
static size_t read_at_once = 100;

/* Replies with all parts: "name|file|type|content;". */
static void lists_parts(aco_http_request_t *request, void *arg)
{
    static char text[1 << 16];
    size_t n = 0;
    const aco_http_part_t *part;
    aco_http_form_t *form = aco_http_form_open(request, &form_options);
    (void)arg;
    if (!form) {
        if (errno == ENOTSUP)
            CHECK_EQ(aco_http_reply(request, 415, NULL, NULL, 0), 0);
        return;
    }
    CHECK_EQ(aco_http_form_read(form, text, sizeof text), 0);
    while ((part = aco_http_form_next(form)) != NULL) {
        ssize_t got_now = 1;
        n += (size_t)snprintf(text + n, sizeof text / 2 - n, "%s|%s|%s|", part->name,
                              part->file_name ? part->file_name : "-", part->type ? part->type : "-");
        if (strcmp(part->name, "skip") == 0)
            got_now = 0;
        while (got_now > 0 && n < sizeof text / 2) {
            got_now = aco_http_form_read(form, text + n, read_at_once);
            n += got_now > 0 ? (size_t)got_now : 0;
        }
        if (got_now < 0)
            break;
        text[n++] = ';';
    }
    if (part || errno) {
        int error = errno;
        FAILS_WITH(aco_http_form_read(form, text, 1), error);
        CHECK(aco_http_form_next(form) == NULL && errno == error);
        return;
    }
    CHECK(aco_http_form_next(form) == NULL && errno == 0);
    CHECK_EQ(aco_http_reply(request, 200, "text/plain", text, n), 0);
}

static void reads_values(aco_http_request_t *request, void *arg)
{
    aco_http_form_t *form = aco_http_form_open(request, NULL);
    size_t n;
    (void)arg;
    CHECK(form && aco_http_form_next(form) != NULL);
    CHECK_TEXT("all", aco_http_form_read_all(form, 4, &n), "1234");
    CHECK_EQ(n, 4);
    CHECK(aco_http_form_next(form) != NULL);
    CHECK_TEXT("none", aco_http_form_read_all(form, 0, NULL), "");
    CHECK(aco_http_form_next(form) != NULL);
    CHECK_EQ(strlen(aco_http_form_read_all(form, 5000, NULL)), 5000);
    CHECK(aco_http_form_next(form) != NULL);
    CHECK(aco_http_form_read_all(form, 3, NULL) == NULL && errno == EFBIG);
}

static const aco_http_route_t routes[] = {{"POST", "/", lists_parts, NULL},
                                          {"POST", "/values", reads_values, NULL},
                                          {NULL, NULL, NULL, NULL}};

/* ---- Requests ---- */

#define URLENCODED "application/x-www-form-urlencoded"
#define MULTIPART "multipart/form-data; boundary=b"
#define PART(parameters) "--b\r\nContent-Disposition: form-data; " parameters "\r\n"

/* Sends a form in two pieces, and returns the reply's status and body. The connection is kept, if the server keeps
 * it. */
static const char *post(const stage_t *stage, const char *type, const char *content, size_t n, size_t split)
{
    static char text[600];
    char head[512];
    int fd = dial(stage), head_n;
    head_n = snprintf(head, sizeof head, "POST / HTTP/1.1\r\n" HOST "Content-Type: %s\r\nContent-Length: %zu\r\n"
                                         "Connection: close\r\n\r\n", type, n);
    CHECK(aco_io_write_all(fd, head, (size_t)head_n) > 0);
    if (split)
        CHECK(aco_io_write_all(fd, content, split) > 0);
    for (int i = 0; i < 3 && split; i++)
        aco_task_yield();
    (void)aco_io_write_all(fd, content + split, n - split);
    read_to_end(fd);
    aco_io_close(fd);
    snprintf(text, sizeof text, "%.3s %s", got_n > 12 ? got + 9 : "", body());
    return text;
}

static void check_form(const stage_t *stage, const char *type, const char *content, const char *wanted)
{
    const char *reply = post(stage, type, content, strlen(content), 0);
    if (strlen(wanted) == 3) /* a status is enough */
        CHECK(strncmp(reply, wanted, 3) == 0 || (fprintf(stderr, "%s\n%s\n", content, reply), 0));
    else
        CHECK_TEXT(content, reply, wanted);
}

static const struct {
    const char *type, *content, *reply;
} cases[] = {
    {URLENCODED, "", "200 "},
    {URLENCODED, "a=1", "200 a|-|-|1;"},
    {URLENCODED "; charset=UTF-8", "a=1&b=2&a=3", "200 a|-|-|1;b|-|-|2;a|-|-|3;"},
    {URLENCODED, "a+b=c+d%26%3d%C3%A4", "200 a b|-|-|c d&=\xc3\xa4;"},
    {URLENCODED, "&&a=1&&b&=c&d=&", "200 a|-|-|1;b|-|-|;|-|-|c;d|-|-|;"},
    {URLENCODED, "skip=abcdef&a==1=", "200 skip|-|-|;a|-|-|=1=;"},
    {URLENCODED, "a=%", "400"},
    {URLENCODED, "a=%4", "400"},
    {URLENCODED, "a=%4&b=1", "400"},
    {URLENCODED, "a=%zz", "400"},
    {URLENCODED, "%00=1", "400"},
    {"text/plain", "a=1", "415"},
    {"multipart/mixed; boundary=b", "--b--\r\n", "415"},
    {MULTIPART, "--b--", "200 "},
    {MULTIPART, PART("name=\"a\"") "\r\n1\r\n--b--\r\n", "200 a|-|-|1;"},
    {MULTIPART, PART("name=a") "\r\n\r\n--b--\r\n", "200 a|-|-|;"},
    {MULTIPART,
     "before\r\n" PART("name=a") "\r\n1\r\n--b \t\r\ncontent-disposition:form-data;name=b\r\n\r\n2\r\n--b--after",
     "200 a|-|-|1;b|-|-|2;"},
    {MULTIPART,
     PART("name=\"f\"; filename=\"a \\\"b\\\" \\c%22.txt\"")
     "Content-Type: text/x; a=b\r\nX: y\r\n\r\n\r\n--\r\n-b\r\r\n--b--",
     "200 f|a \"b\" \\c%22.txt|text/x; a=b|\r\n--\r\n-b\r;"},
    {MULTIPART, PART("name=skip") "\r\nabc\r\n" PART("name=a") "\r\n1\r\n--b--", "200 skip|-|-|;a|-|-|1;"},
    {MULTIPART, PART("name=a") "Content-Transfer-Encoding: BINARY\r\n\r\n1\r\n--b--", "200 a|-|-|1;"},
    {"multipart/form-data; boundary=\"a b'()+_,-./:=?x\"",
     "--a b'()+_,-./:=?x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--a b'()+_,-./:=?x--", "200 a|-|-|1;"},
    /* what is refused: */
    {"multipart/form-data", "--b--", "400"},
    {"multipart/form-data; boundary=", "--b--", "400"},
    {"multipart/form-data; boundary=\"\"", "----", "400"},
    {"multipart/form-data; boundary=\"b", "--b--", "400"},
    {"multipart/form-data; boundary=\"b \"", "--b --", "400"},
    {"multipart/form-data; boundary=\"b\xff\"", "--b --", "400"},
    {"multipart/form-data; boundary=b; boundary=c", "--b--", "400"},
    {"multipart/form-data; boundary=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "--b--",
     "400"},
    {MULTIPART, "", "400"},
    {MULTIPART, "--b", "400"},
    {MULTIPART, "--b-", "400"},
    {MULTIPART, "--bc\r\n", "400"},
    {MULTIPART, "--b\n\n", "400"},
    {MULTIPART, PART("name=a") "\r\n1", "400"},
    {MULTIPART, PART("name=a") "\r\n1\r\n--b\r\n", "400"},
    {MULTIPART, "--b\r\n\r\n1\r\n--b--", "400"},
    {MULTIPART, "--b\r\na\n\r\n1\r\n--b--", "400"},
    {MULTIPART, "--b\r\n\r\r\n\r\n1\r\n--b--", "400"},
    {MULTIPART, "--b\r\nContent-Disposition: form-data\r\n\r\n1\r\n--b--", "400"},
    {MULTIPART, "--b\r\nContent-Disposition: attachment; name=a\r\n\r\n1\r\n--b--", "400"},
    {MULTIPART, "--b\r\nContent-Disposition: form-data; name=a\n\r\n\r\n1\r\n--b--", "400"},
    {MULTIPART, "--b\r\nContent-Disposition: form-data; name=a\r\n\rX: y\r\n\r\n1\r\n--b--", "400"},
    {MULTIPART, "--b\r\nContent-Disposition : form-data; name=a\r\n\r\n1\r\n--b--", "400"},
    {MULTIPART, "--b\r\n Content-Disposition: form-data; name=a\r\n\r\n1\r\n--b--", "400"},
    {MULTIPART, PART("name=a; name=b") "\r\n1\r\n--b--", "400"},
    {MULTIPART, PART("name=a; filename=b; FileName=c") "\r\n1\r\n--b--", "400"},
    {MULTIPART, PART("name=\"a") "\r\n1\r\n--b--", "400"},
    {MULTIPART, PART("name=a;") "\r\n1\r\n--b--", "400"},
    {MULTIPART, PART("name=") "\r\n1\r\n--b--", "400"},
    {MULTIPART, PART("name = a") "\r\n1\r\n--b--", "400"},
    {MULTIPART, PART("name=a") "Content-Disposition: form-data; name=b\r\n\r\n1\r\n--b--", "400"},
    {MULTIPART, PART("name=a") "Content-Transfer-Encoding: base64\r\n\r\nMQ==\r\n--b--", "400"},
    {MULTIPART, PART("name=a") "X: \x01\r\n\r\n1\r\n--b--", "400"},
};

static void *reads_forms(void *arg)
{
    stage_t stage = {0};
    start(&stage, routes);
    for (read_at_once = 100; read_at_once; read_at_once = read_at_once == 1 ? 0 : 1)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            check_form(&stage, cases[i].type, cases[i].content, cases[i].reply);
    read_at_once = 100;
    ask(&stage, "POST / HTTP/1.1\r\n" HOST "Content-Type: " URLENCODED "\r\nContent-Type: " URLENCODED
                "\r\nContent-Length: 1\r\n\r\na");
    CHECK_TEXT("two types", statuses(), "415");
    check_form(&stage, MULTIPART, "--b\r\nX\0: y\r\n\r\n", "400");
    stop(&stage);
    return arg;
}

/* At each place where the body may be split, the result is the same. A body that ends early is refused. */
static void *splits_forms(void *arg)
{
    stage_t stage = {0};
    start(&stage, routes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *content = cases[i].content, *reply = cases[i].reply;
        size_t n = strlen(content), end = strlen(reply) == 3 ? 0 : n;
        for (size_t split = 1; split < end; split++)
            CHECK_TEXT(content, post(&stage, cases[i].type, content, n, split), reply);
        if (cases[i].type[0] != 'm' || !end)
            continue;
        end = (size_t)(strstr(content, "--b--") ? strstr(content, "--b--") + 5 - content : 0);
        for (size_t cut = 0; cut < end; cut++)
            CHECK(strncmp(post(&stage, cases[i].type, content, cut, 0), "400", 3) == 0);
    }
    stop(&stage);
    return arg;
}

/* A content larger than the buffer, full of what looks like a boundary, comes back as it is. */
static void *reads_large_contents(void *arg)
{
    static const char pieces[][8] = {"\r", "\n", "-", "\r\n", "\r\n-", "\r\n--", "b", "x", "--b", "\r\n\r\n"};
    static char content[20000], wanted[20100];
    random_t state = {7};
    stage_t stage = {0};
    start(&stage, routes);
    for (int round = 0; round < 50; round++) {
        size_t n = (size_t)sprintf(content, PART("name=a") "\r\n"), begin = n, end;
        while (n < 10000) {
            const char *piece = pieces[below(&state, sizeof pieces / sizeof pieces[0])];
            n += (size_t)sprintf(content + n, "%s", piece);
            while (n - begin >= 5 && memcmp(content + n - 5, "\r\n--b", 5) == 0)
                content[--n] = 0;
        }
        end = n;
        n += (size_t)sprintf(content + n, "x\r\n--b--");
        snprintf(wanted, sizeof wanted, "a|-|-|%.*sx;", (int)(end - begin), content + begin);
        read_at_once = 1 + below(&state, 5000);
        post(&stage, MULTIPART, content, n, below(&state, (unsigned)n));
        CHECK_TEXT("the same", body(), wanted);
    }
    read_at_once = 100;
    stop(&stage);
    return arg;
}

/* Whatever bytes change, the server answers 200 or 400. */
static void *reads_changed_forms(void *arg)
{
    random_t state = {11};
    stage_t stage = {0};
    start(&stage, routes);
    for (int round = 0; round < 1500; round++) {
        size_t i = below(&state, sizeof cases / sizeof cases[0]), n = strlen(cases[i].content);
        char content[512];
        const char *reply;
        if (!n || strncmp(cases[i].reply, "415", 3) == 0)
            continue;
        memcpy(content, cases[i].content, n);
        for (size_t k = 1 + below(&state, 3); k > 0; k--)
            content[below(&state, (unsigned)n)] = "\r\n-b=;:\"% \0\\&a\xff"[below(&state, 15)];
        reply = post(&stage, cases[i].type, content, n, below(&state, (unsigned)n));
        CHECK(strncmp(reply, "200", 3) == 0 || strncmp(reply, "400", 3) == 0);
    }
    stop(&stage);
    return arg;
}

static void *limits_forms(void *arg)
{
    static char long_one[6000];
    char content[9000];
    stage_t stage = {0};
    start(&stage, routes);
    memset(long_one, 'x', 5000);
    form_options.max_head = 64;
    snprintf(content, sizeof content, "%.64s=1", long_one);
    check_form(&stage, URLENCODED, content, "200");
    snprintf(content, sizeof content, "%.65s=1", long_one);
    check_form(&stage, URLENCODED, content, "413");
    snprintf(content, sizeof content, PART("name=a") "X: %.64s\r\n\r\n1\r\n--b--", long_one);
    check_form(&stage, MULTIPART, content, "413");
    form_options.max_head = 0;
    check_form(&stage, MULTIPART, content, "200");
    snprintf(content, sizeof content, PART("name=a") "X: %s\r\n\r\n1\r\n--b--", long_one);
    check_form(&stage, MULTIPART, content, "413");
    form_options.max_parts = 2;
    check_form(&stage, URLENCODED, "a=1&b=2", "200 a|-|-|1;b|-|-|2;");
    check_form(&stage, URLENCODED, "a=1&b=2&c=3", "413");
    form_options.max_parts = -1;
    check_form(&stage, URLENCODED, "a=1&b=2&c=3", "200");
    form_options.max_parts = 0;
    form_options.max_head = 63;
    check_form(&stage, URLENCODED, "a=1", "500");
    form_options.max_head = (64 << 10) + 1;
    check_form(&stage, URLENCODED, "a=1", "500");
    form_options.max_head = 0;
    form_options.aco__reserved[0] = &stage;
    check_form(&stage, URLENCODED, "a=1", "500");
    form_options.aco__reserved[0] = NULL;
    snprintf(content, sizeof content,
             "POST /values HTTP/1.1\r\n" HOST "Content-Type: " URLENCODED "\r\nContent-Length: %d\r\n\r\n"
             "a=1234&b=&c=%s&d=1234", 6 + 4 + 2 + 5001 + 7, long_one);
    ask(&stage, content);
    CHECK_TEXT("too long", statuses(), "413");
    stop(&stage);
    return arg;
}

int main(int argc, char **argv)
{
    static const aco_function_t tests[] = {reads_forms, splits_forms, reads_large_contents, reads_changed_forms,
                                           limits_forms};
    (void)argv;
    if (argc > 1)
        return serve_others(routes, NULL);
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_forms");
}
