# TLS (src/tls).
foreach(variant IN LISTS acorn_two_variants)
  foreach(subject tls_handshakes tls_streams)
    acorn_test(${subject}.${variant} ${subject}.c DEFINE ${define_${variant}} TIMEOUT 200)
    target_link_libraries(test_${subject}_${variant} PRIVATE acorn_tls_static OpenSSL::SSL Threads::Threads)
    acorn_counts_memory(test_${subject}_${variant})
  endforeach()
endforeach()
if(IO_PYTHON AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME example.tls_peers COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/tls.py
           $<TARGET_FILE:example_tls_hello> $<TARGET_FILE:example_tls_get>)
  set_tests_properties(example.tls_peers PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
endif()
