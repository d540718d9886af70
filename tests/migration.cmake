# Coroutines on many threads: migration.c and migration_steps.c, programs for each variant and a test for each part.
# Arguments: part, how many coroutines, how many threads.
function(acorn_migration_tests variant scale steps heirs)
  acorn_test(migration.${variant}.scale migration.c DEFINE ${define_${variant}} ARGS scale ${scale} 8 TIMEOUT 300)
  acorn_test(migration_steps.${variant}.steps migration_steps.c DEFINE ${define_${variant}} ARGS steps ${steps} TIMEOUT
      300)
  target_link_options(test_migration_${variant}_scale PRIVATE ${ARGN})
  target_link_options(test_migration_steps_${variant}_steps PRIVATE ${ARGN})
  add_test(NAME migration.${variant}.owners COMMAND test_migration_${variant}_scale owners)
  add_test(NAME migration.${variant}.libaco COMMAND test_migration_${variant}_scale libaco)
  add_test(NAME migration.${variant}.heirs COMMAND test_migration_${variant}_scale heirs ${heirs})
  add_test(NAME migration_steps.${variant}.recipe COMMAND test_migration_steps_${variant}_steps recipe)
  set_tests_properties(migration.${variant}.owners migration.${variant}.libaco migration.${variant}.heirs
      migration_steps.${variant}.recipe
                       PROPERTIES TIMEOUT 300)
endfunction()

if(WIN32)
  return() # windows.cmake has its own numbers
endif()
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
# Cancelled on small stacks: -z now, since the dynamic linker's lazy binding needs more.
foreach(variant release debug no_inline) # the first with the large scale
  if(NOT variant IN_LIST ACORN_VARIANTS)
    continue()
  endif()
  acorn_migration_tests(${variant} ${migration_scale} ${migration_steps} ${migration_heirs} -Wl,-z,now)
  set(migration_scale 1000)
endforeach()
