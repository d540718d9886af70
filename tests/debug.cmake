# A look inside (src/debug), where acorn_debug is.
if(NOT TARGET acorn_debug)
  return()
endif()
acorn_variant_tests(debug_pages TIMEOUT 200 ARGS secret LINK acorn_debug_static Threads::Threads)
acorn_variant_tests(debug_spans TIMEOUT 60 LINK acorn_debug_static acorn_threads_static Threads::Threads)
if(TARGET acorn_grpc)
  acorn_variant_tests(debug_grpc TIMEOUT 60 LINK acorn_debug_static acorn_grpc_static Threads::Threads)
endif()

# ACO_DEBUG where nothing calls the library's server.
acorn_test(debug_environment.static debug_environment.c TIMEOUT 30 LINK acorn_debug_static Threads::Threads)
if(NOT CMAKE_C_FLAGS MATCHES "-fsanitize=")
  acorn_test(debug_environment.dlopen debug_environment.c DEFINE WITH_DLOPEN TIMEOUT 30 ARGS $<TARGET_FILE:acorn_debug>
             LINK ${CMAKE_DL_LIBS})
  add_executable(test_debug_environment_preload debug_environment.c)
  set_target_properties(test_debug_environment_preload PROPERTIES C_STANDARD 11)
  target_compile_definitions(test_debug_environment_preload PRIVATE WITH_PRELOAD)
  target_link_libraries(test_debug_environment_preload PRIVATE acorn acorn_warnings Threads::Threads)
  add_test(NAME debug_environment.preload COMMAND test_debug_environment_preload $<TARGET_FILE:acorn_debug>)
  set_tests_properties(debug_environment.preload PROPERTIES TIMEOUT 30)
endif()

# A program with problems (docs/see-inside.md).
add_executable(debug_problems debug/problems.c)
set_target_properties(debug_problems PROPERTIES C_STANDARD 11)
target_link_libraries(debug_problems PRIVATE acorn_tests acorn_debug_static Threads::Threads)
target_compile_options(debug_problems PRIVATE -g1)

# What Prometheus' parser and `go tool pprof` make of them. Go compiles pprof at its first use.
if(IO_PYTHON AND ACORN_TESTS_ONCE AND NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize=")
  find_program(DEBUG_GO go)
  find_program(DEBUG_PROMETHEUS prometheus)
  add_test(NAME debug.readers COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/debug/readers.py
           ${PROJECT_BINARY_DIR}/prometheus-venv $<TARGET_FILE:test_debug_pages_release>
           "$<$<BOOL:${DEBUG_GO}>:${DEBUG_GO}>" "$<$<BOOL:${DEBUG_PROMETHEUS}>:${DEBUG_PROMETHEUS}>")
  set_tests_properties(debug.readers PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
endif()

# perf's samples with tasks' names.
if(IO_PYTHON AND ACORN_TESTS_ONCE AND NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize=")
  add_test(NAME debug.perf COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/debug/perf.py $<TARGET_FILE:debug_problems>)
  set_tests_properties(debug.perf PROPERTIES TIMEOUT 100 SKIP_RETURN_CODE 77)
endif()

# The live page, in Chromium if it is here.
if(IO_PYTHON AND ACORN_TESTS_ONCE AND NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize=")
  find_program(DEBUG_NODE node)
  find_program(DEBUG_CHROMIUM NAMES chromium-headless-shell chromium)
  add_test(NAME debug.page COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/debug/page.py $<TARGET_FILE:debug_problems>
           "$<$<BOOL:${DEBUG_NODE}>:${DEBUG_NODE}>" "$<$<BOOL:${DEBUG_CHROMIUM}>:${DEBUG_CHROMIUM}>")
  set_tests_properties(debug.page PROPERTIES TIMEOUT 600)
endif()
