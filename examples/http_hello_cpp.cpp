// An HTTP server in C++: http_hello_cpp [PORT]
#include <aco/http.hpp>

int main(int argc, char **argv)
{
    const char *port = argc > 1 ? argv[1] : "8080";
    auto served = aco::spawn([port] {
        aco::http_server server;
        server.route("GET", "/hello/{name}", [](aco::http_request &request) {
            request.reply(200, "text/plain", "hello " + std::string(*request.param("name")) + "\n");
        });
        aco::listener door("tcp", "127.0.0.1", port);
        std::fprintf(stderr, "listening on %s\n", door.local_address().c_str());
        server.serve(std::move(door));
    });
    return aco_run();
}
