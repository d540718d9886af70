// Promises of <aco/tls.hpp>: owning configurations and connections, failures and cancelling as exceptions.
#include "aco/tls.hpp"
#include "tls_certificates.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace {

using namespace std::chrono_literals;

struct certificates {
    certificate_t root, leaf;
    certificates()
    {
        how_t how = {};
        make_certificate(&root, "root", &how);
        how.names = "DNS:a.test";
        how.issuer = &root;
        make_certificate(&leaf, "leaf", &how);
    }
    ~certificates()
    {
        free_certificate(&root);
        free_certificate(&leaf);
    }
};

// Two tasks with the ends of a connection.
template <class Server, class Client> void meet(Server server, Client client)
{
    aco::spawn([&] {
        aco::listener door("tcp4", "127.0.0.1", "0");
        const std::string address = door.local_address();
        aco::task_group group;
        group.spawn([&] { server(door.accept()); });
        group.spawn([&] { client(aco::dial("tcp", "127.0.0.1", address.substr(address.rfind(':') + 1).c_str())); });
        group.wait();
    });
    EXPECT_EQ(aco_run(), 0) << aco_error_message();
}

template <class F> std::string thrown_by(F &&f)
{
    try {
        f();
    } catch (const aco::error &e) {
        return std::to_string(e.code().value()) + ": " + e.what();
    } catch (const aco::cancelled &c) {
        return "cancelled " + std::to_string(c.error());
    }
    return "";
}

TEST(tls, replaced)
{
    certificates all;
    aco::tls_config of_server(ACO_TLS_SERVER), of_client(ACO_TLS_NO_SYSTEM_STORE), renewed(ACO_TLS_SERVER);
    of_client.trust(all.root.file);
    of_server.certificate(all.leaf.file, all.leaf.key_file);
    EXPECT_NE(thrown_by([&] { of_server.replace(std::move(renewed)); }), "");
    renewed.certificate(all.leaf.file, all.leaf.key_file).alpn("h2");
    of_server.replace(std::move(renewed));
    EXPECT_EQ(renewed.native_handle(), nullptr);
    of_client.alpn("h2");
    meet([&](aco::socket &&peer) { EXPECT_STREQ(aco::tls_accept(std::move(peer), of_server).info().alpn, "h2"); },
         [&](aco::socket &&peer) { aco::tls_connect(std::move(peer), "a.test", of_client); });
}

TEST(tls, ends_meet)
{
    certificates all;
    aco::tls_config of_server(ACO_TLS_SERVER), of_client(ACO_TLS_NO_SYSTEM_STORE);
    of_server.certificate(all.leaf.file, all.leaf.key_file).alpn("h2");
    of_client.trust(all.root.file).alpn("h2,http/1.1").sessions(1);
    meet(
        [&](aco::socket &&peer) {
            aco::tls tls = aco::tls_accept(std::move(peer), of_server), moved = std::move(tls);
            char text[8];
            EXPECT_FALSE(tls);
            EXPECT_EQ(moved.read(text, sizeof text), 5u);
            EXPECT_EQ(std::string(text, 5), "hello");
            EXPECT_EQ(moved.peer_name(), "");
            EXPECT_STREQ(moved.info().server_name, "a.test");
            moved.write("HELLO", 5);
            EXPECT_EQ(moved.read(text, sizeof text), 0u);
        },
        [&](aco::socket &&peer) {
            aco::tls tls = aco::tls_connect(std::move(peer), "a.test", of_client);
            char text[8];
            EXPECT_EQ(peer.get(), -1);
            tls.write_all("hello");
            tls.wait_readable();
            EXPECT_EQ(tls.read(text, sizeof text), 5u);
            EXPECT_EQ(tls.peer_name(), "CN=leaf");
            EXPECT_STREQ(tls.info().alpn, "h2");
            EXPECT_EQ(thrown_by([&] {
                          aco::deadline soon(1ms);
                          tls.read(text, sizeof text);
                      }),
                      "cancelled " + std::to_string(ETIMEDOUT));
            tls.shutdown(SHUT_WR);
            EXPECT_EQ(thrown_by([&] { tls.write_all("x"); }).find(std::to_string(EPIPE)), 0u);
            tls.close();
            EXPECT_FALSE(tls);
        });
}

TEST(tls, failures_are_exceptions)
{
    certificates all;
    aco::tls_config of_server(ACO_TLS_SERVER), of_client(ACO_TLS_NO_SYSTEM_STORE);
    of_server.certificate(all.leaf.file, all.leaf.key_file);
    meet([&](aco::socket &&peer) {
        EXPECT_NE(thrown_by([&] { aco::tls_accept(std::move(peer), of_server); }).find("the peer sent the alert"),
                  std::string::npos);
    },
         [&](aco::socket &&peer) {
             const std::string text = thrown_by([&] { aco::tls_connect(std::move(peer), "a.test", of_client); });
             EXPECT_EQ(text.find(std::to_string(EACCES) + ": "), 0u) << text;
             EXPECT_NE(text.find("a.test: certificate refused, untrusted: "), std::string::npos) << text;
         });
    EXPECT_NE(thrown_by([&] { of_client.trust("/none"); }).find("/none: No such file"), std::string::npos);
    EXPECT_NE(thrown_by([] { aco::tls_config wrong(1000); }), "");
    aco::tls none;
    char byte;
    EXPECT_NE(thrown_by([&] { none.read(&byte, 1); }), "");
}

} // namespace
