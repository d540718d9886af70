#!/bin/sh
# run.sh PLUGIN LLVM FILE.ll: runs the pass on FILE.ll in each way that its lines `RUN…: %apn OPTION...` say. FileCheck
# compares the output with the CHECK lines (RUN-EXPLICIT: with EXPLICIT) and the report with the REPORT lines. After
# RUN-ERROR the pass must fail, and the message is compared with ERROR.
set -eu
plugin=$1 bin=$2/bin file=$3
here=$(dirname "$file")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset APN_LIST APN_REPORT APN_RETURNS

grep '^; RUN' "$file" | while IFS=: read -r kind command; do
    options=$(echo "$command" | sed "s|%apn||; s|%S|$here|g")
    rm -f "$dir"/*
    status=0
    # shellcheck disable=SC2086
    "$bin/opt" -load="$plugin" -load-pass-plugin="$plugin" -passes=apn,verify -apn-report="$dir/report" $options \
        -S "$file" -o "$dir/out" 2>"$dir/errors" || status=$?
    case $kind in
    "; RUN-ERROR")
        [ $status -ne 0 ] || { echo "$file: was not refused"; exit 1; }
        "$bin/FileCheck" --check-prefix=ERROR "$file" <"$dir/errors"
        continue ;;
    "; RUN-EXPLICIT") prefix=EXPLICIT ;;
    *) prefix=CHECK ;;
    esac
    [ $status -eq 0 ] || { cat "$dir/errors"; exit 1; }
    "$bin/FileCheck" --check-prefix=$prefix "$file" <"$dir/out"
    [ $prefix != CHECK ] || "$bin/FileCheck" --check-prefix=REPORT "$file" <"$dir/report"
done
