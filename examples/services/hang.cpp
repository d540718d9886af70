/* A bank with two mistakes, to hunt for what hangs: hang PORT [SECONDS].
 *   GET  /accounts                 each account and its coins
 *   POST /transfer/{from}/{to}     moves a coin; the body is a note. It locks the two accounts in the order of the
 *                                  request: two transfers in opposite directions wait for each other for ever
 *   GET  /interest/{ms}            computes for so long without a wait: nobody else is served meanwhile
 * What tells of them, on stderr:
 *   kill -USR1 PID                 a line for each task: where it waits, for what, and who holds that
 *   the watchdog                   names a task that blocks its thread
 * And what keeps the service alive all the same: a time limit of so many seconds (2), after which a transfer that hangs
 * is answered with 503 and gives its lock back. SIGTERM drains, and ends. */
#include <aco/http.hpp>
#include <aco/service.hpp>
#include <aco/sync.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>

using namespace std::chrono_literals;

struct account {
    aco::mutex lock;
    int coins = 10;
    std::string notes;
};

using bank = std::map<std::string, account>;

static void transfer(aco::http_request &request, bank &accounts)
{
    const auto from = accounts.find(std::string(*request.param("from")));
    const auto to = accounts.find(std::string(*request.param("to")));
    if (from == accounts.end() || to == accounts.end() || from == to)
        return request.reply(404, "text/plain", "there is no such account\n");
    const std::lock_guard<aco::mutex> first(from->second.lock);
    const std::string note(request.read_all(1000)); /* it waits, and holds the lock */
    const std::lock_guard<aco::mutex> second(to->second.lock);
    if (from->second.coins == 0)
        return request.reply(409, "text/plain", "there are no coins\n");
    from->second.coins--;
    to->second.coins++;
    to->second.notes += note + "\n";
    request.reply(200, "text/plain", "done\n");
}

static void list(aco::http_request &request, const bank &accounts)
{
    std::string text;
    for (const auto &[name, of] : accounts)
        text += name + ": " + std::to_string(of.coins) + "\n";
    request.reply(200, "text/plain", text);
}

static void add_interest(aco::http_request &request)
{
    const std::int64_t until = aco_after(std::stoi(std::string(*request.param("ms"))) * ACO_MILLISECOND);
    while (aco_now() < until)
        ; /* it computes */
    request.reply(200, "text/plain", "done\n");
}

int main(int argc, char **argv)
try {
    const char *port = argc > 1 ? argv[1] : "8080";
    aco_http_time_limit_t limit = {(argc > 2 ? std::atoi(argv[2]) : 2) * ACO_SECOND, nullptr, nullptr};
    bank accounts;
    for (const char *name : {"ann", "bob", "eve"})
        accounts[name];
    aco::run_service(
        [&](aco::service service) {
            aco_tasks_dump_on(SIGUSR1, 2);
            aco_watchdog(100 * ACO_MILLISECOND);
            aco::http_server server;
            server.around(aco_http_limit_time, &limit);
            server.route("GET", "/accounts", [&](aco::http_request &r) { list(r, accounts); });
            server.route("POST", "/transfer/{from}/{to}", [&](aco::http_request &r) { transfer(r, accounts); });
            server.route("GET", "/interest/{ms}", add_interest);
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
