#include "base/json.hpp"

#include "base/error.hpp"

namespace kbh {

Json parse_document(std::string_view text, std::string_view schema, const std::string& source) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    fail(ErrorKind::usage, "{}: not JSON (byte {}): {}", source, error.byte, error.what());
  }
  if (!json.is_object() || !json.contains("schema") || !json["schema"].is_string())
    fail(ErrorKind::usage, "{}: field schema is missing, expected \"{}\"", source, schema);
  if (json["schema"] != schema)
    fail(ErrorKind::usage, "{}: field schema is \"{}\", expected \"{}\"", source, json["schema"].get<std::string>(),
         schema);
  return json;
}

std::string to_text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace kbh
