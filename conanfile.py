# SPDX-License-Identifier: BSL-1.0
# Conan 2 recipe. cohort is headers and a CMake package: one binary package serves every profile.
#
#   conan create . -s compiler.cppstd=20
#   conan create . -pr packaging/profiles/debian12     with the system's Boost, and without a remote
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.2"


class CohortConan(ConanFile):
    name = "cohort"
    description = "Collective communication between processes, for C++20"
    license = "BSL-1.0"
    topics = ("collectives", "mpi", "distributed", "coroutines", "asio", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    # What the consumer's program needs beside the headers. They pull requirements and change nothing in the package:
    # its component mpi only names MPI::MPI_CXX. "system": CMake finds what the machine has.
    options = {
        "with_mpi": [False, "system", "openmpi"],
        "with_nccl": [False, "system"],
        "with_tls": [False, "system", "openssl"],
    }
    default_options = {"with_mpi": False, "with_nccl": False, "with_tls": False}
    exports_sources = "CMakeLists.txt", "cmake/*", "include/*", "LICENSE"
    no_copy_source = True

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "cohort", "version.hpp"))
        numbers = re.findall(r"#define COHORT_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)", header)
        self.version = ".".join(numbers)

    def layout(self):
        cmake_layout(self)
        # In editable mode consumers read the sources, and the CMake package from the build tree.
        self.cpp.source.includedirs = ["include"]
        self.cpp.build.builddirs = ["."]

    def requirements(self):
        self.requires("boost/[>=1.81 <2]", options={"header_only": True})
        if self.options.with_mpi == "openmpi":
            self.requires("openmpi/[>=4.1 <6]")
        if self.options.with_tls == "openssl":
            self.requires("openssl/[>=3.0 <4]")

    def package_id(self):
        self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "TOOLS", "BENCHMARKS"):
            toolchain.cache_variables[f"COHORT_BUILD_{part}"] = False
        toolchain.cache_variables["CMAKE_INSTALL_LIBDIR"] = "lib"
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.system_libs = ["pthread"]
        # The package's own CMake config has the components, and finds a Boost that is not Conan's.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "cohort")]
