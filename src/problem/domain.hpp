// Pieces of Problem::outside_domain, which say what is wrong with a shape in the same words everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kbh {

/// Nothing when 1 <= value <= most.
std::optional<std::string> outside_range(std::string_view name, std::int64_t value, std::int64_t most);

}  // namespace kbh
