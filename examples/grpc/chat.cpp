/* A chat by streams of gRPC: chat [PORT]. A call is a member of a room; what one member says, all others get. Who reads
 * too slowly misses messages. */
#include "chat.acorn.hpp"

#include <aco/channel.hpp>
#include <aco/io.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>

using chat::Said;
using message = std::shared_ptr<const Said>; /* one copy for all members */
using inbox = aco::channel<message>;
using rooms = std::map<std::string, std::set<inbox *>>;

/* A member of a room, as long as it exists. */
struct member {
    rooms &all;
    const std::string room, name;
    inbox said{64};

    member(rooms &in, const Said &first) : all(in), room(first.room()), name(first.name())
    {
        all[room].insert(&said);
    }
    ~member()
    {
        all[room].erase(&said);
        if (all[room].empty())
            all.erase(room);
    }
    void say(const std::string &text)
    {
        const auto what = std::make_shared<Said>();
        what->set_room(room);
        what->set_name(name);
        what->set_text(text);
        for (inbox *other : all[room])
            if (other != &said)
                (void)other->try_send(message(what)); /* full: it misses this one */
    }
};

class service final : public chat::Chat
{
  public:
    void Join(aco::grpc_call &, aco::grpc_reader<Said> &heard, aco::grpc_writer<Said> &told) override
    {
        Said first;
        if (!heard.read(first))
            return;
        if (first.room().empty() || first.name().empty())
            throw aco::grpc_error(ACO_GRPC_INVALID_ARGUMENT, "the first message names a room and who joins it");
        member self(rooms_, first);
        aco::task_group writer; /* if it fails, it ends the reading, too */
        writer.spawn([&] {
            told.write(first); /* so that the member knows that it is in */
            for (const message &what : self.said)
                told.write(*what);
        });
        for (const Said &said : heard)
            self.say(said.text());
        self.said.close();
        writer.wait();
    }

  private:
    rooms rooms_;
};

int main(int argc, char **argv)
{
    const char *port = argc > 1 ? argv[1] : "50051";
    auto served = aco::spawn([port] {
        service chats;
        aco::grpc_server server;
        chats.add_to(server);
        aco::listener door("tcp", "127.0.0.1", port);
        std::printf("listening on %s\n", door.local_address().c_str());
        std::fflush(stdout);
        server.serve(std::move(door));
    });
    return aco_run();
}
