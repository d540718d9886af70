# Sets of threads (src/threads): POSIX.
foreach(variant debug release)
  acorn_test(threads_run.${variant} threads_run.c DEFINE ${define_${variant}} TIMEOUT 60)
  target_link_libraries(test_threads_run_${variant} PRIVATE acorn_threads_static)
endforeach()
# gcc's link-time optimisation resolves some references before the linker's --wrap sees them.
if(NOT (CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "-flto"))
  acorn_test(threads_failure.default threads_failure.c TIMEOUT 60)
  target_link_libraries(test_threads_failure_default PRIVATE acorn_threads_static)
  target_link_options(test_threads_failure_default PRIVATE -Wl,--wrap=pthread_create)
endif()
if(TARGET acorn_io AND IO_PYTHON)
  add_test(NAME example.threads_echo
           COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/examples.py threads_echo ${CMAKE_CROSSCOMPILING_EMULATOR}
               $<TARGET_FILE:example_threads_echo>)
  set_tests_properties(example.threads_echo PROPERTIES TIMEOUT 60 SKIP_RETURN_CODE 77)
endif()
if(ACORN_NIGHTLY)
  add_test(NAME threads_run.long COMMAND test_threads_run_release long)
  set_tests_properties(threads_run.long PROPERTIES TIMEOUT 1800)
endif()
