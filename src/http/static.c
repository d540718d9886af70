/* Files as replies. */
#define _GNU_SOURCE
#include "http/http.h"

#include "aco/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static const struct {
    const char *end, *type;
} types[] = {
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
    for (size_t i = 0; end && i < sizeof types / sizeof types[0]; i++)
        if (aco__http_same(end, types[i].end))
            return types[i].type;
    return "application/octet-stream";
}

/* Whether a segment begins with "." or a name has a NUL, "\\" or nothing between slashes. */
static int is_hidden(const char *path)
{
    return *path == '.' || *path == '/' || strstr(path, "/.") || strstr(path, "//");
}

/* root/path; NULL: there is no such file here, or no memory. */
static char *full_path(aco_http_request_t *request, const char *root, const char *path)
{
    static const char index_name[] = "index.html";
    size_t root_n = strlen(root), n = strlen(path);
    char *full = is_hidden(path) ? NULL : aco_http_allocate(request, root_n + n + sizeof index_name + 1), *at;
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

/* Whether one of a list of tags is this one, or the list is "*". */
static int has_tag(const char *list, const char *tag, int weak_ones_too)
{
    size_t n = strlen(tag);
    for (const char *at = list; *at;) {
        at += strspn(at, " \t,");
        if (*at == '*')
            return 1;
        if (weak_ones_too && strncmp(at, "W/", 2) == 0)
            at += 2;
        if (strncmp(at, tag, n) == 0)
            return 1;
        at += strcspn(at, ",");
    }
    return 0;
}

static int is_unchanged(const aco_http_request_t *request, const version_t *version)
{
    const char *tags = aco_http_header(request, "If-None-Match");
    const char *since = tags ? NULL : aco_http_header(request, "If-Modified-Since");
    if (tags)
        return has_tag(tags, version->tag, 1);
    return since && aco__http_date_of(since) >= version->seconds;
}

/* Whether the client wants another version than this one. */
static int is_other(const aco_http_request_t *request, const version_t *version)
{
    const char *tags = aco_http_header(request, "If-Match");
    const char *since = tags ? NULL : aco_http_header(request, "If-Unmodified-Since");
    int64_t date = since ? aco__http_date_of(since) : -1;
    return tags ? !has_tag(tags, version->tag, 0) : date >= 0 && date < version->seconds;
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
    const char *text = aco_http_header(request, "Range"), *condition = aco_http_header(request, "If-Range");
    int64_t from, to;
    if (!text || strncmp(text, "bytes=", 6) != 0)
        return 0;
    if (condition && strcmp(condition, version->tag) != 0 && strcmp(condition, version->date) != 0)
        return 0;
    text += 6;
    from = parse_number(&text);
    if (*text++ != '-')
        return 0;
    to = parse_number(&text);
    if (*text || (from < 0 && to < 0) || (from >= 0 && to >= 0 && to < from)) /* several ranges: all of it */
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

static int reply_with(aco_http_request_t *request, int fd, const aco_file_status_t *status, const char *path,
                      const char *location)
{
    version_t version;
    char text[80];
    int64_t size = (int64_t)status->size, first = 0, n = size;
    int is_range;
    set_version(&version, status);
    if (aco_http_add_header(request, "ETag", version.tag) != 0 ||
        aco_http_add_header(request, "Last-Modified", version.date) != 0 ||
        aco_http_add_header(request, "Accept-Ranges", "bytes") != 0)
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
        if (aco_http_add_header(request, "Content-Range", text) != 0)
            return -1;
    }
    if (is_range < 0)
        return aco_http_reply_at(request, 416, NULL, NULL, 0, location);
    if (aco_http_begin_at(request, is_range ? 206 : 200, type_of(path), n, location) != 0)
        return -1;
    return aco_http_write_file_at(request, fd, first, n, location);
}

int aco_http_serve_file_at(aco_http_request_t *request, const char *root, const char *path, const char *location)
{
    aco__http_exchange_t *x = aco__http_exchange_of(request);
    aco_file_status_t status;
    int fd = -1, result;
    char *full;
    if (strcmp(request->method, "GET") != 0 && !x->is_head) {
        if (aco_http_add_header(request, "Allow", "GET, HEAD") != 0)
            return -1;
        return aco__http_answer(x, 405, location);
    }
    full = full_path(request, root, path);
    if (full)
        fd = aco_file_open_at(full, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, location); /* a FIFO does not wait */
    if (fd < 0 && full && (errno == ETIMEDOUT || errno == ECANCELED))
        return -1;
    if (fd < 0 || aco_file_fstat_at(fd, &status, location) != 0 || !S_ISREG(status.mode))
        result = aco__http_answer(x, 404, location);
    else
        result = reply_with(request, fd, &status, full, location);
    if (fd >= 0)
        (void)aco_io_close(fd);
    return result;
}
