/* A chat for browsers: websocket_chat [PORT]. The page at / connects to /chat; what one sends, all get. A client that
 * is slow misses messages, and nobody waits for it. */
#include <aco/websocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char page[] =
    "<!doctype html><title>Chat</title><form><input autofocus><button>Send</button></form><pre></pre><script>\n"
    "const socket = new WebSocket(location.origin.replace('http', 'ws') + '/chat')\n"
    "const input = document.querySelector('input'), log = document.querySelector('pre')\n"
    "socket.onmessage = event => log.textContent = event.data + '\\n' + log.textContent\n"
    "socket.onclose = () => log.textContent = '(closed)\\n' + log.textContent\n"
    "document.querySelector('form').onsubmit = event => {\n"
    "    event.preventDefault()\n"
    "    socket.send(input.value)\n"
    "    input.value = ''\n"
    "}\n"
    "</script>\n";

typedef struct member {
    struct member *next;
    aco_websocket_t *socket;
    aco_channel_t *messages; /* to be sent; texts that the receiver frees */
} member_t;

static member_t *members;

static void tell_all(const char *text)
{
    for (const member_t *m = members; m; m = m->next) {
        char *copy = strdup(text);
        if (copy && aco_channel_try_send(m->messages, &copy) != 0)
            free(copy);
    }
}

static void *send_messages(void *arg)
{
    const member_t *m = arg;
    char *text;
    while (aco_channel_receive(m->messages, &text) == 0) {
        aco_websocket_send(m->socket, ACO_WEBSOCKET_TEXT, text, strlen(text));
        free(text);
    }
    return NULL;
}

static void chat(aco_http_request_t *request, void *arg)
{
    member_t self = {members, aco_websocket_accept(request, NULL), aco_channel_new(16, sizeof(char *))}, **place;
    const char *text;
    size_t n;
    aco_t *sender = self.socket && self.messages ? aco_spawn(send_messages, &self, NULL) : NULL;
    (void)arg;
    if (sender) {
        members = &self;
        while (aco_websocket_receive(self.socket, &text, &n) > 0)
            tell_all(text);
        for (place = &members; *place != &self;)
            place = &(*place)->next;
        *place = self.next;
        aco_channel_close(self.messages);
        aco_join(sender, NULL);
    }
    aco_channel_destroy(self.messages);
}

static void show_page(aco_http_request_t *request, void *arg)
{
    (void)arg;
    aco_http_reply(request, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

static void *serve(void *port)
{
    static const aco_http_route_t routes[] = {
        {"GET", "/", show_page, NULL}, {"GET", "/chat", chat, NULL}, {NULL, NULL, NULL, NULL}};
    static const aco_http_server_options_t server = {.routes = routes};
    int listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    if (listener >= 0 && aco_io_local_address(listener, address, sizeof address) == 0)
        fprintf(stderr, "listening on %s\n", address);
    aco_http_serve(listener, &server);
    return fprintf(stderr, "%s\n", aco_error_message()), NULL;
}

int main(int argc, char **argv)
{
    return aco_spawn(serve, argc > 1 ? argv[1] : "8080", NULL) && aco_run() == 0 ? 0 : 1;
}
