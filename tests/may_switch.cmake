# The marks of functions that may let other tasks run (ACO__SWITCHES) and the table of public ones in docs/scheduler.md
# are those of the call graph, and a seeded violation of each kind is found.
find_program(MAY_SWITCH_PYTHON NAMES python3)
if(NOT MAY_SWITCH_PYTHON)
  message(STATUS "skipped: may_switch.*: python3 is not installed")
  return()
endif()
if(ACORN_TESTS_ONCE)
  set(may_switch ${MAY_SWITCH_PYTHON} ${PROJECT_SOURCE_DIR}/tools/may_switch.py)
  add_test(NAME may_switch.graph COMMAND ${may_switch})
  add_test(NAME may_switch.self_test COMMAND ${may_switch} --self-test)
  set_tests_properties(may_switch.graph may_switch.self_test PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
endif()
