#!/bin/sh
# setup.sh GROUP...: installs what the groups need and this machine lacks. On Debian and its like, as root; elsewhere it
# says exactly what to install and goes on: what is missing is then skipped by name where it would have been used.
set -u

packages() {
    case $1 in
    demo) echo gcc g++ make cmake ninja-build ;;
    test) echo gcc g++ make cmake ninja-build ccache python3 binutils pkg-config libgtest-dev valgrind gdb \
        systemtap-sdt-dev clang-19 lld-19 llvm-19 libclang-rt-19-dev libc++-19-dev libc++abi-19-dev lldb-19 \
        python3-lldb-19 socat redis-tools liburing-dev libuv1-dev libglib2.0-dev libexpat1-dev strace libssl-dev \
        zlib1g-dev libbrotli-dev libnghttp2-dev protobuf-compiler libprotobuf-dev libprotoc-dev libasio-dev \
        libboost-dev openssl curl tinyproxy-bin python3-websockets python3-websocket libjemalloc-dev \
        libtcmalloc-minimal4 libmimalloc2.0 ;;
    # and from PyPI bindings/zig/requirements.txt
    languages) echo gcc g++ make cmake ninja-build python3 python3-venv cargo golang-go lua5.4 liblua5.4-dev ;;
    # What hooks on libc (tests/hook.cmake) and the HTTP server are tested with; without them those tests are skipped.
    clients) echo gcc redis-server libhiredis-dev postgresql libpq-dev mariadb-server libmariadb-dev \
        libcurl4-openssl-dev libsqlite3-dev strace nghttp2-client nghttp2-server nginx-light bind9-dnsutils \
        libgoogle-perftools4 libtbbmalloc2 electric-fence libdmalloc5 nanopb libnanopb-dev ;;
    matrix) echo gcc-12-multilib g++-12-multilib clang-14 ;; # the matrix's other rows
    lint) echo gcc clang-tidy-19 clang-format-19 cppcheck libssl-dev ;;
    apn) echo cmake ninja-build clang-19 lld-19 llvm-19-dev llvm-19-tools python3 ;;
    fuzz) echo gcc g++ make cmake ninja-build clang-19 libclang-rt-19-dev libssl-dev ;;
    bench) echo gcc g++ make cmake ninja-build python3 python3-matplotlib clang-19 lld-19 libboost-context-dev \
        libboost-coroutine-dev libboost-fiber-dev golang-go libgoogle-perftools-dev libjemalloc-dev liburing-dev \
        libasio-dev libuv1-dev libtbb-dev fio ;;
    bench-http) echo nginx-light wrk nghttp2-client nghttp2-server openssl libssl-dev nodejs ;;
    bench-grpc) echo nghttp2-client libnghttp2-dev libgrpc++-dev protobuf-compiler protobuf-compiler-grpc \
        libprotobuf-dev libprotoc-dev ;;
    paper) packages apn; echo valgrind mono-mcs mono-runtime ;;
    # A cross compiler for C++ brings the one for C and both libraries. ziglang, from PyPI, is tools/platforms/run.py's
    # business.
    platforms-quick) echo gcc g++ cmake ninja-build python3 python3-venv llvm-19 qemu-user wine64 \
        g++-mingw-w64-x86-64-posix \
        g++-12-aarch64-linux-gnu g++-12-arm-linux-gnueabihf g++-12-riscv64-linux-gnu g++-12-powerpc64le-linux-gnu \
        g++-12-s390x-linux-gnu ;;
    packages) echo gcc cmake ninja-build python3 python3-venv binutils pkg-config git libssl-dev liburing-dev \
        zlib1g-dev libbrotli-dev libnghttp2-dev \
        dpkg-dev debhelper lintian fakeroot abigail-tools ;; # and from PyPI packaging/requirements.txt
    site) echo python3 python3-venv ;; # and from PyPI site/requirements.txt
    litmus) echo gcc python3 ;;
    prove-model) echo gcc python3 python3-venv ;; # and from PyPI what the Makefile says
    # What the provers import is from PyPI, into build/prove/venv (below).
    prove-quick) echo gcc g++ python3 python3-venv clang-19 lld-19 llvm-19 gcc-12-multilib g++-12-multilib ;;
    prove) packages prove-quick; echo g++-12-aarch64-linux-gnu g++-12-arm-linux-gnueabihf g++-12-riscv64-linux-gnu \
        g++-12-powerpc64le-linux-gnu g++-12-s390x-linux-gnu ;;
    platforms) packages platforms-quick
        echo clang-19 lld-19 libgtest-dev gcc-12-multilib g++-12-multilib musl binutils gdb-multiarch ;;
    *) echo "setup: no group named $1" >&2; exit 2 ;;
    esac
}

