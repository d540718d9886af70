# HTTP (src/http), where acorn_http is.
acorn_variant_tests(http_requests http_replies http_middleware http_streams_around http_cookies http_forms http_limits
                    http_access_log http_ends http_stop http_drain http_url http_client http_client_calls
                    http_cookie_jar http_websocket http_trailers http_decoding http_compression http_websocket_client
                    COUNTS_MEMORY TIMEOUT 200 LINK acorn_http_static Threads::Threads)
foreach(variant IN LISTS acorn_two_variants)
  if(TARGET acorn_sim) # in simulations
    target_compile_definitions(test_http_cookies_${variant} PRIVATE SIMULATED_RUNS=10)
    target_link_libraries(test_http_cookies_${variant} PRIVATE acorn_sim_static)
  endif()
  foreach(subject http_decoding http_compression http_websocket_client)
    target_compile_definitions(test_${subject}_${variant} PRIVATE
                               $<$<AND:$<BOOL:${ACORN_ZLIB}>,$<BOOL:${ACORN_HAS_ZLIB}>>:HTTP_WITH_ZLIB>
                               $<$<AND:$<BOOL:${ACORN_BROTLI}>,$<BOOL:${ACORN_HAS_BROTLI}>>:HTTP_WITH_BROTLI>)
  endforeach()
