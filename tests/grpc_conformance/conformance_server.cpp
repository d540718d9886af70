/* A server of acorn_grpc for connect's conformance runner, which says by stdin what it wants, and reads on stdout where
 * the server listens. */
#include "conformance.h"

#include <aco/io.hpp>
#include <cstdio>

using namespace connectrpc::conformance::v1;
using request_info = ConformancePayload::RequestInfo;

/* ---- What came ---- */

static Header &header_of(request_info &info, const std::string &name)
{
    for (Header &known : *info.mutable_request_headers())
        if (known.name() == name)
            return known;
    info.add_request_headers()->set_name(name);
    return *info.mutable_request_headers(info.request_headers_size() - 1);
}

static request_info info_of(aco::grpc_call &call)
{
    request_info info;
    const aco_http_request_t *request = call.request();
    for (std::size_t i = 0; i < request->header_count; i++)
        header_of(info, request->headers[i].name).add_value(request->headers[i].value);
    if (call.request() && aco_http_request_header(request, "grpc-timeout"))
        info.set_timeout_ms((aco_deadline() - aco_now()) / ACO_MILLISECOND);
    return info;
}

/* ---- What goes ---- */

template <class Definition> static void add_metadata(aco::grpc_call &call, const Definition &definition)
{
    for (const Header &header : definition.response_headers())
        for (const std::string &value : header.value())
            call.add_metadata(header.name(), value_of(header.name(), value));
    for (const Header &header : definition.response_trailers())
        for (const std::string &value : header.value())
            call.add_trailer(header.name(), value_of(header.name(), value));
}

static void pause(std::uint32_t ms)
{
    if (ms)
        aco::sleep_for(std::chrono::milliseconds(ms));
}

/* Throws the error, with what came if nothing has been sent before. */
[[noreturn]] static void fail(const Error &error, const request_info *info)
{
    Status status;
    status.set_code(error.code());
    status.set_message(error.message());
    *status.mutable_details() = error.details();
    if (info)
        status.add_details()->PackFrom(*info);
    throw aco::grpc_error(error.code(), error.message(), status.details_size() ? status.SerializeAsString() : "");
}

static ConformancePayload answer(aco::grpc_call &call, const UnaryResponseDefinition &definition,
                                 const request_info &info)
{
    ConformancePayload payload;
    add_metadata(call, definition);
    pause(definition.response_delay_ms());
    if (definition.has_error())
        fail(definition.error(), &info);
    payload.set_data(definition.response_data());
    *payload.mutable_request_info() = info;
    return payload;
}

template <class Reply, class Request> static Reply answer_unary(aco::grpc_call &call, const Request &request)
{
    request_info info = info_of(call);
    Reply reply;
    info.add_requests()->PackFrom(request);
    *reply.mutable_payload() = answer(call, request.response_definition(), info);
    return reply;
}

/* Sends reply `i`, with what came since the last one. */
template <class Reply>
static void send(aco::grpc_writer<Reply> &replies, const StreamResponseDefinition &definition, int i,
                 request_info &info)
{
    Reply reply;
    reply.mutable_payload()->set_data(definition.response_data(i));
    if (info.requests_size())
        *reply.mutable_payload()->mutable_request_info() = info;
    info.Clear();
    pause(definition.response_delay_ms());
    replies.write(reply);
}

/* Sends the replies from `i` on. */
template <class Reply>
static void send_rest(aco::grpc_writer<Reply> &replies, const StreamResponseDefinition &definition, int i,
                      request_info &info)
{
    for (; i < definition.response_data_size(); i++)
        send(replies, definition, i, info);
    if (definition.has_error())
        fail(definition.error(), i ? nullptr : &info);
}

class service final : public ConformanceService
{
  public:
    UnaryResponse Unary(aco::grpc_call &call, const UnaryRequest &request) override
    {
        return answer_unary<UnaryResponse>(call, request);
    }
    IdempotentUnaryResponse IdempotentUnary(aco::grpc_call &call, const IdempotentUnaryRequest &request) override
    {
        return answer_unary<IdempotentUnaryResponse>(call, request);
    }
    ClientStreamResponse ClientStream(aco::grpc_call &call, aco::grpc_reader<ClientStreamRequest> &requests) override
    {
        request_info info = info_of(call);
        UnaryResponseDefinition definition;
        ClientStreamResponse reply;
        for (const ClientStreamRequest &request : requests) {
            if (!info.requests_size())
                definition = request.response_definition();
            info.add_requests()->PackFrom(request);
        }
        *reply.mutable_payload() = answer(call, definition, info);
        return reply;
    }
    void ServerStream(aco::grpc_call &call, const ServerStreamRequest &request,
                      aco::grpc_writer<ServerStreamResponse> &replies) override
    {
        request_info info = info_of(call);
        info.add_requests()->PackFrom(request);
        add_metadata(call, request.response_definition());
        send_rest(replies, request.response_definition(), 0, info);
    }
    void BidiStream(aco::grpc_call &call, aco::grpc_reader<BidiStreamRequest> &requests,
                    aco::grpc_writer<BidiStreamResponse> &replies) override
    {
        request_info info = info_of(call);
        StreamResponseDefinition definition;
        bool is_first = true, is_full = false;
        int sent = 0;
        for (const BidiStreamRequest &request : requests) {
            if (is_first) {
                definition = request.response_definition();
                is_full = request.full_duplex();
                add_metadata(call, definition);
            }
            is_first = false;
            info.add_requests()->PackFrom(request);
            if (is_full && sent == definition.response_data_size())
                break;
            if (is_full)
                send(replies, definition, sent++, info);
        }
        send_rest(replies, definition, sent, info);
    }
};

int main()
{
    ServerCompatRequest wish;
    if (!read_message(wish))
        return 1;
    aco_grpc_server_options_t options = {};
    options.max_message = wish.message_receive_limit();
    auto served = aco::spawn([&options] {
        service tested;
        aco::grpc_server server(options);
        ServerCompatResponse where;
        tested.add_to(server);
        aco::listener door("tcp", "127.0.0.1", "0");
        const std::string address = door.local_address();
        where.set_host("127.0.0.1");
        where.set_port(static_cast<std::uint32_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
        say(where);
        server.serve(std::move(door));
    });
    return aco_run();
}
