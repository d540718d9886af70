# gRPC (src/grpc), where acorn_grpc is.
if(NOT TARGET acorn_grpc)
  return()
endif()
set(grpc_zlib "")
if(ACORN_ZLIB AND ACORN_HAS_ZLIB)
  set(grpc_zlib GRPC_WITH_ZLIB)
endif()
foreach(variant IN LISTS acorn_two_variants)
  foreach(side server client)
    acorn_test(grpc_${side}.${variant} grpc_${side}.c DEFINE ${define_${variant}} TIMEOUT 200)
    target_compile_definitions(test_grpc_${side}_${variant} PRIVATE ${grpc_zlib})
    target_link_libraries(test_grpc_${side}_${variant} PRIVATE acorn_grpc_static Threads::Threads)
    if(acorn_wraps)
      target_compile_definitions(test_grpc_${side}_${variant} PRIVATE GRPC_FAILURE)
      target_link_options(test_grpc_${side}_${variant} PRIVATE -Wl,--wrap=aco__service_allocate)
      if(side STREQUAL "client")
        target_link_options(test_grpc_client_${variant} PRIVATE -Wl,--wrap=aco__service_free)
      endif()
    endif()
  endforeach()
endforeach()
acorn_variant_tests(grpc_service_config LINK acorn_grpc_static)
if(TARGET acorn_sim)
  acorn_variant_tests(sim_grpc_server COUNTS_MEMORY LINK acorn_sim_static acorn_grpc_static)
  acorn_variant_tests(sim_grpc_client sim_grpc_retries LINK acorn_sim_static acorn_grpc_static)
endif()
if(TARGET acorn_tls)
  acorn_test(grpc_tls.default grpc_tls.c TIMEOUT 200 LINK acorn_grpc_static acorn_tls_static OpenSSL::SSL)
endif()
if(IO_PYTHON AND ACORN_TESTS_ONCE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME grpc.peers COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/grpc_peers.py
           ${PROJECT_BINARY_DIR}/grpc-venv $<TARGET_FILE:test_grpc_server_release>
           $<TARGET_FILE:test_grpc_client_release>
           $<$<TARGET_EXISTS:example_greeter_c>:$<TARGET_FILE:example_greeter_c>>
           $<$<TARGET_EXISTS:example_greeter_nanopb_c>:$<TARGET_FILE:example_greeter_nanopb_c>>
           $<$<TARGET_EXISTS:example_greeter>:$<TARGET_FILE:example_greeter>>
           $<$<TARGET_EXISTS:example_grpc_chat>:$<TARGET_FILE:example_grpc_chat>> COMMAND_EXPAND_LISTS)
  set_tests_properties(grpc.peers PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
if(TARGET protoc-gen-acorn AND ACORN_TESTS_ONCE)
  add_subdirectory(grpc_conformance)
  add_subdirectory(grpc_interop)
  add_test(NAME grpc.peers.conformance
           COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/grpc_conformance.sh $<TARGET_FILE:conformance_server>
           $<TARGET_FILE:conformance_client>)
  add_test(NAME grpc.peers.go
           COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/grpc_interop.sh go $<TARGET_FILE:interop_server>
           $<TARGET_FILE:interop_client> $<$<TARGET_EXISTS:example_route_guide>:$<TARGET_FILE:example_route_guide>>
           COMMAND_EXPAND_LISTS)
  add_test(NAME grpc.peers.java
           COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/grpc_interop.sh java $<TARGET_FILE:interop_server>
           $<TARGET_FILE:interop_client> ${PROJECT_BINARY_DIR}/grpc-java)
  set_tests_properties(grpc.peers.conformance grpc.peers.go grpc.peers.java PROPERTIES
                       TIMEOUT 400 SKIP_RETURN_CODE 77)
  if(ACORN_NIGHTLY AND TARGET example_greeter_client)
    add_test(NAME grpc.peers.tonic
             COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/grpc_interop.sh tonic $<TARGET_FILE:test_grpc_server_release>
             $<TARGET_FILE:example_greeter_client> ${PROJECT_BINARY_DIR}/tonic)
    set_tests_properties(grpc.peers.tonic PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
  endif()
endif()
