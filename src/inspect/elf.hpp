// What a shared object exports, imports and links: read from its bytes, never by loading it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kbh {

struct ElfCensus {
  std::vector<std::string> exported;   // defined dynamic symbols
  std::vector<std::string> imported;   // undefined dynamic symbols
  std::vector<std::string> libraries;  // DT_NEEDED
  std::vector<std::string> problems;   // malformed parts; the census may then be incomplete
};

/// Every offset is checked against the size: the bytes are untrusted.
ElfCensus read_elf(std::string_view bytes);

}  // namespace kbh
