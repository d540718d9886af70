#!/bin/sh
# run.sh [CASE...]: makes each package from the release tarball, and runs a consumer of it (consumer.c). A line for each
# case; exit 1: one failed, or misses its tool. Works in build/packages.
set -u
cd "$(dirname "$0")/../.."
source=$PWD work=$PWD/build/packages version=$(sed -n '/define ACORN_VERSION_STRING/s/[^0-9.]//gp' include/aco.h)
here=$source/tests/packages tree=$work/acorn-$version
PATH=$work/venv/bin:$PATH
python=$(test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)
good="consumer of acorn $version: good"
mkdir -p "$work"

versions() { # the version stands in include/aco.h; packages repeat it
    grep -q "^acorn ($version-" packaging/debian/changelog && grep -q "\"version\": \"$version\"" \
        packaging/vcpkg/acorn/vcpkg.json && grep -q "^## \[$version\]" CHANGELOG.md
}

dist() { # equal bytes from another folder, of other times and permissions
    rm -rf "$work/one" "$work/other" "$work/copy" "$tree"
    sh tools/dist.sh "$work/one" && git clone -q . "$work/copy" || return 1
    git diff --quiet HEAD || echo "not compared: there are changes that are not committed"
    git diff --quiet HEAD && { (umask 077 && sh "$work/copy/tools/dist.sh" "$work/other") || return 1; } &&
        { cmp "$work/one/acorn-$version.tar.gz" "$work/other/acorn-$version.tar.gz" || return 1; }
    (cd "$work/one" && sha256sum -c SHA256SUMS) && tar xf "$work/one/acorn-$version.tar.gz" -C "$work"
}

meson_subproject() {
    rm -rf "$work/sub" && mkdir -p "$work/sub/subprojects" && cp "$here/consumer.c" "$here/meson.build" "$work/sub" &&
        cp -r "$tree" "$work/sub/subprojects/acorn" &&
        meson setup "$work/sub/build" "$work/sub" --wrap-mode=forcefallback && ninja -C "$work/sub/build" consumer &&
        "$work/sub/build/consumer" | grep "$good"
}

meson_installed() { # by pkg-config, here and for another build by Meson
    rm -rf "$work/meson" "$work/meson-prefix" "$work/user" &&
        meson setup "$work/meson" "$tree" --prefix "$work/meson-prefix" --libdir lib &&
        ninja -C "$work/meson" install ||
        return 1
    PKG_CONFIG_PATH=$work/meson-prefix/lib/pkgconfig LD_LIBRARY_PATH=$work/meson-prefix/lib
    export PKG_CONFIG_PATH LD_LIBRARY_PATH
    # shellcheck disable=SC2046
    cc "$here/consumer.c" -DCONSUMER_TLS -o "$work/by_meson" \
        $(pkg-config --cflags --libs acorn_http acorn_threads acorn_tls) && "$work/by_meson" | grep "$good" || return 1
    mkdir "$work/user" && cp "$here/consumer.c" "$here/meson.build" "$work/user" &&
        meson setup "$work/user/build" "$work/user" --wrap-mode=nofallback && ninja -C "$work/user/build" &&
        "$work/user/build/consumer" | grep "$good"
}

conan_create() { # FORM OPTION: no network, nothing in the user's own cache
    CONAN_HOME=$work/conan
    export CONAN_HOME
    conan profile detect --force && { conan remote remove conancenter || :; } &&
        conan create "$tree/packaging/conan" "$@" -c "tools.cmake.cmake_layout:test_folder=$work/conan-test" 2>&1 |
        tee "$work/conan.log" && grep "$good" "$work/conan.log"
}
conan_static() { conan_create; }
conan_shared() { conan_create -o "&:shared=True"; }

debian_build() {
    rm -rf "$work/debian" && mkdir "$work/debian" && cp "$work/one/acorn-$version.tar.gz" \
        "$work/debian/acorn_$version.orig.tar.gz" && cp -r "$tree" "$work/debian" || return 1
    cp -r "$tree/packaging/debian" "$work/debian/acorn-$version/debian"
    # setsid: a tool that looks at the terminal would be stopped in the background
    (cd "$work/debian/acorn-$version" && setsid -w dpkg-buildpackage -us -uc </dev/null)
}

debian_lintian() { # no bug of Debian asks for this package
    cd "$work/debian" && setsid -w lintian --allow-root --fail-on error,warning \
        --suppress-tags initial-upload-closes-no-bugs ./*.changes </dev/null
}

debian_consumer() { # installed in a root of its own, which has this system's list of packages for the dependencies
    root=$work/root
    rm -rf "$root" && mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers" &&
        cp /var/lib/dpkg/status "$root/var/lib/dpkg/status" && cp /var/lib/dpkg/arch "$root/var/lib/dpkg/" 2>/dev/null
    dpkg --root="$root" --force-unsafe-io --force-script-chrootless -i "$work"/debian/libacorn*[0-9]_*.deb \
        "$work"/debian/libacorn-dev_*.deb "$work"/debian/libacorn-doc_*.deb || return 1
    library_dir=$(dirname "$(find "$root/usr/lib" -name libacorn.so)")
    [ -e "$root/usr/share/doc/libacorn-doc/README.md" ] || return 1
    PKG_CONFIG_PATH=$library_dir/pkgconfig LD_LIBRARY_PATH=$library_dir
    export PKG_CONFIG_PATH LD_LIBRARY_PATH
    # shellcheck disable=SC2046
    cc "$here/consumer.c" -DCONSUMER_TLS -o "$work/by_debian" \
        $(pkg-config --cflags --libs acorn_http acorn_threads acorn_tls) && "$work/by_debian" | grep "$good"
}

vcpkg_port() { # the port's script, with vcpkg's functions as far as they matter here (vcpkg.cmake): there is no vcpkg
    rm -rf "$work/vcpkg" "$work/vcpkg-user" && "$python" -m json.tool "$tree/packaging/vcpkg/acorn/vcpkg.json" &&
        cmake -DPORT="$tree/packaging/vcpkg/acorn" -DWORK="$work/vcpkg" -P "$here/vcpkg.cmake" &&
        cmake -S "$here" -B "$work/vcpkg-user" -DCMAKE_PREFIX_PATH="$work/vcpkg/packages" &&
        cmake --build "$work/vcpkg-user" && "$work/vcpkg-user/consumer" | grep "$good"
}

abi() { # exported symbols and public types, and that a change is found
    rm -rf "$work/abi" && cmake -S "$tree" -B "$work/abi" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O2 -g" \
        -DACORN_TESTS=OFF && cmake --build "$work/abi" && "$python" tools/abi.py check "$work/abi" &&
        "$python" tools/abi.py seeded "$work/abi"
}

cases=${*:-versions dist abi meson_subproject meson_installed conan_static conan_shared debian_build debian_lintian
    debian_consumer vcpkg_port}
failed=
for each in $cases; do
    start=$(date +%s)
    if ($each) >"$work/$each.log" 2>&1; then
        echo "$each: good ($(($(date +%s) - start)) s)"
    else
        echo "FAILED: $each"
        tail -n 20 "$work/$each.log"
        failed="$failed $each"
    fi
done
echo "$(echo "$cases" | wc -w) packages' cases, failed:${failed:- none}"
[ -z "$failed" ]
