# Debuggers: tools/gdb/acorn.py and tools/lldb/acorn.py on a process and on a core file. In the wide rows of the matrix.
find_package(Python3 COMPONENTS Interpreter)
if(CMAKE_CROSSCOMPILING OR NOT ACORN_CXX_FULL OR NOT Python3_FOUND OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8 OR ACORN_UCONTEXT OR
   NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR CMAKE_C_FLAGS MATCHES "-fsanitize|-flto")
  return()
endif()
foreach(level O0 O2)
  add_executable(test_debugger_${level} debugger/program.c)
  target_link_libraries(test_debugger_${level} PRIVATE acorn_tests)
  target_compile_options(test_debugger_${level} PRIVATE -g -${level})
  add_test(NAME debugger.gdb.${level} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/debugger/check.py
           gdb ${PROJECT_SOURCE_DIR}/tools/gdb/acorn.py $<TARGET_FILE:test_debugger_${level}>)
  set_tests_properties(debugger.gdb.${level} PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
endforeach()
