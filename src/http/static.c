/* Files as replies. */
#define _GNU_SOURCE
#include "http/reply.h"
#include "http/request.h"
#include "http/server.h"
#include "http/text.h"
#include "system/system.h"

#include "aco/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const struct {
    const char *end, *type;
} content_types[] = {
    {".html", "text/html; charset=utf-8"},
    {".htm", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".txt", "text/plain; charset=utf-8"},
    {".md", "text/markdown; charset=utf-8"},
    {".xml", "application/xml"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".webp", "image/webp"},
    {".ico", "image/x-icon"},
    {".pdf", "application/pdf"},
    {".wasm", "application/wasm"},
    {".woff2", "font/woff2"},
    {".mp4", "video/mp4"},
    {".mp3", "audio/mpeg"},
    {".gz", "application/gzip"},
    {".zip", "application/zip"},
};

static const char *type_of(const char *path)
{
    const char *end = strrchr(path, '.');
    for (size_t i = 0; end && i < sizeof content_types / sizeof content_types[0]; i++)
        if (aco__http_same(end, content_types[i].end))
            return content_types[i].type;
    return "application/octet-stream";
}

/* Whether a segment begins with ".", or has no name. */
static int is_hidden(const char *path)
{
    return *path == '.' || *path == '/' || strstr(path, "/.") || strstr(path, "//");
}

/* Whether the path is the request's, or the end of it, which a "/" in it was not when it was sent. No file has one in
 * its name. */
static int has_escaped_slash(const aco_http_request_t *request, const char *path)
{
    const size_t n = strlen(path), whole = strlen(request->path);
    return n <= whole && strcmp(request->path + whole - n, path) == 0 &&
           aco__http_has_escaped_slash(request->target, strcspn(request->target, "?"));
}

/* root/path. NULL and errno: ENOENT (there is no such file here), ENOMEM. */
static char *full_path(aco_http_request_t *request, const char *root, const char *path)
{
    static const char index_name[] = "index.html";
    size_t root_n = strlen(root), n = strlen(path);
    char *full, *at;
    if (is_hidden(path) || has_escaped_slash(request, path)) {
        errno = ENOENT;
        return NULL;
    }
    full = aco_http_request_allocate(request, root_n + n + sizeof index_name + 1);
    if (!full)
        return NULL;
    at = aco__http_put(full, root, root_n);
    *at++ = '/';
    at = aco__http_put(at, path, n);
    if (n == 0 || path[n - 1] == '/')
        at = aco__http_put(at, index_name, sizeof index_name - 1);
    *at = 0;
    return full;
}

/* ---- Conditions ---- */

enum { TAG = 40 };

typedef struct version {
    char tag[TAG];
    int64_t seconds; /* when it was changed */
    char date[HTTP_DATE + 1];
} version_t;

static void set_version(version_t *version, const aco_file_status_t *status)
{
    snprintf(version->tag, sizeof version->tag, "\"%llx-%llx\"", (unsigned long long)status->modified_ns,
             (unsigned long long)status->size);
    version->seconds = status->modified_ns < 0 ? 0 : status->modified_ns / ACO_SECOND;
    aco__http_put_date(version->date, version->seconds);
    version->date[HTTP_DATE] = 0;
}

/* The value of the only header with this name; NULL: there is none, or there are several. */
static const char *only_header(const aco_http_request_t *request, const char *name)
{
    const char *value;
    return aco__http_find(request->headers, request->header_count, name, &value) == 1 ? value : NULL;
}

static int64_t seconds_now(void)
{
    struct timespec now;
    aco__system.clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}

/* The seconds of the date in this header; -1: there is none. */
static int64_t date_in(const aco_http_request_t *request, const char *name)
{
    const char *date = only_header(request, name);
    return date ? aco__http_date_of(date, seconds_now()) : -1;
}

/* Whether a list of tags has this one, or "*". -1: there is no such header. */
static int has_tag(const aco_http_request_t *request, const char *name, const char *tag, int weak_ones_too)
{
    aco__http_list_t list = {"", request->headers, request->header_count, name};
    size_t n, tag_n = strlen(tag);
    const char *at;
    if (!aco_http_request_header(request, name))
        return -1;
    while ((at = aco__http_next(&list, &n)) != NULL) {
        if (n == 1 && *at == '*')
            return 1;
        if (weak_ones_too && n > 2 && memcmp(at, "W/", 2) == 0)
            at += 2, n -= 2;
        if (n == tag_n && memcmp(at, tag, n) == 0)
            return 1;
    }
    return 0;
}

static int is_unchanged(const aco_http_request_t *request, const version_t *version)
{
    int has = has_tag(request, "If-None-Match", version->tag, 1);
    return has < 0 ? date_in(request, "If-Modified-Since") >= version->seconds : has;
}

/* Whether the client wants another version than this one. */
static int is_other(const aco_http_request_t *request, const version_t *version)
{
    int has = has_tag(request, "If-Match", version->tag, 0);
    int64_t date = has < 0 ? date_in(request, "If-Unmodified-Since") : -1;
    return has < 0 ? date >= 0 && date < version->seconds : !has;
}

/* Whether parts of another version would do the client no good. */
static int is_for_other(const aco_http_request_t *request, const version_t *version)
{
    const char *condition = only_header(request, "If-Range");
    if (!condition)
        return aco_http_request_header(request, "If-Range") != NULL;
    return strcmp(condition, version->tag) != 0 && date_in(request, "If-Range") != version->seconds;
}

