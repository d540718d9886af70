// Promises of <aco/io.hpp>, <aco/file.hpp>, <aco/format.hpp>, <aco/process.hpp> and <aco/offload.hpp>: owning
// descriptors and files, sockets by text, readers and writers, names, children, signals, callables on other threads,
// failures and cancelling as exceptions. Compiled as C++17 to C++23, with ACO_DEBUG 0 and 1.
#include "aco/file.hpp"
#include "aco/format.hpp"
#include "aco/offload.hpp"
#include "aco/process.hpp"
#include "aco/stream.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <type_traits>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

int count_descriptors()
{
    std::unique_ptr<DIR, int (*)(DIR *)> dir(opendir("/proc/self/fd"), closedir);
    int n = 0;
    while (readdir(dir.get()))
        n++;
    return n;
}

// The thread's poller, and its ring for files.
void make_descriptors()
{
    ASSERT_GE(aco_io_poll_fd(), 0);
    aco::spawn([] { aco::file("/", O_RDONLY); });
    ASSERT_EQ(aco_run(), 0) << aco_error_message();
}

// Runs f() in a task. Afterwards there are as many descriptors as before.
template <class F> void in_task(F f)
{
    make_descriptors();
    const int before = count_descriptors();
    aco::spawn([&f] { f(); });
    EXPECT_EQ(aco_run(), 0) << aco_error_message();
    EXPECT_EQ(count_descriptors(), before);
}

// What f() throws: "cancelled ERRNO", "error ERRNO: text", or "".
template <class F> std::string thrown_by(F &&f)
{
    try {
        f();
    } catch (const aco::error &e) {
        return "error " + std::to_string(e.code().value()) + ": " + e.what();
    } catch (const aco::cancelled &c) {
        return "cancelled " + std::to_string(c.error());
    }
    return "";
}

void expect_error(const std::string &thrown, int error, const std::string &text)
{
    EXPECT_EQ(thrown.find("error " + std::to_string(error) + ": "), 0u) << thrown;
    EXPECT_NE(thrown.find(text), std::string::npos) << thrown;
}

const std::string by_time = "cancelled " + std::to_string(ETIMEDOUT), by_hand = "cancelled " +
    std::to_string(ECANCELED);

std::string port_of(const std::string &address) { return address.substr(address.rfind(':') + 1); }

struct connected {
    aco::socket here, there;
    connected()
    {
        aco::listener door("tcp4", "127.0.0.1", "0");
        here = aco::dial("tcp", "127.0.0.1", port_of(door.local_address()).c_str());
        there = door.accept();
    }
};

// Promise: a descriptor is owned by one object, which closes it; moves pass it on.
TEST(CppFormat, WritesStatesAndAddresses)
{
    std::ostringstream out;
    out << ACO_STATE_SUSPENDED << " " << static_cast<aco_state_t>(7) << " " << aco::address("tcp", "::1", "80");
    EXPECT_EQ(out.str(), "suspended unknown [::1]:80");
#ifdef __cpp_lib_format
    const aco::address home("tcp", "127.0.0.1", "80");
    EXPECT_EQ(std::format("{:>9} {}", ACO_STATE_DONE, home), "     done 127.0.0.1:80");
#endif
}

