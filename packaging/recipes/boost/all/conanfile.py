# SPDX-License-Identifier: BSL-1.0
# Boost's headers as the system has them (Debian 12: libboost1.81-dev), for where no remote has a recipe of Boost.
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import load


class SystemBoostConan(ConanFile):
    name = "boost"
    description = "The Boost headers that the system has"
    license = "BSL-1.0"
    package_type = "header-library"
    options = {"header_only": [True]}
    default_options = {"header_only": True}

    def package_id(self):
        self.info.clear()

    def _found(self):
        for folder in ("/usr/local/include", "/usr/include"):
            header = os.path.join(folder, "boost", "version.hpp")
            if os.path.exists(header):
                number = int(re.search(r"#define BOOST_VERSION +(\d+)", load(self, header)).group(1))
                return number // 100000, number // 100 % 1000
        return 0, 0

    def validate(self):
        expected = tuple(int(part) for part in str(self.version).split(".")[:2])
        found = self._found()
        if found < expected:
            raise ConanInvalidConfiguration(
                f"found Boost {found[0]}.{found[1]} on this system, expected {self.version} or newer: "
                "install it (Debian 12: apt-get install libboost1.81-dev)")

    def package_info(self):
        # Where the compiler looks anyway: naming /usr/include would change the order in which headers are found.
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.bindirs = []
        self.cpp_info.set_property("cmake_file_name", "Boost")
        self.cpp_info.set_property("cmake_target_name", "Boost::headers")
