/* Cookies of clients (include/aco/cookie_jar.h): what is kept and refused, what requests get, dates, limits, and a
 * client that uses a jar between redirects. */
#define _GNU_SOURCE
#include "http_tests.h"

#include <aco/cookie_jar.h>
#include <aco/http_cookies.h>

static int is_listed(const char *domain, void *arg)
{
    static const char *const suffixes[] = {"org", "com", "co.uk", "uk", "github.io"};
    (void)arg;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(domain, suffixes[i]) == 0)
            return 1;
    return 0;
}

static void check_sent(int line, aco_cookie_jar_t *jar, const char *url, const char *wanted)
{
    char is[512];
    ssize_t n = aco_cookie_jar_get(jar, url, is, sizeof is);
    if (n != (ssize_t)strlen(wanted) || strcmp(is, wanted) != 0) {
        fprintf(stderr, "%s:%d: %s gets \"%s\" and not \"%s\"\n", __FILE__, line, url, n < 0 ? "an error" : is, wanted);
        CHECK(!"the cookies");
    }
}
#define SENT(url, wanted) check_sent(__LINE__, jar, url, wanted)
#define SET(url, text) aco_cookie_jar_set(jar, url, text)

static void keeps_to_domains(void)
{
    const aco_cookie_jar_options_t options = {.is_suffix = is_listed};
    aco_cookie_jar_t *jar = aco_cookie_jar_new(&options);
    CHECK_EQ(SET("http://www.Example.org/", "host=1"), 1);
    CHECK_EQ(SET("http://www.example.org/", "below=2; Domain=.EXAMPLE.org"), 1);
    CHECK_EQ(SET("http://www.example.org/", "empty=3; Domain="), 1);
    CHECK_EQ(SET("http://www.example.org/", "x=1; Domain=ample.org"), 0);
    CHECK_EQ(SET("http://www.example.org/", "x=1; Domain=other.org"), 0);
    CHECK_EQ(SET("http://www.example.org/", "x=1; Domain=a.www.example.org"), 0);
    CHECK_EQ(SET("http://www.example.org/", "x=1; Domain=org"), 0);
    CHECK_EQ(SET("http://www.a.co.uk/", "x=1; Domain=co.uk"), 0);
    CHECK_EQ(SET("http://www.a.co.uk/", "uk=1; Domain=a.co.uk"), 1);
    CHECK_EQ(SET("http://github.io/", "self=1; Domain=github.io"), 1); /* as if there were no Domain */
    SENT("http://WWW.example.org/", "host=1; below=2; empty=3");
    SENT("http://example.org/", "below=2");
    SENT("http://a.b.example.org/", "below=2");
    SENT("http://xexample.org/", "");
    SENT("http://org/", "");
    SENT("http://a.co.uk/", "uk=1");
    SENT("http://b.co.uk/", "");
    SENT("http://github.io/", "self=1");
    SENT("http://user.github.io/", "");
    /* Addresses have no domains. */
    CHECK_EQ(SET("http://10.0.0.1/", "ip=1; Domain=0.0.1"), 0);
    CHECK_EQ(SET("http://10.0.0.1/", "ip=1; Domain=10.0.0.1"), 1);
    CHECK_EQ(SET("http://[::1]:8080/", "six=1"), 1);
    SENT("http://10.0.0.1:81/", "ip=1");
    SENT("http://1.10.0.0.1/", "");
    SENT("http://[::1]/", "six=1");
    SENT("http://./", "");
    SENT("http://.example.org/", "below=2");
    /* Also as they may be written elsewhere: what ends in a number is an address. */
    CHECK_EQ(SET("http://0x7f.0.1/", "x=1; Domain=0.1"), 0);
    CHECK_EQ(SET("http://a.0x7f/", "x=1; Domain=0x7f"), 0);
    CHECK_EQ(SET("http://127.0.0.1./", "x=1; Domain=0.1."), 0);
    CHECK_EQ(SET("http://0x7f.1/", "hex=1; Domain=0x7f.1"), 1);
    SENT("http://0X7F.1/", "hex=1");
    SENT("http://a.0x7f.1/", "");
    CHECK_EQ(SET("http://www.0x7g.org/", "name=1; Domain=0x7g.org"), 1);
    CHECK_EQ(SET("http://www.a.0xorg/", "name=1; Domain=a.0xorg"), 1);
    /* A dot at the end makes another host, but a public suffix stays one. */
    CHECK_EQ(SET("http://www.dot.org./", "x=1; Domain=org."), 0);
    CHECK_EQ(SET("http://www.a.co.uk./", "x=1; Domain=co.uk."), 0);
    CHECK_EQ(SET("http://com./", "own=1; Domain=com."), 1); /* as if there were no Domain */
    CHECK_EQ(SET("http://www.dot.org./", "dot=1; Domain=dot.org."), 1);
    SENT("http://a.com./", "");
    SENT("http://dot.org./", "dot=1");
    SENT("http://dot.org/", "");
    aco_cookie_jar_destroy(jar);
    /* Without a list */
    jar = aco_cookie_jar_new(NULL);
    CHECK_EQ(SET("http://www.example.org/", "x=1; Domain=example.org"), 0);
    CHECK_EQ(SET("http://example.org/", "own=1; Domain=example.org"), 1);
    CHECK_EQ(SET("http://localhost/", "local=1; Domain=localhost"), 1);
    CHECK_EQ(SET("http://localhost./", "dot=1; Domain=localhost."), 1);
    SENT("http://a.localhost./", "");
    SENT("http://www.example.org/", "own=1");
    SENT("http://localhost/", "local=1");
    SENT("http://a.localhost/", "");
    aco_cookie_jar_destroy(jar);
}

