/* A client of the greeter of gRPC in C: greeter_client_c [HOST:PORT [NAME]]. It codes its two messages itself: each has
 * one text, field 1. It prints the reply. */
#include <aco/grpc.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_FIELD = 1 << 3 | 2, MOST = 100 };

typedef struct asked {
    const char *target, *name;
    int failed;
} asked_t;

/* Prints the text of HelloReply. Returns 0, or -1: it is too long, or something else. */
static int print_reply(const unsigned char *message, size_t n)
{
    if (n < 2 || message[0] != TEXT_FIELD || message[1] > 127 || message[1] != n - 2)
        return -1;
    printf("%.*s\n", (int)message[1], (const char *)message + 2);
    return 0;
}

static int say_hello(aco_grpc_channel_t *channel, const char *name)
{
    aco_grpc_call_t *call = aco_grpc_call_new(channel, "/helloworld.Greeter/SayHello", NULL);
    char request[2 + MOST];
    const size_t length = strnlen(name, MOST);
    const void *reply;
    size_t n;
    int result = -1;
    request[0] = TEXT_FIELD;
    request[1] = (char)length;
    memcpy(request + 2, name, length);
    if (call && aco_grpc_write_only(call, request, length + 2) == 0 && aco_grpc_read_only(call, &reply, &n) == 0)
        result = print_reply(reply, n);
    else
        fprintf(stderr, "%s: %s\n", aco_grpc_status_name(aco_grpc_finish(call)), aco_grpc_message(call));
    aco_grpc_call_destroy(call);
    return result;
}

static void *ask(void *arg)
{
    asked_t *asked = arg;
    aco_grpc_channel_t *channel = aco_grpc_channel_new(asked->target, NULL);
    aco_scope_t in_time;
    if (!channel || aco_scope_begin(&in_time, aco_after(10 * ACO_SECOND)) != 0) {
        fprintf(stderr, "%s\n", aco_error_message());
        return NULL;
    }
    asked->failed = say_hello(channel, asked->name) != 0;
    (void)aco_scope_end(&in_time);
    aco_grpc_channel_destroy(channel);
    return NULL;
}

int main(int argc, char **argv)
{
    asked_t asked = {argc > 1 ? argv[1] : "localhost:50051", argc > 2 ? argv[2] : "world", 1};
    aco_t *task = aco_spawn(ask, &asked, NULL);
    return task && aco_detach(task) == 0 && aco_run() == 0 ? asked.failed : 1;
}
