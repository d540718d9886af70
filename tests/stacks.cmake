# What stacks and save areas cost: measuring and trimming, save areas, ACO_ENTRY, prefetching; in variants of api.cmake, which
# comes first.
foreach(variant IN LISTS ACORN_VARIANTS)
  acorn_test(entry.${variant} entry.c DEFINE ${define_${variant}} TIMEOUT 60)
  if(variant STREQUAL "shared_fp")
    continue()
  endif()
  foreach(subject measure save_area)
    acorn_test(${subject}.${variant} ${subject}.c DEFINE ${define_${variant}} TIMEOUT 60)
  endforeach()
endforeach()
if(ACORN_NIGHTLY)
  foreach(seed 2 3 4 5)
    add_test(NAME measure.release.${seed} COMMAND test_measure_release ${seed})
    add_test(NAME save_area.release.${seed} COMMAND test_save_area_release ${seed})
    set_tests_properties(measure.release.${seed} save_area.release.${seed} PROPERTIES TIMEOUT 60)
  endforeach()
endif()

# The same in C++, and with exceptions.
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/entry.cpp CONTENT "#include \"entry.c\"\n")
acorn_test(entry.cpp ${CMAKE_CURRENT_BINARY_DIR}/entry.cpp DEFINE ${define_release} TIMEOUT 60)
set_target_properties(test_entry_cpp PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
