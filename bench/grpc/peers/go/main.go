// The server of bench-grpc by grpc-go: main PORT; see ../../server_acorn.cpp.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/examples/features/proto/echo"
)

type server struct {
	echo.UnimplementedEchoServer
}

func (server) UnaryEcho(_ context.Context, request *echo.EchoRequest) (*echo.EchoResponse, error) {
	return &echo.EchoResponse{Message: request.Message}, nil
}

func (server) BidirectionalStreamingEcho(stream echo.Echo_BidirectionalStreamingEchoServer) error {
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&echo.EchoResponse{Message: request.Message}); err != nil {
			return err
		}
	}
}

func main() {
	door, err := net.Listen("tcp4", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "listening on %s\n", door.Addr())
	served := grpc.NewServer()
	echo.RegisterEchoServer(served, server{})
	fmt.Fprintln(os.Stderr, served.Serve(door))
}
