/* A client of acorn_grpc for connect's conformance runner, which asks for calls by stdin, and reads on stdout what came
 * of them. */
#include "conformance.h"

#include <aco/task.hpp>
#include <algorithm>
#include <cctype>

enum { UNARY = 1, CLIENT_STREAM, SERVER_STREAM, HALF_DUPLEX, FULL_DUPLEX, GZIP = 2 };

/* ---- Which metadata to look for: those that the server is told to send ---- */

static std::string lower(std::string name)
{
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
}

template <class Fields> static void add_names(Fields &to, const Fields &from)
{
    for (const Header &header : from)
        if (std::none_of(to.begin(), to.end(),
                         [&](const Header &known) { return known.name() == lower(header.name()); }))
            to.Add()->set_name(lower(header.name()));
}

template <class Definition> static void add_definition(ClientResponseResult &result, const Definition &definition)
{
    for (auto *to : {result.mutable_response_headers(), result.mutable_response_trailers()}) {
        add_names(*to, definition.response_headers());
        add_names(*to, definition.raw_response().headers());
        add_names(*to, definition.response_trailers());
        add_names(*to, definition.raw_response().trailers());
    }
}

static void add_all_names(ClientResponseResult &result, const ClientCompatRequest &asked)
{
    ServerStreamRequest streamed;
    UnaryRequest single;
    if (!asked.request_messages_size())
        return;
    if (asked.stream_type() <= CLIENT_STREAM && single.ParseFromString(asked.request_messages(0).value()))
        add_definition(result, single.response_definition());
    if (asked.stream_type() > CLIENT_STREAM && streamed.ParseFromString(asked.request_messages(0).value()))
        add_definition(result, streamed.response_definition());
}

template <class Find> static void find_values(google::protobuf::RepeatedPtrField<Header> &headers, Find find)
{
    for (Header &header : headers) {
        const void *value;
        std::size_t n = 0;
        for (std::size_t i = 0; (value = find(header.name().c_str(), i, &n)) != nullptr; i++)
            header.add_value(shown_of(header.name(), std::string(static_cast<const char *>(value), n)));
    }
}

/* ---- A call ---- */

struct conversation {
    const ClientCompatRequest &asked;
    ClientResponseResult &result;
    aco_grpc_call_t *call;
    aco_scope_t scope; /* cancels it */

    /* 1: a message; 0: the end; less: an error. */
    int read()
    {
        const bool is_only = asked.stream_type() <= CLIENT_STREAM;
        const void *message = nullptr;
        std::size_t n = 0;
        UnaryResponse reply; /* all replies have the payload in this field */
        const int more = is_only ? aco_grpc_read_only(call, &message, &n) : aco_grpc_read(call, &message, &n);
        if (more < 0 || (!is_only && more == 0))
            return more;
        if (reply.ParseFromArray(message, static_cast<int>(n)))
            *result.add_payloads() = reply.payload();
        if (asked.cancel().has_after_num_responses() &&
            asked.cancel().after_num_responses() == static_cast<unsigned>(result.payloads_size()))
            (void)aco_scope_cancel(&scope);
        return is_only ? 0 : 1;
    }

    bool send_all()
    {
        for (const google::protobuf::Any &message : asked.request_messages()) {
            const std::string &bytes = message.value();
            if (asked.request_delay_ms())
                aco_sleep(asked.request_delay_ms() * ACO_MILLISECOND);
            if (asked.stream_type() == UNARY || asked.stream_type() == SERVER_STREAM)
                return aco_grpc_write_only(call, bytes.data(), bytes.size()) == 0;
            if (aco_grpc_write(call, bytes.data(), bytes.size()) != 0)
                return false;
            if (asked.stream_type() == FULL_DUPLEX && read() <= 0)
                return false;
        }
        if (asked.cancel().has_before_close_send())
            (void)aco_scope_cancel(&scope);
        return aco_grpc_write_end(call) == 0;
    }

    void cancel_later(aco::task_group &canceller)
    {
        if (!asked.has_cancel() || !asked.cancel().has_after_close_send_ms())
            return;
        canceller.spawn([this] {
            aco::sleep_for(std::chrono::milliseconds(asked.cancel().after_close_send_ms()));
            (void)aco_scope_cancel(&scope);
        });
    }

    void run()
    {
        for (const Header &header : asked.request_headers())
            for (const std::string &value : header.value()) {
                const std::string bytes = value_of(header.name(), value);
                (void)aco_grpc_add_metadata(call, lower(header.name()).c_str(), bytes.data(), bytes.size());
            }
        const bool is_single = asked.stream_type() == UNARY || asked.stream_type() == SERVER_STREAM;
        aco::task_group canceller;
        if (is_single)
            cancel_later(canceller);
        if (send_all()) {
            if (!is_single)
                cancel_later(canceller);
            while (read() > 0) {
            }
        }
        end(aco_grpc_finish(call));
        canceller.cancel();
        try {
            canceller.wait();
        } catch (const aco::cancelled &) {
        }
    }

    void end(int status)
    {
        std::size_t n = 0;
        const void *details = aco_grpc_details(call, &n);
        Status parsed;
        find_values(*result.mutable_response_headers(), [this](const char *name, std::size_t i, std::size_t *length) {
            return aco_grpc_metadata(call, name, i, length);
        });
        find_values(*result.mutable_response_trailers(), [this](const char *name, std::size_t i, std::size_t *length) {
            return aco_grpc_trailer(call, name, i, length);
        });
        if (status == ACO_GRPC_OK)
            return;
        result.mutable_error()->set_code(status);
        result.mutable_error()->set_message(aco_grpc_message(call));
        if (details && parsed.ParseFromArray(details, static_cast<int>(n)))
            *result.mutable_error()->mutable_details() = parsed.details();
    }
};

static void answer(const ClientCompatRequest &asked, ClientResponseResult &result)
{
    const std::string path = "/" + asked.service() + "/" + asked.method();
    aco_grpc_channel_options_t options = {};
    options.compresses = asked.compression() == GZIP;
    options.max_message = asked.message_receive_limit();
    aco::grpc_channel channel(asked.host() + ":" + std::to_string(asked.port()), options);
    conversation talk = {asked, result, aco_grpc_call_new(channel.native_handle(), path.c_str(), nullptr), {}};
    add_all_names(result, asked);
    aco_scope_begin(&talk.scope,
                    asked.has_timeout_ms() ? aco_after(asked.timeout_ms() * ACO_MILLISECOND) : ACO_FOREVER);
    talk.run();
    aco_grpc_call_destroy(talk.call);
    (void)aco_scope_end(&talk.scope);
}

int main()
{
    auto served = aco::spawn([] {
        ClientCompatRequest asked;
        while (read_message(asked)) {
            ClientCompatResponse said;
            said.set_test_name(asked.test_name());
            answer(asked, *said.mutable_response());
            say(said);
        }
    });
    return aco_run();
}
