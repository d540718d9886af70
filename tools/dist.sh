#!/bin/sh
# dist.sh [FOLDER]: the release tarball acorn-VERSION.tar.gz, and SHA256SUMS, in FOLDER (build/dist). Its bytes depend
# on the tracked files and on the time of the last commit (SOURCE_DATE_EPOCH) alone.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/dist}
version=$(sed -n '/define ACORN_VERSION_STRING/s/[^0-9.]//gp' include/aco.h)
name=acorn-$version
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
LC_ALL=C TZ=UTC
export LC_ALL TZ
mkdir -p "$out"
git -c core.quotePath=off ls-files | grep -v '^\.ci/' | sort |
    tar --create --format=ustar --files-from=- --transform="s,^,$name/," --mtime="@$time" --owner=0 --group=0 \
        --numeric-owner --mode='u=rwX,go=rX' | gzip -n -9 >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" >SHA256SUMS && cat SHA256SUMS)
