# What sanitizers and Valgrind must find in coroutines of every kind, and what they must not report
# (sanitizers/seeded.c).
acorn_test(sanitizers.lives sanitizers/seeded.c ARGS lives TIMEOUT 300)
set(seeded test_sanitizers_lives)
target_compile_options(${seeded} PRIVATE -Wno-unused-but-set-variable $<$<C_COMPILER_ID:GNU>:-Wno-use-after-free>)
add_test(NAME sanitizers.roots COMMAND ${seeded} roots)

# seeded(TOOL BUG REGEX KIND... [BY COMMAND...]): BUG, in each KIND of coroutine, must make TOOL report what REGEX says.
function(seeded tool bug regex)
  cmake_parse_arguments(arg "" "" "BY" ${ARGN})
  foreach(kind IN LISTS arg_UNPARSED_ARGUMENTS)
    set(name sanitizers.${tool}.${bug}.${kind})
    add_test(NAME ${name} COMMAND ${arg_BY} $<TARGET_FILE:${seeded}> ${bug} ${kind})
    set_tests_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "${regex}" TIMEOUT 300
                         ENVIRONMENT
                             "ASAN_OPTIONS=detect_stack_use_after_return=1;LSAN_OPTIONS=fast_unwind_on_malloc=0")
  endforeach()
endfunction()

set(kinds private share generator in-stack task threads)
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fsanitize=leak)
check_c_source_compiles("int main(void) { return 0; }" ACORN_LEAK_SANITIZER)
unset(CMAKE_REQUIRED_FLAGS)
if(CMAKE_C_FLAGS MATCHES "-fsanitize=address")
  seeded(asan heap "SUMMARY: AddressSanitizer: heap-use-after-free [^ ]* in heap" ${kinds})
  seeded(asan stack "SUMMARY: AddressSanitizer: stack-buffer-overflow [^ ]* in stack" ${kinds})
  seeded(asan returned "SUMMARY: AddressSanitizer: stack-use-after-return [^ ]* in returned" ${kinds})
  seeded(asan leak "LeakSanitizer: detected memory leaks.* in leak " ${kinds})
  seeded(asan abandoned "LeakSanitizer: detected memory leaks.* in holds " private share)
  add_test(NAME sanitizers.asan.many COMMAND ${seeded} many)
  add_test(NAME sanitizers.asan.said_once COMMAND ${seeded} lives)
  set_tests_properties(sanitizers.asan.said_once PROPERTIES
                       PASS_REGULAR_EXPRESSION "has its own stack of the same size"
                       FAIL_REGULAR_EXPRESSION "has its own stack.*has its own stack")
elseif(CMAKE_C_FLAGS MATCHES "-fsanitize=thread")
  seeded(tsan race "data race.* race " share generator in-stack task threads)
  seeded(tsan race "data race.* race .*'teller'" private)
elseif(CMAKE_C_FLAGS MATCHES "-fsanitize=memory")
  seeded(msan uninitialised "SUMMARY: MemorySanitizer: use-of-uninitialized-value [^ ]* in uninitialised" ${kinds})
elseif(CMAKE_C_FLAGS MATCHES "-fsanitize=undefined")
  seeded(ubsan overflow "seeded.c:[0-9:]* runtime error: signed integer overflow" ${kinds})
endif()

if(CMAKE_EXE_LINKER_FLAGS MATCHES "-static")
  message(STATUS
      "left out: sanitizers.lsan.*, sanitizers.memcheck.*, sanitizers.helgrind.*: "
      "they find malloc() in shared C libraries only")
  return()
endif()

# LeakSanitizer alone, with a library that is compiled without it.
if(ACORN_LEAK_SANITIZER AND CMAKE_C_FLAGS MATCHES "^(-O2 -g)?$" AND NOT CMAKE_CROSSCOMPILING)
  set(usual ${seeded})
  set(seeded test_sanitizers_leaks)
  add_executable(${seeded} sanitizers/seeded.c)
  target_link_libraries(${seeded} PRIVATE acorn_tests)
  target_compile_options(${seeded} PRIVATE -fsanitize=leak -Wno-unused-but-set-variable
      $<$<C_COMPILER_ID:GNU>:-Wno-use-after-free>)
  target_link_options(${seeded} PRIVATE -fsanitize=leak)
  seeded(lsan leak "LeakSanitizer: detected memory leaks.* in leak " private share task threads)
  seeded(lsan abandoned "SUMMARY: LeakSanitizer: [0-9]* byte.s. leaked in [5-8] allocation" private share)
  add_test(NAME sanitizers.lsan.roots COMMAND ${seeded} roots)
  set_tests_properties(sanitizers.lsan.roots PROPERTIES ENVIRONMENT LSAN_OPTIONS=fast_unwind_on_malloc=0)
  set(seeded ${usual})
endif()

# Under Valgrind: from the build that nothing is changed in.
find_program(ACORN_VALGRIND valgrind)
if(NOT ACORN_VALGRIND)
  message(STATUS "skipped: sanitizers.memcheck.*, sanitizers.helgrind.*: valgrind is not installed")
elseif(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "^(-O2 -g)?$" AND NOT CMAKE_CROSSCOMPILING)
  set(memcheck ${ACORN_VALGRIND} --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible)
  set(helgrind ${ACORN_VALGRIND} --tool=helgrind --error-exitcode=99)
  seeded(memcheck heap "Invalid read of size 4.* heap " private share BY ${memcheck})
  seeded(memcheck uninitialised "depends on uninitialised value.* uninitialised " share generator task BY ${memcheck})
  seeded(memcheck leak "are definitely lost.* leak " private share task BY ${memcheck})
  seeded(memcheck abandoned "are definitely lost.* holds " private share BY ${memcheck})
  seeded(helgrind race "Possible data race.* race " private share BY ${helgrind})
  foreach(case lives roots)
    add_test(NAME sanitizers.memcheck.${case} COMMAND ${memcheck} $<TARGET_FILE:${seeded}> ${case})
  endforeach()
  add_test(NAME sanitizers.helgrind.lives COMMAND ${helgrind} $<TARGET_FILE:${seeded}> lives)
endif()
