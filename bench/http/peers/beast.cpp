// The server of bench-http by Boost.Beast with callbacks, without TLS: PORT ROOT; see ../server_acorn.c.
#include <utility> // before Asio, which forgets it in C++20

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

static const std::string hello_text = "Hello, world", four_k(4096, '\0'), one_m(1 << 20, '\0');
static std::string root;

class session : public std::enable_shared_from_this<session>
{
  public:
    explicit session(tcp::socket &&peer) : peer_(std::move(peer))
    {
    }
    void read()
    {
        request_ = {};
        http::async_read(peer_, buffer_, request_, [self = shared_from_this()](beast::error_code error, std::size_t) {
            if (!error)
                self->answer();
        });
    }

  private:
    template <class Response> void write(Response &response)
    {
        response.set(http::field::server, "Beast");
        response.keep_alive(request_.keep_alive());
        response.prepare_payload();
        http::async_write(peer_, response, [self = shared_from_this()](beast::error_code error, std::size_t) {
            if (!error && self->request_.keep_alive())
                self->read();
            else
                self->peer_.shutdown(tcp::socket::shutdown_send, error);
        });
    }
    void reply(const char *type, const std::string &body)
    {
        // The bytes are not copied.
        bytes_.emplace(http::status::ok, request_.version());
        bytes_->set(http::field::content_type, type);
        bytes_->body() = beast::span<const char>(body.data(), body.size());
        write(*bytes_);
    }
    void answer()
    {
        const std::string target(request_.target());
        if (target == "/hello")
            return reply("text/plain", hello_text);
        if (target == "/4k")
            return reply("application/octet-stream", four_k);
        if (target == "/1m")
            return reply("application/octet-stream", one_m);
        beast::error_code error;
        file_.emplace(http::status::ok, request_.version());
        file_->body().open((root + target.substr(std::min<std::size_t>(6, target.size()))).c_str(),
                           beast::file_mode::scan, error);
        if (error)
            return reply("text/plain", hello_text);
        file_->set(http::field::content_type, "application/octet-stream");
        write(*file_);
    }
    tcp::socket peer_;
    beast::flat_buffer buffer_;
    http::request<http::empty_body> request_;
    std::optional<http::response<http::span_body<const char>>> bytes_;
    std::optional<http::response<http::file_body>> file_;
};

static void accept(asio::io_context &context, tcp::acceptor &door)
{
    door.async_accept(asio::make_strand(context), [&](beast::error_code error, tcp::socket peer) {
        if (!error) {
            peer.set_option(tcp::no_delay(true));
            std::make_shared<session>(std::move(peer))->read();
        }
        accept(context, door);
    });
}

int main(int argc, char **argv)
{
    const char *wanted = std::getenv("THREADS");
    const int threads = wanted ? std::atoi(wanted) : 1;
    asio::io_context context(threads);
    const auto port = static_cast<unsigned short>(argc > 1 ? std::atoi(argv[1]) : 0);
    root = argc > 2 ? argv[2] : ".";
    tcp::acceptor door(context, tcp::endpoint(asio::ip::address_v4::loopback(), port));
    door.listen(65535);
    std::fprintf(stderr, "listening on 127.0.0.1:%d\n", door.local_endpoint().port());
    accept(context, door);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; i++)
        others.emplace_back([&] { context.run(); });
    context.run();
    for (std::thread &other : others)
        other.join();
}
