// SPDX-License-Identifier: BSL-1.0
#include "fashion_mnist.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#ifdef COHORT_EXAMPLES_HAVE_ZLIB
#include <zlib.h>
#endif

namespace training {
namespace {

constexpr std::size_t most_bytes = 1u << 28;  // the largest file holds 47 MB; a header is not believed beyond this

using bytes = std::vector<unsigned char>;

[[noreturn]] void cannot(const char* verb, const std::string& path) {
  throw data_error(std::string("cannot ") + verb + " " + path + ": " + std::strerror(errno));
}

bytes read_plain(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) cannot("open", path);
  bytes content;
  std::array<char, 1u << 16> chunk;
  while (file.read(chunk.data(), chunk.size()), file.gcount() > 0) {
    content.insert(content.end(), chunk.data(), chunk.data() + file.gcount());
    if (content.size() > most_bytes) throw data_error(path + ": found more than 256 MiB, expected an IDX file");
  }
  if (file.bad()) cannot("read", path);
  return content;
}

#ifdef COHORT_EXAMPLES_HAVE_ZLIB
bytes read_gzip(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (!file) cannot("open", path);
  bytes content;
  std::array<unsigned char, 1u << 16> chunk;
  int got = 0;
  while ((got = gzread(file.get(), chunk.data(), static_cast<unsigned>(chunk.size()))) > 0) {
    content.insert(content.end(), chunk.data(), chunk.data() + got);
    if (content.size() > most_bytes) throw data_error(path + ": found more than 256 MiB, expected an IDX file");
  }
  int failure = Z_OK;
  const char* text = gzerror(file.get(), &failure);
  if (failure != Z_OK && failure != Z_STREAM_END) {
    throw data_error(std::string("cannot unpack ") + text);  // zlib's text begins with the path
  }
  return content;
}
#else
bytes read_gzip(const std::string& path) {
  throw data_error("cannot unpack " + path + ": this program was built without zlib; install zlib1g-dev and build " +
                   "again, or unpack the file with gunzip and say where with --data-dir");
}
#endif

struct idx_file {
  std::string path;
  bytes content;
  std::vector<std::size_t> dimensions;
  [[nodiscard]] std::span<const unsigned char> values() const {
    return std::span<const unsigned char>(content).subspan(4 + 4 * dimensions.size());
  }
};

// IDX: two zero bytes, the element type (8: unsigned byte), the number of dimensions, each as a big-endian 32-bit
// integer, then the elements.
idx_file read_idx(const std::string& directory, const std::string& name, std::size_t expected_dimensions) {
  namespace fs = std::filesystem;
  const fs::path plain = fs::path(directory) / name;
  const fs::path packed = fs::path(directory) / (name + ".gz");
  std::error_code ignored;
  idx_file file;
  if (fs::exists(plain, ignored)) {
    file.path = plain.string();
    file.content = read_plain(file.path);
  } else if (fs::exists(packed, ignored)) {
    file.path = packed.string();
    file.content = read_gzip(file.path);
  } else {
    throw data_error("found neither " + plain.string() + " nor " + name + ".gz beside it; " +
                     "Debian and Ubuntu have them: apt-get install dataset-fashion-mnist, " +
                     "and elsewhere say where they are with --data-dir");
  }
  const bytes& content = file.content;
  const std::size_t header = 4 + 4 * expected_dimensions;
  if (content.size() < header || content[0] != 0 || content[1] != 0 || content[2] != 8 ||
      content[3] != expected_dimensions) {
    throw data_error(file.path + ": found no IDX header of unsigned bytes in " + std::to_string(expected_dimensions) +
                     (expected_dimensions == 1 ? " dimension" : " dimensions") +
                     ", expected the bytes 0 0 8 " + std::to_string(expected_dimensions) + " and the sizes");
  }
  std::size_t elements = 1;
  for (std::size_t at = 4; at < header; at += 4) {
    std::size_t size = 0;
    for (std::size_t i = at; i < at + 4; ++i) size = size << 8 | content[i];
    if (size == 0 || size > most_bytes / elements) {
      throw data_error(file.path + ": found a dimension of " + std::to_string(size) +
                       " in the IDX header, expected from 1 to " + std::to_string(most_bytes / elements));
    }
    elements *= size;
    file.dimensions.push_back(size);
  }
  if (content.size() - header != elements) {
    throw data_error(file.path + ": found " + std::to_string(content.size() - header) +
                     " bytes after the IDX header, which announces " + std::to_string(elements));
  }
  return file;
}

dataset read_half(const std::string& directory, const std::string& half) {
  const idx_file images = read_idx(directory, half + "-images-idx3-ubyte", 3);
  const idx_file labels = read_idx(directory, half + "-labels-idx1-ubyte", 1);
  if (images.dimensions[0] != labels.dimensions[0]) {
    throw data_error(labels.path + ": found " + std::to_string(labels.dimensions[0]) + " labels, expected " +
                     std::to_string(images.dimensions[0]) + ", one for each image of " + images.path);
  }
  dataset out{images.dimensions[1] * images.dimensions[2], 10};
  out.pixels.reserve(images.values().size());
  for (const unsigned char value : images.values()) out.pixels.push_back(static_cast<float>(value) / 255.0f);
  for (const unsigned char label : labels.values()) {
    if (label > 9) {
      throw data_error(labels.path + ": found the label " + std::to_string(label) + " for image " +
                       std::to_string(out.labels.size()) + ", expected 0 to 9");
    }
    out.labels.push_back(label);
  }
  return out;
}

}  // namespace

split_dataset read_fashion_mnist(const std::string& directory) {
  split_dataset data{read_half(directory, "train"), read_half(directory, "t10k")};
  if (data.train.features != data.test.features) {
    throw data_error(directory + ": found training images of " + std::to_string(data.train.features) +
                     " pixels and test images of " + std::to_string(data.test.features) + ", expected the same");
  }
  return data;
}

}  // namespace training
