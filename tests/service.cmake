# Lives of services (src/lifecycle): processes that are started, reloaded, restarted and ended.
if(NOT TARGET acorn_service OR NOT TARGET acorn_http)
  return()
endif()
set(service_restarts 5 100) # and requests for each
if(ACORN_NIGHTLY)
  set(service_restarts 100 10000)
endif()
foreach(variant IN LISTS acorn_two_variants)
  acorn_test(service.${variant} service.c DEFINE ${define_${variant}} ARGS ${service_restarts})
  target_link_libraries(test_service_${variant} PRIVATE acorn_service_static acorn_http_static Threads::Threads)
endforeach()
