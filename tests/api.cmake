# The API's promises, misuse, and white-box tests. Names are SUBJECT.VARIANT.
set(define_debug ACO_DEBUG=1)
set(define_release ACO_DEBUG=0)
set(define_shared_fp ACO_CONFIG_SHARE_FPU_MXCSR_ENV)
set(define_no_inline ACO_CONFIG_NO_INLINE)
# For tests that the other two variants compile to nothing new.
set(acorn_two_variants ${ACORN_VARIANTS})
list(REMOVE_ITEM acorn_two_variants shared_fp no_inline)

foreach(variant IN LISTS ACORN_VARIANTS)
  foreach(subject api copying fork guard)
    acorn_test(${subject}.${variant} ${subject}.c DEFINE ${define_${variant}} TIMEOUT 200)
  endforeach()
  target_link_libraries(test_api_${variant} PRIVATE m)
endforeach()
acorn_test(assertions.ndebug assertions.c DEFINE NDEBUG TIMEOUT 200)
acorn_test(load_order.release load_order.c DEFINE ${define_release} TIMEOUT 200)
acorn_test(load_order.error_only error_only.c TIMEOUT 200)

foreach(variant IN LISTS acorn_two_variants)
  acorn_test(misuse.${variant} misuse.c misuse_shared_fp.c DEFINE ${define_${variant}} TIMEOUT 300)
endforeach()
acorn_test(misuse.no_inline misuse.c misuse_shared_fp.c DEFINE ACO_DEBUG=0 ${define_no_inline} TIMEOUT 300)

# Random schedules: a program for each variant, run with several seeds.
foreach(variant IN LISTS ACORN_VARIANTS)
  acorn_test(model.${variant}.1 model.c DEFINE ${define_${variant}} ARGS 1 TIMEOUT 300)
  foreach(seed 2 3)
    add_test(NAME model.${variant}.${seed} COMMAND test_model_${variant}_1 ${seed})
    set_tests_properties(model.${variant}.${seed} PROPERTIES TIMEOUT 300)
  endforeach()
endforeach()
add_test(NAME model.release.scale COMMAND test_model_release_1 4 2000000 20000)
set_tests_properties(model.release.scale PROPERTIES TIMEOUT 300)

foreach(variant IN LISTS ACORN_VARIANTS)
  if(variant STREQUAL "debug")
    continue()
  endif()
  acorn_test(signals.${variant} signals.c DEFINE ${define_${variant}} ARGS 2 TIMEOUT 200)
endforeach()
foreach(variant IN LISTS ACORN_VARIANTS)
  if(variant STREQUAL "shared_fp")
    continue()
  endif()
  acorn_test(threads.${variant} threads.c DEFINE ${define_${variant}} TIMEOUT 300)
endforeach()

acorn_test(slab.default slab.c TIMEOUT 300)
add_test(NAME slab.threads COMMAND test_slab_default threads)
add_test(NAME slab.quick COMMAND test_slab_default quick)
set_tests_properties(slab.threads slab.quick PROPERTIES TIMEOUT 300)
# gcc's link-time optimisation resolves some references before the linker's --wrap sees them.
if(NOT (CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "-flto"))
  acorn_test(alloc_failure.default alloc_failure.c TIMEOUT 300)
  target_link_options(test_alloc_failure_default PRIVATE -Wl,--wrap=malloc)
  # Sanitizers have to map memory where none is to be had.
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_CROSSCOMPILING AND ACORN_TESTS_ONCE AND
     NOT CMAKE_C_FLAGS MATCHES "-fsanitize=(thread|address)")
    acorn_test(every_failure.release every_failure.c DEFINE ${define_release} TIMEOUT 300)
    target_link_options(test_every_failure_release PRIVATE -Wl,--wrap=malloc,--wrap=pthread_key_create
                        -Wl,--wrap=pthread_setspecific,--wrap=pthread_atfork)
  endif()
endif()
set(unwind_variants release no_inline shared_fp)
set(unwind_options)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "arm") # the tables, and so a walk, merge functions that unwind alike
  include(CheckLinkerFlag)
  check_linker_flag(C -Wl,--no-merge-exidx-entries ACORN_NO_MERGE_EXIDX)
  if(ACORN_NO_MERGE_EXIDX)
    set(unwind_options -Wl,--no-merge-exidx-entries)
  else()
    message(STATUS "skipped: unwind.*: the linker cannot keep functions apart that unwind alike")
    set(unwind_variants)
  endif()
