# CTest labels, all of them given here, by a test's name. A test without a subject is an error.
#   fast    what `make check` runs: ctest -L '^fast$'
#   slow    the rest: seconds of a processor, or a compiler that is run many times
#   and subjects: ctest -L scheduler
set(acorn_slow
  "^redzone\\.(check|sweep|seeded|vzeroupper)|^probe\\.abi-seeded|^generator\\.(matrix|code)|^soak|^slab\\.default"
  "^migration\\.release\\.scale|\\.long$"
  "^install\\.(headers|old|warnings|amalgamation|cmake|subdirectory|libaco_only|rust)"
  "^debug\\.(readers|page)$" "^headers\\.module$" "^pages\\.|^bindings\\.(python|rust|lua|zig|go)$"
  "^hardening\\.(options|ibt|bti|shadow(-all)?)$" "^example\\.io_echo\\.10000"
  "^(io|http)_failure|^(http|grpc)\\.(p|node|browser)|^(layers\\.self_test|files\\.seeded|documents\\.seeded)$"
  "^hook\\.(redis|postgres|mariadb|curl|sqlite)$" "^hook\\.allocators\\.efence$" "^http_differential\\."
  "^may_switch\\.graph$" "^sim_porcupine$"
  "^debugger\\.(lldb|gdb\\.O0)$|^trace\\.debug\\.dies$")

set(acorn_subject_coroutine
    "^(api|assertions|load_order|allocator|backtrace|cancel|coroutine|forgotten|found|local|misuse|model)[._]|^compat_")
set(acorn_subject_thread "^(fork|migration|signals|threads)[._]")
set(acorn_subject_stack "^(copying|guard|overflow|save_area|entry|stack_trim|profile|pool)[._]")
set(acorn_subject_memory "^(pool|depot|slab|allocator)[._]")
set(acorn_subject_failure "failure\\.")
set(acorn_subject_switch "^(probe|redzone|returns|unwind)\\.")
set(acorn_subject_scheduler "^scheduler[._]")
set(acorn_subject_io "^(io[._]|tls[._]|cpp_(io|tls)\\.|example\\.(io|tls)_)")
set(acorn_subject_hook "^(hook[._]|example\\.hook_)")
set(acorn_subject_http "^(http2?[._]|example\\.http_)")
set(acorn_subject_grpc "^grpc[._]")
set(acorn_subject_service "^(cpp_)?service\\.")
set(acorn_subject_resilience "^(limiter|retry|resource_pool|singleflight|cpp_resilience)\\.")
set(acorn_subject_debug "^(cpp_)?debug[._]")
set(acorn_subject_sim "^(sim[._]|cpp_sim\\.|example\\.sim)")
set(acorn_subject_generator "^generator[._]")
set(acorn_subject_cpp "^cpp[._]")
set(acorn_subject_hooks "^(sanitizers|hardening|trace|profile|profile_model)\\.")
set(acorn_subject_tools
    "^(bindings|debugger|documents|guards|headers|install|files|layers|litmus|may_switch|mutate|paper_|soak|trace)")
set(acorn_subject_bench "^bench\\.")
set(acorn_subject_examples "^(example|pages)\\.")
set(acorn_subject_fuzz "^fuzz\\.")
set(acorn_subject_windows "^(exceptions|dll|unload|amalgamation)\\.")
get_cmake_property(acorn_subjects VARIABLES)
list(FILTER acorn_subjects INCLUDE REGEX "^acorn_subject_")

# To be called at the end of each directory that adds tests.
function(acorn_label_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    set(labels fast)
    foreach(pattern IN LISTS acorn_slow)
      if(test MATCHES "${pattern}")
        set(labels slow)
      endif()
    endforeach()
    foreach(subject IN LISTS acorn_subjects)
      if(test MATCHES "${${subject}}")
        string(REPLACE acorn_subject_ "" label ${subject})
        list(APPEND labels ${label})
      endif()
    endforeach()
    list(LENGTH labels count)
    if(count EQUAL 1)
      message(FATAL_ERROR "tests/labels.cmake: no subject for the test ${test}")
    endif()
    set_tests_properties(${test} PROPERTIES LABELS "${labels}")
  endforeach()
endfunction()
