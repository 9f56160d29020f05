// The headers that a submission of one file brings along.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lane/submission.hpp"

namespace kbh {

/// The names between quotes in the #include lines of a source, in their order.
std::vector<std::string> quoted_includes(std::string_view source);

/// The files below `folder` that `source`, which lies in it, includes with quotes, and those that they include, sorted
/// by path. Names are looked up as the compiler does, beside the file that includes and from `folder`. What lies
/// outside (absolute names, "..") or does not exist is left out: the compiler will say so. Error(usage) when one is a
/// link, goes through one or is a special file, or when there are more than a submission may hold.
std::vector<SourceFile> included_headers(const std::filesystem::path& folder, std::string_view source);

}  // namespace kbh