static void keeps_to_paths(void)
{
    aco_cookie_jar_t *jar = aco_cookie_jar_new(NULL);
    CHECK_EQ(SET("http://a.org/b/c?d/e", "default=1"), 1);
    CHECK_EQ(SET("http://a.org", "root=2"), 1);
    CHECK_EQ(SET("http://a.org/b/c", "own=3; Path=/b/c/d"), 1);
    CHECK_EQ(SET("http://a.org/b/c", "slash=4; Path=/b/"), 1);
    CHECK_EQ(SET("http://a.org/x", "relative=5; Path=b"), 1);
    SENT("http://a.org/", "root=2; relative=5");
    SENT("http://a.org/b", "default=1; root=2; relative=5");
    SENT("http://a.org/b/", "slash=4; default=1; root=2; relative=5");
    SENT("http://a.org/b/c/d/e", "own=3; slash=4; default=1; root=2; relative=5");
    SENT("http://a.org/b/c/dd", "slash=4; default=1; root=2; relative=5");
    SENT("http://a.org/bb", "root=2; relative=5");
    SENT("http://a.org?b", "root=2; relative=5");
    /* The same name, domain and path: replaced, and as old as before. */
    CHECK_EQ(SET("http://a.org/", "root=6"), 1);
    CHECK_EQ(SET("http://a.org/", "root=7; path=/b"), 1);
    SENT("http://a.org/", "root=6; relative=5");
    SENT("http://a.org/b", "default=1; root=7; root=6; relative=5");
    aco_cookie_jar_destroy(jar);
}

