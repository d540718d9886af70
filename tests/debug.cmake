# A look inside (src/debug), where acorn_debug is.
if(NOT TARGET acorn_debug)
  return()
endif()
foreach(variant IN LISTS acorn_two_variants)
  acorn_test(debug_pages.${variant} debug_pages.c DEFINE ${define_${variant}} TIMEOUT 200 ARGS secret)
  target_link_libraries(test_debug_pages_${variant} PRIVATE acorn_debug_static Threads::Threads)
endforeach()
