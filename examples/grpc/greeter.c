/* The greeter of gRPC in C: greeter_c [PORT]. It codes its two messages itself: each has one text, field 1. It prints
 * where it listens. */
#include <aco/grpc.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_FIELD = 1 << 3 | 2, MOST = 100 };

/* Finds the text of HelloRequest. Lengths over 127 have a second byte: those names are too long. Returns its length, or
 * -1. */
static int name_of(const unsigned char *message, size_t n, const char **name)
{
    *name = "";
    if (n == 0)
        return 0; /* protobuf leaves out what is empty */
    if (n < 2 || message[0] != TEXT_FIELD || message[1] > MOST || message[1] != n - 2)
        return -1;
    *name = (const char *)message + 2;
    return message[1];
}

static int say_hello(aco_grpc_call_t *call, void *arg)
{
    const void *message;
    const char *name;
    char reply[2 + sizeof "Hello " + MOST];
    size_t n;
    int length;
    (void)arg;
    if (aco_grpc_read_only(call, &message, &n) != 0)
        return ACO_GRPC_FROM_ERRNO;
    length = name_of(message, n, &name);
    if (length <= 0)
        return aco_grpc_fail(call, ACO_GRPC_INVALID_ARGUMENT, "a name is missing, or too long");
    length = snprintf(reply + 2, sizeof reply - 2, "Hello %.*s", length, name);
    reply[0] = TEXT_FIELD;
    reply[1] = (char)length;
    return aco_grpc_write(call, reply, (size_t)length + 2) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
}

static void *serve(void *port)
{
    aco_grpc_server_t *server = aco_grpc_server_new(NULL);
    char address[ACO_IO_ADDRESS_SIZE];
    int listener = aco_io_listen("tcp", "127.0.0.1", port, NULL);
    if (listener >= 0 && aco_io_local_address(listener, address, sizeof address) == 0)
        fprintf(stderr, "listening on %s\n", address);
    if (!server || aco_grpc_server_add(server, "/helloworld.Greeter/SayHello", say_hello, NULL) != 0 ||
        aco_grpc_server_add_health(server) != 0 || aco_grpc_serve(listener, server, NULL) != 0)
        fprintf(stderr, "%s\n", aco_error_message());
    aco_grpc_server_destroy(server);
    return NULL;
}

int main(int argc, char **argv)
{
    return aco_spawn(serve, argc > 1 ? argv[1] : "50051", NULL) && aco_run() == 0 ? 0 : 1;
}
