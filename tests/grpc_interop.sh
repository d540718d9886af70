#!/bin/sh
# grpc_interop.sh SERVER: grpc-go's interoperability cases, all that need no cloud, as the client of SERVER
# (grpc_interop/interop_server.cpp). Exits with 77, "skipped", without Go or the module.
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

mkfifo "$work/says"
"$1" 0 >"$work/says" &
server=$!
read -r address <"$work/says"
timeout 100 "$work/judge" client "$address"
