# Simulation (src/sim): Linux.
find_program(SIM_PYTHON NAMES python3)
acorn_variant_tests(sim sim_failing sim_history sim_process LINK acorn_sim_static)
acorn_variant_tests(sim_closed LINK acorn_sim_static Threads::Threads)
foreach(variant IN LISTS acorn_two_variants)
  if(TARGET acorn_io)
    foreach(subject sim_failing sim_process)
      target_compile_definitions(test_${subject}_${variant} PRIVATE WITH_IO)
      target_link_libraries(test_${subject}_${variant} PRIVATE acorn_io_static)
    endforeach()
    if(SIM_PYTHON AND NOT CMAKE_CROSSCOMPILING)
      add_test(NAME sim_trace.${variant} COMMAND ${SIM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/sim_trace.py
                                                 $<TARGET_FILE:test_sim_failing_${variant}>)
      set_tests_properties(sim_trace.${variant} PROPERTIES TIMEOUT 200)
    endif()
  endif()
  if(TARGET acorn_threads)
    target_compile_definitions(test_sim_closed_${variant} PRIVATE WITH_THREADS)
    target_link_libraries(test_sim_closed_${variant} PRIVATE acorn_threads_static)
  endif()
endforeach()

if(TARGET test_sim_history_release AND TARGET example_sim_log AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME sim_porcupine COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/sim_porcupine.sh
                                      $<TARGET_FILE:test_sim_history_release> $<TARGET_FILE:example_sim_log>)
  set_tests_properties(sim_porcupine PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()

if(acorn_wraps)
  acorn_test(sim_failure.default sim_failure.c LINK acorn_sim_static)
  target_link_options(test_sim_failure_default PRIVATE -Wl,--wrap=calloc,--wrap=realloc)
endif()

# Small random programs, in many orders, each run twice. tests/sim_faults.py finds mended faults with them.
set(sim_fault_runs 300)
if(ACORN_NIGHTLY)
  set(sim_fault_runs 100000)
endif()
foreach(variant IN LISTS acorn_two_variants)
  acorn_test(sim_mix.${variant} sim_mix.c DEFINE ${define_${variant}} TIMEOUT 1000 ARGS --runs ${sim_fault_runs}
             --check LINK acorn_sim_static)
  acorn_test(sim_faults.${variant} sim_faults.c DEFINE ${define_${variant}} ARGS --runs 300 --check -- select.order
             LINK acorn_sim_static)
  foreach(scenario places scopes select inner back_off turns barrier join)
    add_test(NAME sim_faults.${variant}.${scenario}
             COMMAND test_sim_faults_${variant} --runs ${sim_fault_runs} --check -- ${scenario})
    set_tests_properties(sim_faults.${variant}.${scenario} PROPERTIES TIMEOUT 1000)
  endforeach()
endforeach()

acorn_test(sim_maybe.default sim_maybe.c)

# The simulated network against the kernel's.
set(sim_kernel_sequences 1000)
if(ACORN_NIGHTLY)
  set(sim_kernel_sequences 50000)
endif()
acorn_variant_tests(sim_kernel TIMEOUT 1000 ARGS ${sim_kernel_sequences} LINK acorn_sim_static)
acorn_variant_tests(sim_ports sim_peer_user sim_signal_order LINK acorn_sim_static)

# The simulated disk against the kernel's files.
set(sim_files_sequences 1000)
if(ACORN_NIGHTLY)
  set(sim_files_sequences 100000)
endif()
acorn_variant_tests(sim_files TIMEOUT 1000 ARGS ${sim_files_sequences} LINK acorn_sim_static)

# The simulated network, and disk.
if(TARGET acorn_io)
  acorn_variant_tests(sim_net sim_node sim_nemesis sim_link sim_names sim_disk sim_pipes sim_restart sim_replicas
                      sim_edges LINK acorn_sim_static acorn_io_static)
endif()
# Threads in lock step.
if(TARGET acorn_io AND TARGET acorn_threads)
  acorn_variant_tests(sim_threads sim_node_threads sim_signals
                      LINK acorn_sim_static acorn_threads_static acorn_io_static)
  foreach(variant IN LISTS acorn_two_variants)
    acorn_test(sim_thread_faults.${variant} sim_thread_faults.c DEFINE ${define_${variant}} ARGS --runs 100 --check --
               locks LINK acorn_sim_static acorn_threads_static acorn_io_static)
    foreach(scenario messages work)
      add_test(NAME sim_thread_faults.${variant}.${scenario}
               COMMAND test_sim_thread_faults_${variant} --runs 100 --check -- ${scenario})
    endforeach()
  endforeach()
endif()
if(TARGET acorn_http)
  if(TARGET acorn_threads)
    foreach(subject threads_http_client threads_http_client_limits)
      acorn_test(sim_${subject}.default ${subject}.c TIMEOUT 200)
      target_compile_definitions(test_sim_${subject}_default PRIVATE SIMULATED_RUNS=20)
      target_link_libraries(test_sim_${subject}_default
                            PRIVATE acorn_sim_static acorn_threads_static acorn_http_static)
    endforeach()
    foreach(moved threads_http_balance threads_http_end_in_move)
      acorn_test(sim_${moved}.default sim_${moved}.c TIMEOUT 200 LINK acorn_sim_static acorn_threads_static
                 acorn_http_static)
    endforeach()
  endif()
  acorn_variant_tests(sim_http sim_http_client sim_http_slow LINK acorn_sim_static acorn_http_static)
  if(ACORN_HTTP2 AND ACORN_HAS_NGHTTP2)
    acorn_variant_tests(sim_http2 LINK acorn_sim_static acorn_http_static)
    foreach(variant IN LISTS acorn_two_variants)
      target_compile_definitions(test_sim_http_slow_${variant} PRIVATE HTTP_WITH_HTTP2)
    endforeach()
  endif()
endif()
# A service that gets signals.
if(TARGET acorn_service AND TARGET acorn_http)
  set(sim_service_runs 40)
  if(ACORN_NIGHTLY)
    set(sim_service_runs 3000)
  endif()
  foreach(variant IN LISTS acorn_two_variants)
    acorn_test(sim_service.${variant} sim_service.c DEFINE ${define_${variant}} TIMEOUT 1000 ARGS --runs
               ${sim_service_runs} --check -- ends LINK acorn_sim_static acorn_service_static acorn_http_static)
    foreach(scenario twice reloads restarts)
      add_test(NAME sim_service.${variant}.${scenario}
               COMMAND test_sim_service_${variant} --runs ${sim_service_runs} --check -- ${scenario})
      set_tests_properties(sim_service.${variant}.${scenario} PROPERTIES TIMEOUT 1000)
    endforeach()
  endforeach()
endif()
if(TARGET acorn_tls)
  acorn_variant_tests(sim_tls LINK acorn_sim_static acorn_tls_static OpenSSL::SSL)
endif()
if(TARGET acorn_hook_static)
  acorn_variant_tests(sim_hook LINK acorn_sim_static acorn_hook_static Threads::Threads)
endif()

# Client libraries that know nothing of Acorn, hooked, against servers in the simulation.
find_package(PkgConfig)
if(TARGET acorn_hook_static AND TARGET acorn_http AND PKG_CONFIG_FOUND AND NOT CMAKE_C_FLAGS MATCHES "-m32")
  set(sim_client_runs 25)
  if(ACORN_NIGHTLY)
    set(sim_client_runs 5000)
  endif()
  add_executable(test_sim_clients sim_clients.c)
  set_target_properties(test_sim_clients PROPERTIES C_STANDARD 11)
  target_link_libraries(test_sim_clients PRIVATE acorn_tests acorn_hook_static acorn_sim_static acorn_http_static
                                                 Threads::Threads)
  foreach(library redis:hiredis postgres:libpq curl:libcurl curl_tls:libcurl)
    string(REGEX REPLACE ":.*" "" client ${library})
    string(REGEX REPLACE ".*:" "" package ${library})
    string(TOUPPER ${client} upper)
    pkg_check_modules(sim_${client} QUIET IMPORTED_TARGET ${package})
    if(client STREQUAL "curl_tls" AND TARGET acorn_tls AND TARGET PkgConfig::sim_${client})
      execute_process(COMMAND curl-config --ssl-backends OUTPUT_VARIABLE sim_curl_tls ERROR_QUIET)
      if(NOT sim_curl_tls MATCHES "OpenSSL") # whose random numbers are the seed's
        continue()
      endif()
      target_link_libraries(test_sim_clients PRIVATE acorn_tls_static OpenSSL::SSL)
    endif()
    if(TARGET PkgConfig::sim_${client} AND NOT (client STREQUAL "curl_tls" AND NOT TARGET acorn_tls))
      target_compile_definitions(test_sim_clients PRIVATE HAVE_${upper})
      target_link_libraries(test_sim_clients PRIVATE PkgConfig::sim_${client})
    endif()
    if(client STREQUAL "curl_tls" AND NOT ACORN_NIGHTLY)
      set(sim_client_runs 3) # handshakes take most of the time
    endif()
    add_test(NAME sim_clients.${client}
             COMMAND test_sim_clients --runs ${sim_client_runs} --check -- ${client})
    set_tests_properties(sim_clients.${client} PROPERTIES TIMEOUT 1000 SKIP_RETURN_CODE 77)
  endforeach()
endif()

# Acorn's own tests, in runs: tests/io_tests.h.
function(acorn_agrees subject)
  acorn_test(sim_agrees.${subject} ${subject}.c DEFINE IN_SIMULATION=5 LINK acorn_hook_static acorn_sim_static ${ARGN}
             Threads::Threads)
endfunction()
if(TARGET acorn_hook_static AND TARGET acorn_http)
  set(agreeing http_cookies http_forms http_decoding)
  if(CMAKE_SIZEOF_VOID_P EQUAL 8) # else calls with paths are not hooked in a run
    list(APPEND agreeing http_replies http_client http_websocket http_access_log http_limits http_stop
                         hook_streams hook_sockets hook_files hook_tasks)
  endif()
  foreach(subject IN LISTS agreeing)
    acorn_agrees(${subject} acorn_http_static)
  endforeach()
endif()
if(TARGET acorn_hook_static AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  foreach(subject io io_buffer io_proxy_protocol io_sockets)
    acorn_agrees(${subject} acorn_io_static)
  endforeach()
  if(acorn_wraps)
    acorn_agrees(io_streams acorn_io_static)
    target_link_options(test_sim_agrees_io_streams
                        PRIVATE -Wl,--wrap=aco__service_allocate,--wrap=aco__service_free)
  endif()
  if(TARGET acorn_tls)
    foreach(subject tls_handshakes tls_streams)
      acorn_agrees(${subject} acorn_tls_static OpenSSL::SSL)
    endforeach()
  endif()
endif()

# Likewise those of threads: tests/threads_tests.h.
if(TARGET acorn_io AND TARGET acorn_threads)
  foreach(subject threads_sync threads_select threads_mt threads_groups threads_signals)
    acorn_test(sim_agrees.${subject} ${subject}.c DEFINE IN_SIMULATION=10 TIMEOUT 200 LINK acorn_sim_static
               acorn_threads_static acorn_io_static Threads::Threads)
  endforeach()
  # gcc's link-time optimisation resolves some references before the linker's --wrap sees them.
  if(NOT (CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "-flto"))
    acorn_test(sim_set_outlives.default sim_set_outlives.c DEFINE IN_SIMULATION=100 TIMEOUT 200)
    target_link_libraries(test_sim_set_outlives_default PRIVATE acorn_sim_static acorn_threads_static acorn_io_static
                                                                Threads::Threads)
    target_link_options(test_sim_set_outlives_default PRIVATE -Wl,--wrap=aco__service_free,--wrap=aco__threads_each)
  endif()
endif()

# At night the tests that try a fixed number of seeds try more of them.
if(ACORN_NIGHTLY)
  get_property(sim_tests DIRECTORY PROPERTY TESTS)
  list(FILTER sim_tests INCLUDE REGEX "^sim[._]")
  set_property(TEST ${sim_tests} APPEND PROPERTY ENVIRONMENT ACORN_SIM_TIMES=50)
  set_tests_properties(${sim_tests} PROPERTIES TIMEOUT 3000)
endif()
