# Lives of services (src/lifecycle): processes that are started, reloaded, restarted and ended.
if(NOT TARGET acorn_service OR NOT TARGET acorn_http)
  return()
endif()
set(service_restarts 5 100) # and requests for each
if(ACORN_NIGHTLY)
  set(service_restarts 100 10000)
endif()
acorn_variant_tests(service ARGS ${service_restarts} LINK acorn_service_static acorn_http_static Threads::Threads)
