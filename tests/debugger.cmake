# Debuggers: tools/gdb/acorn.py and tools/lldb/acorn.py on a process and on a core file.
if(CMAKE_CROSSCOMPILING AND CMAKE_CROSSCOMPILING_EMULATOR MATCHES "qemu-(aarch64|riscv64|ppc64le|s390x)" AND NOT
    ACORN_UCONTEXT)
  find_program(GDB_MULTIARCH gdb-multiarch)
  if(GDB_MULTIARCH)
    add_executable(test_debugger_steps debugger/steps.c)
    target_link_libraries(test_debugger_steps PRIVATE acorn_tests)
    target_compile_options(test_debugger_steps PRIVATE -g -O2)
    add_test(NAME debugger.emulated_steps COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/debugger/emulated.sh ${GDB_MULTIARCH}
             $<TARGET_FILE:test_debugger_steps> ${CMAKE_CROSSCOMPILING_EMULATOR})
    set_tests_properties(debugger.emulated_steps PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
  else()
    message(STATUS "skipped: debugger.emulated_steps: gdb-multiarch is not installed")
  endif()
endif()
find_package(Python3 COMPONENTS Interpreter)
if(CMAKE_CROSSCOMPILING OR NOT ACORN_CXX_FULL OR NOT Python3_FOUND OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8 OR ACORN_UCONTEXT
    OR
   NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR CMAKE_C_FLAGS MATCHES "-fsanitize|-flto")
  return()
endif()
find_package(Threads REQUIRED)
add_executable(test_debugger_odd debugger/odd.c)
target_link_libraries(test_debugger_odd PRIVATE acorn_tests Threads::Threads)
target_compile_options(test_debugger_odd PRIVATE -g -O0)
foreach(level O0 O2)
  add_executable(test_debugger_${level} debugger/program.c)
  target_link_libraries(test_debugger_${level} PRIVATE acorn_tests)
  target_compile_options(test_debugger_${level} PRIVATE -g -${level})
  add_test(NAME debugger.gdb.${level} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/debugger/check.py
           gdb ${PROJECT_SOURCE_DIR}/tools/gdb/acorn.py $<TARGET_FILE:test_debugger_${level}>
               $<TARGET_FILE:test_debugger_odd>)
  set_tests_properties(debugger.gdb.${level} PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
endforeach()
find_program(LLDB NAMES lldb-19 lldb)
if(LLDB)
  add_test(NAME debugger.lldb COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/debugger/check.py
           ${LLDB} ${PROJECT_SOURCE_DIR}/tools/lldb/acorn.py $<TARGET_FILE:test_debugger_O0>
               $<TARGET_FILE:test_debugger_odd>)
  set_tests_properties(debugger.lldb PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
else()
  message(STATUS "skipped: debugger.lldb: lldb is not installed")
endif()

# gdb loads its script by itself with the installed shared library.
find_program(GDB gdb)
if(GDB)
  add_executable(test_debugger_shared debugger/program.c)
  target_link_libraries(test_debugger_shared PRIVATE acorn acorn_warnings)
  target_compile_options(test_debugger_shared PRIVATE -g -O1 -fexceptions)
  set_target_properties(test_debugger_shared PROPERTIES SKIP_BUILD_RPATH ON)
  add_test(NAME debugger.installed
           COMMAND ${GDB} -q -batch -nx -iex "set debuginfod enabled off" -iex "set auto-load safe-path /"
                   -iex "set auto-load scripts-directory ${install_dir}/share/gdb/auto-load" -ex "break stop_here" -ex
                       run -ex "aco list"
                   $<TARGET_FILE:test_debugger_shared>)
  set_tests_properties(debugger.installed PROPERTIES TIMEOUT 200 FIXTURES_REQUIRED installed PASS_REGULAR_EXPRESSION
      "8 coroutines"
                       SKIP_REGULAR_EXPRESSION "ptrace|not permitted" ENVIRONMENT
                           "LD_LIBRARY_PATH=${install_dir}/${CMAKE_INSTALL_LIBDIR}")
else()
  message(STATUS "skipped: debugger.installed, debugger.steps: gdb is not installed")
endif()
if(GDB)
  add_executable(test_debugger_steps debugger/steps.c)
  target_link_libraries(test_debugger_steps PRIVATE acorn_tests)
  target_compile_options(test_debugger_steps PRIVATE -g -O2)
  add_test(NAME debugger.steps COMMAND ${GDB} -q -batch -nx -iex "set debuginfod enabled off" -iex "set auto-load off"
           -x ${CMAKE_CURRENT_SOURCE_DIR}/debugger/steps.py $<TARGET_FILE:test_debugger_steps>)
  set_tests_properties(debugger.steps PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
