# Sets of threads (src/threads): POSIX.
set(threads_subjects threads_run threads_groups threads_processors threads_mt threads_sync threads_select)
acorn_variant_tests(${threads_subjects} TIMEOUT 200 LINK acorn_threads_static)
if(CMAKE_CROSSCOMPILING_EMULATOR MATCHES qemu) # 7.2 crashes when a child of a process with threads makes threads
  foreach(variant IN LISTS acorn_two_variants)
    target_compile_definitions(test_threads_run_${variant} PRIVATE NO_THREADS_AFTER_FORK)
  endforeach()
endif()
if(acorn_wraps)
  acorn_test(threads_failure.default threads_failure.c TIMEOUT 200 LINK acorn_threads_static)
  target_link_options(test_threads_failure_default PRIVATE -Wl,--wrap=aco__answer_tell)
endif()
add_test(NAME threads_run.exit COMMAND test_threads_run_release exit)
if(NOT "debug" IN_LIST ACORN_VARIANTS) # where the watchdog's thread is on
  foreach(subject IN LISTS threads_subjects)
    add_test(NAME ${subject}.watched COMMAND test_${subject}_release)
    set_tests_properties(${subject}.watched PROPERTIES TIMEOUT 200 ENVIRONMENT ACO_WATCHDOG=1000)
  endforeach()
endif()
if(TARGET acorn_io AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  acorn_test(threads_offload.release threads_offload.c DEFINE ${define_release} LINK acorn_threads_static
             acorn_io_static)
  acorn_variant_tests(threads_signals TIMEOUT 200 LINK acorn_threads_static acorn_io_static)
  acorn_test(system_failure.default system_failure.c TIMEOUT 200 LINK acorn_threads_static acorn_io_static)
endif()
if(TARGET acorn_http)
  foreach(subject threads_http threads_http_balance threads_http_client threads_http_client_limits)
    acorn_test(${subject}.release ${subject}.c DEFINE ${define_release} TIMEOUT 200 LINK acorn_threads_static
               acorn_http_static)
  endforeach()
  if(TARGET acorn_tls)
    foreach(kind release debug) # debug: who uses what belongs to another thread ends the process
      acorn_test(threads_https_balance.${kind} threads_https_balance.c DEFINE ${define_${kind}} TIMEOUT 200 LINK
                 acorn_threads_static acorn_http_static acorn_tls_static OpenSSL::SSL)
    endforeach()
  endif()
endif()
if(TARGET acorn_io AND IO_PYTHON)
  add_test(NAME example.threads_echo
           COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/examples.py threads_echo ${CMAKE_CROSSCOMPILING_EMULATOR}
               $<TARGET_FILE:example_threads_echo>)
  set_tests_properties(example.threads_echo PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
endif()
if(ACORN_NIGHTLY)
  foreach(subject threads_run threads_groups threads_mt threads_sync threads_select)
    add_test(NAME ${subject}.long COMMAND test_${subject}_release long)
    set_tests_properties(${subject}.long PROPERTIES TIMEOUT 1800)
  endforeach()
endif()
