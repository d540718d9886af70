/* The server of bench-grpc: server_acorn PORT. The variable SHARED puts calls on a share stack. */
#include "echo.acorn.hpp"

#include <aco/io.hpp>
#include <cstdio>
#include <cstdlib>

using namespace grpc::examples::echo;

class echo_service final : public Echo
{
    EchoResponse UnaryEcho(aco::grpc_call &, const EchoRequest &request) override
    {
        EchoResponse reply;
        reply.set_message(request.message());
        return reply;
    }
    void BidirectionalStreamingEcho(aco::grpc_call &, aco::grpc_reader<EchoRequest> &requests,
                                    aco::grpc_writer<EchoResponse> &replies) override
    {
        EchoResponse reply;
        for (const EchoRequest &request : requests) {
            reply.set_message(request.message());
            replies.write(reply);
        }
    }
};

int main(int argc, char **argv)
{
    const char *port = argc > 1 ? argv[1] : "50051";
    auto served = aco::spawn([port] {
        echo_service service;
        aco::grpc_server server;
        service.add_to(server);
        aco::listener door("tcp", "127.0.0.1", port);
        std::fprintf(stderr, "listening on %s\n", door.local_address().c_str());
        aco_options_t how = {};
        how.stack = std::getenv("SHARED") ? aco_share_stack_new(0) : nullptr;
        aco_http_server_options_t options = {};
        options.task = &how;
        server.serve(std::move(door), options);
    });
    return aco_run();
}
