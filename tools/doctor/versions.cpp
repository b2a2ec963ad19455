// SPDX-License-Identifier: BSL-1.0
#include "examine.hpp"

#include <cohort/transport/hello.hpp>
#include <cohort/version.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace cohort::tool {
namespace {

// A library that programs may use, as the loader of this process finds it. It stays loaded: some do not survive being
// unloaded.
class loaded_library {
 public:
  explicit loaded_library(const char* name) : handle_(open(name)) {}
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  template <class Function>
  [[nodiscard]] Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  [[nodiscard]] static void* open(const char* name) {
    // UCX, which MPICH brings, would put itself into every call that maps memory: of this process, that only asks.
    ::setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 0);
    return ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  }

  void* handle_;
};

std::string first_of(std::initializer_list<const char*> names, const char* function, auto&& ask) {
  for (const char* const name : names) {
    const loaded_library library(name);
    if (!library) continue;
    std::string answer = ask(library, function);
    return answer.empty() ? std::string(name) + " does not tell" : std::move(answer);
  }
  return "not found";
}

// "Open MPI v4.1.4, package: ..." and "MPICH Version:\t4.0.2\n..."; the standard allows the call before MPI_Init.
std::string mpi_version(const loaded_library& library, const char* function) {
  auto* const get = library.find<int(char*, int*)>(function);
  char text[8192] = {};
  int length = 0;
  if (get == nullptr || get(text, &length) != 0) return {};
  std::string line(text);
  line.resize(std::min(line.find_first_of("\n,"), line.size()));
  std::replace(line.begin(), line.end(), '\t', ' ');
  for (const std::string usual : {"Open MPI v", "MPICH Version: "}) {
    if (line.rfind(usual, 0) == 0) return line.substr(usual.size());
  }
  return line;
}

std::string number_from(const loaded_library& library, const char* function) {
  auto* const get = library.find<int(int*)>(function);
  int number = 0;
  return get != nullptr && get(&number) == 0 ? std::to_string(number) : std::string{};
}

// 12020 is 12.2
std::string cuda_version(const loaded_library& library, const char* function) {
  const std::string text = number_from(library, function);
  if (text.empty()) return {};
  const int number = std::stoi(text);
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// 22809 is 2.28.9, and before 2.9 it was 2804 for 2.8.4
std::string nccl_version(const loaded_library& library, const char* function) {
  const std::string text = number_from(library, function);
  if (text.empty()) return {};
  const int number = std::stoi(text);
  const int major = number < 10000 ? number / 1000 : number / 10000;
  const int rest = number < 10000 ? number % 1000 : number % 10000;
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." + std::to_string(rest % 100);
}

}  // namespace

void examine_versions(rank_record& mine) {
  mine.versions = {
      {"cohort", std::string(version_string)},
      {"protocol", std::to_string(transport::protocol_version)},
      {"Open MPI", first_of({"libmpi.so.40"}, "MPI_Get_library_version", mpi_version)},
      {"MPICH", first_of({"libmpich.so.12", "libmpi.so.12"}, "MPI_Get_library_version", mpi_version)},
      {"CUDA driver", first_of({"libcuda.so.1"}, "cuDriverGetVersion", cuda_version)},
      {"CUDA runtime",
       first_of({"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}, "cudaRuntimeGetVersion", cuda_version)},
      {"NCCL", first_of({"libnccl.so.2"}, "ncclGetVersion", nccl_version)},
  };
}

}  // namespace cohort::tool
