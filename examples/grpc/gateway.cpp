/* A gateway from HTTP to the greeter of gRPC: gateway [PORT [TARGETS]]. TARGETS are "host:port", with commas between
 * them. GET /hello/NAME becomes a call with a deadline of a second, which is tried again where the greeter cannot be
 * reached. */
#include "greeter.acorn.hpp"

#include <aco/http.hpp>
#include <cstdio>
#include <string>

/* The status of HTTP that stands for one of gRPC. */
static int http_status(int status)
{
    switch (status) {
    case ACO_GRPC_INVALID_ARGUMENT:
        return 400;
    case ACO_GRPC_UNAUTHENTICATED:
        return 401;
    case ACO_GRPC_PERMISSION_DENIED:
        return 403;
    case ACO_GRPC_NOT_FOUND:
        return 404;
    case ACO_GRPC_ALREADY_EXISTS:
        return 409;
    case ACO_GRPC_RESOURCE_EXHAUSTED:
        return 429;
    case ACO_GRPC_UNIMPLEMENTED:
        return 501;
    case ACO_GRPC_UNAVAILABLE:
        return 503;
    case ACO_GRPC_DEADLINE_EXCEEDED:
        return 504;
    default:
        return 500;
    }
}

static void say_hello(helloworld::Greeter::stub &greeter, aco::http_request &request)
{
    helloworld::HelloRequest asked;
    asked.set_name(std::string(*request.param("name")));
    try {
        request.reply(200, "text/plain", greeter.SayHello(asked).message() + "\n");
    } catch (const aco::grpc_error &error) {
        request.reply(http_status(error.status()), "text/plain", std::string(error.what()) + "\n");
    }
}

int main(int argc, char **argv)
{
    const char *port = argc > 1 ? argv[1] : "8080";
    const std::string targets = argc > 2 ? argv[2] : "localhost:50051";
    auto served = aco::spawn([&] {
        aco_grpc_policy_t policy = {};
        policy.timeout = ACO_SECOND;
        policy.tries = 3;
        policy.retried = ACO_GRPC_BIT(ACO_GRPC_UNAVAILABLE);
        aco_grpc_channel_options_t options = {};
        options.round_robin = 1;
        options.policies = &policy;
        options.policy_count = 1;
        aco::grpc_channel channel(targets, options);
        helloworld::Greeter::stub greeter(channel);
        aco::http_server server;
        server.route("GET", "/hello/{name}", [&](aco::http_request &request) { say_hello(greeter, request); });
        aco::listener door("tcp", "127.0.0.1", port);
        std::printf("listening on %s\n", door.local_address().c_str());
        std::fflush(stdout);
        server.serve(std::move(door));
    });
    return aco_run();
}
