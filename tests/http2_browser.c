/* The server of io/browser.py: http2_browser PAGE serves the file, and what its script asks for, by TLS, with HTTP/2
 * for those who offer it. It says on stdout where it listens, and what the script has found, with which it ends. */
#define _GNU_SOURCE
#include "check.h"
#include "tls_certificates.h"

#include <aco/http.h>
#include <aco/io.h>
#include <aco/tls.h>
#include <aco/websocket.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char page[1 << 14];
static size_t page_n;
static aco_tls_config_t *config;

static void shows(aco_http_request_t *request, void *arg)
{
    (void)arg;
    (void)aco_http_reply(request, 200, "text/html; charset=utf-8", page, page_n);
}

static void tells_path(aco_http_request_t *request, void *arg)
{
    const char *number = aco_http_request_param(request, "number");
    (void)arg;
    (void)aco_http_reply(request, 200, "text/plain", number, strlen(number));
}

/* In many parts, as they come. */
static void sends_back(aco_http_request_t *request, void *arg)
{
    char part[3000];
    ssize_t n;
    (void)arg;
    if (aco_http_reply_begin(request, 200, "application/octet-stream", -1) != 0)
        return;
    while ((n = aco_http_request_read(request, part, sizeof part)) > 0)
        if (aco_http_reply_write(request, part, (size_t)n) != 0)
            return;
}

/* Without an end, until the client leaves. */
static void never_ends(aco_http_request_t *request, void *arg)
{
    (void)arg;
    if (aco_http_reply_begin(request, 200, "text/plain", -1) == 0)
        while (aco_http_reply_write(request, "part", 4) == 0 && aco_sleep(ACO_MILLISECOND) == 0)
            ;
}

/* Says first by which version of HTTP it was asked. */
static void talks(aco_http_request_t *request, void *arg)
{
    const char version = (char)('0' + request->major), *data;
    aco_websocket_t *socket = aco_websocket_accept(request, NULL);
    size_t n;
    (void)arg;
    if (!socket || aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, &version, 1) != 0)
        return;
    while (aco_websocket_receive(socket, &data, &n) > 0)
        if (aco_websocket_send(socket, ACO_WEBSOCKET_TEXT, data, n) != 0)
            return;
}

static void is_done(aco_http_request_t *request, void *arg)
{
    size_t n;
    const char *found = aco_http_request_read_all(request, 1 << 16, &n);
    (void)arg;
    printf("%.*s\n", found ? (int)n : 0, found ? found : "");
    exit(fflush(stdout) != 0);
}

static const aco_http_route_t routes[] = {{"GET", "/", shows, NULL},
                                          {"GET", "/number/{number}", tells_path, NULL},
                                          {"POST", "/back", sends_back, NULL},
                                          {"GET", "/endless", never_ends, NULL},
                                          {"GET", "/socket", talks, NULL},
                                          {"POST", "/done", is_done, NULL},
                                          {NULL, NULL, NULL, NULL}};

static void *serves(void *arg)
{
    const aco_http_server_options_t options = {
        .routes = routes, .open = aco_tls_http_accept, .open_arg = config, .max_body = 4 << 20};
    const int listener = aco_io_listen("tcp", "127.0.0.1", "0", NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    (void)arg;
    CHECK_EQ(aco_io_local_address(listener, address, sizeof address), 0);
    printf("%s\n", address);
    fflush(stdout);
    (void)aco_http_serve(listener, &options);
    return NULL;
}

int main(int argc, char **argv)
{
    certificate_t self;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    aco_t *task;
    if (!file)
        return 1;
    page_n = fread(page, 1, sizeof page, file);
    fclose(file);
    make_certificate(&self, "localhost", &(how_t){.names = "DNS:localhost,IP:127.0.0.1"});
    config = aco_tls_config_new(ACO_TLS_SERVER);
    CHECK(config && aco_tls_config_certificate(config, self.file, self.key_file) == 0);
    CHECK_EQ(aco_tls_config_alpn(config, "h2,http/1.1"), 0);
    task = aco_spawn(serves, NULL, NULL);
    CHECK(task && aco_detach(task) == 0);
    return aco_run();
}
