# The HTTP and the RPC client of bench/clients, which make bench-paper measures.
include(${PROJECT_SOURCE_DIR}/cmake/llhttp.cmake)
if(CMAKE_CROSSCOMPILING)
  message(STATUS "Skipping paper_clients: cross-compiling")
else()
  acorn_test(paper_clients paper/clients.c LINK llhttp)
endif()
