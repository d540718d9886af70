# tools/mutate.py makes the mutants that it should, and every seeded fault and every mutant of
# tools/mutants.txt is still one of the sources.
if(NOT acorn_usual_flags)
  return()
endif()
find_program(MUTATE_PYTHON NAMES python3)
if(NOT MUTATE_PYTHON)
  message(STATUS "skipped: mutate.self_test: python3 is not installed")
  return()
endif()
add_test(NAME mutate.self_test COMMAND ${MUTATE_PYTHON} ${PROJECT_SOURCE_DIR}/tools/mutate.py self-test)
set_tests_properties(mutate.self_test PROPERTIES TIMEOUT 200)

# The models of `make litmus` know all calls of the sources that they include, and find the places of their faults.
find_program(LITMUS_GCC NAMES gcc)
if(LITMUS_GCC)
  add_test(NAME litmus.builds COMMAND ${MUTATE_PYTHON} ${PROJECT_SOURCE_DIR}/verification/litmus/run.py --build-only)
endif()
