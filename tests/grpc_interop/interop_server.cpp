/* The server of gRPC's interoperability cases, for clients of others: interop_server [PORT]. It says on stdout where
 * it listens. */
#include "interop.acorn.hpp"

#include <aco/io.hpp>
#include <cstdio>
#include <vector>

using namespace grpc::testing;

static const char initial_name[] = "x-grpc-test-echo-initial", trailing_name[] = "x-grpc-test-echo-trailing-bin";

static void echo_metadata(aco::grpc_call &call)
{
    if (const auto value = call.metadata(initial_name))
        call.add_metadata(initial_name, *value);
    if (const auto value = call.metadata(trailing_name))
        call.add_trailer(trailing_name, *value);
}

static void check_status(const EchoStatus &status)
{
    if (status.code() != 0)
        throw aco::grpc_error(status.code(), status.message());
}

template <class Request> static void check_compressed(const aco::grpc_call &call, const Request &request)
{
    if (request.has_expect_compressed() && request.expect_compressed().value() != call.was_compressed())
        throw aco::grpc_error(ACO_GRPC_INVALID_ARGUMENT, "the message is not compressed as expected");
}

static void fill(Payload &payload, int size)
{
    if (size < 0 || size > 16 << 20)
        throw aco::grpc_error(ACO_GRPC_INVALID_ARGUMENT, "the size of a reply");
    payload.mutable_body()->assign(static_cast<std::size_t>(size), '\0');
}

static void reply_to(aco::grpc_call &call, const StreamingOutputCallRequest &request,
                     aco::grpc_writer<StreamingOutputCallResponse> &replies)
{
    StreamingOutputCallResponse reply;
    for (const ResponseParameters &wanted : request.response_parameters()) {
        if (wanted.interval_us() > 0)
            aco::sleep_for(std::chrono::microseconds(wanted.interval_us()));
        call.compress(wanted.compressed().value());
        fill(*reply.mutable_payload(), wanted.size());
        replies.write(reply);
    }
}

class test_service final : public TestService
{
  public:
    Empty EmptyCall(aco::grpc_call &, const Empty &) override
    {
        return {};
    }
    SimpleResponse UnaryCall(aco::grpc_call &call, const SimpleRequest &request) override
    {
        SimpleResponse reply;
        echo_metadata(call);
        check_compressed(call, request);
        check_status(request.response_status());
        call.compress(request.response_compressed().value());
        fill(*reply.mutable_payload(), request.response_size());
        if (request.fill_server_id())
            reply.set_server_id("acorn");
        return reply;
    }
    void StreamingOutputCall(aco::grpc_call &call, const StreamingOutputCallRequest &request,
                             aco::grpc_writer<StreamingOutputCallResponse> &replies) override
    {
        reply_to(call, request, replies);
    }
    StreamingInputCallResponse StreamingInputCall(aco::grpc_call &call,
                                                  aco::grpc_reader<StreamingInputCallRequest> &requests) override
    {
        StreamingInputCallResponse reply;
        for (const StreamingInputCallRequest &request : requests) {
            check_compressed(call, request);
            reply.set_aggregated_payload_size(reply.aggregated_payload_size() +
                                              static_cast<int>(request.payload().body().size()));
        }
        return reply;
    }
    void FullDuplexCall(aco::grpc_call &call, aco::grpc_reader<StreamingOutputCallRequest> &requests,
                        aco::grpc_writer<StreamingOutputCallResponse> &replies) override
    {
        echo_metadata(call);
        for (const StreamingOutputCallRequest &request : requests) {
            check_status(request.response_status());
            reply_to(call, request, replies);
        }
    }
    void HalfDuplexCall(aco::grpc_call &call, aco::grpc_reader<StreamingOutputCallRequest> &requests,
                        aco::grpc_writer<StreamingOutputCallResponse> &replies) override
    {
        std::vector<StreamingOutputCallRequest> all;
        for (const StreamingOutputCallRequest &request : requests)
            all.push_back(request);
        for (const StreamingOutputCallRequest &request : all)
            reply_to(call, request, replies);
    }
};

int main(int argc, char **argv)
{
    const char *port = argc > 1 ? argv[1] : "0";
    auto served = aco::spawn([port] {
        test_service service;
        aco::grpc_server server;
        service.add_to(server);
        aco::listener door("tcp", "127.0.0.1", port);
        std::printf("%s\n", door.local_address().c_str());
        std::fflush(stdout);
        server.serve(std::move(door));
    });
    return aco_run();
}
