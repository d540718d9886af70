// An echo by Asio's callbacks: what a peer sends goes back to it.
#ifndef ASIO_SESSION_HPP
#define ASIO_SESSION_HPP

#include <asio.hpp>

#include <array>
#include <cstddef>
#include <memory>

template<class Socket, std::size_t Size> class session : public std::enable_shared_from_this<session<Socket, Size>> {
public:
    explicit session(Socket &&peer) : peer_(std::move(peer)) {}
    void start()
    {
        peer_.async_read_some(asio::buffer(bytes_),
                              [self = this->shared_from_this()](std::error_code error, std::size_t n) {
                                  if (!error)
                                      self->answer(n);
                              });
    }

private:
    void answer(std::size_t n)
    {
        asio::async_write(peer_, asio::buffer(bytes_, n),
                          [self = this->shared_from_this()](std::error_code error, std::size_t) {
                              if (!error)
                                  self->start();
                          });
    }
    Socket peer_;
    std::array<char, Size> bytes_;
};

#endif
