/* URLs (include/aco/url.h): RFC 3986's own examples, parts, normal forms, escapes; each text also from a buffer that is
 * just too small. */
#include "check.h"

#include <aco/url.h>

#include <errno.h>
#include <string.h>

static void check_text(int line, const char *of, ssize_t n, const char *is, const char *wanted)
{
    if (n == (ssize_t)strlen(wanted) && strcmp(is, wanted) == 0)
        return;
    fprintf(stderr, "%s:%d: \"%s\": \"%s\" and not \"%s\"\n", __FILE__, line, of, n < 0 ? strerror(errno) : is, wanted);
    CHECK(!"the text");
}

static void check_resolved(int line, const char *base, const char *reference, const char *wanted)
{
    char to[256];
    check_text(line, reference, aco_url_resolve(to, sizeof to, base, reference), to, wanted);
    for (size_t size = 0; size <= strlen(wanted); size++) {
        to[size] = 'x';
        CHECK(aco_url_resolve(to, size, base, reference) == -1 && errno == ENOBUFS && to[size] == 'x');
    }
}

static void check_normal(int line, const char *text, const char *wanted)
{
    char to[256], again[256];
    check_text(line, text, aco_url_normalize(to, sizeof to, text), to, wanted);
    check_text(line, wanted, aco_url_normalize(again, sizeof again, to), again, wanted);
    for (size_t size = 0; size <= strlen(wanted); size++) {
        to[size] = 'x';
        CHECK(aco_url_normalize(to, size, text) == -1 && errno == ENOBUFS && to[size] == 'x');
    }
}

/* ---- Resolving ---- */