static void protects_secure_ones(void)
{
    const aco_cookie_jar_options_t options = {.is_suffix = is_listed};
    aco_cookie_jar_t *jar = aco_cookie_jar_new(&options);
    CHECK_EQ(SET("http://a.org/", "s=1; Secure"), 0);
    CHECK_EQ(SET("https://a.org/", "s=1; secure=; HttpOnly; Path=/p"), 1);
    CHECK_EQ(SET("http://a.org/", "s=2; Path=/p/q"), 0);
    CHECK_EQ(SET("http://b.a.org/", "s=2; Domain=a.org; Path=/p"), 0);
    CHECK_EQ(SET("http://a.org/", "s=2; Path=/"), 1);
    CHECK_EQ(SET("https://a.org/", "s=3; Path=/p"), 1); /* not Secure any more */
    SENT("http://a.org/p", "s=3; s=2");
    CHECK_EQ(SET("https://a.org/", "t=1; Secure"), 1);
    SENT("http://a.org/", "s=2");
    SENT("https://a.org:444/", "s=2; t=1");
    CHECK_EQ(SET("https://a.org/", "__Secure-a=1"), 0);
    CHECK_EQ(SET("https://a.org/", "__secure-a=1; Secure"), 1);
    CHECK_EQ(SET("https://a.org/", "__Host-a=1; Secure"), 0);
    CHECK_EQ(SET("https://a.org/", "__Host-a=1; Secure; Path=/; Domain=a.org"), 0);
    CHECK_EQ(SET("https://a.org/", "__Host-a=1; Path=/"), 0);
    CHECK_EQ(SET("https://a.org/", "__Host-a=1; Secure; Path=/"), 1);
    aco_cookie_jar_destroy(jar);
}

static aco_cookie_t seen;
static int seen_count;

static void see(const aco_cookie_t *cookie, void *arg)
{
    (void)arg;
    seen = *cookie;
    seen_count++;
}

/* What a cookie with these attributes becomes; NULL: it is not kept. */
static const aco_cookie_t *kept(const char *text)
{
    aco_cookie_jar_t *jar = aco_cookie_jar_new(NULL);
    static char texts[2][4200];
    seen_count = 0;
    (void)SET("https://a.org/", text);
    aco_cookie_jar_each(jar, see, NULL);
    if (seen_count) {
        snprintf(texts[0], sizeof texts[0], "%s", seen.name);
        snprintf(texts[1], sizeof texts[1], "%s", seen.value);
        seen.name = texts[0];
        seen.value = texts[1];
    }
    aco_cookie_jar_destroy(jar);
    return seen_count ? &seen : NULL;
}

static void parses(void)
{
    static const char *const none[] = {"", "a", "=b", " = b", ";a=b", "a\x01=b", "a=b\x7f", "a=b; Path=\x1f/"};
    static const struct {
        const char *text, *name, *value;
    } some[] = {{" a\t= b ;", "a", "b"}, {"a=\"b c\", d", "a", "\"b c\", d"}, {"a==", "a", "="},
                {"a=\xc3\xa4;=;;x;y=z", "a", "\xc3\xa4"}, {"a=", "a", ""}};
    char text[4300];
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK(!kept(none[i]));
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        CHECK(kept(some[i].text) != NULL);
        CHECK_TEXT(some[i].text, seen.name, some[i].name);
        CHECK_TEXT(some[i].text, seen.value, some[i].value);
    }
    memset(text, 'a', sizeof text);
    text[1] = '=';
    text[4097] = 0;
    CHECK(kept(text) != NULL);
    text[4097] = 'a', text[4098] = 0;
    CHECK(!kept(text));
    CHECK(kept("a=b; SameSite=LAX; httponly; SECURE") && seen.same_site == ACO_HTTP_SAME_SITE_LAX && seen.http_only &&
          seen.secure && seen.host_only && seen.expires == INT64_MAX);
    CHECK(kept("a=b; SameSite=None; SameSite=strict") && seen.same_site == ACO_HTTP_SAME_SITE_STRICT);
    CHECK(kept("a=b; SameSite=Strict; SameSite=x") && seen.same_site == ACO_HTTP_SAME_SITE_UNSET && !seen.http_only);
}

