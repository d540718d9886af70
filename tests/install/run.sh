#!/bin/sh
# run.sh CASE PREFIX WORK CC CXX FLAGS SOURCE_DIR: one check of the installed library. Exit 77: a tool for it is
# missing.
set -eu
case=$1 prefix=$2 work=$3/$1 cc=$4 cxx=$5 flags=$6 source=$7
here=$source/tests/install
rm -rf "$work"
mkdir -p "$work"
cd "$work"
library_dir=$(dirname "$(find "$prefix" -name libacorn.a)")
strict="-Wall -Wextra -Wpedantic -Wshadow -Werror"

accepts() { # whether the compiler knows a standard
    echo 'int x;' > probe.c
    cp probe.c probe.cc
    "$@" -fsyntax-only 2>/dev/null
}

io_fails() { # the echo server ends with a message for a port that is none: it was built, linked and started
    "$@" no-port 2>io.txt
    grep -q 'the port is no number' io.txt
}

tls_fails() { # the same for the server of TLS, without arguments
    "$@" 2>tls.txt || :
    grep -q 'tls_hello PORT CHAIN KEY' tls.txt
}

# acorn_hook is refused under sanitizers that have libc's names, too.
shared_hook_runs() {
    case $flags in
    *-fsanitize=*address* | *-fsanitize=*thread*)
        "$@" 2>hook.txt && return 1
        grep -q 'link the static library' hook.txt ;;
    *) "$@" ;;
    esac
}

case $case in
headers) # every standard, release and debug, each option
    for options in "" "-DACO_DEBUG=1" "-DACO_CONFIG_SHARE_FPU_MXCSR_ENV" "-DACO_CONFIG_NO_INLINE" \
        "-mavx2 -fcf-protection"; do
        for std in c99 gnu99 c11 gnu11 c17 c2x; do
            if accepts "$cc" -std=$std probe.c; then
                # shellcheck disable=SC2086
                "$cc" $flags -std=$std $strict -Wstrict-prototypes $options -O1 -I"$prefix/include" \
                    -c "$here/consumer.c" -o consumer.o
            else
                echo "skipped: $cc has no -std=$std"
            fi
        done
        for std in c++11 c++14 c++17 c++20 c++23; do
            if accepts "$cxx" -std=$std probe.cc; then
                # shellcheck disable=SC2086
                "$cxx" $flags -std=$std $strict $options -O1 -I"$prefix/include" \
                    -x c++ -c "$here/consumer.c" -o consumer.o
            else
                echo "skipped: $cxx has no -std=$std"
            fi
        done
    done
    ;;
old) # C89 and C++98
    # shellcheck disable=SC2086
    for options in "-O0" "-O2" "-O2 -DACO_CONFIG_NO_INLINE"; do
        for std in c89 gnu89; do
            "$cc" $flags -std=$std -Wall -Wextra -Werror $options -I"$prefix/include" "$here/old.c" \
                "$library_dir/libacorn.a" -pthread -o old
            ./old
        done
        for std in c++98 gnu++98; do
            "$cxx" $flags -std=$std -Wall -Wextra -Werror $options -I"$prefix/include" -x c++ "$here/old.c" -x none \
                "$library_dir/libacorn.a" -pthread -o old
            ./old
        done
    done
    ;;
