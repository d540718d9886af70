# The HTTP and the RPC client of bench/clients, which make bench-paper measures.
include(${PROJECT_SOURCE_DIR}/cmake/llhttp.cmake)
if(TARGET llhttp AND NOT CMAKE_CROSSCOMPILING)
  acorn_test(paper_clients paper/clients.c)
  target_link_libraries(test_paper_clients PRIVATE llhttp)
else()
  message(STATUS "Skipping paper_clients: no llhttp (node-llhttp), or cross-compiling")
endif()
