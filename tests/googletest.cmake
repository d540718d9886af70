# Google Test as GTest::gtest_main, if GTest_FOUND: the installed one in a native build of its word size; built for
# another system, from the sources that Debian's libgtest-dev brings. Not for FreeBSD on AArch64: its <machine/proc.h>
# and clang's <ptrauth.h> both define `ptrauth_key`.
set(GTest_FOUND OFF)
if(NOT CMAKE_CROSSCOMPILING)
  if(CMAKE_SIZEOF_VOID_P EQUAL 8) # a -m32 build does not find it
    find_package(GTest QUIET)
  endif()
elseif(EXISTS /usr/src/googletest/googletest/src/gtest-all.cc AND NOT "${CMAKE_SYSTEM_NAME} ${CMAKE_SYSTEM_PROCESSOR}"
    STREQUAL "FreeBSD arm64")
  set(googletest /usr/src/googletest/googletest)
  add_library(acorn_gtest STATIC EXCLUDE_FROM_ALL ${googletest}/src/gtest-all.cc ${googletest}/src/gtest_main.cc)
  set_target_properties(acorn_gtest PROPERTIES CXX_STANDARD 17)
  target_include_directories(acorn_gtest SYSTEM PUBLIC ${googletest}/include PRIVATE ${googletest})
  target_link_libraries(acorn_gtest PUBLIC Threads::Threads)
  add_library(GTest::gtest_main ALIAS acorn_gtest)
  set(GTest_FOUND ON)
endif()
