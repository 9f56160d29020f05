// The golden data: inputs, state and outputs of the public references on small shapes (tests/data/golden.tar.zst, made
// by scripts/pack-golden). A tar archive, so that anybody can look inside with `tar -tvf`.
#pragma once

#include <zstd.h>

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/json.hpp"
#include "problem/problem.hpp"

namespace kbh::golden {

struct Tensor {
  std::string role;  // "state", "input", "output"
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> dims;
  std::string bytes;
};

struct GoldenCase {
  std::string name;
  std::string problem;
  Shape shape;
  std::vector<Tensor> tensors;

  [[nodiscard]] const Tensor& tensor(std::string_view role, std::string_view tensor_name) const {
    for (const Tensor& t : tensors)
      if (t.role == role && t.name == tensor_name) return t;
    throw std::runtime_error("no such golden tensor");
  }
};

inline std::string decompressed(const std::string& archive) {
  const auto size = ZSTD_getFrameContentSize(archive.data(), archive.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > (64u << 20))
    throw std::runtime_error("golden archive: not one zstd frame of known size");
  std::string content(size, '\0');
  if (ZSTD_decompress(content.data(), content.size(), archive.data(), archive.size()) != content.size())
    throw std::runtime_error("golden archive: damaged");
  return content;
}

/// Name -> content of the regular files of a ustar archive.
inline std::map<std::string, std::string> untar(const std::string& tar) {
  constexpr std::size_t kBlock = 512;
  std::map<std::string, std::string> files;
  for (std::size_t at = 0; at + kBlock <= tar.size() && tar[at] != '\0';) {
    const std::string name(tar.c_str() + at);
    const std::size_t size = std::stoul(tar.substr(at + 124, 12), nullptr, 8);
    files[name] = tar.substr(at + kBlock, size);
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  return files;
}

inline const std::vector<GoldenCase>& cases() {
  static const std::vector<GoldenCase> all = [] {
    const auto files = untar(decompressed(read_text(fs::path(KBH_SOURCE_DIR) / "tests/data/golden.tar.zst")));
    std::vector<GoldenCase> cases;
    const Json manifest = Json::parse(files.at("manifest.json"));
    for (const Json& entry : manifest.at("cases")) {
      GoldenCase c{entry.at("case"), entry.at("problem"), {}, {}};
      for (const auto& [name, value] : entry.at("shape").items())
        if (value.is_number_integer() || value.is_boolean())
          c.shape.dims.emplace_back(name, value.is_boolean() ? value.get<bool>() : value.get<std::int64_t>());
      for (const Json& t : entry.at("tensors"))
        c.tensors.push_back({t.at("role"), t.at("name"), t.at("dtype"), t.at("shape").get<std::vector<std::int64_t>>(),
                             files.at(t.at("file"))});
      cases.push_back(std::move(c));
    }
    return cases;
  }();
  return all;
}

}  // namespace kbh::golden
