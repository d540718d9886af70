/* A parallel downloader: io_download SECONDS AT_ONCE URL... gets files from http://HOST[:PORT]/PATH into the current
 * directory, named by the last part of their paths: so many at once, and all within so many seconds. */
#include <aco/file.h>
#include <aco/group.h>
#include <aco/io_buffer.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 16 * 1024, LONGEST = 256 };

typedef struct url {
    char host[LONGEST], port[8], path[LONGEST];
} url_t;

static int parse(const char *text, url_t *url)
{
    memset(url, 0, sizeof *url);
    strcpy(url->port, "80");
    if (sscanf(text, "http://%255[^:/]:%7[0-9]%255s", url->host, url->port, url->path) != 3 &&
        sscanf(text, "http://%255[^:/]%255s", url->host, url->path) != 2)
        return -1;
    return url->path[0] == '/' && strlen(strrchr(url->path, '/')) > 1 ? 0 : -1;
}

/* The answer's head: 0, and how long the body is (-1: to the end of the stream). */
static int read_head(aco_io_reader_t *in, long long *length)
{
    char *line;
    int code = 0;
    *length = -1;
    if (aco_io_reader_line(in, &line) < 0 || !line || sscanf(line, "HTTP/1.%*d %d", &code) != 1 || code != 200)
        return errno = code ? ENOENT : errno, -1;
    while (aco_io_reader_line(in, &line) >= 0 && line) {
        if (!*line)
            return 0;
        sscanf(line, "%*[Cc]ontent-%*[Ll]ength: %lld", length);
    }
    return -1;
}

static int write_file(int file, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = aco_file_write(file, bytes, n);
        if (done < 0)
            return -1;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

/* The bytes of the body, or -1. */
static long long copy_body(aco_io_reader_t *in, int file, long long length)
{
    long long got = 0;
    const char *bytes;
    ssize_t n;
    while ((n = aco_io_reader_peek(in, 1, &bytes)) > 0) {
        if (write_file(file, bytes, (size_t)n) != 0)
            return -1;
        aco_io_reader_consume(in, (size_t)n);
        got += n;
    }
    if (n == 0 && length >= 0 && got != length)
        return errno = EPIPE, -1; /* the server has gone early */
    return n < 0 ? -1 : got;
}

static long long get(const url_t *url, int file)
{
    char request[2 * LONGEST + 64];
    aco_io_reader_t in;
    long long length, got = -1;
    int fd = aco_io_dial("tcp", url->host, url->port, NULL);
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", url->path, url->host);
    if (fd < 0)
        return -1;
    aco_io_reader_open(&in, fd, NULL, ROOM);
    if (aco_io_write_all(fd, request, (size_t)n) == n && read_head(&in, &length) == 0)
        got = copy_body(&in, file, length);
    aco_io_reader_close(&in);
    aco_io_close(fd);
    return got;
}

/* A file has its name when it is complete. */
static void *download(void *arg)
{
    const char *text = arg, *name;
    char part[LONGEST + 8];
    url_t url;
    int file;
    long long got = -1;
    if (parse(text, &url) != 0)
        return fprintf(stderr, "%s: no such URL\n", text), ACO_ERROR;
    name = strrchr(url.path, '/') + 1;
    snprintf(part, sizeof part, "%s.part", name);
    file = aco_file_open(part, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0) {
        got = get(&url, file);
        aco_io_close(file);
        if (got >= 0 && aco_file_rename(part, name) != 0)
            got = -1;
    }
    if (got >= 0)
        return printf("%s: %lld bytes\n", name, got), NULL;
    fprintf(stderr, "%s: %s\n", text, errno == ETIMEDOUT ? "no time left" : strerror(errno));
    if (file >= 0)
        unlink(part);
    return ACO_ERROR;
}

static void *download_all(void *arg)
{
    char **words = arg;
    aco_scope_t limit;
    aco_group_t group;
    aco_scope_begin(&limit, aco_after((int64_t)(atof(words[1]) * (double)ACO_SECOND)));
    aco_group_begin(&group, ACO_KEEP_GOING);
    group.limit = (size_t)atoi(words[2]);
    for (char **url = words + 3; *url; url++)
        if (!aco_group_spawn(&group, download, *url, NULL))
            fprintf(stderr, "%s: %s\n", *url, errno == ETIMEDOUT ? "no time left" : strerror(errno));
    aco_group_end(&group);
    aco_scope_end(&limit);
    printf("%zu files\n", group.succeeded);
    return NULL;
}

int main(int argc, char **argv)
{
    aco_options_t detached = {.flags = ACO_DETACHED};
    if (argc < 4)
        return fprintf(stderr, "io_download SECONDS AT_ONCE URL...\n"), 2;
    return aco_spawn(download_all, argv, &detached) && aco_run() == 0 ? 0 : 1;
}
