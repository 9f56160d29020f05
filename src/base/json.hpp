// One JSON library, one alias: key order is kept, so that documents read as they were written.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace kbh {

using Json = nlohmann::ordered_json;

/// Parses a document that must carry `"schema": schema`. Error(usage) names the source, the place and what was
/// expected.
Json parse_document(std::string_view text, std::string_view schema, const std::string& source);

/// Pretty text with a final newline, invalid UTF-8 replaced.
std::string to_text(const Json& json);

}  // namespace kbh