endforeach()
# HTTP/2, where nghttp2 is.
if(ACORN_HTTP2 AND ACORN_HAS_NGHTTP2)
  acorn_variant_tests(http2_server http2_attacks http2_client_calls http2_client_peers http2_websocket
                      COUNTS_MEMORY TIMEOUT 200 LINK acorn_http_static Threads::Threads)
  foreach(variant IN LISTS acorn_two_variants)
    target_compile_definitions(test_http_drain_${variant} PRIVATE HTTP_WITH_HTTP2)
    target_compile_definitions(test_http2_server_${variant} PRIVATE HTTP2_FILES="${CMAKE_CURRENT_SOURCE_DIR}")
  endforeach()
  if(acorn_wraps)
    acorn_test(http2_failure.default http2_failure.c TIMEOUT 200 LINK acorn_http_static Threads::Threads)
    target_link_options(test_http2_failure_default PRIVATE -Wl,--wrap=aco__service_allocate,--wrap=aco__http_close_door)
  endif()
  set(http2_asks)
  if(TARGET acorn_tls)
    acorn_test(http2_tls.default http2_tls.c TIMEOUT 200 LINK acorn_http_static acorn_tls_static OpenSSL::SSL)
    if(IO_PYTHON AND ACORN_TESTS_ONCE AND NOT CMAKE_CROSSCOMPILING)
      add_executable(test_http2_browser http2_browser.c)
      set_target_properties(test_http2_browser PROPERTIES C_STANDARD 11)
      target_link_libraries(test_http2_browser PRIVATE acorn_http_static acorn_tls_static OpenSSL::SSL acorn_warnings)
      find_program(HTTP_CHROMIUM NAMES chromium-headless-shell chromium)
      add_test(NAME http.browser COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/browser.py
               $<TARGET_FILE:test_http2_browser> "$<$<BOOL:${HTTP_CHROMIUM}>:${HTTP_CHROMIUM}>")
      set_tests_properties(http.browser PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
    endif()
    set(http2_asks $<TARGET_FILE:test_http2_asks>)
    add_executable(test_http2_asks http2_asks.c)
    set_target_properties(test_http2_asks PROPERTIES C_STANDARD 11)
    target_link_libraries(test_http2_asks PRIVATE acorn_http_static acorn_tls_static OpenSSL::SSL acorn_warnings)
  endif()
  if(IO_PYTHON AND ACORN_TESTS_ONCE AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME http.peers2 COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/http2_peers.py
             $<TARGET_FILE:test_http2_server_release> ${PROJECT_BINARY_DIR}/h2spec ${http2_asks})
    set_tests_properties(http.peers2 PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
  endif()
endif()

# Against a second reader, which is not the library's: many random inputs at night.
set(http_differential_count 20000)
if(ACORN_NIGHTLY)
  set(http_differential_count 5000000)
endif()
acorn_test(http_differential.release http_differential.c http_reader.c DEFINE ${define_release} TIMEOUT 3600 ARGS
           ${PROJECT_BINARY_DIR}/verification/fuzz/corpus/http ${http_differential_count} 1 LINK acorn_http_static
           Threads::Threads)

set(http_tunnel none)
if(TARGET acorn_tls)
  set(http_tunnel $<TARGET_FILE:test_http_tunnel_default>)
  acorn_test(http_tunnel.default http_tunnel.c TIMEOUT 200 LINK acorn_http_static acorn_tls_static OpenSSL::SSL)
endif()
if(acorn_wraps)
  acorn_variant_tests(http_streams TIMEOUT 200 LINK acorn_http_static Threads::Threads
                      -Wl,--wrap=aco__service_allocate,--wrap=aco__service_free)
  acorn_test(http_failure.default http_failure.c TIMEOUT 300)
  target_include_directories(test_http_failure_default PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(test_http_failure_default PRIVATE acorn_http_static Threads::Threads)
  target_link_options(test_http_failure_default PRIVATE -Wl,--wrap=aco__service_allocate,--wrap=aco__http_close_door)
  if(TARGET acorn_tls)
    target_compile_definitions(test_http_failure_default PRIVATE HTTP_WITH_TLS)
    target_link_libraries(test_http_failure_default PRIVATE acorn_tls_static OpenSSL::SSL OpenSSL::Crypto)
  endif()
endif()
if(IO_PYTHON AND ACORN_TESTS_ONCE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME http.peers COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/http_peers.py
           $<TARGET_FILE:example_http_files> $<TARGET_FILE:example_http_hello_cpp>
           $<TARGET_FILE:example_http_one_port> ${http_tunnel})
  add_test(NAME http.websocket_peers COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/websocket_peers.py
           $<TARGET_FILE:test_http_websocket_release> $<TARGET_FILE:example_websocket_chat>
           $<TARGET_FILE:test_http_websocket_client_release>)
  add_test(NAME http.curl COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/http_curl.py
           $<TARGET_FILE:test_http_forms_release> $<TARGET_FILE:test_http_cookies_release>
           $<TARGET_FILE:test_http_compression_release>)
  if(ACORN_ZLIB AND ACORN_HAS_ZLIB)
    add_test(NAME http.nginx COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/http_nginx.py
             $<TARGET_FILE:test_http_compression_release>)
    set_tests_properties(http.nginx PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
  endif()
  set(http2_websocket)
  if(TARGET test_http2_websocket_release)
    set(http2_websocket $<TARGET_FILE:test_http2_websocket_release>)
  endif()
  add_test(NAME http.node COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/node_peers.py
           $<TARGET_FILE:test_http_trailers_release> ${http2_websocket})
  set_tests_properties(http.peers http.websocket_peers http.curl http.node PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()

# The proxy of examples/proxy among backends that fail: once is enough, it takes long.
if(TARGET example_proxy AND NOT CMAKE_CROSSCOMPILING)
  add_executable(test_proxy_backend proxy/backend.c)
  set_target_properties(test_proxy_backend PROPERTIES C_STANDARD 11)
  target_link_libraries(test_proxy_backend PRIVATE acorn_http_static acorn_warnings)
  if(IO_PYTHON AND ACORN_TESTS_ONCE)
    add_test(NAME http.proxy COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/proxy/faults.py
             $<TARGET_FILE:example_proxy> $<TARGET_FILE:test_proxy_backend> 20000)
    set_tests_properties(http.proxy PROPERTIES TIMEOUT 600)
  endif()
endif()
