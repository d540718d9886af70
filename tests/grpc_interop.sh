#!/bin/sh
# grpc_interop.sh SERVER CLIENT [ROUTE_GUIDE]: grpc-go's interoperability cases, all that need no cloud: its client with
# SERVER, its server with CLIENT (grpc_interop/); and its route guide's client with ROUTE_GUIDE (examples/grpc). Exits
# with 77, "skipped", without Go or the modules.
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
(cd "$here/grpc_interop/judge" && timeout 200 go build -mod=readonly -o "$work/judge" . &&
    timeout 60 go build -mod=readonly -o "$work/route_guide" google.golang.org/grpc/examples/route_guide/client) \
    >"$work/build" 2>&1 || skip "the module google.golang.org/grpc cannot be had or built: $(tail -n 1 "$work/build")"

# A server says at first where it listens.
start()
{
    rm -f "$work/says"
    mkfifo "$work/says"
    "$@" >"$work/says" &
    server=$!
    read -r line <"$work/says"
    address=${line##* }
}
start "$1" 0
timeout 100 "$work/judge" client "$address"
kill "$server"
start "$work/judge" server
timeout 100 "$2" "$address"
[ $# -ge 3 ] || exit 0
kill "$server"
start "$3" 0
timeout 60 "$work/route_guide" -addr "$address" >"$work/guide" 2>&1 || { cat "$work/guide"; exit 1; }
grep -q 'Route summary: point_count:[1-9]' "$work/guide"
[ "$(grep -c '^.*Feature: name' "$work/guide")" = 4 ] # all that the guide knows
