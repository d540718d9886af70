# Coroutines by the million. bench/run_memory.py runs them.
find_library(tcmalloc_library tcmalloc_minimal)
find_library(jemalloc_library jemalloc)
set(scale_contender MEMORY_SCALE ${share_fp})
bench_program(scale-acorn SOURCES memory_scale.c LIBRARIES acorn_static DEFINITIONS ${share_fp})
bench_program(scale-acorn-entry SOURCES memory_scale.c LIBRARIES acorn_static
              DEFINITIONS ${share_fp} SCALE_ACO_ENTRY)
bench_program(scale-tasks SOURCES memory_tasks.c LIBRARIES acorn_static DEFINITIONS ${share_fp})
bench_program(scale-private SOURCES memory_private.c LIBRARIES acorn_static DEFINITIONS ${share_fp})
bench_program(scale-malloc-glibc SOURCES malloc_contender.c
              DEFINITIONS ${scale_contender} "IMPL=\"malloc blocks, glibc\"")
if(tcmalloc_library)
  bench_program(scale-malloc-tcmalloc SOURCES malloc_contender.c LIBRARIES ${tcmalloc_library}
                DEFINITIONS ${scale_contender} "IMPL=\"malloc blocks, tcmalloc\"")
endif()
if(jemalloc_library)
  bench_program(scale-malloc-jemalloc SOURCES malloc_contender.c LIBRARIES ${jemalloc_library}
                DEFINITIONS ${scale_contender} "IMPL=\"malloc blocks, jemalloc\"")
endif()
bench_program(scale-cpp20 SOURCES peers/memory_cpp20.cpp)
if(Boost_FOUND AND boost_context_library)
  bench_program(scale-boost SOURCES peers/memory_boost.cpp LIBRARIES Boost::boost ${boost_context_library})
endif()
