/* TLS for C++17 and later, on top of <aco/tls.h>. Header only; link acorn_tls.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco::tls_config config;
 *   aco::tls peer = aco::tls_connect(aco::dial("tcp", host, "443"), host, config);
 *   peer.write_all("GET / HTTP/1.0\r\n\r\n");
 *   while (std::size_t n = peer.read(bytes, sizeof bytes))
 *       ...
 *
 * The C header says what these calls do. Failures are exceptions, as in <aco/io.hpp>: aco::error, with the code and the
 * message, and aco::cancelled. */
#ifndef ACO_TLS_HPP
#define ACO_TLS_HPP

#include "stream.hpp"
#include "tls.h"

namespace aco {
inline namespace ACO__CPP_KIND {

/* Owns a configuration. Connections that use it keep what they need. */
class tls_config {
public:
    explicit tls_config(unsigned flags = 0) : config_(aco_tls_config_new(flags))
    {
        detail::io_check(config_ ? 0 : -1, "aco::tls_config");
    }
    tls_config(tls_config &&from) noexcept : config_(std::exchange(from.config_, nullptr)) {}
    tls_config &operator=(tls_config &&from) noexcept
    {
        std::swap(config_, from.config_);
        return *this;
    }
    ~tls_config()
    {
        if (config_)
            (void)aco_tls_config_destroy(config_);
    }

    tls_config &certificate(const char *chain_file, const char *key_file)
    {
        return done(aco_tls_config_certificate(config_, chain_file, key_file));
    }
    tls_config &trust(const char *file) { return done(aco_tls_config_trust(config_, file)); }
    tls_config &crl(const char *file) { return done(aco_tls_config_crl(config_, file)); }
    tls_config &alpn(const char *protocols) { return done(aco_tls_config_alpn(config_, protocols)); }
    tls_config &sessions(std::size_t hosts) { return done(aco_tls_config_sessions(config_, hosts)); }
    /* Any thread may call. If it throws, `replacement` is unchanged. */
    void replace(tls_config &&replacement)
    {
        done(aco_tls_config_replace(config_, replacement.config_));
        replacement.config_ = nullptr;
    }
    aco_tls_config_t *native_handle() const noexcept { return config_; }

private:
    tls_config &done(int result)
    {
        detail::io_check(result, "aco::tls_config");
        return *this;
    }
    aco_tls_config_t *config_;
};

/* Owns a connection and closes it when destroyed. */
class tls {
public:
    tls() noexcept = default;
    explicit tls(aco_tls_t *connection) noexcept : tls_(connection) {}
    tls(tls &&from) noexcept : tls_(std::exchange(from.tls_, nullptr)) {}
    tls &operator=(tls &&from) noexcept
    {
        if (this != &from) {
            close_quietly();
            tls_ = std::exchange(from.tls_, nullptr);
        }
        return *this;
    }
    ~tls() { close_quietly(); }

    explicit operator bool() const noexcept { return tls_ != nullptr; }
    /* Returns 0 if the peer has sent the end. */
    std::size_t read(void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_tls_read_at(tls_, p, n, location), "aco::tls::read");
    }
    void wait_readable(const char *location = ACO__CALLER)
    {
        detail::io_check(aco_tls_wait_readable_at(tls_, location), "aco::tls::wait_readable");
    }
    std::size_t write(const void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        return detail::io_done(aco_tls_write_at(tls_, p, n, location), "aco::tls::write");
    }
    void write_all(const void *p, std::size_t n, const char *location = ACO__CALLER)
    {
        detail::io_done(aco_tls_write_all_at(tls_, p, n, nullptr, location), "aco::tls::write_all");
    }
    void write_all(std::string_view text, const char *location = ACO__CALLER)
    {
        write_all(text.data(), text.size(), location);
    }
    void shutdown(int how, const char *location = ACO__CALLER)
    {
        detail::io_check(aco_tls_shutdown_at(tls_, how, location), "aco::tls::shutdown");
    }
    /* Wakes the tasks that wait in the connection. */
    void close() { detail::io_check(aco_tls_close(std::exchange(tls_, nullptr)), "aco::tls::close"); }

    aco_tls_info_t info() const
    {
        aco_tls_info_t info;
        detail::io_check(aco_tls_info(tls_, &info), "aco::tls::info");
        return info;
    }
    /* Returns an empty text if the peer has sent no certificate. Throws aco::error if the name is over 255 bytes. */
    std::string peer_name() const
    {
        char text[256];
        if (aco_tls_peer_name(tls_, text, sizeof text) == 0)
            return text;
        if (errno != ENOENT)
            detail::io_failed("aco::tls::peer_name");
        return std::string();
    }
    aco_tls_t *native_handle() const noexcept { return tls_; }
    /* Gives up the connection, as the stream that closes it. */
    stream to_stream() && noexcept
    {
        return stream(aco_tls_stream(std::exchange(tls_, nullptr)));
    }

private:
    void close_quietly() noexcept
    {
        if (tls_)
            (void)aco_tls_close(tls_);
    }
    aco_tls_t *tls_ = nullptr;
};

/* The handshakes: aco_tls_connect(), aco_tls_accept(). */
inline tls tls_connect(socket &&peer, const char *host, const tls_config &config, const char *location = ACO__CALLER)
{
    tls connection(aco_tls_connect_at(peer.detach(), host, config.native_handle(), location));
    detail::io_check(connection ? 0 : -1, "aco::tls_connect");
    return connection;
}
inline tls tls_accept(socket &&peer, const tls_config &config, const char *location = ACO__CALLER)
{
    tls connection(aco_tls_accept_at(peer.detach(), config.native_handle(), location));
    detail::io_check(connection ? 0 : -1, "aco::tls_accept");
    return connection;
}

} // namespace ACO__CPP_KIND
} // namespace aco

#endif
