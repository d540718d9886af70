# bindings/: each language in one test, which its compiler or interpreter runs. For `make test-languages`, which builds
# the library alone.
option(ACORN_LANGUAGES "Test the bindings to other languages" OFF)
if(NOT ACORN_LANGUAGES)
  return()
endif()
foreach(language constants python rust lua zig go)
  add_test(NAME bindings.${language}
           COMMAND sh ${PROJECT_SOURCE_DIR}/bindings/test.sh ${language} $<TARGET_FILE_DIR:acorn>
                   ${CMAKE_CURRENT_BINARY_DIR}/bindings ${CMAKE_C_COMPILER})
  set_tests_properties(bindings.${language} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endforeach()
