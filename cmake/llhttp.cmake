# llhttp, Node's HTTP parser, from third_party/llhttp, under its own names: target `llhttp`, for the clients that make
# bench-paper measures.
set(llhttp_include ${PROJECT_SOURCE_DIR}/third_party/llhttp)
set(llhttp_sources ${llhttp_include}/llhttp.c ${llhttp_include}/api.c ${llhttp_include}/http.c)
if(NOT TARGET llhttp)
  add_library(llhttp STATIC ${llhttp_sources})
  # Its callbacks are called by types that differ in a pointer's sign.
  target_compile_options(llhttp PRIVATE -w $<$<C_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_include_directories(llhttp SYSTEM PUBLIC ${llhttp_include})
endif()
