/* A client of the greeter of gRPC in C++: greeter_client [HOST:PORT [NAME]]. It makes a call of each kind. */
#include "greeter.acorn.hpp"

#include <iostream>

using helloworld::HelloReply;
using helloworld::HelloRequest;

static HelloRequest request_of(const std::string &name)
{
    HelloRequest request;
    request.set_name(name);
    return request;
}

static void greet(aco::grpc_channel &channel, const std::string &name)
{
    helloworld::Greeter::stub greeter(channel);
    std::cout << greeter.SayHello(request_of(name)).message() << '\n';
    auto replies = greeter.SayMany(request_of(name));
    for (const HelloReply &reply : replies)
        std::cout << reply.message() << '\n';
    auto names = greeter.SayToAll();
    names.write(request_of(name));
    names.write(request_of("all"));
    std::cout << names.finish().message() << '\n';
    auto chat = greeter.Chat();
    for (int i = 0; i < 3; i++) {
        HelloReply reply;
        chat.write(request_of(name + " " + std::to_string(i)));
        if (chat.read(reply))
            std::cout << reply.message() << '\n';
    }
}

int main(int argc, char **argv)
{
    const std::string target = argc > 1 ? argv[1] : "localhost:50051", name = argc > 2 ? argv[2] : "world";
    bool failed = true;
    auto asked = aco::spawn([&] {
        aco::grpc_channel channel(target);
        try {
            const bool in_time = aco::try_for(std::chrono::seconds(10), [&] { greet(channel, name); });
            failed = !in_time;
        } catch (const aco::grpc_error &error) {
            std::cerr << aco::grpc_status_name(error.status()) << ": " << error.what() << '\n';
        }
    });
    return aco_run() == 0 && !failed ? 0 : 1;
}