/* ---- Ranges ---- */

static int64_t parse_number(const char **at)
{
    int64_t value = -1;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (value <= INT64_MAX / 10 - 1) /* else it stays larger than any file */
            value = (value < 0 ? 0 : value) * 10 + (**at - '0');
    }
    return value;
}

/* The range that is asked for. 1; 0: none, the whole file; -1: one that the file does not have. */
static int range_of(const aco_http_request_t *request, const version_t *version, int64_t size, int64_t *first,
                    int64_t *n)
{
    const char *text = only_header(request, "Range");
    int64_t from, to;
    if (!text || strlen(text) < 6 || !aco__http_is(text, 6, "bytes=") || is_for_other(request, version))
        return 0;
    text += 6;
    from = parse_number(&text);
    if (*text++ != '-')
        return 0;
    to = parse_number(&text);
    if (*text || (from < 0 && to < 0) || (from >= 0 && to >= 0 && to < from)) /* several ranges: all of it */
        return 0;
    if (from < 0 && to > 0 && size == 0) /* all of nothing, which no Content-Range can tell */
        return 0;
    if (from < 0) { /* the last bytes */
        from = to < size ? size - to : 0;
        to = to > 0 ? size - 1 : -1;
    } else if (to < 0 || to >= size) {
        to = size - 1;
    }
    if (from >= size || to < from)
        return -1;
    *first = from;
    *n = to - from + 1;
    return 1;
}

/* ---- The reply ---- */

ACO__SWITCHES
static int reply_with(aco_http_request_t *request, int fd, const aco_file_status_t *status, const char *path,
                      const char *location)
{
    version_t version;
    char text[80];
    int64_t size = (int64_t)status->size, first = 0, n = size;
    int is_range;
    set_version(&version, status);
    if (aco_http_reply_header(request, "ETag", version.tag) != 0 ||
        aco_http_reply_header(request, "Last-Modified", version.date) != 0 ||
        aco_http_reply_header(request, "Accept-Ranges", "bytes") != 0)
        return -1;
    if (is_other(request, &version))
        return aco__http_answer(aco__http_exchange_of(request), 412, location);
    if (is_unchanged(request, &version))
        return aco_http_reply_at(request, 304, NULL, NULL, 0, location);
    is_range = strcmp(request->method, "GET") == 0 ? range_of(request, &version, size, &first, &n) : 0;
    if (is_range) {
        if (is_range > 0)
            snprintf(text, sizeof text, "bytes %lld-%lld/%lld", (long long)first, (long long)(first + n - 1),
                     (long long)size);
        else
            snprintf(text, sizeof text, "bytes */%lld", (long long)size);
        if (aco_http_reply_header(request, "Content-Range", text) != 0)
            return -1;
    }
    if (is_range < 0)
        return aco_http_reply_at(request, 416, NULL, NULL, 0, location);
    if (aco_http_reply_begin_at(request, is_range ? 206 : 200, type_of(path), n, location) != 0)
        return -1;
    return aco_http_reply_write_file_at(request, fd, first, n, location);
}

/* The file root/path, if it is one. -1 and errno. */
ACO__SWITCHES
static int open_file(aco_http_request_t *request, const char *root, const char *path, aco_file_status_t *status,
                     char **full, const char *location)
{
    const aco_http_server_options_t *options = &aco__http_exchange_of(request)->server->options;
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY; /* a FIFO does not wait */
    int fd, error;
    *full = full_path(request, root, path);
    if (!*full)
        return -1;
    if (options->no_links || options->links_inside)
        fd = aco_file_open_beneath_at(*root ? root : "/", *full + strlen(root) + 1, flags, 0,
                                      options->no_links ? ACO_FILE_NO_LINKS : ACO_FILE_LINKS_INSIDE, location);
    else
        fd = aco_file_open_at(*full, flags, 0, location);
    if (fd < 0)
        return -1;
    error = aco_file_fstat_at(fd, status, location) != 0 ? errno : S_ISREG(status->mode) ? 0 : ENOENT;
    if (error) {
        (void)aco_io_close(fd);
        errno = error;
    }
    return error ? -1 : fd;
}

/* For a file that could not be opened. Caches keep a 404: it is not for what the server lacks. */
static int status_of_open(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case ELOOP:
    case EXDEV: /* a link that leads out of the root */
    case ENAMETOOLONG:
    case EINVAL: /* the name, for this file system */
    case EILSEQ:
    case ENXIO: /* a socket, or a device */
    case ENODEV:
        return 404;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
        return 503;
    default:
        return 500;
    }
}

int aco_http_reply_file_at(aco_http_request_t *request, const char *root, const char *path, const char *location)
{
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    aco_file_status_t status;
    int fd, result;
    char *full;
    if (strcmp(request->method, "GET") != 0 && !x->is_head) {
        if (aco_http_reply_header(request, "Allow", "GET, HEAD") != 0)
            return -1;
        return aco__http_answer(x, 405, location);
    }
    fd = open_file(request, root, path, &status, &full, location);
    if (fd < 0 && (errno == ETIMEDOUT || errno == ECANCELED))
        return -1;
    if (fd < 0)
        return aco__http_answer(x, status_of_open(errno), location);
    result = reply_with(request, fd, &status, full, location);
    (void)aco_io_close(fd);
    return result;
}
