/* gRPC's interoperability cases for a server of others, by stubs of protoc-gen-acorn: interop_client ADDRESS; those of
 * compression: interop_client ADDRESS compression, or with `probe` if the server says INVALID_ARGUMENT to what is not
 * compressed as it is told to expect, and compresses streams. The first case that fails ends it; 77: they need gzip. */
#include "interop.acorn.hpp"

#include <aco/io.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace grpc::testing;
using std::string;

static const char *current_case = "";

static void check(bool is_so, const char *what)
{
    if (is_so)
        return;
    std::printf("%s: failed: %s\n", current_case, what);
    std::exit(1);
}
#define CHECK(condition) check(condition, #condition)

/* The status with which f() ends. */
template <class F> static int status_of(F f, string *message = nullptr)
{
    try {
        f();
    } catch (const aco::grpc_error &error) {
        if (message)
            *message = error.what();
        return error.status();
    }
    return ACO_GRPC_OK;
}

static SimpleRequest request_of(int reply_size, std::size_t size)
{
    SimpleRequest request;
    request.set_response_size(reply_size);
    request.mutable_payload()->mutable_body()->assign(size, '\0');
    return request;
}

static StreamingOutputCallRequest stream_request(int reply_size, std::size_t size)
{
    StreamingOutputCallRequest request;
    request.add_response_parameters()->set_size(reply_size);
    request.mutable_payload()->mutable_body()->assign(size, '\0');
    return request;
}

static const int reply_sizes[] = {31415, 9, 2653, 58979};
static const std::size_t sizes[] = {27182, 8, 1828, 45904};

static void empty_unary(TestService::stub &stub)
{
    stub.EmptyCall({});
}

static void large_unary(TestService::stub &stub)
{
    CHECK(stub.UnaryCall(request_of(314159, 271828)).payload().body().size() == 314159);
}

static void client_streaming(TestService::stub &stub)
{
    auto call = stub.StreamingInputCall();
    for (const std::size_t size : sizes) {
        StreamingInputCallRequest request;
        request.mutable_payload()->mutable_body()->assign(size, '\0');
        call.write(request);
    }
    CHECK(call.finish().aggregated_payload_size() == 74922);
}

static void server_streaming(TestService::stub &stub)
{
    StreamingOutputCallRequest request;
    std::size_t count = 0;
    for (const int size : reply_sizes)
        request.add_response_parameters()->set_size(size);
    auto call = stub.StreamingOutputCall(request);
    for (const StreamingOutputCallResponse &reply : call) {
        CHECK(count < 4);
        CHECK(reply.payload().body().size() == static_cast<std::size_t>(reply_sizes[count]));
        count++;
    }
    CHECK(count == 4);
}

static void ping_pong(TestService::stub &stub)
{
    auto call = stub.FullDuplexCall();
    StreamingOutputCallResponse reply;
    for (int i = 0; i < 4; i++) {
        call.write(stream_request(reply_sizes[i], sizes[i]));
        CHECK(call.read(reply));
        CHECK(reply.payload().body().size() == static_cast<std::size_t>(reply_sizes[i]));
    }
    call.write_end();
    CHECK(!call.read(reply));
}

static void empty_stream(TestService::stub &stub)
{
    auto call = stub.FullDuplexCall();
    StreamingOutputCallResponse reply;
    call.write_end();
    CHECK(!call.read(reply));
}

static void timeout_on_sleeping_server(TestService::stub &stub)
{
    StreamingOutputCallResponse reply;
    bool is_over = false;
    try {
        const aco::deadline limit(std::chrono::milliseconds(1));
        auto call = stub.FullDuplexCall();
        call.write(stream_request(1, 27182));
        while (call.read(reply)) {
        }
    } catch (const aco::cancelled &ended) {
        is_over = ended.error() == ETIMEDOUT;
    } catch (const aco::grpc_error &ended) {
        is_over = ended.status() == ACO_GRPC_DEADLINE_EXCEEDED;
    }
    CHECK(is_over);
}

