# acorn_protobuf(TARGET FILE.proto...): C++ of these files by protoc, classes of their services by protoc-gen-acorn. The
# target gets the sources, and a folder to include them from; it links libprotobuf. Files stand in the current source
# folder, and import each other from there.
function(acorn_protobuf target)
  if(NOT TARGET acorn::protoc-gen-acorn)
    message(FATAL_ERROR "acorn_protobuf: this acorn was built without libprotoc")
  endif()
  find_program(ACORN_PROTOC_PROGRAM protoc REQUIRED)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_proto)
  file(MAKE_DIRECTORY ${folder})
  foreach(file IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" "" base ${file})
    add_custom_command(OUTPUT ${folder}/${base}.pb.cc ${folder}/${base}.pb.h ${folder}/${base}.acorn.hpp
        COMMAND ${ACORN_PROTOC_PROGRAM} -I${CMAKE_CURRENT_SOURCE_DIR} --cpp_out=${folder} --acorn_out=${folder}
                --plugin=protoc-gen-acorn=$<TARGET_FILE:acorn::protoc-gen-acorn> ${file}
        WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} VERBATIM
        DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} acorn::protoc-gen-acorn)
    target_sources(${target} PRIVATE ${folder}/${base}.pb.cc ${folder}/${base}.acorn.hpp)
    set_source_files_properties(${folder}/${base}.pb.cc PROPERTIES COMPILE_OPTIONS -w)
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE ${folder})
  target_link_libraries(${target} PRIVATE protobuf)
endfunction()
