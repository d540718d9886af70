# Limits, retries, pools of resources, singleflight (src/resilience). Their tests are simulations.
if(NOT TARGET acorn_sim)
  return()
endif()
acorn_variant_tests(limiter retry resource_pool singleflight COUNTS_MEMORY
                    LINK acorn_resilience_static acorn_sim_static Threads::Threads)
