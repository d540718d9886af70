/* The greeter of gRPC in C++: greeter [PORT]. With reflection and health, so that tools can look around. */
#include "greeter.acorn.hpp"

#include <aco/io.hpp>
#include <cstdio>

using helloworld::HelloReply;
using helloworld::HelloRequest;

static HelloReply hello(const std::string &name)
{
    HelloReply reply;
    reply.set_message("Hello " + name);
    return reply;
}

class greeter final : public helloworld::Greeter
{
  public:
    HelloReply SayHello(aco::grpc_call &, const HelloRequest &request) override
    {
        if (request.name().empty())
            throw aco::grpc_error(ACO_GRPC_INVALID_ARGUMENT, "a name is missing");
        return hello(request.name());
    }
    void SayMany(aco::grpc_call &, const HelloRequest &request, aco::grpc_writer<HelloReply> &replies) override
    {
        for (std::size_t i = 0; i < request.name().size(); i++)
            replies.write(hello(request.name()));
    }
    HelloReply SayToAll(aco::grpc_call &, aco::grpc_reader<HelloRequest> &requests) override
    {
        std::string names;
        for (const HelloRequest &request : requests)
            names += (names.empty() ? "" : ", ") + request.name();
        return hello(names);
    }
    void Chat(aco::grpc_call &, aco::grpc_reader<HelloRequest> &requests,
              aco::grpc_writer<HelloReply> &replies) override
    {
        for (const HelloRequest &request : requests)
            replies.write(hello(request.name()));
    }
};

int main(int argc, char **argv)
{
    const char *port = argc > 1 ? argv[1] : "50051";
    auto served = aco::spawn([port] {
        greeter service;
        aco::grpc_server server;
        service.add_to(server);
        server.add_health();
        aco::listener door("tcp", "127.0.0.1", port);
        std::fprintf(stderr, "listening on %s\n", door.local_address().c_str());
        server.serve(std::move(door));
    });
    return aco_run();
}
