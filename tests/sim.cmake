# Simulation (src/sim): Linux.
foreach(variant IN LISTS acorn_two_variants)
  acorn_test(sim.${variant} sim.c DEFINE ${define_${variant}})
  target_link_libraries(test_sim_${variant} PRIVATE acorn_sim_static)
  acorn_test(sim_process.${variant} sim_process.c DEFINE ${define_${variant}})
  target_link_libraries(test_sim_process_${variant} PRIVATE acorn_sim_static)
  if(TARGET acorn_io)
    target_compile_definitions(test_sim_process_${variant} PRIVATE WITH_IO)
    target_link_libraries(test_sim_process_${variant} PRIVATE acorn_io_static)
  endif()
endforeach()

foreach(variant IN LISTS acorn_two_variants)
  acorn_test(sim_closed.${variant} sim_closed.c DEFINE ${define_${variant}})
  target_link_libraries(test_sim_closed_${variant} PRIVATE acorn_sim_static Threads::Threads)
  if(TARGET acorn_threads)
    target_compile_definitions(test_sim_closed_${variant} PRIVATE WITH_THREADS)
    target_link_libraries(test_sim_closed_${variant} PRIVATE acorn_threads_static)
  endif()
endforeach()

# gcc's link-time optimisation resolves some references before the linker's --wrap sees them.
if(NOT (CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "-flto"))
  acorn_test(sim_failure.default sim_failure.c)
  target_link_libraries(test_sim_failure_default PRIVATE acorn_sim_static)
  target_link_options(test_sim_failure_default PRIVATE -Wl,--wrap=calloc,--wrap=realloc)
endif()

# Small random programs, in many orders, each run twice. tests/sim_faults.py finds mended faults with them.
set(sim_fault_runs 300)
if(ACORN_NIGHTLY)
  set(sim_fault_runs 100000)
endif()
foreach(variant IN LISTS acorn_two_variants)
  acorn_test(sim_mix.${variant} sim_mix.c DEFINE ${define_${variant}} TIMEOUT 1000
             ARGS --runs ${sim_fault_runs} --check)
  target_link_libraries(test_sim_mix_${variant} PRIVATE acorn_sim_static)
  acorn_test(sim_faults.${variant} sim_faults.c DEFINE ${define_${variant}} ARGS --runs 300 --check -- select.order)
  target_link_libraries(test_sim_faults_${variant} PRIVATE acorn_sim_static)
  foreach(scenario places scopes select inner back_off turns barrier join)
    add_test(NAME sim_faults.${variant}.${scenario}
             COMMAND test_sim_faults_${variant} --runs ${sim_fault_runs} --check -- ${scenario})
    set_tests_properties(sim_faults.${variant}.${scenario} PROPERTIES TIMEOUT 1000)
  endforeach()
endforeach()

acorn_test(sim_maybe.default sim_maybe.c)

# The simulated network against the kernel's.
set(sim_kernel_sequences 1000)
if(ACORN_NIGHTLY)
  set(sim_kernel_sequences 50000)
endif()
foreach(variant IN LISTS acorn_two_variants)
  acorn_test(sim_kernel.${variant} sim_kernel.c DEFINE ${define_${variant}} TIMEOUT 1000 ARGS ${sim_kernel_sequences})
  target_link_libraries(test_sim_kernel_${variant} PRIVATE acorn_sim_static)
endforeach()

# The simulated network.
if(TARGET acorn_io)
  foreach(variant IN LISTS acorn_two_variants)
    acorn_test(sim_net.${variant} sim_net.c DEFINE ${define_${variant}})
    target_link_libraries(test_sim_net_${variant} PRIVATE acorn_sim_static acorn_io_static)
    acorn_test(sim_edges.${variant} sim_edges.c DEFINE ${define_${variant}})
    target_link_libraries(test_sim_edges_${variant} PRIVATE acorn_sim_static acorn_io_static)
  endforeach()
endif()
# Threads in lock step.
if(TARGET acorn_io AND TARGET acorn_threads)
  foreach(variant IN LISTS acorn_two_variants)
    acorn_test(sim_threads.${variant} sim_threads.c DEFINE ${define_${variant}})
    target_link_libraries(test_sim_threads_${variant} PRIVATE acorn_sim_static acorn_threads_static acorn_io_static)
    acorn_test(sim_thread_faults.${variant} sim_thread_faults.c DEFINE ${define_${variant}}
               ARGS --runs 100 --check -- locks)
    target_link_libraries(test_sim_thread_faults_${variant}
                          PRIVATE acorn_sim_static acorn_threads_static acorn_io_static)
    foreach(scenario messages work)
      add_test(NAME sim_thread_faults.${variant}.${scenario}
               COMMAND test_sim_thread_faults_${variant} --runs 100 --check -- ${scenario})
    endforeach()
  endforeach()
endif()
if(TARGET acorn_http)
  foreach(variant IN LISTS acorn_two_variants)
    acorn_test(sim_http.${variant} sim_http.c DEFINE ${define_${variant}})
    target_link_libraries(test_sim_http_${variant} PRIVATE acorn_sim_static acorn_http_static)
  endforeach()
endif()
