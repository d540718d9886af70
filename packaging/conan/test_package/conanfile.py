import os

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import copy


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        copy(self, "*", os.path.join(self.recipe_folder, "..", "..", "..", "tests", "packages"), self.build_folder)
        cmake = CMake(self)
        cmake.configure(build_script_folder=self.build_folder)
        cmake.build()

    def test(self):
        self.run(os.path.join(self.cpp.build.bindir, "consumer"), env="conanrun")
