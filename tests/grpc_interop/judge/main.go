// Judges of acorn_grpc by grpc-go's interoperability cases.
//
//	judge client ADDRESS   all cases that need no cloud, plain and with gzip, against a server
//	judge server           a server for a client's cases; it says on stdout where it listens
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

type testClient = testgrpc.TestServiceClient

var cases = []struct {
	name string
	do   func(context.Context, testClient, ...grpc.CallOption)
}{
	{"empty_unary", interop.DoEmptyUnaryCall},
	{"large_unary", interop.DoLargeUnaryCall},
	{"client_streaming", interop.DoClientStreaming},
	{"server_streaming", interop.DoServerStreaming},
	{"ping_pong", interop.DoPingPong},
	{"empty_stream", interop.DoEmptyStream},
	{"timeout_on_sleeping_server", interop.DoTimeoutOnSleepingServer},
	{"cancel_after_begin", interop.DoCancelAfterBegin},
	{"cancel_after_first_response", interop.DoCancelAfterFirstResponse},
	{"status_code_and_message", interop.DoStatusCodeAndMessage},
	{"special_status_message", interop.DoSpecialStatusMessage},
	{"custom_metadata", interop.DoCustomMetadata},
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A case that fails ends the process with its message.
func client(address string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	channel, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fail(err)
	}
	defer channel.Close()
	tested := testgrpc.NewTestServiceClient(channel)
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		for _, each := range cases {
			each.do(ctx, tested, options...)
			fmt.Println("ok", each.name, len(options))
		}
	}
	interop.DoUnimplementedMethod(ctx, channel)
	interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(channel))
	interop.DoPickFirstUnary(ctx, tested)
	fmt.Println("ok unimplemented_method, unimplemented_service, pick_first_unary")
}

func server() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	tested := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(tested, interop.NewTestServer())
	fmt.Println(listener.Addr())
	if err := tested.Serve(listener); err != nil {
		fail(err)
	}
}

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "client":
		client(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "server":
		server()
	default:
		fail(fmt.Errorf("usage: judge client ADDRESS | server"))
	}
}
