# Everything at once, for some seconds; for as long as is wanted: soak.sh. With an odd seed the library's memory is
# counted by the test itself, with an even one the process's is.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR CMAKE_CROSSCOMPILING OR ACORN_UCONTEXT)
  return()
endif()
add_executable(test_soak EXCLUDE_FROM_ALL soak.c)
set_target_properties(test_soak PROPERTIES C_STANDARD 11)
target_link_libraries(test_soak PRIVATE acorn_tests)
if(ACORN_TESTS_ONCE AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
  set_target_properties(test_soak PROPERTIES EXCLUDE_FROM_ALL OFF)
  add_test(NAME soak.counted COMMAND test_soak 8 1)
  add_test(NAME soak.system COMMAND test_soak 8 2)
  set_tests_properties(soak.counted soak.system PROPERTIES TIMEOUT 300)
endif()
