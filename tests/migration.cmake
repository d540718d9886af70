# Coroutines on many threads: migration.c, a program for each variant and a test for each part. Arguments: part, how many
# coroutines, how many threads.
set(migration_scale 100000)
set(migration_steps 2000)
set(migration_heirs 2000)
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(migration_scale 20000)
endif()
if(CMAKE_CROSSCOMPILING) # qemu-user has no guards but mappings, of which the kernel has a limit
  set(migration_scale 20000)
endif()
if(CMAKE_C_FLAGS MATCHES "-fsanitize=[a-z,]*thread") # up to three fibers for each, of which gcc 12's run time has 8128
  set(migration_scale 1000)
  set(migration_steps 200)
  set(migration_heirs 200)
endif()
foreach(variant release debug no_inline) # the first with the large scale
  if(NOT variant IN_LIST ACORN_VARIANTS)
    continue()
  endif()
  acorn_test(migration.${variant}.steps migration.c DEFINE ${define_${variant}} ARGS steps ${migration_steps} TIMEOUT 300)
  set(migration_program test_migration_${variant}_steps)
  # Cancelled on small stacks: the dynamic linker's work, which needs more, is done before.
  target_link_options(${migration_program} PRIVATE -Wl,-z,now)
  foreach(part recipe owners libaco)
    add_test(NAME migration.${variant}.${part} COMMAND ${migration_program} ${part})
  endforeach()
  add_test(NAME migration.${variant}.heirs COMMAND ${migration_program} heirs ${migration_heirs})
  add_test(NAME migration.${variant}.scale COMMAND ${migration_program} scale ${migration_scale} 8)
  set_tests_properties(migration.${variant}.recipe migration.${variant}.owners migration.${variant}.libaco migration.${variant}.heirs
                       migration.${variant}.scale PROPERTIES TIMEOUT 300)
  set(migration_scale 1000)
endforeach()
