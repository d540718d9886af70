# cmake -DPORT=FOLDER -DWORK=FOLDER -P vcpkg.cmake: runs a port with stand-ins for vcpkg's functions, a release build
# alone. A function without a stand-in stops it.
cmake_minimum_required(VERSION 3.16)
set(CURRENT_PORT_DIR ${PORT})
set(CURRENT_PACKAGES_DIR ${WORK}/packages)
set(FEATURES core)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --build ${WORK}/build --target install)
endfunction()

function(vcpkg_cmake_config_fixup) # moves the files; _IMPORT_PREFIX is counted from their folder
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  set(from ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH})
  set(to ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME})
  file(GLOB files ${from}/*.cmake)
  if(NOT files)
    message(FATAL_ERROR "no files in ${from}")
  endif()
  foreach(file ${files})
    file(READ ${file} text)
    set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
    string(REPLACE "${up}${up}${up}" "${up}${up}" text "${text}")
    string(REPLACE "/../../../" "/../../" text "${text}")
    get_filename_component(name ${file} NAME)
    file(WRITE ${to}/${name} "${text}")
  endforeach()
  file(REMOVE_RECURSE ${from})
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  foreach(file ${arg_FILE_LIST})
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "no ${file}")
    endif()
  endforeach()
endfunction()

include(${PORT}/portfile.cmake)
