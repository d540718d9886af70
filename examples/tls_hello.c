/* A web page by HTTPS: tls_hello PORT CHAIN KEY [CA]. The files are PEM: the certificate and those above it, and its
 * key. With CA, clients need a certificate from there. The page says how the browser is connected. SIGHUP: reads the
 * files again. */
#include <aco/group.h>
#include <aco/process.h>
#include <aco/tls.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static aco_tls_config_t *config;
static const char *chain, *key, *authority; /* files */
static int hangups;                         /* tells of SIGHUP */

/* From the files as they are now. NULL: that failed. */
static aco_tls_config_t *new_config(void)
{
    aco_tls_config_t *made = aco_tls_config_new(ACO_TLS_SERVER | (authority ? ACO_TLS_VERIFY_CLIENT : 0));
    if (made && aco_tls_config_certificate(made, chain, key) == 0 && aco_tls_config_alpn(made, "http/1.1") == 0 &&
        (!authority || aco_tls_config_trust(made, authority) == 0))
        return made;
    if (made)
        aco_tls_config_destroy(made);
    return NULL;
}

static void *reload(void *unused)
{
    while (aco_signal_wait(hangups, NULL) > 0) {
        aco_tls_config_t *renewed = new_config();
        if (renewed && aco_tls_config_replace(config, renewed) == 0) {
            fprintf(stderr, "reloaded\n");
            continue;
        }
        fprintf(stderr, "the certificates stay: %s\n", aco_error_message());
        if (renewed)
            aco_tls_config_destroy(renewed);
    }
    return unused;
}

/* Reads to the empty line after the headers. 0, or -1. */
static int read_request(aco_tls_t *tls)
{
    char bytes[4096] = "";
    for (size_t n = 0; n + 1 < sizeof bytes && !strstr(bytes, "\r\n\r\n");) {
        ssize_t got = aco_tls_read(tls, bytes + n, sizeof bytes - 1 - n);
        if (got <= 0)
            return -1;
        bytes[n += (size_t)got] = 0;
    }
    return 0;
}

static void answer(aco_tls_t *tls)
{
    char text[512], peer[128] = "somebody";
    aco_tls_info_t info;
    aco_tls_info(tls, &info);
    (void)aco_tls_peer_name(tls, peer, sizeof peer);
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello %s: %s, %s, %s\n", peer,
             info.protocol, info.cipher, info.is_resumed ? "resumed" : "new");
    if (aco_tls_write_all(tls, text, strlen(text)) >= 0)
        aco_tls_shutdown(tls, SHUT_RDWR);
}

static void *serve_one(void *connection)
{
    aco_tls_t *tls;
    aco_scope_t limit;
    aco_scope_begin(&limit, aco_after(60 * ACO_SECOND)); /* for all of it, the handshake too */
    tls = aco_tls_accept((int)(intptr_t)connection, config);
    if (!tls)
        fprintf(stderr, "%s\n", limit.error ? "a client is too slow" : aco_error_message());
    else if (read_request(tls) == 0)
        answer(tls);
    if (tls)
        aco_tls_close(tls);
    aco_scope_end(&limit);
    return NULL;
}

static void *serve(void *port)
{
    int fd, listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    aco_group_t connections;
    if (listener < 0 || aco_io_local_address(listener, address, sizeof address) != 0)
        return fprintf(stderr, "%s\n", aco_error_message()), NULL;
    fprintf(stderr, "listening on %s\n", address);
    aco_group_begin(&connections, ACO_KEEP_GOING);
    while ((fd = aco_io_accept(listener)) >= 0)
        if (!aco_group_spawn(&connections, serve_one, (void *)(intptr_t)fd, NULL))
            aco_io_close(fd);
    aco_io_close(hangups); /* ends reload() */
    return aco_group_end(&connections), NULL;
}

int main(int argc, char **argv)
{
    static const int hangup = SIGHUP;
    if (argc < 4)
        return fprintf(stderr, "tls_hello PORT CHAIN KEY [CA]\n"), 1;
    chain = argv[2];
    key = argv[3];
    authority = argv[4];
    config = new_config();
    hangups = aco_signal_open(&hangup, 1);
    if (!config || hangups < 0)
        return fprintf(stderr, "%s\n", aco_error_message()), 1;
    return aco_spawn(reload, NULL, NULL) && aco_spawn(serve, argv[1], NULL) && aco_run() == 0 ? 0 : 1;
}
