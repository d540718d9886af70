#!/bin/sh
# grpc_interop.sh SERVER CLIENT: grpc-go's interoperability cases, all that need no cloud: its client with SERVER, its
# server with CLIENT (grpc_interop/). Exits with 77, "skipped", without Go or the module.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
skip()
{
    echo "skipped: $1"
    exit 77
}
PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || skip "go is not installed"
(cd "$here/grpc_interop/judge" && timeout 200 go build -mod=readonly -o "$work/judge" . >"$work/build" 2>&1) ||
    skip "the module google.golang.org/grpc cannot be had or built: $(tail -n 1 "$work/build")"

# A server says at first where it listens.
start()
{
    rm -f "$work/says"
    mkfifo "$work/says"
    "$@" >"$work/says" &
    server=$!
    read -r address <"$work/says"
}
start "$1" 0
timeout 100 "$work/judge" client "$address"
kill "$server"
start "$work/judge" server
timeout 100 "$2" "$address"
