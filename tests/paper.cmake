# The HTTP and the RPC client of bench/clients, which make bench-paper measures.
include(${PROJECT_SOURCE_DIR}/cmake/llhttp.cmake)
if(CMAKE_CROSSCOMPILING)
  message(STATUS "Skipping paper_clients: cross-compiling")
elseif(TARGET llhttp)
  acorn_test(paper_clients paper/clients.c)
  target_link_libraries(test_paper_clients PRIVATE llhttp)
else() # another version is skipped by name; other bytes of the same version are a failure
  add_test(NAME paper_clients COMMAND sh -c "echo \"$1: $2\"; exit $3" sh $<IF:$<BOOL:${llhttp_altered}>,failed,skipped>
                                      ${llhttp_why} $<IF:$<BOOL:${llhttp_altered}>,1,77>)
  set_tests_properties(paper_clients PROPERTIES SKIP_RETURN_CODE 77)
endif()
