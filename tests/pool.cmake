# Pools of private stacks: what is promised of them, random schedules, and a system that has no memory.
acorn_variant_tests(pool pool_guards)
foreach(variant IN LISTS acorn_two_variants)
  add_test(NAME pool_guards.${variant}.mappings COMMAND test_pool_guards_${variant} mappings)
  if(NOT CMAKE_C_FLAGS MATCHES "-fsanitize") # no such coroutine is cached
    acorn_test(depot.${variant} depot.c DEFINE ${define_${variant}} TIMEOUT 300)
    target_include_directories(test_depot_${variant} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  endif()
  acorn_test(pool_model.${variant}.1 pool_model.c DEFINE ${define_${variant}} ARGS 1 TIMEOUT 300)
  add_test(NAME pool_model.${variant}.2 COMMAND test_pool_model_${variant}_1 2 30000)
  set_tests_properties(pool_model.${variant}.2 PROPERTIES TIMEOUT 300)
  set_tests_properties(pool_guards.${variant}.mappings PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()
if(ACORN_NIGHTLY)
  add_test(NAME pool_model.release.long COMMAND test_pool_model_release_1 3 10000000)
  set_tests_properties(pool_model.release.long PROPERTIES TIMEOUT 600)
endif()
# ThreadSanitizer maps memory for each coroutine, which fails here, and loses count of coroutines over fork().
if(NOT CMAKE_C_FLAGS MATCHES "-fsanitize=thread")
  # a debug build says that suspended ones are destroyed
  acorn_test(pool_failure.release pool_failure.c DEFINE ${define_release} TIMEOUT 300)
  target_include_directories(test_pool_failure_release PRIVATE ${PROJECT_SOURCE_DIR}/src)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize=[a-z,]*address") # no share stacks
    add_test(NAME pool_failure.release.room COMMAND test_pool_failure_release room)
    set_tests_properties(pool_failure.release.room PROPERTIES TIMEOUT 200)
  endif()
endif()
