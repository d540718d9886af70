# Generators: what is promised of them, by hand (generator.*) and in random programs (generator.random,
# generator.matrix), and what compilers make of them (generator.code).
foreach(variant IN LISTS ACORN_VARIANTS)
  if(variant STREQUAL "no_inline")
    continue()
  endif()
  acorn_test(generator.${variant} generator.c DEFINE ${define_${variant}} TIMEOUT 300 LINK m)
endforeach()
if(NOT ACORN_QUICK)
  acorn_test(generator.frame-pointer generator.c DEFINE ${define_release} FLAGS -fno-omit-frame-pointer
             -fstack-protector-strong TIMEOUT 300 LINK m)
endif()
acorn_test(generator_failure.default generator_failure.c TIMEOUT 200)
acorn_test(generator_signals.release generator_signals.c DEFINE ${define_release} ARGS 2 TIMEOUT 200)

if(NOT PROBE_PYTHON)
  message(STATUS "skipped: generator.random, generator.code, generator.matrix: python3 is not installed")
  return()
endif()

# Generated programs, compiled as this build compiles.
set(generator_random_programs 16)
if(ACORN_QUICK)
  set(generator_random_programs 8)
endif()
if(ACORN_NIGHTLY)
  set(generator_random_programs 40)
endif()
set(generator ${CMAKE_CURRENT_SOURCE_DIR}/generator)
set(generator_generated ${CMAKE_CURRENT_BINARY_DIR}/generator_generated.c)
add_custom_command(OUTPUT ${generator_generated}
                   COMMAND ${PROBE_PYTHON} ${generator}/generate.py 1 ${generator_random_programs}
                       > ${generator_generated}
                   DEPENDS ${generator}/generate.py VERBATIM)
acorn_test(generator.random ${generator_generated} generator/run.c TIMEOUT 300)
target_include_directories(test_generator_random PRIVATE ${generator})

# These run every compiler there is by themselves: one build of many needs them.
if(PROBE_OBJDUMP AND NOT ACORN_UCONTEXT AND CMAKE_SIZEOF_VOID_P EQUAL 8 AND CMAKE_SYSTEM_PROCESSOR MATCHES
    "x86_64|AMD64" AND
   CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "^(-O2 -g)?$")
  set(generator_programs 1 --every 16)
  if(ACORN_NIGHTLY)
    set(generator_programs 40)
  endif()
  add_test(NAME generator.code COMMAND ${PROBE_PYTHON} ${generator}/check.py $<TARGET_FILE:test_generator_random>)
  add_test(NAME generator.matrix COMMAND ${PROBE_PYTHON} ${generator}/matrix.py --programs ${generator_programs})
  set_tests_properties(generator.code PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
  set_tests_properties(generator.matrix PROPERTIES TIMEOUT 7200 SKIP_RETURN_CODE 77)
endif()