warnings) # about casts, which users may have on; the headers are no system headers here
    casts=
    for option in -Wold-style-cast -Wuseless-cast; do
        if accepts "$cxx" -Werror $option probe.cc; then casts="$casts $option"; fi
    done
    for include in "$prefix/include" "$prefix/share/acorn"; do
        for ending in h hpp; do
            (cd "$include" && find . -name "*.$ending" ! -path './aco/detail/*' ! -path './aco/arch/*' \
                ! -path './llhttp/*' ! -name aco_assert_override.h ! -name await.hpp ! -name sender.hpp \
                ! -name "async*.hpp" ! -name asio.hpp) | sort | sed 's/.*/#include "&"/' > every.$ending
        done
        printf '#define MINICORO_IMPL\n#include "every.h"\n' > every.c
        for options in "" "-DACO_DEBUG=1"; do
            # shellcheck disable=SC2086
            "$cxx" $flags -std=c++17 $strict -Wcast-qual $casts $options -O1 -I. -I"$include" -c "$here/warnings.cc"
            # shellcheck disable=SC2086
            "$cc" $flags -std=c99 $strict -Wcast-qual $options -O1 -I"$include" -c every.c "$here/consumer.c"
            printf '#include <coroutine>\n#ifdef __cpp_impl_coroutine\n#include "aco/async_io.hpp"\n#endif\n' > async.cc
            # shellcheck disable=SC2086
            if accepts "$cxx" -std=c++20 -include coroutine probe.cc; then
                "$cxx" $flags -std=c++20 $strict -Wcast-qual $casts $options -O1 -I"$include" -c async.cc
            fi
        done
        for asio in asio.hpp boost/asio.hpp; do # C++20, and not everywhere
            boost=$([ $asio = asio.hpp ] || echo -DACO_ASIO_BOOST)
            printf '#if __cplusplus < 202002L || !__has_include(<%s>)\n#error\n#endif\n' $asio >has_asio.cc
            # shellcheck disable=SC2086
            if "$cxx" $flags -std=c++20 -fsyntax-only has_asio.cc 2>/dev/null; then
                "$cxx" $flags -std=c++20 $strict -Wcast-qual $casts $boost -I"$include" -fsyntax-only \
                    -x c++ "$include/aco/asio.hpp"
            else
                echo "skipped: aco/asio.hpp: $cxx has no C++20, or $asio is not installed"
            fi
        done
    done
    ;;
pkg-config)
    command -v pkg-config >/dev/null || exit 77
    PKG_CONFIG_PATH=$library_dir/pkgconfig
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags "$here/consumer.c" -o shared $(pkg-config --cflags --libs acorn) -Wl,-rpath,"$library_dir"
    ldd shared | grep -q 'libacorn.so.'
    ./shared
    # shellcheck disable=SC2046,SC2086
    "$cxx" $flags -x c++ "$here/consumer.c" -x none -o static $(pkg-config --cflags acorn) \
        "$library_dir/libacorn.a" -pthread
    ./static
    pkg-config --exists acorn_io || exit 0
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags "$source/examples/io_echo.c" -o io $(pkg-config --cflags --libs acorn_io) -Wl,-rpath,"$library_dir"
    ldd io | grep -q 'libacorn_io.so.'
    io_fails ./io
    if pkg-config --exists acorn_hook; then # the program names no other library: that one finds what it needs
        # shellcheck disable=SC2046,SC2086
        "$cc" $flags "$here/hook.c" -o hook -Wl,--as-needed $(pkg-config --cflags --libs acorn_hook) \
            -Wl,-rpath,"$library_dir"
        ldd hook | grep -q 'libacorn_hook.so.0'
        shared_hook_runs ./hook
    fi
    if pkg-config --exists acorn_http; then
        # shellcheck disable=SC2046,SC2086
        "$cc" $flags "$source/examples/http_hello.c" -o http $(pkg-config --cflags --libs acorn_http) \
            -Wl,-rpath,"$library_dir"
        ldd http | grep -q 'libacorn_http.so.'
        io_fails ./http
    fi
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags "$source/examples/threads_tree.c" -o threads $(pkg-config --cflags --libs acorn_threads) \
        -Wl,-rpath,"$library_dir"
    ldd threads | grep -q 'libacorn_threads.so.'
    ./threads
    if pkg-config --exists acorn_sim; then
        # shellcheck disable=SC2046,SC2086
        "$cc" $flags "$source/examples/sim_pool.c" -o sim $(pkg-config --cflags --libs acorn_sim acorn_resilience) \
            -Wl,-rpath,"$library_dir"
        ldd sim | grep -q 'libacorn_sim.so.'
        ldd sim | grep -q 'libacorn_resilience.so.'
        ./sim
    fi
    pkg-config --exists acorn_tls || exit 0
    # shellcheck disable=SC2046,SC2086
    "$cc" $flags "$source/examples/tls_hello.c" -o tls $(pkg-config --cflags --libs acorn_tls) \
        -Wl,-rpath,"$library_dir"
    ldd tls | grep -q 'libacorn_tls.so.'
    tls_fails ./tls
    ;;