static void cancel_after_begin(TestService::stub &stub)
{
    aco::grpc_context context;
    context.add_metadata("key1", "value1");
    auto call = stub.StreamingInputCall(&context);
} /* where the call is cancelled */

static void cancel_after_first_response(TestService::stub &stub)
{
    StreamingOutputCallResponse reply;
    auto call = stub.FullDuplexCall();
    call.write(stream_request(31415, 27182));
    CHECK(call.read(reply));
}

static void status_code_and_message(TestService::stub &stub)
{
    SimpleRequest request;
    StreamingOutputCallRequest streamed;
    StreamingOutputCallResponse reply;
    string said;
    request.mutable_response_status()->set_code(2);
    request.mutable_response_status()->set_message("test status message");
    *streamed.mutable_response_status() = request.response_status();
    CHECK(status_of([&] { stub.UnaryCall(request); }, &said) == ACO_GRPC_UNKNOWN && said == "test status message");
    said.clear();
    auto call = stub.FullDuplexCall();
    call.write(streamed);
    call.write_end();
    CHECK(status_of([&] { call.read(reply); }, &said) == ACO_GRPC_UNKNOWN && said == "test status message");
}

static void special_status_message(TestService::stub &stub)
{
    const string text = "\t\ntest with whitespace\r\nand Unicode BMP \xe2\x98\xba and non-BMP \xf0\x9f\x98\x88\t\n";
    SimpleRequest request;
    string said;
    request.mutable_response_status()->set_code(2);
    request.mutable_response_status()->set_message(text);
    CHECK(status_of([&] { stub.UnaryCall(request); }, &said) == ACO_GRPC_UNKNOWN && said == text);
}

/* ---- Compression ---- */

static bool has_probe;

static void client_compressed_unary(TestService::stub &stub)
{
    aco::grpc_context packed, plain;
    SimpleRequest request = request_of(314159, 271828);
    request.mutable_expect_compressed()->set_value(true);
    packed.compress(true);
    plain.compress(false);
    if (has_probe)
        CHECK(status_of([&] { stub.UnaryCall(request, &plain); }) == ACO_GRPC_INVALID_ARGUMENT);
    CHECK(stub.UnaryCall(request, &packed).payload().body().size() == 314159);
    request.mutable_expect_compressed()->set_value(false);
    if (has_probe)
        CHECK(status_of([&] { stub.UnaryCall(request, &packed); }) == ACO_GRPC_INVALID_ARGUMENT);
    CHECK(stub.UnaryCall(request, &plain).payload().body().size() == 314159);
}

static void server_compressed_unary(TestService::stub &stub)
{
    SimpleRequest request = request_of(314159, 271828);
    for (const bool is_packed : {true, false}) {
        aco::grpc_context context;
        request.mutable_response_compressed()->set_value(is_packed);
        CHECK(stub.UnaryCall(request, &context).payload().body().size() == 314159);
        CHECK(context.call().was_compressed() == is_packed);
    }
}

static void client_compressed_streaming(TestService::stub &stub)
{
    aco::grpc_context context;
    StreamingInputCallRequest request;
    request.mutable_payload()->mutable_body()->assign(27182, '\0');
    request.mutable_expect_compressed()->set_value(true);
    if (has_probe)
        CHECK(status_of([&] {
                  auto probe = stub.StreamingInputCall(&context.compress(false));
                  probe.write(request);
                  probe.finish();
              }) == ACO_GRPC_INVALID_ARGUMENT);
    auto call = stub.StreamingInputCall(&context.compress(true));
    call.write(request);
    context.call().compress(false);
    request.mutable_expect_compressed()->set_value(false);
    request.mutable_payload()->mutable_body()->assign(45904, '\0');
    call.write(request);
    CHECK(call.finish().aggregated_payload_size() == 73086);
}

