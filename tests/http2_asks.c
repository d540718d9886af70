/* http2_asks CA METHOD URL COUNT LENGTH: asks another server of HTTP/2 COUNT times at once, and once more on the
 * connection that was kept, with bodies of LENGTH bytes. Prints a line for each response: HTTP's version, the status,
 * the bytes of the body and their sum, or the error. CA "-": by prior knowledge. For tests/io/http2_peers.py. */
#define _GNU_SOURCE
#include "check.h"

#include <aco/group.h>
#include <aco/http.h>
#include <aco/tls.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **words;
static aco_http_client_t *client;
static char body[1 << 20];

static void *ask(void *arg)
{
    const aco_http_call_t call = {.method = words[2], .url = words[3], .body = body, .length = atoi(words[5])};
    aco_http_response_t *r = aco_http_call(client, &call);
    char part[5000];
    size_t all = 0, sum = 0;
    ssize_t n = -1;
    while (r && (n = aco_http_response_read(r, part, sizeof part)) > 0) {
        all += (size_t)n;
        for (ssize_t i = 0; i < n; i++)
            sum += (unsigned char)part[i];
    }
    if (n == 0)
        printf("%d %d %zu %zu\n", r->major, r->status, all, sum);
    else
        printf("%s\n", aco_error_message());
    aco_http_response_end(r);
    return arg;
}

static void *ask_often(void *arg)
{
    aco_http_client_options_t options = {.prior_knowledge = strcmp(words[1], "-") == 0};
    aco_tls_config_t *config = options.prior_knowledge ? NULL : aco_tls_config_new(0);
    aco_group_t group;
    if (config) {
        CHECK_EQ(aco_tls_config_trust(config, words[1]), 0);
        CHECK_EQ(aco_tls_config_alpn(config, "h2,http/1.1"), 0);
        options.open = aco_tls_http_connect;
        options.open_arg = config;
    }
    client = aco_http_client_new(&options);
    CHECK(client != NULL);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = atoi(words[4]); i > 0; i--)
        CHECK(aco_group_spawn(&group, ask, NULL, NULL) != NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    (void)ask(NULL);
    aco_http_client_destroy(client);
    if (config)
        aco_tls_config_destroy(config);
    return arg;
}

int main(int argc, char **argv)
{
    words = argv;
    CHECK_EQ(argc, 6);
    CHECK(atoi(argv[5]) <= (int)sizeof body);
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)(i * 7 + i / 1000);
    signal(SIGPIPE, SIG_IGN);
    CHECK(aco_spawn(ask_often, NULL, NULL) != NULL);
    CHECK_EQ(aco_run(), 0);
    return check_result("http2_asks");
}
