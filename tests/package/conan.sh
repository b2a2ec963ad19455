#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# conan.sh venv|create|install|editable|index: cohort as a Conan package.
# venv is the fixture of the others: Conan from PyPI, in an environment of its own. Each test has a Conan home of its own,
# asks no remote, and takes the Boost that the system has.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
venv=$COHORT_BUILD/tests/package/conan-venv
conan=$venv/bin/conan

if [ "$1" = venv ]; then
  if [ ! -x "$conan" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv" >venv.log 2>&1 || skip "python3 -m venv does not work here (Debian 12: apt-get install python3-venv)"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --timeout 15 --retries 1 'conan>=2.2,<3' >venv.log 2>&1 || {
      rm -f "$conan"
      skip "Conan cannot be installed from PyPI: $(tail -n 1 venv.log)"
    }
  fi
  "$conan" --version
  exit 0
fi

[ -x "$conan" ] || skip "Conan is not here: package/conan/venv says why"
work_in "conan_$1"
export CONAN_HOME=$PWD/home
profile=$COHORT_SOURCE/packaging/profiles/debian12
case $("$CXX" -dumpfullversion -dumpversion) in
  12.*) ;;
  *) skip "the profile debian12 is for g++ 12, and $CXX is another compiler" ;;
esac
"$conan" --version

# The repository as a clone would be: Conan and CMake write beside what they build.
mkdir clone
(cd "$COHORT_SOURCE" && cp -r CMakeLists.txt LICENSE conanfile.py cmake include packaging test_package "$OLDPWD/clone")

# An outside project, with what Conan has generated for it in conan/; not header-only, as what `create` builds is.
build_outside() {  # SOURCE PROGRAM [CMAKE ARGUMENT...]
  offline cmake -S "$1" -B outside -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/conan/conan_toolchain.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O0 ${compiled_once[0]}" \
    -DCMAKE_EXE_LINKER_FLAGS="${compiled_once[1]}" "${@:3}"
  cmake --build outside
  expect_answer "outside/$2"
}
install_into_conan() {
  "$conan" install --requires "cohort/$COHORT_VERSION" -pr:a "$profile" -g CMakeToolchain -g CMakeDeps -of conan "$@"
}

case $1 in
  create)
    "$conan" create clone -pr:a "$profile" -nr 2>&1 | tee create.log
    expect_text create.log "cohort $COHORT_VERSION: 2 ranks agree"
    # One package, whatever the options and the build type.
    "$conan" create clone -pr:a "$profile" -nr -s build_type=Debug -o 'cohort/*:with_mpi=system' --test-folder= >again.log
    packages=$("$conan" list "cohort/$COHORT_VERSION:*" --format=json | grep -c '"info"')
    [ "$packages" -eq 1 ] || fail "$packages binary packages, expected one for every profile"
    expect_refusal "Current cppstd (17) is lower than the required C++ standard (20)" \
      "$conan" create clone -pr:a "$profile" -nr -s compiler.cppstd=17 --test-folder=
    ;;
  install)
    "$conan" create clone -pr:a "$profile" -nr --test-folder= >create.log
    install_into_conan -nr
    build_outside "$COHORT_SOURCE/tests/package/consumer" consumer -DCONSUME_BY=find_package
    ;;
  editable)
    "$conan" editable add clone
    "$conan" build clone -pr:a "$profile" -nr >build.log 2>&1 || {
      cat build.log
      fail "conan build"
    }
    install_into_conan -nr
    build_outside "$PWD/clone/test_package" two_ranks
    grep -qF "$PWD/clone/include" outside/build.ninja || fail "the headers of the clone are not what was compiled"
    ;;
  index)
    grep -qF "\"$COHORT_VERSION\":" clone/packaging/recipes/cohort/config.yml ||
      fail "packaging/recipes/cohort/config.yml: expected version $COHORT_VERSION"
    "$conan" remote add cohort-local clone/packaging --type local-recipes-index
    # Without the system's Boost in the profile: the index has a recipe for it.
    sed '/^\[platform_requires\]/,$d' "$profile" >plain
    profile=$PWD/plain
    install_into_conan -r cohort-local --build missing
    build_outside "$PWD/clone/test_package" two_ranks
    ;;
  *) fail "unknown test $1" ;;
esac
