#!/bin/sh
# sim_porcupine.sh REGISTER LOG: histories of tests/sim_history.c and of examples/sim_log, checked by Porcupine (a Go
# module): those of a register and of a replicated log are linearizable, and stale reads of both are found. Exits with
# 77, "skipped", without Go or the module.
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
(cd "$here/porcupine" && timeout 60 go build -mod=readonly -o "$work/checker" . >"$work/build" 2>&1) ||
    skip "the module github.com/anishathalye/porcupine cannot be had or built: $(tail -n 1 "$work/build")"

mkdir "$work/good" "$work/stale" "$work/log" "$work/local"
"$1" --runs 20 -- "$work/good" >/dev/null
"$work/checker" "$work"/good/*.jsonl
"$1" --runs 20 -- "$work/stale" stale >/dev/null
if "$work/checker" "$work"/stale/*.jsonl >"$work/found"; then
    echo "no stale read was found"
    exit 1
fi
tail -n 1 "$work/found"

"$2" --runs 100 -- 0 "$work/log" >/dev/null
"$work/checker" "$work"/log/*.jsonl
"$2" --runs 1000 --events 0 -- 5 "$work/local" >/dev/null 2>&1 || : # fails at the first seed with a stale read
if "$work/checker" "$work"/local/*.jsonl >"$work/found"; then
    echo "no stale read of a leader that does not lead any more was found"
    exit 1
fi
tail -n 1 "$work/found"
