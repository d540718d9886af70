/* Gets a page by HTTPS and prints it: tls_get HOST [PORT [PATH [CA]]]. With CA, a PEM file, it trusts no other
 * authorities than those in it. */
#include <aco/tls.h>
#include <stdio.h>
#include <string.h>

static void *get(void *arguments)
{
    char **args = arguments, text[4096];
    const char *host = args[0], *port = args[1] ? args[1] : "443", *path = args[1] && args[2] ? args[2] : "/",
               *authorities = args[1] && args[2] ? args[3] : NULL;
    aco_tls_config_t *config = aco_tls_config_new(authorities ? ACO_TLS_NO_SYSTEM_STORE : 0);
    aco_tls_t *tls = NULL;
    ssize_t n = -1;
    aco_scope_t limit;
    aco_scope_begin(&limit, aco_after(60 * ACO_SECOND)); /* looking up the name, connecting, all of it */
    if (config && (!authorities || aco_tls_config_trust(config, authorities) == 0))
        tls = aco_tls_connect(aco_io_dial("tcp", host, port, NULL), host, config);
    if (tls) {
        snprintf(text, sizeof text, "GET %.2000s HTTP/1.1\r\nHost: %.255s\r\nConnection: close\r\n\r\n", path, host);
        n = aco_tls_write_all(tls, text, strlen(text));
        while (n > 0 && (n = aco_tls_read(tls, text, sizeof text)) > 0)
            fwrite(text, 1, (size_t)n, stdout);
    }
    if (n < 0)
        fprintf(stderr, "%s\n", limit.error ? "no time left" : aco_error_message());
    if (tls)
        aco_tls_close(tls);
    aco_scope_end(&limit);
    if (config)
        aco_tls_config_destroy(config);
    return n < 0 ? ACO_ERROR : NULL;
}

int main(int argc, char **argv)
{
    void *result = ACO_ERROR;
    aco_t *task = argc > 1 ? aco_spawn(get, argv + 1, NULL) : NULL;
    return task && aco_run() == 0 && aco_join(task, &result) == 0 && result != ACO_ERROR ? 0 : 1;
}