static void ends(void)
{
    static const struct {
        const char *date;
        int64_t seconds; /* 0: it is none; -1: it is over */
    } dates[] = {{"Wed, 09 Jun 2100 10:18:14 GMT", 4116219494},  {"Wednesday, 09-Jun-69 10:18:14 GMT", 3137998694},
                 {"Wed Jun  9 10:18:14 2100", 4116219494},        {"10:18:14 2100 9 june", 4116219494},
                 {"9/jUN/2100/10:18:14.5 +0100", 4116219494},     {"Thu, 01-Jan-1970 00:00:00 GMT", -1},
                 {"1 Jan 1601 0:0:0", -1},                        {"1 Jan 1600 0:0:0", 0},
                 {"31 Jun 2100 10:18:14", 0},                     {"29 Feb 2104 10:18:14", 4233723494},
                 {"29 Feb 2100 10:18:14", 0},                     {"9 Jun 2100 24:00:00", 0},
                 {"9 Jun 2100 10:60:14", 0},                      {"9 Jun 21000 10:18:14", 0},
                 {"9 Jun 10:18:14", 0},                           {"9 Foo 2100 10:18:14", 0},
                 {"0 Jun 2100 10:18:14", 0},                      {"9 Jun 2100", 0},
                 {"9 Jun 99 10:18:14", -1},                       {"", 0}};
    char text[128];
    for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++) {
        const aco_cookie_t *cookie;
        snprintf(text, sizeof text, "a=b; Expires=%s", dates[i].date);
        cookie = kept(text);
        if (dates[i].seconds < 0 ? cookie != NULL
                                 : !cookie || cookie->expires != (dates[i].seconds ? dates[i].seconds : INT64_MAX)) {
            fprintf(stderr, "%s: %lld\n", dates[i].date, cookie ? (long long)cookie->expires : -1);
            CHECK(!"the date");
        }
    }
    CHECK(!kept("a=b; Max-Age=0") && !kept("a=b; Max-Age=-5; Expires=Wed, 09 Jun 2100 10:18:14 GMT"));
    CHECK(kept("a=b; Max-Age=100; Expires=Thu, 01-Jan-1970 00:00:00 GMT") && seen.expires < INT64_MAX);
    CHECK(kept("a=b; Max-Age=99999999999999999999999") && seen.expires > (int64_t)1 << 40);
    CHECK(kept("a=b; Max-Age=1x; Max-Age=-; Max-Age=") && seen.expires == INT64_MAX);
}

static void is_bounded(void)
{
    const aco_cookie_jar_options_t options = {.max_cookies = 5, .max_per_domain = 3};
    aco_cookie_jar_t *jar = aco_cookie_jar_new(&options);
    char text[64];
    for (int i = 0; i < 5; i++) {
        snprintf(text, sizeof text, "%c=%d", 'a' + i, i);
        CHECK_EQ(SET("http://a.org/", text), 1);
        if (i == 2)
            SENT("http://a.org/", "a=0; b=1; c=2");
        if (i == 3) /* "a" was used longest ago */
            SENT("http://a.org/", "b=1; c=2; d=3");
    }
    SENT("http://a.org/", "c=2; d=3; e=4");
    CHECK_EQ(SET("http://b.org/", "f=1"), 1);
    CHECK_EQ(SET("http://b.org/", "g=1; Max-Age=100"), 1);
    CHECK_EQ(SET("http://b.org/", "h=1"), 1);
    SENT("http://a.org/", "d=3; e=4");
    SENT("http://b.org/", "f=1; g=1; h=1");
    CHECK(aco_cookie_jar_get(jar, "http://b.org/", text, 13) == -1 && errno == ENOBUFS);
    CHECK(aco_cookie_jar_get(jar, "http://b.org/", text, 0) == -1 && errno == ENOBUFS);
    CHECK_EQ(aco_cookie_jar_get(jar, "http://b.org/", text, 14), 13);
    CHECK(SET("ftp://a.org/", "a=b") == -1 && errno == EINVAL);
    CHECK(SET("a.org", "a=b") == -1 && errno == EINVAL);
    CHECK(aco_cookie_jar_get(jar, "http:///", text, sizeof text) == -1 && errno == EINVAL);
    aco_cookie_jar_clear(jar, 1);
    SENT("http://b.org/", "g=1");
    aco_cookie_jar_clear(jar, 0);
    SENT("http://b.org/", "");
    aco_cookie_jar_destroy(jar);
    aco_cookie_jar_destroy(NULL);
}