cmake)
    cmake -S "$here" -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
        -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags"
    cmake --build build
    build/consumer_c
    build/consumer_cxx
    [ ! -e build/consumer_io ] || io_fails build/consumer_io
    [ ! -e build/consumer_http ] || io_fails build/consumer_http
    [ ! -e build/consumer_acorn_hook ] || shared_hook_runs build/consumer_acorn_hook
    [ ! -e build/consumer_acorn_hook_static ] || build/consumer_acorn_hook_static
    build/consumer_threads
    [ ! -e build/consumer_sim ] || build/consumer_sim
    for lib in acorn_tls acorn_tls_static; do
        [ ! -e build/consumer_$lib ] || tls_fails build/consumer_$lib
    done
    ;;
subdirectory) # a project with this one inside: it keeps its build type, and installs what it wants
    mkdir parent fetching
    cat > parent/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(parent C)
add_subdirectory("$source" acorn)
add_executable(app "$here/consumer.c")
target_link_libraries(app acorn::acorn_static)
install(TARGETS app DESTINATION bin)
END
    sed "s|^add_subdirectory.*|include(FetchContent)\nFetchContent_Declare(acorn SOURCE_DIR \"$source\")\n\
FetchContent_MakeAvailable(acorn)|" parent/CMakeLists.txt > fetching/CMakeLists.txt
    for project in parent fetching; do
        (
            unset CMAKE_BUILD_TYPE
            cmake -S $project -B in_$project -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags"
        )
        grep '^CMAKE_BUILD_TYPE' in_$project/CMakeCache.txt
        grep -q '^CMAKE_BUILD_TYPE:STRING=$' in_$project/CMakeCache.txt || { echo "the build type was set"; exit 1; }
    done
    cmake --build in_parent --target app
    in_parent/app
    cmake --install in_parent --prefix "$PWD/installed"
    find installed -type f
    [ "$(find installed -type f)" = installed/bin/app ] || { echo "more than app was installed"; exit 1; }
    cmake -S parent -B in_parent -DACORN_INSTALL=ON
    grep -q 'acorn-config.cmake' in_parent/acorn/cmake_install.cmake
    ;;
