/* Works jobs off a queue in redis: worker REDIS-PORT [WORKERS]. Others put a job there by RPUSH jobs "ID TRY WORK",
 * where TRY is 1. WORK is "square N", "sleep MS" or anything that fails. The result becomes the key result:ID. A job
 * that fails is tried three times, with pauses, and then put into the list `dead`. A job that is under way stands in
 * the list `running`, from which the next start takes what a crash has left. SIGTERM: what is under way is finished. */
#include <aco/hook.hpp>
#include <aco/service.hpp>
#include <cstdlib>
#include <hiredis/hiredis.h>
#include <iostream>
#include <sstream>

using namespace std::chrono_literals;

/* A connection, whose blocking calls park the task by hooks. */
class redis {
public:
    explicit redis(int port) : context_(open(port), redisFree)
    {
        if (!context_ || context_->err)
            throw std::runtime_error(context_ ? context_->errstr : "no memory");
    }
    /* The answer as a text; nothing: it is nil. */
    template <class... Words> std::optional<std::string> call(const Words &...words)
    {
        const aco::hooks hooked;
        const std::string all[] = {words...};
        const char *at[sizeof...(words)];
        std::size_t sizes[sizeof...(words)], n = 0;
        for (const std::string &word : all) {
            at[n] = word.data();
            sizes[n++] = word.size();
        }
        const std::unique_ptr<redisReply, void (*)(void *)> reply(
            static_cast<redisReply *>(redisCommandArgv(context_.get(), static_cast<int>(n), at, sizes)),
            freeReplyObject);
        if (!reply)
            throw std::runtime_error(context_->errstr);
        if (reply->type == REDIS_REPLY_ERROR)
            throw std::runtime_error(reply->str);
        return reply->str ? std::optional<std::string>({reply->str, reply->len}) : std::nullopt;
    }

private:
    static redisContext *open(int port)
    {
        const aco::hooks hooked;
        return redisConnect("127.0.0.1", port);
    }
    std::unique_ptr<redisContext, void (*)(redisContext *)> context_;
};

static std::string work(const std::string &what)
{
    std::istringstream words(what);
    std::string verb;
    long long n = 0;
    words >> verb >> n;
    if (verb == "square")
        return std::to_string(n * n);
    if (verb != "sleep")
        throw std::runtime_error("unknown work: " + what);
    aco::sleep_for(std::chrono::milliseconds(n));
    return "slept";
}

static void do_job(redis &db, const std::string &job)
{
    std::istringstream words(job);
    std::string id, what;
    int tries = 0;
    words >> id >> tries >> std::ws;
    std::getline(words, what);
    try {
        if (tries < 1)
            throw std::runtime_error("no job");
        db.call("SET", "result:" + id, work(what));
    } catch (const std::exception &e) {
        std::cerr << job << ": " << e.what() << std::endl;
        if (tries >= 1 && tries < 3) {
            aco::sleep_for(tries * 20ms);
            db.call("RPUSH", "jobs", id + ' ' + std::to_string(tries + 1) + ' ' + what);
        } else {
            db.call("RPUSH", "dead", job);
        }
    }
    db.call("LREM", "running", "1", job); /* at last: a crash before it does the job once more */
}

/* One worker, until the service stops. A lost connection is made again. */
static void work_off(aco::service service, int port)
{
    while (!service.is_stopping())
        try {
            redis db(port);
            while (!service.is_stopping())
                if (auto job = db.call("BLMOVE", "jobs", "running", "LEFT", "RIGHT", "0.2"))
                    do_job(db, *job);
        } catch (const std::exception &e) {
            std::cerr << "redis: " << e.what() << std::endl;
            aco::sleep_for(200ms);
        }
}

int main(int argc, char **argv)
try {
    if (argc < 2)
        return std::cerr << "worker REDIS-PORT [WORKERS]" << std::endl, 2;
    const int port = std::atoi(argv[1]), workers = argc > 2 ? std::atoi(argv[2]) : 8;
    aco::run_service(
        [&](aco::service service) {
            redis db(port);
            while (db.call("LMOVE", "running", "jobs", "RIGHT", "LEFT")) {
            }
            for (int i = 0; i < workers; i++)
                service.spawn([=] { work_off(service, port); });
            std::cerr << "working" << std::endl;
            service.ready();
        },
        aco::service_options().with_threads(1).with_drain_time(30s));
} catch (const std::exception &e) {
    std::cerr << e.what() << std::endl;
    return 1;
}
