# The programs of bench/run_paper.py beside those of bench/run.py.
bench_program(native-write_fully SOURCES write_fully.c LIBRARIES acorn_static)
bench_program(native-write_fully_classic SOURCES write_fully.c DEFINITIONS TASKS_CLASSIC)
bench_program(native-write_fully_cpp20 SOURCES peers/write_fully_cpp20.cpp)
if(Boost_FOUND AND boost_context_library)
  bench_program(native-write_fully_boost SOURCES peers/boost_write_fully.cpp LIBRARIES Boost::boost ${boost_context_library})
endif()
bench_program(native-paper_yield SOURCES paper_yield.c LIBRARIES acorn_static)
# The program's own stack.c comes before the library's.
bench_program(native-scheduler-uncoloured SOURCES scheduler.c ${PROJECT_SOURCE_DIR}/src/stack.c LIBRARIES acorn_static
              DEFINITIONS ACO_CONFIG_NO_COLOUR)
bench_program(native-scheduler-small SOURCES scheduler.c LIBRARIES acorn_static DEFINITIONS RING_STACK=4096)