amalgamation) # libaco's own build lines
    cp -r "$prefix"/share/acorn/* "$here/consumer.c" .
    for options in "" "-g -O2" "-O2 -DACO_CONFIG_SHARE_FPU_MXCSR_ENV" "-O3 -flto"; do
        case "$cc $options" in *clang*-flto*) options="$options -fuse-ld=lld" ;; esac
        # shellcheck disable=SC2086
        "$cc" $flags $options -I. acosw.S aco.c consumer.c -o app
        ./app
    done
    for std in c99 c2x c11; do
        # shellcheck disable=SC2086
        "$cc" $flags -O1 -std=$std $strict -I. -c aco.c
        # shellcheck disable=SC2086
        "$cc" $flags -O1 -std=$std $strict -I. aco.o consumer.c -o app
        ./app
    done
    for library in io http grpc threads sim resilience service debug tls hook; do
        # shellcheck disable=SC2086
        [ ! -e aco_$library.c ] || "$cc" $flags -O1 -std=c11 $strict -I. -c aco_$library.c
    done
    for example in "$source"/examples/*.c; do
        case $example in # they need another library
        *io_glib.c | *io_libuv.c | *io_redis.c | *io_postgres.c | *_curl.c) continue ;;
        esac
        "$cc" $flags -D_GNU_SOURCE -I. -fsyntax-only "$example"
    done
    if [ -e aco_io.c ]; then
        # shellcheck disable=SC2086
        "$cc" $flags -O1 -std=c11 $strict -I. aco.o aco_io.o "$source/examples/io_echo.c" -o app
        io_fails ./app
    fi
    if [ -e aco_hook.c ]; then
        # shellcheck disable=SC2086
        "$cc" $flags -O1 -std=c11 $strict -I. aco.o aco_io.o aco_hook.o "$here/hook.c" -o app
        ./app
    fi
    if [ -e aco_http.c ]; then
        # shellcheck disable=SC2086
        "$cc" $flags -O0 -w -c llhttp/renamed_api.c llhttp/renamed_llhttp.c
        # shellcheck disable=SC2086
        "$cc" $flags -O1 -std=c11 $strict -I. aco.o aco_io.o aco_http.o renamed_*.o "$source/examples/http_hello.c" \
            -o app
        io_fails ./app
    fi
    if [ -e aco_grpc.c ]; then # without HTTP/2 there is no server, but all names are there
        # shellcheck disable=SC2086
        "$cc" $flags -O1 -std=c11 $strict -I. aco.o aco_io.o aco_http.o aco_grpc.o renamed_*.o \
            "$source/examples/grpc/greeter.c" -o app
        io_fails ./app
    fi
    # shellcheck disable=SC2086
    "$cc" $flags -O1 -std=c11 $strict -I. aco.o aco_threads.o "$source/examples/threads_tree.c" -o app -pthread
    ./app
    if [ -e aco_tls.c ]; then
        # shellcheck disable=SC2086
        "$cc" $flags -O1 -std=c11 $strict -I. aco.o aco_io.o aco_tls.o "$source/examples/tls_hello.c" -o app -lssl \
            -lcrypto
        tls_fails ./app
    fi
    mkdir parts # a header that comes first under a condition would be missing where the condition does not hold
    printf '#ifndef ACO_X_H\n#define ACO_X_H\n#endif\n' > parts/x.h
    printf '#ifndef A\n#else\n#include "x.h"\n#endif\n' > parts/one.c
    printf '#include "x.h"\n' > parts/two.c
    awk -v root=parts -f "$source/tools/amalgamate.awk" -- parts/two.c parts/one.c > both.c
    if awk -v root=parts -f "$source/tools/amalgamate.awk" -- parts/one.c parts/two.c > both.c 2> refused.txt; then
        echo "a header under a condition was taken"
        exit 1
    fi
    grep -q '^amalgamate: two.c:1 includes x.h, which one.c:3 includes first, under "#ifdef A": ' refused.txt
    mkdir two # these two files are all that libaco's programs need; names of other headers are the program's
    cp aco.h aco.c two/
    cat > two/app.c <<'END'
#include "aco.h"
typedef struct aco_task { int x; } aco_task_t, aco_mutex_t, aco_channel_t, aco_generator_t;
enum { aco_spawn, aco_select, aco_scope_begin, aco_io_read, aco_pool_new, aco_backtrace };
static aco_task_t aco_sleep(int x)
{
    aco_task_t task = {x};
    return task;
}
static int aco_run(void) { return aco_sleep(aco_spawn).x; }
int main(void)
{
    aco_thread_init(NULL);
    return aco_get_co() != NULL || aco_run();
}
END
    # shellcheck disable=SC2086
    "$cc" $flags -O1 -Itwo two/aco.c two/app.c -o app
    ./app
    # shellcheck disable=SC2086
    "$cxx" $flags -fsyntax-only -Itwo -x c++ two/app.c
    if "$cxx" $flags -c aco.c -o aco.o 2> as_cpp.txt; then
        echo "aco.c compiled as C++"
        exit 1
    fi
    grep 'error' as_cpp.txt
    [ "$(grep -c 'error' as_cpp.txt)" -le 2 ] || exit 1 # the line itself may be quoted
    printf '#include "aco.h"\nstatic void *f(void *a) { return aco_yield_value(a); }\n%s\n' \
        'int main(void) { aco_t *c = aco_new(f, 0, 0); aco_send(c, 0); aco_send(c, 0); return !c->is_end; }' >fallback.c
    # shellcheck disable=SC2086
    "$cc" $flags -O2 -DACO_CONFIG_UCONTEXT -I. aco.c fallback.c -o app
    ./app
    cat > range.cc <<'END'
#include "aco/task.hpp"
int main()
{
    int sum = 0;
    for (int i : aco::generator<int>([](auto &yield) { yield(1); yield(2); }))
        sum += i;
    aco::spawn([&sum] { sum += aco::spawn([] { return 4; }).join(); });
    return aco_run() != 0 || sum != 7;
}
END
    # shellcheck disable=SC2086
    "$cc" $flags -O2 -c aco.c -o aco.o
    # shellcheck disable=SC2086
    "$cxx" $flags -std=c++17 -O2 -Wall -Wextra -Werror -I. range.cc aco.o -o range
    ./range
    readelf -lW app | grep GNU_STACK | grep -q 'RW ' || { echo "the stack is executable"; exit 1; }
    ;;
libaco_only) # a program that uses the other names itself
    cp -r "$prefix"/share/acorn/* .
    cp "$here/old.c" "$here/libaco_only.c" .
    cat > own.c <<'END'
#include "aco.h"
typedef struct aco_options { int x; } aco_options_t;
enum { aco_state = 3 };
#define ACO_API 1
int aco_new(int x), aco_run(void), aco_sleep(int x), aco_error_message;
int aco_new(int x) { return x; }
int aco_run(void) { return ACO_API; }
int aco_sleep(int x) { return x + aco_state; }
END
    names() { # what begins with aco_ or ACO_ and is not internal, one a line
        grep -oE '\b(aco|ACO)_[a-zA-Z0-9][A-Za-z0-9_]*' | sort -u
    }
    sed 's/#.*//' > wanted.txt <<'END'
