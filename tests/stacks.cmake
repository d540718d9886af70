# What stacks and save areas cost: trims and the profile, save areas, ACO_ENTRY, prefetching; in variants of api.cmake,
# which comes first.
foreach(variant IN LISTS ACORN_VARIANTS)
  acorn_test(entry.${variant} entry.c DEFINE ${define_${variant}} TIMEOUT 200)
  if(variant STREQUAL "shared_fp")
    continue()
  endif()
  foreach(subject stack_trim profile profile_pages profile_model save_area)
    acorn_test(${subject}.${variant} ${subject}.c DEFINE ${define_${variant}} TIMEOUT 200)
  endforeach()
endforeach()
if(ACORN_NIGHTLY)
  foreach(seed 2 3 4 5)
    foreach(subject stack_trim profile_model save_area)
      add_test(NAME ${subject}.release.${seed} COMMAND test_${subject}_release ${seed})
      set_tests_properties(${subject}.release.${seed} PROPERTIES TIMEOUT 200)
    endforeach()
  endforeach()
endif()

# The same in C++, and with exceptions.
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/entry.cpp CONTENT "#include \"entry.c\"\n")
acorn_test(entry.cpp ${CMAKE_CURRENT_BINARY_DIR}/entry.cpp DEFINE ${define_release} TIMEOUT 200)
set_target_properties(test_entry_cpp PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