endif()
foreach(variant ${unwind_variants})
  acorn_test(unwind.${variant} unwind.c DEFINE ${define_${variant}} FRAME_POINTERS FLAGS -fasynchronous-unwind-tables
      -fno-omit-frame-pointer TIMEOUT 200)
  target_link_options(test_unwind_${variant} PRIVATE ${unwind_options})
  target_link_libraries(test_unwind_${variant} PRIVATE Threads::Threads)
endforeach()
check_c_source_compiles("#include <stdlib.h>
#if !defined(__GLIBC__) || !(defined(__x86_64__) || defined(__i386__))
#error
#endif
int main(void) { return 0; }" ACORN_CAN_STEP)
if(ACORN_CAN_STEP AND NOT ACORN_UCONTEXT AND NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
  set(unpacked ${PROJECT_SOURCE_DIR}/build/libunwind/usr) # by tools/setup.sh
  find_path(ACORN_LIBUNWIND_H libunwind.h HINTS ${unpacked}/include/${CMAKE_LIBRARY_ARCHITECTURE})
  find_library(ACORN_LIBUNWIND unwind HINTS ${unpacked}/lib/${CMAKE_LIBRARY_ARCHITECTURE})
  if(ACORN_LIBUNWIND_H AND ACORN_LIBUNWIND)
    set(CMAKE_REQUIRED_INCLUDES ${ACORN_LIBUNWIND_H})
    # not LLVM's
    check_c_source_compiles("#include <libunwind.h>\nint main(void) { return UNW_INIT_SIGNAL_FRAME == 0; }"
        ACORN_LIBUNWIND_USABLE)
    unset(CMAKE_REQUIRED_INCLUDES)
  endif()
  foreach(variant IN LISTS ACORN_VARIANTS)
    if(variant STREQUAL "debug") # its checks are walked from in the release form
      continue()
    endif()
    acorn_test(unwind.steps.${variant} unwind_steps.c DEFINE ${define_${variant}} FLAGS -fasynchronous-unwind-tables
        TIMEOUT 200)
    target_link_options(test_unwind_steps_${variant} PRIVATE -Wl,-z,now)
    if(ACORN_CXX_FULL AND ACORN_LIBUNWIND_USABLE AND NOT CMAKE_C_FLAGS MATCHES "-m32")
      acorn_test(unwind.libunwind.${variant} unwind_steps.c DEFINE USE_LIBUNWIND ${define_${variant}} FLAGS
          -fasynchronous-unwind-tables TIMEOUT 200)
      target_link_options(test_unwind_libunwind_${variant} PRIVATE -Wl,-z,now)
      target_include_directories(test_unwind_libunwind_${variant} PRIVATE ${ACORN_LIBUNWIND_H})
      target_link_libraries(test_unwind_libunwind_${variant} PRIVATE ${ACORN_LIBUNWIND})
    endif()
  endforeach()
  if(ACORN_CXX_FULL AND NOT ACORN_LIBUNWIND_USABLE AND NOT CMAKE_C_FLAGS MATCHES "-m32")
    message(STATUS "skipped: unwind.libunwind.*: no libunwind for this build")
  endif()
endif()

# C++, in every standard that the compiler knows.
include(googletest.cmake)
if(GTest_FOUND)
  foreach(standard IN LISTS ACORN_STANDARDS)
    if("cxx_std_${standard}" IN_LIST CMAKE_CXX_COMPILE_FEATURES)
      acorn_test(cpp.${standard} api_cpp.cpp TIMEOUT 200)
      set_target_properties(test_cpp_${standard} PROPERTIES CXX_STANDARD ${standard} CXX_STANDARD_REQUIRED ON
          CXX_EXTENSIONS OFF)
      target_link_libraries(test_cpp_${standard} PRIVATE GTest::gtest_main)
    endif()
  endforeach()
else()
  message(STATUS "skipped: cpp.*: no Google Test for this build")
endif()
