// For bench/http_stop.py. `stop load PORT CONNECTIONS MS keep|new` asks for /hello all the time, and prints how many
// requests were answered, how many were lost on a connection that had been made, and how many connections were refused.
// It retries nothing. `stop successor PORT` waits for a line on its input and then serves on the port, beside the server
// that is there: the one that is started in place of a server that is stopped.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const reusePort = 15 // SO_REUSEPORT, which package syscall lacks

var answered, lost, refused int64

func lose(what string, n int, err error) {
	if atomic.AddInt64(&lost, 1) <= 5 {
		fmt.Fprintf(os.Stderr, "lost, %s, after %d requests of the connection: %v\n", what, n, err)
	}
}

// One connection's requests, until the server says that it ends, or the time is over.
func use(connection net.Conn, keep bool, until time.Time) {
	defer connection.Close()
	request := "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
	if !keep {
		request = "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	}
	in := bufio.NewReader(connection)
	for n := 0; time.Now().Before(until); n++ {
		if _, err := connection.Write([]byte(request)); err != nil {
			lose("writing", n, err)
			return
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			lose("reading", n, err)
			return
		}
		body := make([]byte, 64)
		if n, _ := response.Body.Read(body); string(body[:n]) != "Hello, world" {
			lose("the body", n, nil)
			return
		}
		atomic.AddInt64(&answered, 1)
		if response.Close || !keep {
			return
		}
	}
}

func load(port string, connections int, time_ time.Duration, keep bool) {
	until := time.Now().Add(time_)
	var all sync.WaitGroup
	for i := 0; i < connections; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for time.Now().Before(until) {
				connection, err := net.Dial("tcp4", "127.0.0.1:"+port)
				if errors.Is(err, syscall.ECONNREFUSED) {
					atomic.AddInt64(&refused, 1)
					time.Sleep(time.Millisecond)
				} else if err != nil {
					lose("connecting", 0, err)
				} else {
					use(connection, keep, until)
				}
			}
		}()
	}
	all.Wait()
	fmt.Println(answered, lost, refused)
}

func succeed(port string) {
	bufio.NewReader(os.Stdin).ReadString('\n')
	options := net.ListenConfig{Control: func(network, address string, raw syscall.RawConn) (err error) {
		raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, reusePort, 1) })
		return
	}}
	door, err := options.Listen(context.Background(), "tcp4", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("serves")
	http.Serve(door, http.HandlerFunc(func(to http.ResponseWriter, request *http.Request) {
		to.Header().Set("Content-Type", "text/plain")
		to.Write([]byte("Hello, world"))
	}))
}

func main() {
	if os.Args[1] == "successor" {
		succeed(os.Args[2])
		return
	}
	connections, _ := strconv.Atoi(os.Args[3])
	ms, _ := strconv.Atoi(os.Args[4])
	load(os.Args[2], connections, time.Duration(ms)*time.Millisecond, os.Args[5] == "keep")
}