ACO_CONFIG_LIBACO_ONLY
ACO_DEBUG
ACO_H
ACO_VERSION_MAJOR
ACO_VERSION_MINOR
ACO_VERSION_PATCH
aco_assert
aco_assertalloc_bool
aco_assertalloc_ptr
aco_assertptr
aco_co
aco_cofuncp_t
aco_create
aco_destroy
aco_exit
aco_exit1
aco_get_arg
aco_get_co
aco_is_main_co
aco_likely
aco_resume
aco_s
aco_save_stack_s
aco_save_stack_t
aco_share_stack_destroy
aco_share_stack_new
aco_share_stack_new2
aco_share_stack_s
aco_share_stack_t
aco_t
aco_thread_init
aco_unlikely
aco_yield
aco_yield1
END
    only="$flags -DACO_CONFIG_LIBACO_ONLY -DLIBACO_ONLY"
    echo '#include "aco.h"' > names.c
    # shellcheck disable=SC2086
    { "$cc" $only -E -dM -I. names.c | sed 's/^#define \([A-Za-z0-9_]*\).*/\1/'; "$cc" $only -E -P -I. names.c; } |
        names | grep -vE '_H$|^ACO_CONFIG|^LIBACO' > header.txt
    grep -vE '_H$|^ACO_CONFIG' wanted.txt | diff - header.txt
    for options in "-O0" "-O2" "-O2 -DACO_CONFIG_SHARE_FPU_MXCSR_ENV" "-O2 -DACO_CONFIG_NO_INLINE" \
        "-O2 -DACO_CONFIG_UCONTEXT" "-O2 -DACO_DEBUG=1 -fPIC"; do
        # shellcheck disable=SC2086
        "$cc" $only $options -Wall -Wextra -Werror -c aco.c -o aco.o
        for program in "own.c old.c" libaco_only.c; do
            # shellcheck disable=SC2086
            "$cc" $only $options -Wall -Wextra -Werror -I. $program aco.o -pthread -o app
            ./app
        done
    done
    # shellcheck disable=SC2086
    "$cc" $only -std=c99 $strict -Wcast-qual -I. -c aco.c
    for std in gnu89 "c99 -Wpedantic" "gnu++98 -x c++"; do
        case $std in *++*) compiler=$cxx ;; *) compiler=$cc ;; esac
        # shellcheck disable=SC2086
        "$compiler" $only -std=$std -Wall -Wextra -Wcast-qual -Werror -I. own.c "$here/old.c" -x none aco.o -pthread \
            -o app
        ./app
    done
    case $flags in *-fsanitize*) exit 0 ;; esac # the whole of aco.c
    # shellcheck disable=SC2086
    "$cc" $only -O2 -fno-lto -c aco.c -o aco.o
    nm --extern-only --defined-only aco.o | names > object.txt
    cat object.txt
    [ -z "$(comm -13 wanted.txt object.txt)" ] || { comm -13 wanted.txt object.txt; exit 1; }
    size aco.o
    case "$("$cc" -dumpmachine) $flags" in x86_64-*' ' | x86_64-*' -O'[0-2]' -g') most=16384 ;; *) most=20480 ;; esac
    [ "$(size aco.o | awk 'NR == 2 { print $1 }')" -le "$most" ]
    ;;
plugin) # a C program that loads a C++ library, for itself alone: the unwinder that this one brings is found
    cat > host.c <<'END'
