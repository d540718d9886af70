/* Items in PostgreSQL as a REST service: rest PORT CONNECTION. CONNECTION is libpq's, "host=127.0.0.1 dbname=shop".
 *
 *   GET /items?after=ID&limit=N   POST /items   GET, PUT, DELETE /items/ID
 *
 * An item is {"id": 1, "name": "bolt", "price": 12}. libpq's blocking calls park the task, by hooks. PostgreSQL makes
 * the JSON, and reads it. */
#include <aco/hook.hpp>
#include <aco/http.hpp>
#include <aco/resource_pool.hpp>
#include <aco/service.hpp>
#include <array>
#include <iostream>
#include <libpq-fe.h>

using namespace std::chrono_literals;
using connection = std::unique_ptr<PGconn, void (*)(PGconn *)>;
using result = std::unique_ptr<PGresult, void (*)(PGresult *)>;

struct failure : std::runtime_error {
    std::string state; /* PostgreSQL's code; "": the connection is lost */
    failure(const char *text, const char *code) : runtime_error(text), state(code ? code : "") {}
};

static const std::array<std::array<const char *, 2>, 5> statements{{
    {"list", "select coalesce(json_agg(t), '[]') from (select id, name, price from items where id > $1 order by id "
             "limit $2) t"},
    {"get", "select row_to_json(t) from (select id, name, price from items where id = $1) t"},
    {"add", "insert into items (name, price) values ($1::json->>'name', ($1::json->>'price')::int) returning id"},
    {"put", "update items set name = $2::json->>'name', price = ($2::json->>'price')::int where id = $1 returning id"},
    {"delete", "delete from items where id = $1 returning id"},
}};

static void check(PGconn *c, const result &r)
{
    if (PQresultStatus(r.get()) != PGRES_TUPLES_OK && PQresultStatus(r.get()) != PGRES_COMMAND_OK)
        throw failure(PQerrorMessage(c), PQresultErrorField(r.get(), PG_DIAG_SQLSTATE));
}

static connection connect(const char *to)
{
    const aco::hooks hooked;
    connection c(PQconnectdb(to), PQfinish);
    if (PQstatus(c.get()) != CONNECTION_OK)
        throw failure(PQerrorMessage(c.get()), nullptr);
    check(c.get(), result(PQexec(c.get(), "create table if not exists items (id bigserial primary key, name text not "
                                          "null, price int not null check (price >= 0))"), PQclear));
    for (const auto &s : statements)
        check(c.get(), result(PQprepare(c.get(), s[0], s[1], 0, nullptr), PQclear));
    return c;
}

class service_of_items {
public:
    explicit service_of_items(const char *to)
        : pool_([to] { return connect(to); }, aco::resource_pool_options().with_limit(8).with_idle_time(60s),
                [](connection &c) { return PQstatus(c.get()) == CONNECTION_OK; })
    {
    }
    void add_routes(aco::http_server &server)
    {
        server.route("GET", "/items", [this](aco::http_request &r) {
            answer(r, 200, "list", {std::string(r.query("after").value_or("0")),
                                    std::string(r.query("limit").value_or("100"))});
        });
        server.route("POST", "/items", [this](aco::http_request &r) { answer(r, 201, "add", {body(r)}); });
        server.route("GET", "/items/{id}", [this](aco::http_request &r) { answer(r, 200, "get", {id(r)}); });
        server.route("PUT", "/items/{id}", [this](aco::http_request &r) { answer(r, 204, "put", {id(r), body(r)}); });
        server.route("DELETE", "/items/{id}", [this](aco::http_request &r) { answer(r, 204, "delete", {id(r)}); });
        server.route("GET", "/health", [](aco::http_request &r) {
            r.reply(aco_http_is_draining(r.native_handle()) ? 503 : 200, "text/plain", "ok\n");
        });
    }

private:
    static std::string id(aco::http_request &r) { return std::string(*r.param("id")); }
    static std::string body(aco::http_request &r) { return std::string(r.read_all(65536)); }

    /* The first value of the result; nothing: it has no row. */
    std::optional<std::string> query(const char *statement, const std::vector<std::string> &given)
    {
        std::vector<const char *> values;
        for (const std::string &value : given)
            values.push_back(value.c_str());
        auto lease = pool_.get_for(5s);
        if (!lease)
            throw failure("no connection is free", nullptr);
        const aco::hooks hooked;
        const result r(PQexecPrepared(lease->get(), statement, static_cast<int>(values.size()), values.data(), nullptr,
                                      nullptr, 0), PQclear);
        check(lease->get(), r);
        return PQntuples(r.get()) ? std::optional<std::string>(PQgetvalue(r.get(), 0, 0)) : std::nullopt;
    }

    void answer(aco::http_request &request, int status, const char *statement, const std::vector<std::string> &given)
    try {
        const auto found = query(statement, given);
        if (!found)
            return request.reply(404, "text/plain", "there is no such item\n");
        if (status == 201)
            request.add_header("Location", "/items/" + *found);
        const std::string body = status == 204 ? "" : status == 201 ? "{\"id\":" + *found + "}" : *found;
        request.reply(status, "application/json", body);
    } catch (const failure &e) { /* 22 and 23: the data are wrong */
        const bool is_wrong = e.state.compare(0, 2, "22") == 0 || e.state.compare(0, 2, "23") == 0;
        if (!is_wrong)
            std::cerr << e.what() + std::string("\n"); /* at once, as other threads write too */
        request.reply(is_wrong ? 400 : 503, "text/plain", is_wrong ? e.what() : "the database is not there\n");
    }

    aco::resource_pool<connection> pool_;
};

int main(int argc, char **argv)
try {
    if (argc < 3)
        return std::cerr << "rest PORT CONNECTION" << std::endl, 2;
    aco::run_service(
        [&](aco::service service) {
            const aco_http_time_limit_t limit = {10 * ACO_SECOND, nullptr, nullptr};
            service_of_items items(argv[2]); /* with connections of its thread */
            aco::http_server server;
            server.around(aco_http_compress, nullptr);
            server.around(aco_http_limit_time, const_cast<aco_http_time_limit_t *>(&limit));
            items.add_routes(server);
            aco::listener door = service.listen("http", "tcp", "127.0.0.1", argv[1]);
            std::cerr << "listening on " + door.local_address() + "\n";
            service.ready();
            server.serve(std::move(door));
        },
        aco::service_options().with_threads(2).with_drain_time(15s));
} catch (const std::exception &e) {
    std::cerr << e.what() << std::endl;
    return 1;
}
