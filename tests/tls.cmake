# TLS (src/tls).
acorn_variant_tests(tls_handshakes tls_streams COUNTS_MEMORY TIMEOUT 200
                    LINK acorn_tls_static OpenSSL::SSL Threads::Threads)
if(IO_PYTHON AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME example.tls_peers COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/tls.py
           $<TARGET_FILE:example_tls_hello> $<TARGET_FILE:example_tls_get>)
  set_tests_properties(example.tls_peers PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
endif()
