// The same as ../prices.cpp: prices PORT. In a module of its own, with the code for ../prices.proto in market/, made by
// protoc --go_out=. --go-grpc_out=. --go_opt=Mprices.proto=./market --go-grpc_opt=Mprices.proto=./market prices.proto
package main

import (
	"context"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"prices/market"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

type quote struct {
	now     *market.Price
	changed chan struct{} // closed by the next change
}

type prices struct {
	market.UnimplementedPricesServer
	mutex  sync.Mutex
	quotes map[string]quote
	ending chan struct{} // closed by SIGTERM
}

func (p *prices) find(name string) (quote, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	q, ok := p.quotes[name]
	if !ok {
		return q, status.Error(codes.NotFound, "no price of "+name)
	}
	return q, nil
}

func (p *prices) set(price *market.Price) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if old, ok := p.quotes[price.Symbol]; ok {
		close(old.changed)
	}
	p.quotes[price.Symbol] = quote{price, make(chan struct{})}
}

func (p *prices) Get(_ context.Context, symbol *market.Symbol) (*market.Price, error) {
	q, err := p.find(symbol.Name)
	return q.now, err
}

func (p *prices) Put(incoming market.Prices_PutServer) error {
	count := &market.Count{}
	for {
		price, err := incoming.Recv()
		if err == io.EOF {
			return incoming.SendAndClose(count)
		}
		if err != nil {
			return err
		}
		if price.Symbol == "" || price.Cents < 0 {
			return status.Error(codes.InvalidArgument, "a price has a symbol, and is not negative")
		}
		p.set(price)
		count.N++
	}
}

func (p *prices) Watch(symbol *market.Symbol, out market.Prices_WatchServer) error {
	for {
		q, err := p.find(symbol.Name)
		if err == nil {
			err = out.Send(q.now)
		}
		if err != nil {
			return err
		}
		select {
		case <-q.changed:
		case <-out.Context().Done():
			return out.Context().Err()
		case <-p.ending:
			return status.Error(codes.Unavailable, "this server ends")
		}
	}
}

func main() {
	port := "50051"
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	door, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	all := &prices{quotes: map[string]quote{}, ending: make(chan struct{})}
	server, healthy := grpc.NewServer(), health.NewServer()
	market.RegisterPricesServer(server, all)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	reflection.Register(server)
	log.SetFlags(0)
	log.Print("listening on ", door.Addr())
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ends
		healthy.Shutdown()
		close(all.ending)
		server.GracefulStop()
	}()
	if err := server.Serve(door); err != nil {
		log.Fatal(err)
	}
}
