# Descriptors (src/io): Linux only.
include(CheckCSourceRuns)
foreach(variant IN LISTS acorn_two_variants)
  foreach(subject io io_file io_names io_offload io_sockets io_tasks)
    acorn_test(${subject}.${variant} ${subject}.c DEFINE ${define_${variant}} TIMEOUT 200)
    target_link_libraries(test_${subject}_${variant} PRIVATE acorn_io_static Threads::Threads)
  endforeach()
  set_tests_properties(io_file.${variant} PROPERTIES ENVIRONMENT ACO_FILES=pool)
  add_test(NAME io_file.${variant}.uring COMMAND test_io_file_${variant})
  set_tests_properties(io_file.${variant}.uring PROPERTIES ENVIRONMENT ACO_FILES=uring TIMEOUT 200 SKIP_RETURN_CODE 77)
endforeach()
# The same with io_uring instead of epoll, where this kernel allows it.
if(ACORN_URING AND ACORN_HAS_LIBURING AND NOT CMAKE_CROSSCOMPILING)
  set(CMAKE_REQUIRED_LIBRARIES uring)
  check_c_source_runs("#include <liburing.h>
    int main(void) { struct io_uring r; return io_uring_queue_init(8, &r, 0) != 0; }" ACORN_MAY_USE_URING)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(ACORN_MAY_USE_URING)
  foreach(subject io io_offload io_sockets io_tasks)
    add_test(NAME ${subject}.poll_uring COMMAND test_${subject}_release)
    set_tests_properties(${subject}.poll_uring PROPERTIES ENVIRONMENT ACO_POLLER=uring TIMEOUT 200)
  endforeach()
endif()
check_c_source_compiles("#include <features.h>\n#ifndef __GLIBC__\n#error\n#endif\nint main(void) { return 0; }"
                        ACORN_ON_GLIBC)
set(file_calls fsync rename opendir open pread pwrite readdir preadv2)
if(ACORN_ON_GLIBC) # its names for 64-bit offsets
  set(file_calls fsync rename opendir open64 pread64 pwrite64 readdir64 preadv64v2)
endif()
# gcc's link-time optimisation resolves some references before the linker's --wrap sees them.
if(NOT (CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "-flto"))
  acorn_test(io_failure.default io_failure.c TIMEOUT 200)
  target_link_libraries(test_io_failure_default PRIVATE acorn_io_static Threads::Threads)
  foreach(call epoll_create1 eventfd epoll_ctl epoll_wait syscall read write readv writev recv send recvmsg sendmsg
          sendfile sendfile64 splice accept4 connect socket bind listen setsockopt getsockopt fcntl fstat poll
          getsockname getpeername shutdown close pthread_create recvfrom sendto
          ${file_calls})
    target_link_options(test_io_failure_default PRIVATE -Wl,--wrap=${call})
  endforeach()
  if(ACORN_URING AND ACORN_HAS_LIBURING)
    acorn_test(io_uring.default io_uring.c TIMEOUT 200)
    set_tests_properties(io_uring.default PROPERTIES SKIP_RETURN_CODE 77)
    target_link_libraries(test_io_uring_default PRIVATE acorn_io_static Threads::Threads)
    foreach(call queue_init_params get_probe_ring submit_and_get_events submit_and_wait submit_and_wait_timeout)
      target_link_options(test_io_uring_default PRIVATE -Wl,--wrap=io_uring_${call})
    endforeach()
    target_link_options(test_io_uring_default PRIVATE -Wl,--wrap=preadv2,--wrap=preadv64v2)
  endif()
  foreach(variant IN LISTS acorn_two_variants)
    acorn_test(io_buffer.${variant} io_buffer.c DEFINE ${define_${variant}} TIMEOUT 200)
    target_link_libraries(test_io_buffer_${variant} PRIVATE acorn_io_static Threads::Threads)
    target_link_options(test_io_buffer_${variant} PRIVATE -Wl,--wrap=read,--wrap=write,--wrap=send)
    acorn_test(io_process.${variant} io_process.c DEFINE ${define_${variant}} TIMEOUT 200)
    target_link_libraries(test_io_process_${variant} PRIVATE acorn_io_static Threads::Threads)
    target_link_options(test_io_process_${variant} PRIVATE -Wl,--wrap=signalfd,--wrap=pipe2,--wrap=fcntl
        -Wl,--wrap=posix_spawnp,--wrap=syscall)
  endforeach()
endif()

find_program(IO_PYTHON NAMES python3)
if(NOT IO_PYTHON)
  message(STATUS "skipped: example.io_*: python3 is not installed")
else()
  # An emulator is too slow for many connections, and the thread sanitizer has 8128 fibers.
  set(crowds 500)
  if(NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize=thread")
    list(APPEND crowds 10000)
  endif()
  function(io_echo_test name crowd)
    add_test(NAME example.${name}.${crowd}
             COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/echo_client.py ${CMAKE_CROSSCOMPILING_EMULATOR}
                 $<TARGET_FILE:example_${name}> ${crowd})
    set_tests_properties(example.${name}.${crowd} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
  endfunction()
  foreach(crowd IN LISTS crowds)
    io_echo_test(io_echo ${crowd})
  endforeach()
  io_echo_test(io_echo_cpp 500)
  if(NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize") # the leak sanitizer cannot be traced
    add_test(NAME io_blocking COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/blocking.py
             $<TARGET_FILE:example_io_echo>)
    set_tests_properties(io_blocking PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
  endif()
  if(NOT CMAKE_CROSSCOMPILING)
    add_executable(test_io_resolver io_resolver.c)
    set_target_properties(test_io_resolver PROPERTIES C_STANDARD 11)
    target_link_libraries(test_io_resolver PRIVATE acorn_tests acorn_io_static Threads::Threads)
    add_test(NAME io_resolver COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/resolver.py
             $<TARGET_FILE:test_io_resolver>)
    set_tests_properties(io_resolver PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
  endif()
  foreach(name time kv chat forward supervise tail download shutdown)
    add_test(NAME example.io_${name}
             COMMAND ${IO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/io/examples.py ${name} ${CMAKE_CROSSCOMPILING_EMULATOR}
                 $<TARGET_FILE:example_io_${name}>)
    set_tests_properties(example.io_${name} PROPERTIES TIMEOUT 200 SKIP_RETURN_CODE 77)
  endforeach()
endif()
