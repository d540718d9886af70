# An overlay port: vcpkg install acorn --overlay-ports=packaging/vcpkg takes the sources around it. In a registry
# vcpkg_from_git() or vcpkg_download_distfile() with the release's checksum comes instead.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
set(tls OFF)
set(uring OFF)
if("tls" IN_LIST FEATURES)
  set(tls ON)
endif()
if("uring" IN_LIST FEATURES)
  set(uring ON)
endif()
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
                      OPTIONS -DACORN_TESTS=OFF -DACORN_INSTALL=ON -DACORN_TLS=${tls} -DACORN_URING=${uring}
                              -DACORN_HTTP2=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME acorn CONFIG_PATH lib/cmake/acorn)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/third_party/llhttp/LICENSE-MIT")
