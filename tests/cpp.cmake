# <aco.hpp>: in every standard from C++17 that the compiler knows; in C++20 also as a debug build. cpp_plain also checks
# -fno-exceptions, libc++ and -m32: it needs no Google Test, which is built for one word size and one standard library.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "-stdlib=libc++ -Werror") # where it is the only one, clang calls the option unused
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  check_cxx_source_compiles("#include <string>
#include <vector>
int main(int n, char **v) { return std::vector<std::string>(v, v + n).size() > 9; }" ACORN_HAVE_LIBCXX)
endif()
unset(CMAKE_REQUIRED_FLAGS)

# Linked last, so that its option comes after the tests' -fexceptions.
add_library(acorn_no_exceptions INTERFACE)
target_compile_options(acorn_no_exceptions INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
target_compile_definitions(acorn_no_exceptions INTERFACE WITHOUT_EXCEPTIONS)
add_library(acorn_libcxx INTERFACE)
target_compile_options(acorn_libcxx INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-stdlib=libc++>)
target_link_options(acorn_libcxx INTERFACE -stdlib=libc++)

# Coroutines of C++20, for aco/await.hpp: clang 14 does not know them by this name.
set(CMAKE_REQUIRED_FLAGS "-std=c++20")
check_cxx_source_compiles("#include <coroutine>
#include <concepts>
#ifndef __cpp_impl_coroutine
#error
#endif
int main() { return std::coroutine_handle<>() ? 1 : 0; }" ACORN_HAVE_COROUTINES)
unset(CMAKE_REQUIRED_FLAGS)

# Frames with an alignment of their own.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-fcoro-aligned-allocation ACORN_HAVE_ALIGNED_FRAMES)
endif()
add_library(acorn_aligned_frames INTERFACE)
target_compile_options(acorn_aligned_frames INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fcoro-aligned-allocation>)
target_compile_definitions(acorn_aligned_frames INTERFACE ALIGNED_FRAMES)

# cpp_no_memory defines malloc(), which glibc then uses too.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize" AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-static")
  check_cxx_source_compiles("#include <cstddef>
extern \"C\" void *__libc_malloc(std::size_t);
int main() { return __libc_malloc(1) == nullptr; }" ACORN_MALLOC_REPLACED)
endif()

# acorn_cpp_test(NAME SOURCE STANDARD [DEFINE ...] [LINK ...])
function(acorn_cpp_test name source standard)
  cmake_parse_arguments(arg "" "" "DEFINE;LINK" ${ARGN})
  string(REPLACE "." "_" target "test_${name}")
  acorn_test(${name} ${source} DEFINE ${arg_DEFINE} TIMEOUT 300 LINK ${arg_LINK})
  set_target_properties(${target} PROPERTIES CXX_STANDARD ${standard} CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endfunction()

set(cpp_full cpp_coroutine cpp_generator cpp_exceptions cpp_cancel cpp_catch_blocks cpp_task cpp_task_sync)
set(io_of_sim)
set(sim_with_io)
if(TARGET acorn_io_static)
  set(io_of_sim acorn_io_static)
  set(sim_with_io WITH_IO)
endif()
foreach(standard 17 20 23)
  if(NOT "cxx_std_${standard}" IN_LIST CMAKE_CXX_COMPILE_FEATURES OR NOT standard IN_LIST ACORN_STANDARDS)
    continue()
  endif()
  if(ACORN_CXX_FULL AND GTest_FOUND)
    foreach(subject IN LISTS cpp_full)
      acorn_cpp_test(${subject}.${standard} ${subject}.cpp ${standard} DEFINE ACO_DEBUG=0 LINK GTest::gtest_main)
    endforeach()
    if(TARGET acorn_tls_static)
      acorn_cpp_test(cpp_tls.${standard} cpp_tls.cpp ${standard} DEFINE ACO_DEBUG=0 LINK GTest::gtest_main
          acorn_tls_static OpenSSL::SSL)
    endif()
    foreach(library debug grpc hook io service threads)
      if(TARGET acorn_${library}_static)
        acorn_cpp_test(cpp_${library}.${standard} cpp_${library}.cpp ${standard} DEFINE ACO_DEBUG=0
            LINK GTest::gtest_main acorn_${library}_static)
      endif()
    endforeach()
    if(TARGET acorn_http_static)
      set(tls_of_http)
      if(TARGET acorn_tls_static)
        set(tls_of_http acorn_tls_static OpenSSL::SSL)
      endif()
      acorn_cpp_test(cpp_http.${standard} cpp_http.cpp ${standard} DEFINE ACO_DEBUG=0
          $<$<BOOL:${tls_of_http}>:HTTP_WITH_TLS> LINK GTest::gtest_main acorn_http_static ${tls_of_http})
    endif()
    if(TARGET acorn_sim_static)
      acorn_cpp_test(cpp_sim.${standard} cpp_sim.cpp ${standard} DEFINE ACO_DEBUG=0 ${sim_with_io} LINK
          GTest::gtest_main acorn_sim_static ${io_of_sim})
      acorn_cpp_test(cpp_resilience.${standard} cpp_resilience.cpp ${standard} DEFINE ACO_DEBUG=0 LINK
          GTest::gtest_main acorn_resilience_static acorn_sim_static)
    endif()
    if(ACORN_HAVE_COROUTINES AND standard EQUAL 20)
      acorn_cpp_test(cpp_await.20 cpp_await.cpp 20 DEFINE ACO_DEBUG=0 LINK GTest::gtest_main)
      if(ACORN_HAVE_ALIGNED_FRAMES)
        acorn_cpp_test(cpp_await.aligned cpp_await.cpp 20 DEFINE ACO_DEBUG=0 LINK GTest::gtest_main
            acorn_aligned_frames)
      endif()
      if(TARGET acorn_io_static AND TARGET acorn_sim_static)
        acorn_cpp_test(cpp_async.20 cpp_async.cpp 20 DEFINE ACO_DEBUG=0 LINK GTest::gtest_main acorn_sim_static
            acorn_io_static)
      endif()
    endif()
  endif()
  acorn_cpp_test(cpp_plain.${standard} cpp_plain.cpp ${standard})
  acorn_cpp_test(cpp_handlers.${standard} cpp_handlers.cpp ${standard})
  acorn_cpp_test(cpp_handlers_model.${standard} cpp_handlers_model.cpp ${standard})
  if(ACORN_MALLOC_REPLACED)
    acorn_cpp_test(cpp_no_memory.${standard} cpp_no_memory.cpp ${standard})
  endif()
  acorn_cpp_test(cpp_plain.${standard}.no_exceptions cpp_plain.cpp ${standard} LINK acorn_no_exceptions)
  if(ACORN_HAVE_LIBCXX)
    acorn_cpp_test(cpp_plain.${standard}.libcxx cpp_plain.cpp ${standard} LINK acorn_libcxx)
    acorn_cpp_test(cpp_handlers.${standard}.libcxx cpp_handlers.cpp ${standard} LINK acorn_libcxx)
    acorn_cpp_test(cpp_plain.${standard}.libcxx_no_exceptions cpp_plain.cpp ${standard} LINK acorn_no_exceptions
        acorn_libcxx)
  endif()
endforeach()
# <aco/asio.hpp>, by Debian's libasio-dev and libboost-dev. They compile slowly.
if(ACORN_CXX_FULL AND GTest_FOUND AND TARGET acorn_io_static AND "cxx_std_20" IN_LIST CMAKE_CXX_COMPILE_FEATURES AND
    (ACORN_TESTS_ONCE OR CMAKE_C_FLAGS MATCHES "-fsanitize=(address|thread)") AND NOT CMAKE_CROSSCOMPILING)
  find_path(ACORN_ASIO_INCLUDE asio.hpp)
  find_path(ACORN_BOOST_INCLUDE boost/beast/http.hpp)
  if(ACORN_ASIO_INCLUDE)
    acorn_cpp_test(cpp_asio cpp_asio.cpp 20 DEFINE ACO_DEBUG=0 LINK GTest::gtest_main acorn_io_static
                   acorn_threads_static)
  else()
    message(STATUS "skipped: cpp_asio: asio.hpp is not installed")
  endif()
  if(NOT ACORN_BOOST_INCLUDE)
    message(STATUS "skipped: cpp_asio.boost, cpp_beast: boost/beast/http.hpp is not installed")
  elseif(ACORN_TESTS_ONCE)
    acorn_cpp_test(cpp_asio.boost cpp_asio.cpp 20 DEFINE ACO_DEBUG=0 ACO_ASIO_BOOST LINK GTest::gtest_main)
    acorn_cpp_test(cpp_beast cpp_beast.cpp 20 DEFINE ACO_DEBUG=0 LINK GTest::gtest_main)
  endif()
endif()
if(ACORN_CXX_FULL AND ACORN_CXX_DEBUG AND "debug" IN_LIST ACORN_VARIANTS AND GTest_FOUND AND "cxx_std_20" IN_LIST
    CMAKE_CXX_COMPILE_FEATURES)
  foreach(subject IN LISTS cpp_full)
    acorn_cpp_test(${subject}.debug ${subject}.cpp 20 DEFINE ACO_DEBUG=1 LINK GTest::gtest_main)
  endforeach()
  if(TARGET acorn_io_static)
    acorn_cpp_test(cpp_io.debug cpp_io.cpp 20 DEFINE ACO_DEBUG=1 LINK GTest::gtest_main acorn_io_static)
  endif()
  if(TARGET acorn_sim_static)
    acorn_cpp_test(cpp_sim.debug cpp_sim.cpp 20 DEFINE ACO_DEBUG=1 ${sim_with_io} LINK GTest::gtest_main
        acorn_sim_static ${io_of_sim})
  endif()
  acorn_cpp_test(cpp_threads.debug cpp_threads.cpp 20 DEFINE ACO_DEBUG=1 LINK GTest::gtest_main acorn_threads_static)
endif()
