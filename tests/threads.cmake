# Sets of threads (src/threads): POSIX.
foreach(variant debug release)
  foreach(subject threads_run threads_shared threads_select)
    acorn_test(${subject}.${variant} ${subject}.c DEFINE ${define_${variant}} TIMEOUT 200)
    target_link_libraries(test_${subject}_${variant} PRIVATE acorn_threads_static)
    if(CMAKE_CROSSCOMPILING_EMULATOR MATCHES qemu) # 7.2 crashes when a child of a process with threads makes threads
      target_compile_definitions(test_${subject}_${variant} PRIVATE NO_THREADS_AFTER_FORK)
    endif()
  endforeach()
endforeach()
# gcc's link-time optimisation resolves some references before the linker's --wrap sees them.
if(NOT (CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "-flto"))
  acorn_test(threads_failure.default threads_failure.c TIMEOUT 200)
  target_link_libraries(test_threads_failure_default PRIVATE acorn_threads_static)
  target_link_options(test_threads_failure_default PRIVATE -Wl,--wrap=pthread_create,--wrap=aco__poller_free)
endif()
add_test(NAME threads_run.exit COMMAND test_threads_run_release exit)
if(TARGET acorn_io AND IO_PYTHON)
  add_test(NAME example.threads_echo
           COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/examples.py threads_echo ${CMAKE_CROSSCOMPILING_EMULATOR}
               $<TARGET_FILE:example_threads_echo>)
  set_tests_properties(example.threads_echo PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
endif()
if(ACORN_NIGHTLY)
  foreach(subject threads_run threads_shared threads_select)
    add_test(NAME ${subject}.long COMMAND test_${subject}_release long)
    set_tests_properties(${subject}.long PROPERTIES TIMEOUT 1800)
  endforeach()
endif()
