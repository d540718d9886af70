# llhttp, Node's HTTP parser, as Debian's node-llhttp brings it: C sources. Target `llhttp` where they are those that
# results were got with, by version and SHA-256; else llhttp_why says what is amiss, and llhttp_altered whether that
# version has other bytes.
set(llhttp_version 8.1.0)
set(llhttp_sums d10cbae21267c5d08e0dac01c8584c799b50be7dddd0a0f3193d110922981c38 # llhttp.h
                af384dc4a9e83b4b2ef8a658117a42afa1ee1585344563818ac730604e150f5f # llhttp.c
                6e5a4528cd67bb79c3b1c1e08bb8b4d9beeac4775877098d28be0a8f0d000897 # api.c
                c55eda50972fb150c093d54ba4a92921906f1f51ee60a6b1e0d13f5b9877f539) # http.c
find_path(llhttp_include llhttp.h PATHS /usr/share/include/llhttp)
find_path(llhttp_source llhttp.c PATHS /usr/share/llhttp)
set(llhttp_why "")
set(llhttp_altered OFF)
if(NOT llhttp_include OR NOT llhttp_source)
  set(llhttp_why "no llhttp (node-llhttp)")
else()
  file(STRINGS ${llhttp_include}/llhttp.h llhttp_found REGEX "define LLHTTP_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" llhttp_found "${llhttp_found}")
  string(REPLACE ";" "." llhttp_found "${llhttp_found}")
  set(llhttp_sources ${llhttp_source}/llhttp.c ${llhttp_source}/api.c ${llhttp_source}/http.c)
  set(llhttp_found_sums "")
  foreach(llhttp_file ${llhttp_include}/llhttp.h ${llhttp_sources})
    file(SHA256 ${llhttp_file} llhttp_sum)
    list(APPEND llhttp_found_sums ${llhttp_sum})
  endforeach()
  if(NOT llhttp_found STREQUAL llhttp_version)
    set(llhttp_why "llhttp ${llhttp_found} in ${llhttp_source}, where ${llhttp_version} is wanted (cmake/llhttp.cmake)")
  elseif(NOT llhttp_found_sums STREQUAL llhttp_sums)
    set(llhttp_why "llhttp ${llhttp_found} in ${llhttp_source} has other SHA-256 sums than cmake/llhttp.cmake names")
    set(llhttp_altered ON)
  elseif(NOT TARGET llhttp)
    add_library(llhttp STATIC ${llhttp_sources})
    target_include_directories(llhttp SYSTEM PUBLIC ${llhttp_include})
  endif()
endif()
