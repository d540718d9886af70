// The server of bench-io by Go, to be run with GOMAXPROCS=1. main PORT echo|stream
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
)

var block [64 * 1024]byte

func echo(peer net.Conn) {
	defer peer.Close()
	bytes := make([]byte, 4096)
	for {
		n, err := peer.Read(bytes)
		if err != nil {
			return
		}
		if _, err = peer.Write(bytes[:n]); err != nil {
			return
		}
	}
}

func stream(peer net.Conn) {
	defer peer.Close()
	var asked [8]byte
	for {
		if _, err := io.ReadFull(peer, asked[:]); err != nil {
			return
		}
		for left := binary.LittleEndian.Uint64(asked[:]); left > 0; {
			part := block[:]
			if left < uint64(len(part)) {
				part = part[:left]
			}
			if _, err := peer.Write(part); err != nil {
				return
			}
			left -= uint64(len(part))
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
	serve := echo
	if os.Args[2] == "stream" {
		serve = stream
	}
	for { // TCP_NODELAY is Go's default
		if peer, err := door.Accept(); err == nil {
			go serve(peer)
		}
	}
}
