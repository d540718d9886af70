/* The server of bench-grpc by gRPC's own C++ library, its callback API: grpc PORT; see ../server_acorn.cpp. */
#include "echo.grpc.pb.h"

#include <cstdio>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <string>

using namespace grpc::examples::echo;

class stream final : public grpc::ServerBidiReactor<EchoRequest, EchoResponse>
{
  public:
    stream()
    {
        StartRead(&request_);
    }
    void OnReadDone(bool ok) override
    {
        if (!ok) {
            Finish(grpc::Status::OK);
            return;
        }
        reply_.set_message(request_.message());
        StartWrite(&reply_);
    }
    void OnWriteDone(bool ok) override
    {
        if (ok)
            StartRead(&request_);
    }
    void OnDone() override
    {
        delete this;
    }

  private:
    EchoRequest request_;
    EchoResponse reply_;
};

class echo_service final : public Echo::CallbackService
{
    grpc::ServerUnaryReactor *UnaryEcho(grpc::CallbackServerContext *context, const EchoRequest *request,
                                        EchoResponse *reply) override
    {
        grpc::ServerUnaryReactor *reactor = context->DefaultReactor();
        reply->set_message(request->message());
        reactor->Finish(grpc::Status::OK);
        return reactor;
    }
    grpc::ServerBidiReactor<EchoRequest, EchoResponse> *
    BidirectionalStreamingEcho(grpc::CallbackServerContext *) override
    {
        return new stream;
    }
};

int main(int argc, char **argv)
{
    echo_service service;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(std::string("127.0.0.1:") + (argc > 1 ? argv[1] : "0"), grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (!server)
        return 1;
    std::fprintf(stderr, "listening on 127.0.0.1:%d\n", port);
    server->Wait();
}
