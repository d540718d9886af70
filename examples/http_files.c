/* Files and uploads by HTTP: http_files FOLDER PORT [CERTIFICATE KEY]. With a certificate (PEM files), by TLS. */
#define _GNU_SOURCE
#include <aco/http.h>
#ifdef WITH_TLS
#include <aco/tls.h>
#endif

#include <stdio.h>

static void get(aco_http_request_t *request, void *folder)
{
    aco_http_reply_file(request, folder, aco_http_request_param(request, "*"));
}

/* Tells how long the body was. */
static void put(aco_http_request_t *request, void *unused)
{
    char part[16384], text[32];
    long long sum = 0;
    ssize_t n;
    (void)unused;
    while ((n = aco_http_request_read(request, part, sizeof part)) > 0)
        sum += n;
    if (n == 0)
        aco_http_reply(request, 200, "text/plain", text, (size_t)snprintf(text, sizeof text, "%lld bytes\n", sum));
}

static void to_files(aco_http_request_t *request, void *unused)
{
    (void)unused;
    aco_http_reply_header(request, "Location", "/files/");
    aco_http_reply(request, 302, NULL, NULL, 0);
}

static void *serve(void *arg)
{
    char **argv = arg, address[ACO_IO_ADDRESS_SIZE];
    const aco_http_route_t routes[] = {{"GET", "/files/*", get, argv[1]},
                                       {NULL, "/uploads/*", put, NULL},
                                       {"GET", "/", to_files, NULL},
                                       {NULL, NULL, NULL, NULL}};
    aco_http_server_options_t server = {.routes = routes, .max_body = 1 << 30};
    int listener = aco_io_listen("tcp", "127.0.0.1", argv[2], NULL);
#ifdef WITH_TLS
    aco_tls_config_t *config = argv[3] ? aco_tls_config_new(ACO_TLS_SERVER) : NULL;
    if (argv[3] && (aco_tls_config_certificate(config, argv[3], argv[4]) != 0 ||
                    aco_tls_config_alpn(config, "http/1.1,http/1.0") != 0))
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    server.open = config ? aco_tls_http_accept : NULL;
    server.open_arg = config;
#endif
    if (aco_io_local_address(listener, address, sizeof address) == 0)
        fprintf(stderr, "listening on %s\n", address);
    aco_http_serve(listener, &server);
    return fprintf(stderr, "%s\n", aco_error_message()), NULL;
}

int main(int argc, char **argv)
{
    return argc > 2 && aco_spawn(serve, argv, NULL) && aco_run() == 0 ? 0 : 1;
}
