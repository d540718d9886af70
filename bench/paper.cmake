# The programs of bench/run_paper.py that bench/run.py does not run.

# Compiles the library's sources into a target, with the library's own options.
function(compile_acorn target)
  set(sources ${acorn_sources} ${acorn_own_sources})
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/)
  target_sources(${target} PRIVATE ${sources})
  target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:acorn_objects,INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:acorn_objects,COMPILE_DEFINITIONS>)
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:acorn_objects,COMPILE_OPTIONS>)
endfunction()

# ---- the cost of Boost's coroutine, step by step: each program has one change more than the one before ----
if(Boost_FOUND AND boost_context_library)
  foreach(step asserting O3 flat)
    bench_program(native-boost_generators-${step} SOURCES peers/boost_generators.cpp
                  LIBRARIES Boost::boost ${boost_context_library})
  endforeach()
  bench_program(native-boost_direct SOURCES peers/boost_direct.cpp LIBRARIES Boost::boost ${boost_context_library})
  target_compile_options(native-boost_generators-asserting PRIVATE -UNDEBUG)
  target_compile_options(native-boost_generators-O3 PRIVATE -O3)
  target_compile_options(native-boost_generators-flat PRIVATE -O3)
  target_compile_definitions(native-boost_generators-flat PRIVATE NATIVE_FLAT)
  target_compile_options(native-boost_direct PRIVATE -O3)
  target_compile_definitions(native-boost_direct PRIVATE NATIVE_FLAT)
endif()

# ---- write_fully() ----
bench_program(native-write_fully SOURCES write_fully.c LIBRARIES acorn_static)
bench_program(native-write_fully_exported SOURCES write_fully.c LIBRARIES acorn_static
              DEFINITIONS ACO_CONFIG_NO_INLINE)
bench_program(native-write_fully_returns SOURCES write_fully.c LIBRARIES acorn_static DEFINITIONS TASKS_RETURNS)
bench_program(native-write_fully_classic SOURCES write_fully.c DEFINITIONS TASKS_CLASSIC)
bench_program(native-write_fully_classic_ret SOURCES write_fully.c DEFINITIONS TASKS_CLASSIC CLASSIC_RET)
bench_program(native-write_fully_cpp20 SOURCES peers/write_fully_cpp20.cpp)
if(Boost_FOUND AND boost_context_library)
  bench_program(native-write_fully_boost SOURCES peers/boost_write_fully.cpp
                LIBRARIES Boost::boost ${boost_context_library})
endif()

# ---- yield() ----
bench_program(native-paper_yield SOURCES paper_yield.c LIBRARIES acorn_static)
bench_program(native-paper_yield_ret SOURCES paper_yield.c LIBRARIES acorn_static DEFINITIONS CLASSIC_RET)
bench_program(native-scheduler-exported SOURCES scheduler.c LIBRARIES acorn_static DEFINITIONS ACO_CONFIG_NO_INLINE)
bench_program(native-scheduler-small SOURCES scheduler.c LIBRARIES acorn_static DEFINITIONS RING_STACK=4096)

# The library as ACORN_STACK_COLOURS=OFF builds it.
add_library(acorn_uncoloured STATIC)
compile_acorn(acorn_uncoloured)
set_target_properties(acorn_uncoloured PROPERTIES POSITION_INDEPENDENT_CODE ON C_STANDARD 11 C_VISIBILITY_PRESET hidden)
target_compile_definitions(acorn_uncoloured PRIVATE ACO_CONFIG_NO_COLOUR PUBLIC ${acorn_definitions})
target_include_directories(acorn_uncoloured PUBLIC ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(acorn_uncoloured PUBLIC Threads::Threads)
bench_program(native-scheduler-uncoloured SOURCES scheduler.c LIBRARIES acorn_uncoloured)

# ---- the HTTP and the RPC client ----
include(${PROJECT_SOURCE_DIR}/cmake/llhttp.cmake)
set(ACORN_COROSENSEI "" CACHE FILEPATH "libcorosensei_tasks.a, which cargo builds from peers/corosensei")
set(ACORN_APN ${PROJECT_SOURCE_DIR}/build/apn/apn.so CACHE FILEPATH "The compiler helper (make apn)")
bench_program(native-clients SOURCES clients/clients.c LIBRARIES acorn_static llhttp)
bench_program(native-clients_exported SOURCES clients/clients.c LIBRARIES acorn_static llhttp
              DEFINITIONS ACO_CONFIG_NO_INLINE)
bench_program(native-clients_returns SOURCES clients/clients.c LIBRARIES acorn_static llhttp DEFINITIONS TASKS_RETURNS)
bench_program(native-clients_classic SOURCES clients/clients.c LIBRARIES llhttp DEFINITIONS TASKS_CLASSIC)
bench_program(native-clients_classic_ret SOURCES clients/clients.c LIBRARIES llhttp
              DEFINITIONS TASKS_CLASSIC CLASSIC_RET)
if(Boost_FOUND AND boost_context_library)
  bench_program(native-clients_boost SOURCES peers/boost_clients.cpp
                LIBRARIES llhttp Boost::boost ${boost_context_library})
endif()
if(ACORN_COROSENSEI AND EXISTS "${ACORN_COROSENSEI}")
  bench_program(native-clients_corosensei SOURCES clients/clients.c LIBRARIES llhttp ${ACORN_COROSENSEI} gcc_s
                DEFINITIONS TASKS_COROSENSEI)
endif()
if(EXISTS "${ACORN_APN}" AND CMAKE_C_COMPILER_ID STREQUAL "Clang"
   AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 19)
  foreach(form apn apn-returns)
    bench_program(native-clients-${form} SOURCES clients/clients.c LIBRARIES acorn_static llhttp)
    target_compile_options(native-clients-${form} PRIVATE -fplugin=${ACORN_APN} -fpass-plugin=${ACORN_APN})
  endforeach()
  target_compile_options(native-clients-apn-returns PRIVATE "SHELL:-mllvm -apn-returns=mixed")
  set(CMAKE_REQUIRED_LINK_OPTIONS -fuse-ld=lld)
  check_c_source_compiles("int main(void) { return 0; }" ACORN_HAS_LLD)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()

# The clients, the parser and the library as one program at link time, without the helper and with it.
if(ACORN_HAS_LLD)
  set_source_files_properties(${llhttp_sources} PROPERTIES COMPILE_OPTIONS -w)
  foreach(form lto apn-lto)
    set(program native-clients-${form})
    bench_program(${program} SOURCES clients/clients.c ${llhttp_sources} LIBRARIES Threads::Threads)
    compile_acorn(${program})
    target_include_directories(${program} SYSTEM PRIVATE ${llhttp_include})
    target_compile_options(${program} PRIVATE -flto)
    target_link_options(${program} PRIVATE -flto -fuse-ld=lld)
  endforeach()
  target_compile_options(native-clients-apn-lto PRIVATE -fpass-plugin=${ACORN_APN})
  target_link_options(native-clients-apn-lto PRIVATE -Wl,--load-pass-plugin=${ACORN_APN})
endif()