/* RFC 3986, 5.4.1 and 5.4.2, but for the last line: a strict reader. */
static void resolves_as_the_rfc(void)
{
    static const char *const of_rfc[][2] = {
        {"g:h", "g:h"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q#s"},
        {"g#s", "http://a/b/c/g#s"},
        {"g?y#s", "http://a/b/c/g?y#s"},
        {";x", "http://a/b/c/;x"},
        {"g;x", "http://a/b/c/g;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y#s"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../", "http://a/"},
        {"../../g", "http://a/g"},
        {"../../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {".g", "http://a/b/c/.g"},
        {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"g#s/./x", "http://a/b/c/g#s/./x"},
        {"g#s/../x", "http://a/b/c/g#s/../x"},
        {"http:g", "http:g"},
    };
    for (size_t i = 0; i < sizeof of_rfc / sizeof of_rfc[0]; i++)
        check_resolved(__LINE__, "http://a/b/c/d;p?q", of_rfc[i][0], of_rfc[i][1]);
}

static void resolves_others(void)
{
    check_resolved(__LINE__, "http://a", "g", "http://a/g");
    check_resolved(__LINE__, "http://a", "../g", "http://a/g");
    check_resolved(__LINE__, "http://a?q", "", "http://a?q");
    check_resolved(__LINE__, "http://u:p@[::1]:8080/x", "y?", "http://u:p@[::1]:8080/y?");
    check_resolved(__LINE__, "http://u@a/x", "//b", "http://b");
    check_resolved(__LINE__, "http://a/b", "http://c/d/../e/./", "http://c/e/");
    check_resolved(__LINE__, "http://a/b//c", "../d", "http://a/b/d");
    check_resolved(__LINE__, "http://a/b/", "..//c", "http://a//c");
    check_resolved(__LINE__, "file:///a/b", "c", "file:///a/c");
    check_resolved(__LINE__, "mailto:a@b", "c@d", "mailto:c@d");
    check_resolved(__LINE__, "a:b/c", "../../d", "a:/d");
    check_resolved(__LINE__, "a:/b", ".//c", "a:/.//c");
    check_resolved(__LINE__, "a:/b", "/..//c", "a:/.//c");
    check_resolved(__LINE__, "a:/b", "", "a:/b");
    check_resolved(__LINE__, "http://a/", "?", "http://a/?");
    check_resolved(__LINE__, "http://a/", "x:y", "x:y");
    CHECK(aco_url_resolve((char[64]){0}, 64, "/a", "b") == -1 && errno == EINVAL);
    CHECK(aco_url_resolve((char[64]){0}, 64, "http://a", "1:b") == -1 && errno == EINVAL);
}

/* ---- Parts ---- */

static void put(char *to, size_t size, aco_url_part_t part)
{
    size_t n = strlen(to);
    snprintf(to + n, size - n, "%s%.*s|", part.at ? "" : "-", (int)part.n, part.at ? part.at : "");
}

static void check_parts(int line, const char *text, const char *wanted)
{
    char is[256] = "";
    aco_url_t url;
    if (aco_url_parse(&url, text) != 0) {
        check_text(line, text, -1, "", wanted);
        return;
    }
    put(is, sizeof is, url.scheme);
    put(is, sizeof is, url.user);
    put(is, sizeof is, url.host);
    put(is, sizeof is, url.port);
    put(is, sizeof is, url.path);
    put(is, sizeof is, url.query);
    put(is, sizeof is, url.fragment);
    check_text(line, text, (ssize_t)strlen(is), is, wanted);
}

static void takes_apart(void)
{
    aco_url_t url;
    check_parts(__LINE__, "http://u:p@h:80/a/b?c=d#e", "http|u:p|h|80|/a/b|c=d|e|");
    check_parts(__LINE__, "http://h", "http|-|h|-||-|-|");
    check_parts(__LINE__, "http://h:?#", "http|-|h|||||");
    check_parts(__LINE__, "http://@:80", "http|||80||-|-|");
    check_parts(__LINE__, "", "-|-|-|-||-|-|");
    check_parts(__LINE__, "///a", "-|-||-|/a|-|-|");
    check_parts(__LINE__, "a/b:c", "-|-|-|-|a/b:c|-|-|");
    check_parts(__LINE__, "?a:b", "-|-|-|-||a:b|-|");
    check_parts(__LINE__, "#a?b", "-|-|-|-||-|a?b|");
    check_parts(__LINE__, "urn:isbn:0-395-36341-1", "urn|-|-|-|isbn:0-395-36341-1|-|-|");
    check_parts(__LINE__, "a+b-1.c:", "a+b-1.c|-|-|-||-|-|");
    check_parts(__LINE__, "http://[::1]:8080/", "http|-|::1|8080|/|-|-|");
    check_parts(__LINE__, "http://[fe80::1%25eth0]", "http|-|fe80::1%25eth0|-||-|-|");
    check_parts(__LINE__, "http://[::ffff:1.2.3.4]/%2f%zz{|}", "http|-|::ffff:1.2.3.4|-|/%2f%zz{|}|-|-|");
    check_parts(__LINE__, "http://[v1.a:b]", "http|-|v1.a:b|-||-|-|");
    check_parts(__LINE__, "http://a%20b!$&'()*+,;=/", "http|-|a%20b!$&'()*+,;=|-|/|-|-|");
    CHECK(aco_url_parse(&url, "http://[::1]") == 0 && url.is_ip);
    CHECK(aco_url_parse(&url, "http://1.2.3.4") == 0 && !url.is_ip);
}

static void refuses(void)
{
    static const char *const wrong[] = {
        ":",
        "1a:b",
        "a_b:c",
        ":a",
        "http://a b/",
        "http://a/ ",
        "http://a/\n",
        "http://a\\b",
        "http://a/\x80",
        "http://a<b",
        "http://u@v@a",
        "http://u[@a",
        "http://[",
        "http://[]",
        "http://[::1",
        "http://[::1]a",
        "http://[:::1]",
        "http://[1.2.3.4]",
        "http://[::g]",
        "http://[::1%]",
        "http://[v.a]",
        "http://[v1.]",
        "http://[vx.a]",
        "http://::1",
        "http://a:b",
        "http://a:-1",
        "http://a:65536",
        "http://a:000080",
        "http://a:99999",
        "http://a%/",
        "http://a%4/",
        "http://a%4g",
        "http://%zz@a",
        "a?\x7f",
        "a#\x01",
    };
    aco_url_t url;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        errno = 0;
        if (aco_url_parse(&url, wrong[i]) != -1 || errno != EINVAL) {
            fprintf(stderr, "taken: %s\n", wrong[i]);
            CHECK(!"a wrong URL is refused");
        }
    }
    CHECK_EQ(strncmp(aco_error_message(), "aco_url_parse: the URL has", 26), 0); /* of the last one */
}

/* ---- Normal forms, escapes ---- */

static void normalizes(void)
{
    check_normal(__LINE__, "HTTP://User@EXAMPLE.com:80", "http://User@example.com/");
    check_normal(__LINE__, "https://a:443?q", "https://a/?q");
    check_normal(__LINE__, "https://a:80/", "https://a:80/");
    check_normal(__LINE__, "ws://a:/", "ws://a/");
    check_normal(__LINE__, "ftp://a:21", "ftp://a:21");
    check_normal(__LINE__, "http://[FE80::A]:8080/", "http://[fe80::a]:8080/");
    check_normal(__LINE__, "example://a/b/c/%7Bfoo%7D", "example://a/b/c/%7Bfoo%7D");
    check_normal(__LINE__, "eXAMPLE://a/./b/../b/%63/%7bfoo%7d", "example://a/b/c/%7Bfoo%7D");
    check_normal(__LINE__, "http://a/%2e%2e/b/%2f%", "http://a/b/%2F%");
    check_normal(__LINE__, "http://%41%2d?%61#%62", "http://a-/?a#b");
    check_normal(__LINE__, "mailto:A@b", "mailto:A@b");
    CHECK(aco_url_normalize((char[64]){0}, 64, "a/../b") == -1 && errno == EINVAL);
    CHECK(aco_url_normalize((char[64]){0}, 64, "http://a b") == -1 && errno == EINVAL);
}

static void escapes(void)
{
    char all[256], to[1024], back[256];
    ssize_t n;
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    n = aco_url_escape(to, sizeof to, "a b/c?\0\xff", 8, "/");
    check_text(__LINE__, "a path", n, to, "a%20b/c%3F%00%FF");
    CHECK_EQ(aco_url_escape(to, sizeof to, "", 0, ""), 0);
    n = aco_url_escape(to, sizeof to, all + 1, 255, "");
    CHECK_EQ(n, 66 + 3 * (255 - 66));
    CHECK(aco_url_escape(back, 4, "ab ", 3, "") == -1 && errno == ENOBUFS);
    CHECK(aco_url_unescape(back, sizeof back, to, (size_t)n) == 255 && memcmp(back, all + 1, 255) == 0);
    CHECK(aco_url_unescape(back, 255, to, (size_t)n) == -1 && errno == ENOBUFS);
    check_text(__LINE__, "a+b", aco_url_unescape(back, sizeof back, "a+%2B", 5), back, "a++");
    CHECK(aco_url_unescape(back, sizeof back, "%00", 3) == -1 && errno == EINVAL);
    CHECK(aco_url_unescape(back, sizeof back, "%4", 2) == -1 && errno == EINVAL);
    CHECK(aco_url_unescape(back, sizeof back, "%4x", 3) == -1 && errno == EINVAL);
}

int main(void)
{
    resolves_as_the_rfc();
    resolves_others();
    takes_apart();
    refuses();
    normalizes();
    escapes();
    return check_result("http_url");
}