TEST(Io, Owning)
{
    static_assert(!std::is_copy_constructible_v<aco::descriptor> && !std::is_copy_assignable_v<aco::socket>);
    static_assert(std::is_nothrow_move_constructible_v<aco::socket>);
    static_assert(std::is_nothrow_move_assignable_v<aco::listener>);
    in_task([] {
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        aco::descriptor in = aco::descriptor::adopt(ends[0]), out = aco::descriptor::adopt(ends[1]), none;
        EXPECT_EQ(fcntl(ends[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        EXPECT_FALSE(none);
        aco::descriptor moved = std::move(out);
        EXPECT_EQ(moved.get(), ends[1]);
        EXPECT_EQ(out.get(), -1);
        expect_error(thrown_by([&] { out.write_all("x"); }), EBADF, "descriptor -1");
        moved.write_all("text");
        char text[8];
        EXPECT_EQ(in.read(text, sizeof text), 4u);
        out = std::move(moved);
        none = std::move(in);
        in = std::move(none);
        auto &same = in;
        in = std::move(same);
        EXPECT_EQ(in.get(), ends[0]);
        out = aco::descriptor(); // closes
        EXPECT_EQ(fcntl(ends[1], F_GETFD), -1);
        EXPECT_EQ(in.read(text, sizeof text), 0u);
        const int given_up = in.release();
        EXPECT_EQ(given_up, ends[0]);
        EXPECT_EQ(close(given_up), 0);
        expect_error(thrown_by([&] { in.close(); }), EBADF, "aco_io_close");
        expect_error(thrown_by([] { aco::descriptor::adopt(9999); }), EBADF, "aco_io_adopt");
    });
}

// Promise: servers and clients by text; addresses as text; a stream's end.
TEST(Io, Connections)
{
    in_task([] {
        aco::listener door("tcp4", "127.0.0.1", "0");
        const std::string port = port_of(door.local_address());
        aco::task_group group;
        group.spawn([&door] {
            aco::socket peer = door.accept();
            char text[16];
            const std::size_t n = peer.read(text, sizeof text);
            peer.write_all(text, n);
            peer.shutdown(SHUT_WR);
            EXPECT_EQ(peer.read(text, sizeof text), 0u);
        });
        {
            aco::socket client = aco::dial("tcp", "localhost", port.c_str());
            EXPECT_EQ(client.peer_address(), "127.0.0.1:" + port);
            EXPECT_EQ(client.local_address().find("127.0.0.1:"), 0u);
            EXPECT_EQ(client.send("hello", 5), 5u);
            char text[16];
            EXPECT_EQ(client.read_exactly(text, sizeof text), 5u);
            EXPECT_EQ(std::string(text, 5), "hello");
        }
        group.wait();
        door.close();
        expect_error(thrown_by([&] { aco::dial("tcp4", "127.0.0.1", port.c_str()); }), ECONNREFUSED, "tcp4 127.0.0.1:");
        expect_error(thrown_by([] { aco::listener("tcp", nullptr, "x"); }), EINVAL, "the port is no number");
    });
}

TEST(Io, Datagrams)
{
    in_task([] {
        aco::socket server = aco::bind("udp4", "127.0.0.1", "0"), client = aco::bind("udp4", "127.0.0.1", "0");
        aco::address to("udp4", "127.0.0.1", port_of(server.local_address()).c_str()), from;
        EXPECT_EQ(to.text(), server.local_address());
        EXPECT_EQ(client.send_to(to, "ask", 3), 3u);
        char text[8];
        EXPECT_EQ(server.receive_from(from, text, sizeof text), 3u);
        EXPECT_EQ(from.text(), client.local_address());
        expect_error(thrown_by([&] { client.receive(text, 1, MSG_DONTWAIT); }), EAGAIN, "aco::socket::receive");
        expect_error(thrown_by([] { aco::address("udp", "1.2", "1"); }), EINVAL, "the host");
    });
}

// Promise: lines and delimiters; a destroyed reader leaves nothing behind; a writer writes what is flushed.
TEST(Io, Buffers)
{
    in_task([] {
        connected c;
        aco::reader in(c.there, 64);
        aco::writer out(c.here);
        out.write("one\r\n\nkey=value;");
        out.write("rest", 4);
        out.flush();
        out.write("lost");
        c.here.shutdown(SHUT_WR);
        EXPECT_EQ(in.line(), "one");
        EXPECT_EQ(in.line(), "");
        EXPECT_EQ(in.peek(3).substr(0, 3), "key");
        EXPECT_EQ(in.until('='), "key=");
        in.consume(2);
        char text[8];
        EXPECT_EQ(in.read_exactly(text, 4), 4u);
        EXPECT_EQ(std::string(text, 4), "lue;");
        EXPECT_EQ(in.until(';'), "rest");
        EXPECT_EQ(in.until(';'), "");
        EXPECT_EQ(in.line(), std::nullopt);
        EXPECT_EQ(in.read(text, 1), 0u);
        expect_error(thrown_by([&] { in.peek(65); }), ENOBUFS, "aco_io_reader_peek");
    });
}

// Promise: a stream behind a proxy has its client's address.
TEST(Io, ProxyProtocol)
{
    in_task([] {
        connected c, other;
        char text[5];
        c.there.send("PROXY TCP4 192.0.2.1 192.0.2.2 3 4\r\nhello", 41);
        aco::stream behind = aco::stream_behind_proxy(std::move(c.here));
        EXPECT_EQ(behind.peer_address(), "192.0.2.1:3");
        EXPECT_EQ(behind.local_address(), "192.0.2.2:4");
        EXPECT_EQ(behind.read_exactly(text, sizeof text), 5u);
        EXPECT_EQ(std::string(text, 5), "hello");
        other.there.send("GET / HTTP/1.1\r\n", 16);
        expect_error(thrown_by([&other] { aco::stream_behind_proxy(std::move(other.here)); }), EPROTO,
                     "aco_proxy_header_read");
        EXPECT_FALSE(other.here);
    });
}

// Promise: streams own what carries them; buffers and tunnels take any of them.
TEST(Io, Streams)
{
    static_assert(!std::is_copy_constructible_v<aco::stream> && std::is_nothrow_move_constructible_v<aco::stream>);
    in_task([] {
        connected c;
        aco::stream near(std::move(c.here)), middle(std::move(c.there));
        EXPECT_FALSE(c.here);
        EXPECT_EQ(near.local_address(), middle.peer_address());
        auto ends = aco::stream_pair(4);
        aco::stream &one = ends.first, &other = ends.second;
        expect_error(thrown_by([&one] { one.peer_address(); }), ENOTSUP, "aco_stream_peer_address");
        aco::task_group group;
        group.spawn([&] {
            EXPECT_EQ(aco::copy_both_ways(middle, one), std::make_pair(std::uint64_t(9), std::uint64_t(6)));
            one.close();
        });
        group.spawn([&other] {
            aco::reader in(other);
            aco::writer out(other);
            EXPECT_EQ(in.line(), "question");
            out.write("answer");
            out.flush();
            EXPECT_EQ(in.line(), std::nullopt);
            other.shutdown();
        });
        near.write_all("question\n");
        near.shutdown();
        char text[8];
        EXPECT_EQ(near.read_exactly(text, sizeof text), 6u);
        EXPECT_EQ(std::string(text, 6), "answer");
        EXPECT_TRUE(near.has_input());
        EXPECT_EQ(near.read(text, 1), 0u);
        group.wait();
        near = aco::stream();
        EXPECT_FALSE(near);
        other.abort();
    });
}

// Promise: a scope that ends throws aco::cancelled out of a wait, and what has come is still there. A peer that is gone
// and a descriptor that another task closes are errors.
TEST(Io, Cancelling)
{
    in_task([] {
        connected c;
        aco::reader in(c.there);
        c.here.write_all("hal");
        EXPECT_FALSE(aco::try_for(2ms, [&] { in.line(); }));
        c.here.write_all("f\n");
        EXPECT_EQ(in.line(), "half");
        {
            aco::scope scope;
            scope.cancel();
            EXPECT_EQ(thrown_by([&] { c.there.wait_readable(); }), by_hand);
            c.here.write_all("x"); // what need not wait succeeds
            EXPECT_EQ(in.peek(1), "x");
            in.consume(1);
        }
        {
            aco::deadline limit(1ms);
            char byte;
            EXPECT_EQ(thrown_by([&] { c.there.read(&byte, 1); }), by_time);
        }
        aco::listener door("tcp4", "127.0.0.1", "0");
        aco::task_group group;
        std::string accepting, reading;
        group.spawn([&] { accepting = thrown_by([&] { door.accept(); }); });
        group.spawn([&] { reading = thrown_by([&] { in.line(); }); });
        aco::sleep_for(1ms);
        door.close();
        c.there.close();
        group.wait();
        expect_error(accepting, ECANCELED, "aco::listener::accept: the descriptor was closed");
        expect_error(reading, ECANCELED, "aco::reader::line");
        c.here.write_all("y"); // brings a reset
        aco::sleep_for(1ms);
        expect_error(thrown_by([&] {
                         c.here.write_all("z");
                         c.here.write_all("z");
                     }),
                     EPIPE, "aco::descriptor::write_all: Broken pipe");
    });
}

// Promise: names are looked up, numeric addresses too, and addresses have names.
TEST(Io, Names)
{
    in_task([] {
        const std::vector<aco::address> numeric = aco::look_up("tcp", "127.0.0.1", "80");
        ASSERT_EQ(numeric.size(), 1u);
        EXPECT_EQ(numeric[0].text(), "127.0.0.1:80");
        EXPECT_EQ(numeric[0].size(), sizeof(sockaddr_in));
        EXPECT_EQ(aco::look_up("tcp", "[::1]", "80").at(0).text(), "[::1]:80");
        EXPECT_NE(aco::look_up("tcp", "localhost", "80").size(), 0u);
        EXPECT_EQ(aco::look_up("unix", "@name", nullptr).at(0).text(), "@name");
        EXPECT_NE(aco::name_of(numeric[0]), "");
        expect_error(thrown_by([] { aco::look_up("tcp", "127.0.0.1", "x"); }), EINVAL, "the port");
        expect_error(thrown_by([] { aco::name_of(aco::address()); }), EAFNOSUPPORT, "aco_io_name_of");
        aco::scope scope;
        scope.cancel();
        EXPECT_EQ(thrown_by([] { aco::look_up("tcp", "no-such-name.invalid", "80"); }), by_hand);
        EXPECT_EQ(thrown_by([&] { aco::name_of(numeric[0]); }), by_hand);
    });
}

// A directory of the test's own, empty at last.
struct folder {
    std::string path;
    folder()
    {
        char name[] = "/tmp/cpp_io.XXXXXX";
        path = mkdtemp(name);
    }
    ~folder() { EXPECT_EQ(rmdir(path.c_str()), 0); }
    std::string operator/(const char *name) const { return path + "/" + name; }
};

// Promise: a file is owned; its bytes, its status, and its name can be changed.
TEST(File, Calls)
{
    static_assert(!std::is_copy_constructible_v<aco::file> && std::is_nothrow_move_constructible_v<aco::file>);
    static_assert(!std::is_convertible_v<aco::file &, aco::descriptor &>);
    folder in;
    in_task([&] {
        const std::string path = in / "a", other = in / "b";
        aco::file file(path.c_str(), O_RDWR | O_CREAT, 0600);
        EXPECT_EQ(file.write("hello"), 5u);
        EXPECT_EQ(file.pwrite("J", 1, 0), 1u);
        file.sync();
        char text[8];
        EXPECT_EQ(file.read(text, sizeof text), 0u);
        EXPECT_EQ(file.pread(text, 4, 1), 4u);
        EXPECT_EQ(std::string(text, 4), "ello");
        EXPECT_EQ(file.stat().size, 5u);
        EXPECT_EQ(file.stat().mode & 0777u, 0600u);
        aco::file::rename(path.c_str(), other.c_str());
        EXPECT_EQ(aco::file::stat_path(other.c_str()).inode, file.stat().inode);
        const std::string root = path.substr(0, path.rfind('/'));
        EXPECT_EQ(aco::file::beneath(root.c_str(), "b", O_RDONLY).stat().inode, file.stat().inode);
        expect_error(thrown_by([&] { aco::file::beneath(root.c_str(), "../b", O_RDONLY); }), EXDEV, "../b");
        aco::file::link(other.c_str(), path.c_str());
        EXPECT_EQ(file.stat().links, 2u);
        aco::file::unlink(path.c_str());
        file.truncate(3);
        EXPECT_EQ(file.stat().size, 3u);
        aco::directory::make(path.c_str());
        aco::directory::remove(path.c_str());
        expect_error(thrown_by([&] { aco::file(path.c_str(), O_RDONLY); }), ENOENT, path);
        expect_error(thrown_by([&] { aco::file::stat_path(path.c_str()); }), ENOENT, path);
        expect_error(thrown_by([&] { aco::file::rename(path.c_str(), other.c_str()); }), ENOENT, path);
        expect_error(thrown_by([&] { file.pread(text, 1, -1); }), EINVAL, "the offset is negative");
        aco::file moved = std::move(file);
        EXPECT_FALSE(file);
        expect_error(thrown_by([&] { file.read(text, 1); }), EBADF, "aco_file_read");
        moved.close();
        {
            aco::scope scope;
            scope.cancel();
            EXPECT_EQ(thrown_by([&] { aco::file(other.c_str(), O_RDONLY); }), by_hand);
        }
        EXPECT_EQ(unlink(other.c_str()), 0);
    });
}

// Promise: a range-for has each entry of a directory once; it may be left early, and a failure throws.
TEST(File, Directory)
{
    folder in;
    in_task([&] {
        const std::set<std::string> made = {"one", "two", "three"};
        for (const std::string &name : made)
            aco::file((in / name.c_str()).c_str(), O_WRONLY | O_CREAT);
        std::multiset<std::string> found;
        for (const aco_dir_entry_t &entry : aco::directory(in.path.c_str()))
            found.insert(entry.name);
        EXPECT_EQ(found, std::multiset<std::string>(made.begin(), made.end()));
        for (const aco_dir_entry_t &entry : aco::directory(in.path.c_str())) {
            EXPECT_EQ(made.count(entry.name), 1u);
            break;
        }
        aco::directory dir(in.path.c_str()), moved = std::move(dir);
        for (std::size_t i = 0; i < made.size(); i++)
            EXPECT_NE(moved.next(), nullptr);
        EXPECT_EQ(moved.next(), nullptr);
        EXPECT_TRUE(moved.begin() == moved.end());
        expect_error(thrown_by([&] { dir.next(); }), EINVAL, "aco_dir_read");
        expect_error(thrown_by([&] { aco::directory((in / "none").c_str()); }), ENOENT, in / "none");
        for (const std::string &name : made)
            EXPECT_EQ(unlink((in / name.c_str()).c_str()), 0);
    });
}

// Counts its objects.
struct counted {
    static std::atomic<int> alive;
    counted() { alive++; }
    counted(const counted &) { alive++; }
    ~counted() { alive--; }
};
std::atomic<int> counted::alive{0};

// Promise: a callable runs on another thread; what it captures is destroyed there; its result is moved, and its
// exception comes to the task.
TEST(Offload, Results)
{
    in_task([] {
        const std::thread::id here = std::this_thread::get_id();
        std::thread::id ran, destroyed;
        struct notes {
            std::thread::id *where;
            explicit notes(std::thread::id *w) : where(w) {}
            notes(const notes &) = delete;
            ~notes() { *where = std::this_thread::get_id(); }
        };
        auto owned = std::make_unique<notes>(&destroyed);
        std::unique_ptr<int> answer = aco::offload([&ran, owned = std::move(owned)]() mutable {
            ran = std::this_thread::get_id();
            return std::make_unique<int>(42);
        });
        EXPECT_EQ(*answer, 42);
        EXPECT_TRUE(ran != here && destroyed == ran);
        int seen = 0;
        aco::offload([&seen] { seen = 1; });
        aco::offload_or_abandon([&seen, c = counted()] { seen++; });
        EXPECT_EQ(seen, 2);
        EXPECT_EQ(aco::offload_or_abandon([s = std::string(100, 'x')] { return s + "y"; }).size(), 101u);
        for (auto call : {+[] { aco::offload([c = counted()] { throw std::runtime_error("as it is"); }); },
                          +[] { aco::offload_or_abandon([c = counted()] { throw std::runtime_error("as it is"); }); }})
            try {
                call();
                ADD_FAILURE();
            } catch (const std::runtime_error &e) {
                EXPECT_STREQ(e.what(), "as it is");
            }
        EXPECT_EQ(counted::alive, 0);
    });
    expect_error(thrown_by([] { aco::offload([c = counted()] {}); }), EPERM, "aco_offload");
    expect_error(thrown_by([] { aco::offload_or_abandon([c = counted()] {}); }), EPERM, "aco_offload");
    EXPECT_EQ(counted::alive, 0);
}

// Promise: the end of a scope leaves a callable that runs, if it may be abandoned: it runs to its end, and what it
// owns, returns or throws is destroyed. Else it is waited for. One that was not called is never called.
TEST(Offload, Scopes)
{
    static std::atomic<int> begun, may_end;
    const auto blocks = [] {
        begun++;
        while (!may_end)
            std::this_thread::yield();
    };
    in_task([&] {
        for (const bool is_thrown : {false, true}) {
            begun = may_end = 0;
            aco::scope scope;
            aco::task<> canceller = aco::spawn([&] {
                while (!begun)
                    aco::yield();
                scope.cancel();
            });
            EXPECT_EQ(thrown_by([&] {
                          aco::offload_or_abandon([=, c = counted()] {
                              blocks();
                              if (is_thrown)
                                  throw counted();
                              return c;
                          });
                      }),
                      by_hand);
            EXPECT_EQ(thrown_by([&] { aco::offload([&, c = counted()] { begun = 99; }); }), by_hand);
            EXPECT_EQ(thrown_by([&] { aco::offload_or_abandon([&, c = counted()] { begun = 99; }); }), by_hand);
            EXPECT_EQ(begun, 1);
            EXPECT_GE(counted::alive, 1);
            may_end = 1;
            while (counted::alive)
                std::this_thread::yield();
        }
    });
    in_task([&] {
        begun = may_end = 0;
        aco::scope scope;
        aco::task<> canceller = aco::spawn([&] {
            while (!begun)
                aco::yield();
            scope.cancel();
            aco::yield();
            may_end = 1;
        });
        EXPECT_EQ(aco::offload([&, c = counted()] {
                      blocks();
                      return 7;
                  }),
                  7);
        EXPECT_EQ(thrown_by([] { aco::sleep_for(1ms); }), by_hand);
    });
    EXPECT_EQ(counted::alive, 0);
}

// Promise: a child has the pipes that were asked for, and ends at the latest with its object. The end of a scope ends a
// wait for it.
TEST(Process, Children)
{
    in_task([] {
        pid_t pid;
        {
            aco::process cat({"cat"}, ACO_PROCESS_IN | ACO_PROCESS_OUT);
            EXPECT_TRUE(cat.in && cat.out && !cat.err);
            cat.in.write_all("one\n");
            EXPECT_EQ(aco::reader(cat.out).line(), "one");
            aco::scope ended;
            ended.cancel();
            EXPECT_EQ(thrown_by([&] { cat.wait(); }), by_hand);
            pid = cat.pid();
            EXPECT_EQ(kill(pid, 0), 0);
        }
        EXPECT_EQ(kill(pid, 0), -1);
        aco::process seven(std::vector<const char *>{"sh", "-c", "exit 7"});
        const int status = seven.wait();
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
        expect_error(thrown_by([&] { seven.signal(SIGTERM); }), ESRCH, "aco_process_signal");
        aco::process sleeper({"sleep", "1000"});
        sleeper.signal(SIGKILL);
        EXPECT_TRUE(WIFSIGNALED(sleeper.wait()));
        EXPECT_EQ(sleeper.end(0ns), sleeper.wait());
        expect_error(thrown_by([] { aco::process none({"/does/not/exist"}); }), ENOENT, "aco_process_start");
        EXPECT_TRUE(aco::standard(1));
    });
}

// Promise: signals come as values, and end scopes.
TEST(Process, Signals)
{
    in_task([] {
        aco::signals both({SIGUSR1, SIGUSR2});
        pid_t sender = 0;
        raise(SIGUSR2);
        EXPECT_EQ(both.wait(&sender), SIGUSR2);
        EXPECT_EQ(sender, getpid());
        {
            aco::interrupt by_signal({SIGUSR1});
            EXPECT_FALSE(by_signal.ended() || by_signal.signal());
            raise(SIGUSR1);
            EXPECT_EQ(thrown_by([] { aco::sleep_for(1h); }), by_hand);
            EXPECT_TRUE(by_signal.ended());
            EXPECT_EQ(by_signal.signal(), SIGUSR1);
            EXPECT_EQ(by_signal.error(), ECANCELED);
        }
        EXPECT_EQ(both.wait(), SIGUSR1); // each listener gets each signal
        expect_error(thrown_by([] { aco::signals none({SIGKILL}); }), EINVAL, "aco_signal_open");
    });
}

// Promise: outside of tasks a call that would have to wait throws.
TEST(Io, RootContext)
{
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    aco::descriptor in = aco::descriptor::adopt(ends[0]), out = aco::descriptor::adopt(ends[1]);
    char byte;
    expect_error(thrown_by([&] { in.read(&byte, 1); }), EPERM, "cannot wait");
    EXPECT_EQ(out.write("x", 1), 1u);
    out.wait_writable();
    EXPECT_EQ(in.read(&byte, 1), 1u);
}

} // namespace
