"""conan create packaging/conan: all libraries; acorn_tls with -o "&:tls=True", which needs the recipe of openssl."""
import os
import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class Acorn(ConanFile):
    name = "acorn"
    description = "Stackful coroutines and tasks for C and C++"
    license = "Apache-2.0"
    topics = ("coroutine", "fiber", "scheduler", "async")
    settings = "os", "arch", "compiler", "build_type"
    package_type = "library"
    options = {"shared": [True, False], "tls": [True, False], "uring": [True, False]}
    default_options = {"shared": False, "tls": False, "uring": False}
    root = ("..", "..")

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, *self.root, "include", "aco.h"))
        self.version = re.search(r'ACORN_VERSION_STRING "([^"]*)"', header).group(1)

    def export_sources(self):
        source = os.path.join(self.recipe_folder, *self.root)
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "third_party/*", "tools/*"):
            copy(self, pattern, source, self.export_sources_folder)

    def config_options(self):
        if self.settings.os != "Linux":
            del self.options.uring

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.tls:
            self.requires("openssl/[>=3 <4]")
        if self.options.get_safe("uring"):
            self.requires("liburing/[>=2.3 <3]")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["ACORN_TESTS"] = "OFF"
        toolchain.cache_variables["ACORN_TLS"] = "ON" if self.options.tls else "OFF"
        toolchain.cache_variables["ACORN_ZLIB"] = toolchain.cache_variables["ACORN_BROTLI"] = "OFF"
        toolchain.cache_variables["ACORN_URING"] = "ON" if self.options.get_safe("uring") else "OFF"
        toolchain.cache_variables["ACORN_HTTP2"] = "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "LICENSE-MIT", os.path.join(self.source_folder, "third_party", "llhttp"),
             os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        unwanted = "*.a" if self.options.shared else "*.so*"
        for each in self._libraries(unwanted):
            os.remove(each)
        for folder in ("cmake", "pkgconfig"):  # Conan writes its own
            rmdir(self, os.path.join(self.package_folder, "lib", folder))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def _libraries(self, pattern):
        return [str(path) for path in Path(self.package_folder, "lib").glob(pattern)]

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "acorn")
        form = "" if self.options.shared else "_static"
        needs = {"acorn": [], "acorn_io": ["acorn"], "acorn_threads": ["acorn"], "acorn_http": ["acorn_io"],
                 "acorn_resilience": ["acorn"]}
        if self.settings.os == "Linux":
            needs["acorn_hook"] = ["acorn_io"]
            needs["acorn_sim"] = ["acorn"]
            needs["acorn_service"] = ["acorn_threads", "acorn_io"]
            needs["acorn_debug"] = ["acorn_http"]
        if self.options.tls:
            needs["acorn_tls"] = ["acorn_io", "openssl::openssl"]
        if self.options.get_safe("uring"):
            needs["acorn_io"].append("liburing::liburing")
        for name, required in needs.items():
            if self.settings.os == "Windows" and name != "acorn":
                continue
            part = self.cpp_info.components[name]
            part.libs = [name]
            part.requires = required
            part.set_property("cmake_target_name", f"acorn::{name}{form}")
            part.set_property("pkg_config_name", name)
            if self.settings.os in ("Linux", "FreeBSD"):
                part.system_libs = ["pthread", "dl"] if name == "acorn_hook" else ["pthread"]
