// The server of bench-io by Asio, with callbacks. io-server-asio PORT echo|stream
#include "../asio_session.hpp"

#include <asio.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

using asio::ip::tcp;

static std::array<char, 64 * 1024> block;

using echo = session<tcp::socket, 4096>;

class stream : public std::enable_shared_from_this<stream> {
public:
    explicit stream(tcp::socket &&peer) : peer_(std::move(peer)) {}
    void start()
    {
        asio::async_read(peer_, asio::buffer(&left_, sizeof left_),
                         [self = shared_from_this()](std::error_code error, std::size_t) {
                             if (!error)
                                 self->send();
                         });
    }

private:
    void send()
    {
        peer_.async_write_some(asio::buffer(block, left_ < block.size() ? left_ : block.size()),
                               [self = shared_from_this()](std::error_code error, std::size_t n) {
                                   if (error)
                                       return;
                                   self->left_ -= n;
                                   if (self->left_)
                                       self->send();
                                   else
                                       self->start();
                               });
    }
    tcp::socket peer_;
    std::uint64_t left_ = 0;
};

template<class Session> static void accept(tcp::acceptor &door)
{
    door.async_accept([&door](std::error_code error, tcp::socket peer) {
        if (!error) {
            peer.set_option(tcp::no_delay(true));
            std::make_shared<Session>(std::move(peer))->start();
        }
        accept<Session>(door);
    });
}

int main(int argc, char **argv)
{
    asio::io_context context(1); // one thread
    const auto port = static_cast<unsigned short>(argc > 1 ? std::atoi(argv[1]) : 0);
    tcp::acceptor door(context, tcp::endpoint(asio::ip::address_v4::loopback(), port));
    door.listen(65535);
    std::fprintf(stderr, "listening on 127.0.0.1:%d\n", door.local_endpoint().port());
    if (argc > 2 && std::strcmp(argv[2], "stream") == 0)
        accept<stream>(door);
    else
        accept<echo>(door);
    context.run();
}
