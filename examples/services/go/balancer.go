// The same as ../balancer.cpp: balancer PORT CERTIFICATE KEY BACKEND...
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type backend struct {
	address     string
	connections atomic.Int32
	isDown      atomic.Bool
}

// dial returns nil if it cannot be reached.
func (b *backend) dial(ctx context.Context) net.Conn {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var dialer net.Dialer
	made, err := dialer.DialContext(ctx, "tcp", b.address)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if b.isDown.Swap(err != nil) != (err != nil) {
		if err != nil {
			fmt.Fprintln(os.Stderr, b.address, "is down")
		} else {
			fmt.Fprintln(os.Stderr, b.address, "is up")
		}
	}
	if err != nil {
		return nil
	}
	return made
}

// choose returns the backend with the fewest connections that is up and was not tried.
func choose(all []*backend, tried map[*backend]bool) *backend {
	var best *backend
	for _, b := range all {
		if !b.isDown.Load() && !tried[b] && (best == nil || b.connections.Load() < best.connections.Load()) {
			best = b
		}
	}
	return best
}

type halfCloser interface{ CloseWrite() error }

func copyBothWays(one, other net.Conn) {
	var both sync.WaitGroup
	copyTo := func(to, from net.Conn) {
		defer both.Done()
		if _, err := io.Copy(to, from); err != nil {
			one.Close()
			other.Close()
			return
		}
		to.(halfCloser).CloseWrite()
	}
	both.Add(2)
	go copyTo(one, other)
	go copyTo(other, one)
	both.Wait()
}

func forward(ctx context.Context, client *tls.Conn, all []*backend) {
	defer client.Close()
	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()
	limit, cancel := context.WithTimeout(ctx, 10*time.Second)
	err := client.HandshakeContext(limit)
	cancel()
	if err != nil {
		return
	}
	tried := map[*backend]bool{}
	for b := choose(all, tried); b != nil; b = choose(all, tried) {
		b.connections.Add(1)
		if server := b.dial(ctx); server != nil {
			copyBothWays(client, server)
			server.Close()
			b.connections.Add(-1)
			return
		}
		b.connections.Add(-1)
		tried[b] = true
	}
	fmt.Fprintln(os.Stderr, "no backend is up")
}

func watch(ctx context.Context, all []*backend) {
	for ticker := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, b := range all {
			if b.isDown.Load() {
				if made := b.dial(ctx); made != nil {
					made.Close()
				}
			}
		}
	}
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "balancer PORT CERTIFICATE KEY BACKEND...")
		os.Exit(2)
	}
	var all []*backend
	for _, address := range os.Args[4:] {
		all = append(all, &backend{address: address})
	}
	var certificate atomic.Pointer[tls.Certificate]
	load := func() error {
		pair, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
		if err == nil {
			certificate.Store(&pair)
		}
		return err
	}
	if err := load(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return certificate.Load(), nil
	}}
	door, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "listening on", door.Addr())

	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cancelled, cancel := context.WithCancel(context.Background())
	defer cancel()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	go func() {
		for range reload {
			if err := load(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	go watch(stopped, all)
	go func() {
		<-stopped.Done()
		door.Close()
	}()
	var connections sync.WaitGroup
	for {
		peer, err := door.Accept()
		if err != nil && stopped.Err() != nil {
			break
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		connections.Add(1)
		go func() {
			defer connections.Done()
			forward(cancelled, tls.Server(peer, config), all)
		}()
	}
	drained := make(chan struct{})
	go func() {
		connections.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-time.After(10 * time.Second):
		cancel()
		<-drained
	}
}
