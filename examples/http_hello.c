/* An HTTP server: http_hello [PORT] */
#include <aco/http.h>
#include <stdio.h>

static void greet(aco_http_request_t *request, void *greeting)
{
    aco_http_reply(request, 200, "text/plain", greeting, strlen(greeting));
}

static void *serve(void *port)
{
    static const aco_http_route_t routes[] = {{"GET", "/", greet, "hello\n"}, {NULL, NULL, NULL, NULL}};
    static const aco_http_server_options_t server = {.routes = routes};
    aco_http_serve(aco_io_listen("tcp", "127.0.0.1", port, NULL), &server);
    return fprintf(stderr, "%s\n", aco_error_message()), NULL;
}

int main(int argc, char **argv)
{
    return aco_spawn(serve, argc > 1 ? argv[1] : "8080", NULL) && aco_run() == 0 ? 0 : 1;
}
