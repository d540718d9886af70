# Pools of private stacks: what is promised of them, random schedules with more seeds, and a system that refuses.
foreach(variant debug release)
  acorn_test(pool.${variant} pool.c DEFINE ${define_${variant}} TIMEOUT 120)
  add_test(NAME pool.${variant}.2 COMMAND test_pool_${variant} 2 30000) # the random schedule alone
  add_test(NAME pool.${variant}.mappings COMMAND test_pool_${variant} mappings)
  set_tests_properties(pool.${variant}.2 PROPERTIES TIMEOUT 120)
  set_tests_properties(pool.${variant}.mappings PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)
endforeach()
if(ACORN_NIGHTLY)
  add_test(NAME pool.release.long COMMAND test_pool_release 3 10000000)
  set_tests_properties(pool.release.long PROPERTIES TIMEOUT 600)
endif()
# As for alloc_failure: gcc's link-time optimisation resolves some references before the linker's --wrap sees them. ThreadSanitizer
# has to map memory for each coroutine where none is to be had, and loses count of coroutines over fork().
if(NOT (CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "-flto") AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize=thread")
  acorn_test(pool_failure.release pool_failure.c DEFINE ${define_release} TIMEOUT 120) # a debug build says that suspended ones are destroyed
  target_link_options(test_pool_failure_release PRIVATE -Wl,--wrap=syscall,--wrap=mmap,--wrap=munmap,--wrap=madvise,--wrap=mprotect)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize=[a-z,]*address") # no share stacks
    add_test(NAME pool_failure.release.room COMMAND test_pool_failure_release room)
    set_tests_properties(pool_failure.release.room PROPERTIES TIMEOUT 60)
  endif()
endif()
