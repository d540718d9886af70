# bindings/: each language in one test, which its compiler or interpreter runs. For `make test-languages`, which builds
# the library alone. The table of sizes and constants, which is for x86-64 Linux, is compared in one build of the suite.
option(ACORN_LANGUAGES "Test the bindings to other languages" OFF)
set(languages)
if(NOT CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND
   CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "^(-O2 -g)?$")
  set(languages constants)
endif()
if(ACORN_LANGUAGES)
  set(languages constants python rust lua zig go)
endif()
foreach(language IN LISTS languages)
  add_test(NAME bindings.${language}
           COMMAND sh ${PROJECT_SOURCE_DIR}/bindings/test.sh ${language} $<TARGET_FILE_DIR:acorn>
                   ${CMAKE_CURRENT_BINARY_DIR}/bindings ${CMAKE_C_COMPILER})
  set_tests_properties(bindings.${language} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endforeach()
