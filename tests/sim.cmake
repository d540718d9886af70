# Simulation (src/sim): Linux.
foreach(variant IN LISTS acorn_two_variants)
  acorn_test(sim.${variant} sim.c DEFINE ${define_${variant}})
  target_link_libraries(test_sim_${variant} PRIVATE acorn_sim_static)
endforeach()

# Small random programs, in many orders, each run twice. tests/sim_faults.py finds mended faults with them.
add_executable(test_sim_faults sim_faults.c)
set_target_properties(test_sim_faults PROPERTIES C_STANDARD 11)
target_link_libraries(test_sim_faults PRIVATE acorn_tests acorn_sim_static)
set(sim_fault_runs 300)
if(ACORN_NIGHTLY)
  set(sim_fault_runs 100000)
endif()
foreach(scenario places scopes select inner back_off turns barrier join)
  add_test(NAME sim_faults.${scenario} COMMAND test_sim_faults ${scenario} --runs ${sim_fault_runs} --check)
  set_tests_properties(sim_faults.${scenario} PROPERTIES TIMEOUT 1000)
endforeach()
