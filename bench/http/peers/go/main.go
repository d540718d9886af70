// The server of bench-http by Go's net/http: main PORT ROOT [CHAIN KEY]; see ../../server_acorn.c.
package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

var block [1 << 20]byte

func bytes(number int) http.HandlerFunc {
	return func(to http.ResponseWriter, request *http.Request) {
		to.Header().Set("Content-Type", "application/octet-stream")
		to.Header().Set("Content-Length", strconv.Itoa(number))
		to.Write(block[:number])
	}
}

func hello(to http.ResponseWriter, request *http.Request) {
	to.Header().Set("Content-Type", "text/plain")
	to.Write([]byte("Hello, world"))
}

func stall(to http.ResponseWriter, request *http.Request) {
	for until := time.Now().Add(100 * time.Millisecond); time.Now().Before(until); {
	}
	hello(to, request)
}

func stallLate(to http.ResponseWriter, request *http.Request) {
	time.Sleep(time.Millisecond)
	stall(to, request)
}

func main() {
	door, err := net.Listen("tcp4", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "listening on %s\n", door.Addr())
	http.HandleFunc("/hello", hello)
	http.HandleFunc("/stall", stall)
	http.HandleFunc("/late", stallLate)
	http.HandleFunc("/offload", stall)
	http.HandleFunc("/4k", bytes(4096))
	http.HandleFunc("/1m", bytes(len(block)))
	http.Handle("/files/", http.StripPrefix("/files/", http.FileServer(http.Dir(os.Args[2]))))
	if len(os.Args) > 4 {
		// HTTP/1.1 alone, as the others
		server := http.Server{TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
		fmt.Fprintln(os.Stderr, server.ServeTLS(door, os.Args[3], os.Args[4]))
	} else {
		var protocols http.Protocols
		protocols.SetHTTP1(true)
		protocols.SetUnencryptedHTTP2(true)
		server := http.Server{Protocols: &protocols}
		fmt.Fprintln(os.Stderr, server.Serve(door))
	}
}