#include <aco.h>
#include <dlfcn.h>
int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL,
         *symbol = library ? dlsym(library, "plugin") : NULL;
    int (*plugin)(void);
    aco_thread_init(NULL);
    memcpy(&plugin, &symbol, sizeof plugin);
    return symbol ? plugin() : 2;
}
END
    cat > plugin.cc <<'END'
#include <aco/generator.h>
static int destroyed;
struct object {
    ~object() { destroyed++; }
};
ACO_GENERATOR(elements, y, arg)
{
    object o;
    for (;;)
        aco_generate(y, arg);
}
static void *suspended(void *arg)
{
    object o;
    aco_yield();
    return arg;
}
extern "C" int plugin(void)
{
    aco_generator_t g;
    aco_t *co = aco_new(suspended, NULL, NULL);
    aco_send(co, NULL);
    if (aco_generator_open(&g, elements, NULL, NULL) != 0 || !aco_generator_next(&g))
        return 3;
    aco_generator_close(&g);
    return aco_cancel(co) != 0 || destroyed != 2;
}
END
    # shellcheck disable=SC2086
    "$cc" $flags -I"$prefix/include" host.c -o host -L"$library_dir" -lacorn -ldl -Wl,-rpath,"$library_dir"
    # shellcheck disable=SC2086
    "$cxx" $flags -O2 -shared -fPIC -I"$prefix/include" plugin.cc -o plugin.so -L"$library_dir" -lacorn \
        -Wl,-rpath,"$library_dir"
    ./host ./plugin.so
    # A plugin with the static library in it, in C (g++'s stay loaded anyway): closed before its threads end.
    cat > static.c <<'END'
#include <aco.h>
static void *suspended(void *arg)
{
    aco_yield();
    return arg;
}
int plugin(void)
{
    aco_t *co = aco_new(suspended, NULL, NULL);
    aco_send(co, NULL);
    aco_send(co, NULL);
    return aco_destroy(co), 0;
}
END
    cat > closing.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
static void *use(void *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = library ? dlsym(library, "plugin") : NULL;
    int (*plugin)(void);
    memcpy(&plugin, &symbol, sizeof plugin);
    return symbol && plugin() == 0 && dlclose(library) == 0 ? path : NULL;
}
int main(int argc, char **argv)
{
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *result;
        if (argc != 2 || pthread_create(&thread, NULL, use, argv[1]) != 0 || pthread_join(thread, &result) != 0 ||
            !result)
            return 1;
    }
    return !use(argv[1]);
}
END
    # shellcheck disable=SC2086
    "$cc" $flags closing.c -o closing -ldl -pthread
    # shellcheck disable=SC2086
    "$cc" $flags -shared -fPIC -I"$prefix/include" static.c -o static.so "$library_dir/libacorn.a" -pthread
    ./closing ./static.so
    ;;
rust) # a panic stays inside, a cancellation runs destructors; catch_unwind around a yield stops it with a message
    case "$flags" in *-m32* | *-fsanitize* | *-flto*) echo "skipped: rustc cannot link this build"; exit 77 ;; esac
    command -v rustc >/dev/null || exit 77
    rustc -C opt-level=1 "$here/coroutine.rs" -L "$library_dir" -l static=acorn -o coroutine || exit 1
    ./coroutine > right.txt
    printf '10\n-1\n30\ndropped: right\ncancel: 0, state 4\n' | diff - right.txt
    if ./coroutine wrong > wrong.txt 2> message.txt; then
        echo "the cancellation went through catch_unwind"
        exit 1
    fi
    grep 'did not throw its cancellation again' message.txt
    ;;
ffi) # exported symbols, called by a language that knows nothing of the header
    case "$flags" in *-m32* | *-fsanitize*) echo "skipped: Python cannot load this build"; exit 77 ;; esac
    command -v python3 >/dev/null || exit 77
    "$cc" -O2 -shared -fPIC -DACO_CONFIG_NO_INLINE -I"$prefix/include" "$here/ffi_entry.c" -o libentry.so \
        -L"$library_dir" -lacorn -Wl,-rpath,"$library_dir"
    python3 "$here/ffi.py" "$library_dir/libacorn.so" ./libentry.so
    ;;
esac
