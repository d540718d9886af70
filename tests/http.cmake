# HTTP (src/http), where acorn_http is.
foreach(variant debug release)
  acorn_test(http.${variant} http.c DEFINE ${define_${variant}} TIMEOUT 200)
  target_link_libraries(test_http_${variant} PRIVATE acorn_http_static Threads::Threads)
endforeach()
