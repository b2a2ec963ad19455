# SPDX-License-Identifier: BSL-1.0
# cohort out of the repository that this folder lies in: the recipe at its top, given to an index of recipes.
#
#   conan remote add cohort-local packaging --type local-recipes-index
#   conan install --requires cohort/0.1.0 -r cohort-local --build missing -s compiler.cppstd=20
import importlib.util
import os
import shutil

from conan.tools.files import copy


def _top_recipe():
    here = os.path.dirname(os.path.abspath(__file__))
    # Beside this file once it is exported; at the top of the repository before.
    for path in (os.path.join(here, "cohort_recipe.py"), os.path.join(here, "..", "..", "..", "..", "conanfile.py")):
        if os.path.exists(path):
            spec = importlib.util.spec_from_file_location("cohort_recipe", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module.CohortConan
    raise FileNotFoundError("cohort's conanfile.py: expected at the top of the repository that has packaging/recipes")


class IndexedCohortConan(_top_recipe()):
    exports_sources = None

    def set_version(self):
        if not self.version:
            super().set_version()

    def _repository(self):
        return os.path.join(self.recipe_folder, "..", "..", "..", "..")

    def export(self):
        shutil.copy(os.path.join(self._repository(), "conanfile.py"),
                    os.path.join(self.export_folder, "cohort_recipe.py"))

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "cmake/*", "include/*", "LICENSE"):
            copy(self, pattern, self._repository(), self.export_sources_folder)
