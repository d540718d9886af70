# The code of the documents, from the pages' own text (pages/pages.py): once, for it compiles much. `blocks`: all pages
# but the tutorials and the cookbook, by one compiler.
if(NOT PROBE_PYTHON OR CMAKE_CROSSCOMPILING OR NOT ACORN_TESTS_ONCE OR CMAKE_C_FLAGS MATCHES "-fsanitize")
  return()
endif()
set(CMAKE_REQUIRED_LIBRARIES expat)
check_c_source_compiles("#include <expat.h>
  int main(void) { return XML_ParserCreate(NULL) == NULL; }" ACORN_HAS_EXPAT)
unset(CMAKE_REQUIRED_LIBRARIES)
separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS} ${acorn_pc_definitions}")
foreach(page blocks chat crawler faults game parser cookbook)
  if(page STREQUAL "blocks" AND NOT (CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "^(-O2 -g)?$"))
    continue()
  endif()
  if(page STREQUAL "parser" AND NOT ACORN_HAS_EXPAT)
    message(STATUS "skipped: pages.parser: expat is not installed")
    continue()
  endif()
  separate_arguments(codings UNIX_COMMAND "${acorn_http_pc_libraries}")
  if(ACORN_HTTP2 AND ACORN_HAS_NGHTTP2)
    list(APPEND codings -lnghttp2)
  endif()
  add_test(NAME pages.${page}
           COMMAND ${PROBE_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/pages/pages.py test ${page}
               ${CMAKE_CURRENT_BINARY_DIR}/pages/${page} ${CMAKE_C_COMPILER} ${flags} -Wall -Wextra -Werror
               -I${PROJECT_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR} %%
               $<$<TARGET_EXISTS:acorn_service_static>:$<TARGET_FILE:acorn_service_static>>
               $<$<TARGET_EXISTS:acorn_debug_static>:$<TARGET_FILE:acorn_debug_static>>
               $<$<TARGET_EXISTS:acorn_grpc_static>:$<TARGET_FILE:acorn_grpc_static>>
               $<TARGET_FILE:acorn_http_static>
               $<TARGET_FILE:acorn_threads_static> $<TARGET_FILE:acorn_io_static> $<TARGET_FILE:acorn_sim_static>
               $<TARGET_FILE:acorn_resilience_static>
               $<TARGET_FILE:acorn_static>
               $<$<BOOL:${acorn_io_pc_libraries}>:-luring> ${codings} -pthread)
  set_tests_properties(pages.${page} PROPERTIES ENVIRONMENT CXX=${CMAKE_CXX_COMPILER} TIMEOUT 600)
endforeach()
