/* The greeter of gRPC in C with nanopb: greeter_nanopb_c [PORT]. Messages are structures that nanopb's generator makes
 * from greeter.proto; greeter.options says how long their texts may be. It prints where it listens. */
#include "greeter.pb.h"

#include <aco/grpc.h>
#include <pb_decode.h>
#include <pb_encode.h>
#include <stdio.h>

static int say_hello(aco_grpc_call_t *call, void *arg)
{
    helloworld_HelloRequest request = helloworld_HelloRequest_init_zero;
    helloworld_HelloReply reply = helloworld_HelloReply_init_zero;
    uint8_t bytes[helloworld_HelloReply_size];
    pb_ostream_t out = pb_ostream_from_buffer(bytes, sizeof bytes);
    pb_istream_t in;
    const void *message;
    size_t n;
    (void)arg;
    if (aco_grpc_read_only(call, &message, &n) != 0)
        return ACO_GRPC_FROM_ERRNO;
    in = pb_istream_from_buffer(message, n);
    if (!pb_decode(&in, helloworld_HelloRequest_fields, &request)) /* copies: nothing of `message` is needed any more */
        return aco_grpc_fail(call, ACO_GRPC_INVALID_ARGUMENT, PB_GET_ERROR(&in));
    if (!*request.name)
        return aco_grpc_fail(call, ACO_GRPC_INVALID_ARGUMENT, "a name is missing");
    snprintf(reply.message, sizeof reply.message, "Hello %s", request.name);
    if (!pb_encode(&out, helloworld_HelloReply_fields, &reply))
        return aco_grpc_fail(call, ACO_GRPC_INTERNAL, PB_GET_ERROR(&out));
    return aco_grpc_write(call, bytes, out.bytes_written) == 0 ? ACO_GRPC_OK : ACO_GRPC_FROM_ERRNO;
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