have() {
    case $1 in # a tool that came by another way than the package manager is as good
    gcc | g++ | make | cmake | python3 | gdb | valgrind) command -v "$1" >/dev/null ;;
    ninja-build) command -v ninja >/dev/null ;;
    cargo) command -v cargo >/dev/null ;;
    golang-go) command -v go >/dev/null ;;
    nodejs) command -v node >/dev/null ;;
    *) dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' ;;
    esac
}

missing=
for group; do
    for package in $(packages "$group"); do
        have "$package" || case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
    done
    [ "$group" != bench ] || have cargo || missing="$missing cargo"
done

# What gcc-multilib would bring for -m32 besides compilers, and that package keeps the cross compilers away.
link_asm() {
    [ -e /usr/include/asm ] || [ ! -d /usr/include/x86_64-linux-gnu/asm ] ||
        ln -s x86_64-linux-gnu/asm /usr/include/asm 2>/dev/null || :
}
# A list of PyPI's packages into FOLDER/venv, once for each state of the list.
python_packages() { # FOLDER LIST
    folder=$1/venv wanted=$2
    cmp -s $wanted $folder/installed && return
    python=$(test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)
    mkdir -p "$1"
    if $python -m venv $folder >$1/setup.log 2>&1 &&
        $folder/bin/python -m pip install -r $wanted >>$1/setup.log 2>&1; then
        cp $wanted $folder/installed
    else
        echo "setup: could not install what $wanted names (log: $1/setup.log)" >&2
    fi
}
# libunwind, for the tests that walk by it, is unpacked and not installed: its package and the unwinder of libc++-19-dev
# exclude each other, and each set-up would install the one and remove the other.
unpack_libunwind() {
    folder=build/libunwind
    [ ! -e $folder/done ] && command -v apt-get >/dev/null && command -v dpkg >/dev/null || return
    mkdir -p $folder
    (cd $folder && apt-get download libunwind-dev libunwind8 &&
        for each in *.deb; do dpkg -x "$each" . || exit 1; done && touch done) \
        >build/libunwind.log 2>&1 || echo "setup: could not get libunwind (log: build/libunwind.log)" >&2
}
at_end() {
    link_asm
    case " $groups " in *" test "*) unpack_libunwind ;; esac
    case " $groups " in *" prove-quick "* | *" prove "*)
        python_packages build/prove verification/proofs/requirements.txt ;; esac
    case " $groups " in *" packages "*) python_packages build/packages packaging/requirements.txt ;; esac
    case " $groups " in *" languages "*) python_packages build/zig bindings/zig/requirements.txt ;; esac
    case " $groups " in *" site "*) python_packages build/site-tools site/requirements.txt ;; esac
}
groups=$*
trap at_end EXIT
[ -n "$missing" ] || exit 0

if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "setup: installing$missing"
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    apt-get update >"$log" 2>&1
    # shellcheck disable=SC2086
    if ! apt-get install -y --no-install-recommends $missing >>"$log" 2>&1; then
        # a package that cannot be installed must not keep the others away
        for package in $missing; do
            apt-get install -y --no-install-recommends "$package" >>"$log" 2>&1 ||
                echo "setup: could not install $package (log: $log)" >&2
        done
    fi
else
    {
        echo "setup: not installed here, and this is not a Debian-like system with root rights:"
        echo "    $missing"
        echo "setup: to install them:  sudo apt-get update && sudo apt-get install -y$missing"
        echo "setup: going on with what there is"
    } >&2
fi
exit 0
