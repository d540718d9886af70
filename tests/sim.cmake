# Simulation (src/sim): Linux.
foreach(variant IN LISTS acorn_two_variants)
  acorn_test(sim.${variant} sim.c DEFINE ${define_${variant}})
  target_link_libraries(test_sim_${variant} PRIVATE acorn_sim_static)
endforeach()