/* ---- A client ---- */

static void signs_in(aco_http_request_t *request, void *arg)
{
    const aco_http_cookie_t session = {.name = "session", .value = "42", .path = "/"};
    const aco_http_cookie_t other = {.name = "b", .value = "c"};
    (void)arg;
    CHECK_EQ(aco_http_reply_cookie(request, &session), 0);
    CHECK_EQ(aco_http_reply_cookie(request, &other), 0);
    CHECK_EQ(aco_http_reply_header(request, "Location", "/shown"), 0);
    CHECK_EQ(aco_http_reply(request, 303, NULL, NULL, 0), 0);
}

static void shows_cookies(aco_http_request_t *request, void *arg)
{
    const char *value = aco_http_request_header(request, "Cookie");
    (void)arg;
    CHECK_EQ(aco_http_reply(request, 200, NULL, value ? value : "none", value ? strlen(value) : 4), 0);
}

static void check_shown(aco_http_client_t *client, const stage_t *stage, const char *path,
                        const aco_http_header_t *header, const char *wanted)
{
    char url[128];
    aco_http_call_t call = {.url = url, .headers = header, .header_count = header ? 1 : 0};
    aco_http_response_t *response;
    ssize_t n;
    snprintf(url, sizeof url, "http://127.0.0.1:%s%s", stage->port, path);
    response = aco_http_call(client, &call);
    n = response ? aco_http_response_read(response, got, 1 << 20) : 0;
    got[n > 0 ? n : 0] = 0;
    CHECK_TEXT(path, got, wanted);
    aco_http_response_end(response);
}

/* Of too many cookies the first are sent: 8 KiB at most, and all of each. */
static void check_most(aco_http_client_t *client, const stage_t *stage)
{
    char url[128];
    aco_http_response_t *response;
    ssize_t n = 1;
    snprintf(url, sizeof url, "http://127.0.0.1:%s/shown", stage->port);
    response = aco_http_get(client, url);
    for (got_n = 0; response && n > 0; got_n += n > 0 ? (size_t)n : 0)
        n = aco_http_response_read(response, got + got_n, 1 << 20);
    aco_http_response_end(response);
    CHECK(got_n == strlen("session=42; b=c; ; ") + 8000 && memcmp(got, "session=42; b=c; d=", 19) == 0);
}

static void *uses_a_jar(void *arg)
{
    static const aco_http_route_t routes[] = {
        {"GET", "/in", signs_in, NULL}, {"GET", "/shown", shows_cookies, NULL}, {NULL, NULL, NULL, NULL}};
    static const aco_http_header_t own = {"cookie", "own=1"};
    aco_cookie_jar_t *jar = aco_cookie_jar_new(NULL);
    const aco_http_client_options_t options = {.jar = jar};
    aco_http_client_t *client = aco_http_client_new(&options), *second = aco_http_client_new(&options);
    char large[5000];
    stage_t stage = {0};
    (void)arg;
    start(&stage, routes);
    check_shown(client, &stage, "/shown", NULL, "none");
    check_shown(client, &stage, "/in", NULL, "session=42; b=c");
    check_shown(second, &stage, "/shown", NULL, "session=42; b=c");
    check_shown(client, &stage, "/shown", &own, "own=1");
    for (char name = 'd'; name < 'g'; name++) {
        memset(large, name, sizeof large);
        large[1] = '=';
        large[4000] = 0;
        CHECK_EQ(SET("http://127.0.0.1/", large), 1);
    }
    check_most(client, &stage);
    aco_http_client_destroy(second);
    aco_http_client_destroy(client);
    aco_cookie_jar_destroy(jar);
    stop(&stage);
    return NULL;
}

int main(void)
{
    static const aco_function_t tests[] = {uses_a_jar};
    keeps_to_domains();
    keeps_to_paths();
    protects_secure_ones();
    parses();
    ends();
    is_bounded();
    run_http_tests(tests, sizeof tests / sizeof tests[0]);
    return check_result("http_cookie_jar");
}
