# Probes of the switch: what it preserves (probe.*), what compilers make of it (redzone.*), and how functions around it
# return (returns.*).
set(probe_sources probe.c probe.S)
enable_language(ASM)
set(CMAKE_ASM_FLAGS "${CMAKE_C_FLAGS}")

acorn_test(probe.own-fp ${probe_sources} TIMEOUT 200)
acorn_test(probe.shared-fp ${probe_sources} DEFINE ACO_CONFIG_SHARE_FPU_MXCSR_ENV TIMEOUT 200)
acorn_test(probe.pic-frame-pointer ${probe_sources} FLAGS -fPIC -fno-omit-frame-pointer TIMEOUT 200)

acorn_test(returns.release returns.c TIMEOUT 200)
acorn_test(probe.live abi/live.c TIMEOUT 200)
acorn_test(probe.live-shared-fp abi/live.c DEFINE ACO_CONFIG_SHARE_FPU_MXCSR_ENV TIMEOUT 200)
acorn_test(probe.live-pic-frame-pointer abi/live.c FLAGS -fPIC -fno-omit-frame-pointer TIMEOUT 200)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|i.86")
  acorn_test(probe.live-avx2 abi/live.c FLAGS -mavx2 TIMEOUT 200)
  acorn_test(probe.live-avx512 abi/live.c FLAGS -mavx512f -mavx512bw TIMEOUT 200)
  set_tests_properties(probe.live-avx2 probe.live-avx512 PROPERTIES SKIP_RETURN_CODE 77)
endif()

find_program(PROBE_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(PROBE_PYTHON NAMES python3)

# What the switch declares, against the ABI's register tables. For all architectures, wherever it is built; one build is
# enough.
if(PROBE_PYTHON AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "^(-O2 -g)?$" AND NOT
    CMAKE_CROSSCOMPILING)
  file(GLOB tables RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/abi CONFIGURE_DEPENDS abi/*.txt)
  foreach(table ${tables})
    get_filename_component(arch ${table} NAME_WE)
    add_test(NAME probe.abi.${arch} COMMAND ${PROBE_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/abi/check.py ${arch})
    set_tests_properties(probe.abi.${arch} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
    if(ACORN_NIGHTLY OR arch MATCHES "^(x86_64|aarch64)$")
      add_test(NAME probe.abi-seeded.${arch} COMMAND ${PROBE_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/abi/check.py --seeded
          ${arch})
      set_tests_properties(probe.abi-seeded.${arch} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
    endif()
  endforeach()
  add_test(NAME probe.abi COMMAND ${PROBE_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/abi/check.py --complete)
endif()

find_program(PROBE_OBJDUMP NAMES objdump)
if(WIN32) # its ABI has no red zone
  return()
endif()
if(ACORN_UCONTEXT)
  message(STATUS "left out: redzone.*, generator.code, generator.matrix: this build has no inline assembly")
  return()
endif()
if(NOT PROBE_PYTHON OR NOT PROBE_OBJDUMP)
  message(STATUS "skipped: redzone.*: python3 or objdump is not installed")
  return()
endif()

# Generated functions, compiled as this build compiles.
set(redzone ${CMAKE_CURRENT_SOURCE_DIR}/redzone)
set(redzone_generated ${CMAKE_CURRENT_BINARY_DIR}/redzone_generated.c)
add_custom_command(OUTPUT ${redzone_generated}
                   COMMAND ${PROBE_PYTHON} ${redzone}/generate.py 1 40 > ${redzone_generated}
                   DEPENDS ${redzone}/generate.py VERBATIM)
acorn_test(redzone.run ${redzone_generated} redzone/run.c TIMEOUT 200)
target_include_directories(test_redzone_run PRIVATE ${redzone})

# There is a red zone on x86-64 only.
if(CMAKE_SIZEOF_VOID_P EQUAL 8 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(redzone_files $<TARGET_FILE:acorn>)
  foreach(name probe_own-fp probe_shared-fp probe_pic-frame-pointer probe_live probe_live-shared-fp
      probe_live-pic-frame-pointer
          probe_live-avx2 probe_live-avx512 redzone_run)
    list(APPEND redzone_files $<TARGET_FILE:test_${name}>)
  endforeach()
  if(ACORN_TESTS_ONCE OR NOT CMAKE_C_FLAGS MATCHES "-fsanitize") # whose code is long: minutes
    add_test(NAME redzone.check COMMAND ${PROBE_PYTHON} ${redzone}/check.py --at-least 100 ${redzone_files})
    set_tests_properties(redzone.check PROPERTIES TIMEOUT 300)
  endif()

  # These run several compilers by themselves (every one there is: nightly), so one build of many needs them.
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_FLAGS MATCHES "^(-O2 -g)?$")
    set(redzone_functions 2) # the first only resumes: without a second nothing yields
    set(redzone_compilers --compilers gcc,clang-19)
    set(redzone_timeout 900)
    if(ACORN_NIGHTLY)
      set(redzone_compilers)
      set(redzone_functions 300)
      set(redzone_timeout 7200)
    endif()
    add_test(NAME redzone.sweep COMMAND ${PROBE_PYTHON} ${redzone}/matrix.py sweep ${redzone_compilers}
             --functions ${redzone_functions})
    add_test(NAME redzone.seeded COMMAND ${PROBE_PYTHON} ${redzone}/matrix.py seeded ${redzone_compilers})
    add_test(NAME redzone.vzeroupper COMMAND ${PROBE_PYTHON} ${redzone}/matrix.py vzeroupper ${redzone_compilers})
    set_tests_properties(redzone.sweep redzone.seeded redzone.vzeroupper PROPERTIES TIMEOUT ${redzone_timeout}
        SKIP_RETURN_CODE 77)
  endif()
endif()
