#!/bin/sh
# grpc_interop.sh go SERVER CLIENT [ROUTE_GUIDE]: grpc-go's interoperability cases, all that need no cloud: its client
# with SERVER, its server with CLIENT (grpc_interop/); and its route guide's client with ROUTE_GUIDE (examples/grpc).
# grpc_interop.sh java SERVER CLIENT FOLDER: its cases of compression, which grpc-go lacks, by SERVER with CLIENT; then
# grpc-java's cases with both, which are compiled in FOLDER.
# grpc_interop.sh tonic SERVER CLIENT FOLDER: tonic's client with SERVER (grpc_server.c), and its greeter with CLIENT
# (examples/grpc/greeter_client.cpp); tonic, which takes a minute of a processor, is compiled in FOLDER.
# All exit with 77, "skipped", without Go, Java or Rust, the modules, jars or crates, or gzip.
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

# A server says at first where it listens.
start()
{
    [ -z "$server" ] || kill "$server"
    rm -f "$work/says"
    mkfifo "$work/says"
    "$@" >"$work/says" &
    server=$!
    read -r line <"$work/says"
    address=${line##* }
}

go_judges()
{
    PATH=$PATH:/usr/local/go/bin
    command -v go >/dev/null || skip "go is not installed"
    (cd "$here/grpc_interop/judge" && timeout 200 go build -mod=readonly -o "$work/judge" . &&
        timeout 60 go build -mod=readonly -o "$work/route_guide" google.golang.org/grpc/examples/route_guide/client) \
        >"$work/build" 2>&1 || skip "grpc-go cannot be had or built: $(tail -n 1 "$work/build")"
    start "$1" 0
    timeout 100 "$work/judge" client "$address"
    start "$work/judge" server
    timeout 100 "$2" "$address"
    [ $# -ge 3 ] || return 0
    start "$3" 0
    timeout 60 "$work/route_guide" -addr "$address" >"$work/guide" 2>&1 || { cat "$work/guide"; exit 1; }
    grep -q 'Route summary: point_count:[1-9]' "$work/guide"
    [ "$(grep -c '^.*Feature: name' "$work/guide")" = 4 ] # all that the guide knows
}

java_judges()
{
    judge=$here/grpc_interop/judge_java
    start "$1" 0
    timeout 60 "$2" "$address" probe || return $?
    command -v javac >/dev/null && command -v mvn >/dev/null || skip "a JDK or Maven is not installed"
    mkdir -p "$3"
    cat "$judge/pom.xml" "$judge/Judge.java" | cmp -s - "$3/compiled" || {
        timeout 200 mvn -B -q -f "$judge/pom.xml" -Dmdep.outputFile="$3/classpath" \
            org.apache.maven.plugins:maven-dependency-plugin:2.8:build-classpath &&
            timeout 60 javac -cp "$(cat "$3/classpath")" -d "$3" "$judge/Judge.java" &&
            cat "$judge/pom.xml" "$judge/Judge.java" >"$3/compiled"
    } >"$work/build" 2>&1 || skip "grpc-java cannot be had or built: $(tail -n 1 "$work/build")"
    client=$2
    set -- java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$3:$(cat "$3/classpath")" Judge
    timeout 60 "$@" client "${address##*:}"
    start "$@" server
    timeout 60 "$client" "$address" compression
    timeout 60 "$client" "$address"
}

tonic_judges()
{
    command -v cargo >/dev/null || skip "cargo is not installed"
    timeout 600 cargo build --locked --quiet --manifest-path "$here/grpc_interop/judge_tonic/Cargo.toml" \
        --target-dir "$3" >"$work/build" 2>&1 || skip "tonic cannot be had or built: $(tail -n 1 "$work/build")"
    start "$1" serve
    timeout 60 "$3/debug/judge_tonic" client "$address"
    start "$3/debug/judge_tonic" server
    timeout 60 "$2" "$address" you >"$work/greeted"
    printf 'Hello %s\n' you you you you 'you, all' 'you 0' 'you 1' 'you 2' | diff - "$work/greeted"
}
"$1_judges" "$2" "$3" ${4:+"$4"}
