#pragma once

#include <string>
#include <string_view>

namespace kbh {

/// Text of foreign origin, made safe for a terminal: control characters (escape sequences too) become '?'. Tabs stay.
std::string printable(std::string_view text);

}  // namespace kbh
