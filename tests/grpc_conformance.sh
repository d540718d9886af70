#!/bin/sh
# grpc_conformance.sh SERVER: connect's conformance runner, its cases of gRPC for servers, with SERVER
# (grpc_conformance/conformance_server.cpp). Exits with 77, "skipped", without Go or the module.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip()
{
    echo "skipped: $1"
    exit 77
}
PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || skip "go is not installed"
(cd "$here/grpc_conformance/runner" && timeout 300 go build -mod=readonly -o "$work/runner" \
    connectrpc.com/conformance/cmd/connectconformance >"$work/build" 2>&1) ||
    skip "the module connectrpc.com/conformance cannot be had or built: $(tail -n 1 "$work/build")"
timeout 100 "$work/runner" --mode server --conf "$here/grpc_conformance/grpc.yaml" -- "$1"