static void server_compressed_streaming(TestService::stub &stub)
{
    aco::grpc_context context;
    StreamingOutputCallRequest request;
    std::size_t count = 0;
    for (const bool is_packed : {true, false}) {
        ResponseParameters *wanted = request.add_response_parameters();
        wanted->set_size(is_packed ? 31415 : 92653);
        wanted->mutable_compressed()->set_value(is_packed);
    }
    auto call = stub.StreamingOutputCall(request, &context);
    for (const StreamingOutputCallResponse &reply : call) {
        CHECK(reply.payload().body().size() == (count ? 92653 : 31415));
        CHECK(!has_probe || context.call().was_compressed() == !count); // grpc-java's compresses no streams
        count++;
    }
    CHECK(count == 2);
}

static void check_metadata(const aco::grpc_context &context)
{
    CHECK(context.call().metadata("x-grpc-test-echo-initial") == std::string_view("test_initial_metadata_value"));
    CHECK(context.call().trailer("x-grpc-test-echo-trailing-bin") == std::string_view("\x0a\x0b\x0a\x0b\x0a\x0b"));
}

static void custom_metadata(TestService::stub &stub)
{
    aco::grpc_context context;
    StreamingOutputCallResponse reply;
    context.add_metadata("x-grpc-test-echo-initial", "test_initial_metadata_value")
        .add_metadata("x-grpc-test-echo-trailing-bin", "\x0a\x0b\x0a\x0b\x0a\x0b");
    stub.UnaryCall(request_of(1, 1), &context);
    check_metadata(context);
    auto call = stub.FullDuplexCall(&context);
    call.write(stream_request(1, 1));
    CHECK(call.read(reply));
    call.write_end();
    CHECK(!call.read(reply));
    check_metadata(context);
}

static void unimplemented_method(TestService::stub &stub)
{
    CHECK(status_of([&] { stub.UnimplementedCall({}); }) == ACO_GRPC_UNIMPLEMENTED);
}

struct interop_case {
    const char *name;
    void (*run)(TestService::stub &);
};
#define CASE(name) {#name, name}
static const interop_case cases[] = {CASE(empty_unary),
                                     CASE(large_unary),
                                     CASE(client_streaming),
                                     CASE(server_streaming),
                                     CASE(ping_pong),
                                     CASE(empty_stream),
                                     CASE(timeout_on_sleeping_server),
                                     CASE(cancel_after_begin),
                                     CASE(cancel_after_first_response),
                                     CASE(status_code_and_message),
                                     CASE(special_status_message),
                                     CASE(custom_metadata),
                                     CASE(unimplemented_method)};
static const interop_case compression_cases[] = {CASE(client_compressed_unary), CASE(server_compressed_unary),
                                                 CASE(client_compressed_streaming), CASE(server_compressed_streaming)};

static void run(const interop_case &each, TestService::stub &stub)
{
    current_case = each.name;
    const int status = status_of([&] { each.run(stub); });
    check(status == ACO_GRPC_OK, aco::grpc_status_name(status));
    std::printf("ok %s\n", each.name);
}

static void run_all(const char *address, const aco_grpc_channel_options_t &options)
{
    aco::grpc_channel channel(address, options);
    TestService::stub stub(channel);
    UnimplementedService::stub nobody(channel);
    for (const interop_case &each : cases)
        run(each, stub);
    current_case = "unimplemented_service";
    CHECK(status_of([&] { nobody.UnimplementedCall({}); }) == ACO_GRPC_UNIMPLEMENTED);
}

static void run_compression(const char *address)
{
    aco::grpc_channel channel(address);
    TestService::stub stub(channel);
    for (const interop_case &each : compression_cases)
        run(each, stub);
}

int main(int argc, char **argv)
{
    const bool is_of_compression = argc > 2;
    has_probe = is_of_compression && argv[2][0] == 'p';
    if (is_of_compression && !aco::grpc_has_gzip())
        return 77;
    auto done = aco::spawn([address = argv[1], is_of_compression] {
        aco_grpc_channel_options_t options = {};
        if (is_of_compression)
            return run_compression(address);
        run_all(address, options);
        options.compresses = aco::grpc_has_gzip();
        run_all(address, options);
    });
    return aco_run();
}
