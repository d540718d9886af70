# The library as its users meet it: installed, or as the amalgamation. Run for the native build only: the script
# compiles with every language standard itself.
if(CMAKE_CROSSCOMPILING)
  message(STATUS "skipped: install.*: what is installed is for another system")
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    return()
  endif()
  # The program of install.libaco_only: each processor has other code.
  set(amalgamated ${PROJECT_BINARY_DIR}/amalgamation)
  set_source_files_properties(${amalgamated}/aco.c PROPERTIES GENERATED TRUE)
  add_executable(test_api_libaco_only install/libaco_only.c ${amalgamated}/aco.c)
  add_dependencies(test_api_libaco_only acorn_amalgamation)
  target_include_directories(test_api_libaco_only PRIVATE ${amalgamated})
  target_compile_definitions(test_api_libaco_only PRIVATE ACO_CONFIG_LIBACO_ONLY ${acorn_definitions})
  target_link_libraries(test_api_libaco_only PRIVATE Threads::Threads)
  add_test(NAME api.libaco_only COMMAND test_api_libaco_only)
  set_tests_properties(api.libaco_only PROPERTIES TIMEOUT 300)
  return()
endif()
set(install_dir ${CMAKE_CURRENT_BINARY_DIR}/installed)
add_test(NAME install.prefix COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${install_dir})
set_tests_properties(install.prefix PROPERTIES FIXTURES_SETUP installed TIMEOUT 200)
foreach(case headers old warnings pkg-config cmake subdirectory amalgamation libaco_only plugin ffi rust)
  # The longest: once; two of them also where the processor or the switch is another.
  if(case MATCHES "old|warnings|subdirectory|libaco_only" AND NOT ACORN_TESTS_ONCE)
    continue()
  endif()
  if(case STREQUAL "pkg-config" AND NOT (acorn_usual_flags OR CMAKE_SIZEOF_VOID_P EQUAL 4))
    continue()
  endif()
  if(case MATCHES "headers|amalgamation" AND NOT (ACORN_TESTS_ONCE OR ACORN_UCONTEXT OR
                                                  (CMAKE_SIZEOF_VOID_P EQUAL 4 AND "debug" IN_LIST ACORN_VARIANTS)))
    continue()
  endif()
  if(case STREQUAL "libaco_only" AND CMAKE_C_FLAGS MATCHES "-fsanitize") # aco.c is whole there
    continue()
  endif()
  set(flags "${CMAKE_C_FLAGS}${acorn_pc_definitions}")
  if(case MATCHES "pkg-config|cmake") # their targets name them to users
    set(flags "${CMAKE_C_FLAGS}")
  endif()
  add_test(NAME install.${case}
           COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/install/run.sh ${case} ${install_dir}
               ${CMAKE_CURRENT_BINARY_DIR}/consumer
                   ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER} "${flags}" ${PROJECT_SOURCE_DIR})
  set_tests_properties(install.${case} PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()

# The exported symbols against the recorded ones. Types are compared by row `packages`.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND
   CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "^(-O2 -g)?$")
  foreach(case symbols seeded)
    add_test(NAME install.abi_${case} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/abi.py ${case}
                                              ${PROJECT_BINARY_DIR})
    set_tests_properties(install.abi_${case} PROPERTIES TIMEOUT 100)
  endforeach()
endif()
