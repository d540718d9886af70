# Coroutines on many threads: wander.c, a program for each variant and a test for each part. Arguments: part, how many
# coroutines, how many threads.
set(wander_crowd 100000)
set(wander_steps 2000)
set(wander_heirs 2000)
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(wander_crowd 20000)
endif()
if(CMAKE_CROSSCOMPILING) # qemu-user has no guards but mappings, of which the kernel has a limit
  set(wander_crowd 20000)
endif()
if(CMAKE_C_FLAGS MATCHES "-fsanitize=[a-z,]*thread") # up to three fibers for each, of which gcc 12's run time has 8128
  set(wander_crowd 1000)
  set(wander_steps 200)
  set(wander_heirs 200)
endif()
foreach(variant release debug no_inline) # the first with the large crowd
  if(NOT variant IN_LIST ACORN_VARIANTS)
    continue()
  endif()
  acorn_test(wander.${variant}.steps wander.c DEFINE ${define_${variant}} ARGS steps ${wander_steps} TIMEOUT 300)
  set(wander_program test_wander_${variant}_steps)
  # Cancelled on small stacks: the dynamic linker's work, which needs more, is done before.
  target_link_options(${wander_program} PRIVATE -Wl,-z,now)
  foreach(part recipe owners libaco)
    add_test(NAME wander.${variant}.${part} COMMAND ${wander_program} ${part})
  endforeach()
  add_test(NAME wander.${variant}.heirs COMMAND ${wander_program} heirs ${wander_heirs})
  add_test(NAME wander.${variant}.crowd COMMAND ${wander_program} crowd ${wander_crowd} 8)
  set_tests_properties(wander.${variant}.recipe wander.${variant}.owners wander.${variant}.libaco wander.${variant}.heirs
                       wander.${variant}.crowd PROPERTIES TIMEOUT 300)
  set(wander_crowd 1000)
endforeach()
