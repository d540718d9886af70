# Hardening options. hardening.library: what this build made; the others run compilers by themselves, and one build is enough.
if(NOT PROBE_PYTHON)
  message(STATUS "skipped: hardening.*: python3 is not installed")
  return()
endif()
set(hardening ${PROBE_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/hardening/check.py)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_C_FLAGS MATCHES "-flto") # whose objects are not the ones that are linked
  check_c_source_compiles("#if !(__CET__ & 1)\n#error\n#endif\nint main(void) { return 0; }" ACORN_HAS_LANDING_PADS)
  add_test(NAME hardening.library
           COMMAND ${hardening} library $<$<BOOL:${ACORN_HAS_LANDING_PADS}>:--ibt> $<TARGET_FILE:acorn> $<TARGET_FILE:acorn_static>
           COMMAND_EXPAND_LISTS)
  set_tests_properties(hardening.library PROPERTIES TIMEOUT 60 SKIP_RETURN_CODE 77)
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_C_FLAGS MATCHES "-flto") # which resolves what --wrap should see
  acorn_test(hardening.shadow-stack hardening/shadow_stack.c TIMEOUT 60)
  target_link_options(test_hardening_shadow-stack PRIVATE -Wl,--wrap=aco__has_shadow_stack)
endif()
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "^(-O2 -g)?$" AND NOT CMAKE_CROSSCOMPILING)
  foreach(subject options bti ibt refused)
    add_test(NAME hardening.${subject} COMMAND ${hardening} ${subject})
    set_tests_properties(hardening.${subject} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
  endforeach()
endif()
