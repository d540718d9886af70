# Copying between share stacks and save areas, its memory, libaco's table, and the memory of stackless coroutines.
# bench/run.py runs them with --json.
foreach(fp shared own)
  if(fp STREQUAL shared)
    set(definitions ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
  else()
    set(definitions "")
  endif()
  bench_program(memory-acorn-${fp} SOURCES memory.c LIBRARIES acorn_static DEFINITIONS ${definitions})
  bench_program(memory-malloc-${fp} SOURCES malloc_contender.c DEFINITIONS ${definitions})
  bench_program(libaco_table-${fp} SOURCES libaco_table.c LIBRARIES acorn_static DEFINITIONS ${definitions})
endforeach()
bench_program(memory-await SOURCES memory_await.cpp LIBRARIES acorn_static)
