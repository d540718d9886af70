/* A chat for browsers and programs: chat [PORT]. /chat/ROOM?name=NAME is a WebSocket: what one member of a room says,
 * all of them get, behind the last 20 messages. Who reads too slowly misses messages. */
#include <aco/channel.hpp>
#include <aco/http.hpp>
#include <aco/service.hpp>
#include <deque>
#include <iostream>
#include <map>
#include <set>

using namespace std::chrono_literals;
using text = std::shared_ptr<const std::string>; /* one copy for all members */

struct room {
    std::set<aco::channel<text> *> members;
    std::deque<text> last;

    void say(std::string what)
    {
        const text said = std::make_shared<const std::string>(std::move(what));
        last.push_back(said);
        if (last.size() > 20)
            last.pop_front();
        for (aco::channel<text> *member : members)
            (void)member->try_send(text(said)); /* full: it misses this one */
    }
};

/* A member of a room, as long as it exists. */
struct member {
    std::map<std::string, room> &rooms;
    std::map<std::string, room>::iterator here;
    std::string name;
    aco::channel<text> inbox{64};

    member(std::map<std::string, room> &all, const std::string &title, std::string called)
        : rooms(all), here(all.try_emplace(title).first), name(std::move(called))
    {
        for (const text &said : here->second.last)
            (void)inbox.try_send(text(said));
        here->second.members.insert(&inbox);
        here->second.say(name + " has come");
    }
    ~member()
    {
        here->second.members.erase(&inbox);
        here->second.say(name + " has left");
        if (here->second.members.empty())
            rooms.erase(here);
    }
};

static void attend(aco::http_request &request, std::map<std::string, room> &rooms)
{
    const std::string title(*request.param("room"));
    aco_websocket_options_t options = {};
    options.compresses = ACO_WEBSOCKET_COMPRESS;
    options.max_message = 4096;
    if (rooms.size() == 1000 && !rooms.count(title))
        return request.reply(503, "text/plain", "there are too many rooms\n");
    aco::websocket socket(request, options);
    member self(rooms, title, std::string(request.query("name").value_or("somebody")));
    aco::task_group writer; /* if it fails, it ends the reading, too */
    writer.spawn([&] {
        for (const text &said : self.inbox)
            socket.send(*said);
    });
    while (auto message = socket.receive())
        self.here->second.say(self.name + ": " + std::string(message->data));
    self.inbox.close();
    writer.wait();
}

static const char page[] = R"(<!doctype html><title>Chat</title>
<form><input autofocus><button>Send</button></form><pre></pre><script>
const room = location.hash.slice(1) || 'lobby', name = prompt('Your name?') || 'somebody'
const url = location.origin.replace('http', 'ws') + `/chat/${room}?name=${encodeURIComponent(name)}`
const log = document.querySelector('pre'), input = document.querySelector('input')
const socket = new WebSocket(url)
socket.onmessage = event => log.textContent = event.data + '\n' + log.textContent
socket.onclose = () => log.textContent = '(closed)\n' + log.textContent
document.querySelector('form').onsubmit = event => {
    event.preventDefault()
    socket.send(input.value)
    input.value = ''
}
</script>
)";

int main(int argc, char **argv)
try {
    const char *port = argc > 1 ? argv[1] : "8080";
    /* One thread has all rooms; several would each have their own. */
    aco::run_service(
        [&](aco::service service) {
            std::map<std::string, room> rooms;
            aco::http_server server;
            server.options().drain_time = ACO_SECOND; /* then members get the code 1001 */
            server.around(aco_http_compress, nullptr);
            server.route("GET", "/", [](aco::http_request &r) { r.reply(200, "text/html; charset=utf-8", page); });
            server.on_failure([](const auto &, const auto *) {}); /* members that vanish are no news */
            server.route("GET", "/chat/{room}", [&](aco::http_request &r) { attend(r, rooms); });
            aco::listener door = service.listen("http", "tcp", "127.0.0.1", port);
            std::cerr << "listening on " + door.local_address() + "\n";
            service.ready();
            server.serve(std::move(door));
        },
        aco::service_options().with_threads(1).with_drain_time(5s));
} catch (const std::exception &e) {
    std::cerr << e.what() << std::endl;
    return 1;
}
