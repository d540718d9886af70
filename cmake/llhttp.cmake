# llhttp, Node's HTTP parser, as Debian's node-llhttp brings it: C sources. Target `llhttp` where they are.
find_path(llhttp_include llhttp.h PATHS /usr/share/include/llhttp)
find_path(llhttp_source llhttp.c PATHS /usr/share/llhttp)
if(llhttp_include AND llhttp_source AND NOT TARGET llhttp)
  add_library(llhttp STATIC ${llhttp_source}/llhttp.c ${llhttp_source}/api.c ${llhttp_source}/http.c)
  target_include_directories(llhttp SYSTEM PUBLIC ${llhttp_include})
endif()
