#include "problem/domain.hpp"

#include <fmt/format.h>

namespace kbh {

std::optional<std::string> outside_range(std::string_view name, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most) return std::nullopt;
  return fmt::format("{} is {}, expected 1 to {}", name, value, most);
}

}  // namespace kbh
