// Typed access to one JSON object, with errors that name it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"

namespace kbh {

class Fields {
 public:
  /// `prefix` goes before every field's name: "bandwidth[3].".
  Fields(const Json& json, std::string source, std::string prefix)
      : json_(json), source_(std::move(source)), prefix_(std::move(prefix)) {}

  [[nodiscard]] bool has(const char* name) const { return json_.is_object() && json_.contains(name); }

  [[nodiscard]] const Json& at(const char* name) const {
    if (!has(name)) fail(ErrorKind::usage, "{}: field {}{} is missing", source_, prefix_, name);
    return json_[name];
  }

  [[nodiscard]] std::string text(const char* name) const {
    const Json& value = at(name);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) refuse(name, "text that is not empty");
    return value.get<std::string>();
  }

  [[nodiscard]] std::int64_t count(const char* name) const {
    const Json& value = at(name);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1) refuse(name, "a whole number of at least 1");
    return value.get<std::int64_t>();
  }

  [[nodiscard]] double number(const char* name, bool zero_allowed = false) const {
    const Json& value = at(name);
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(number) || number < 0 || (number == 0 && !zero_allowed))
      refuse(name, zero_allowed ? "a number of at least 0" : "a number above 0");
    return number;
  }

  [[noreturn]] void refuse(const char* name, std::string_view expected) const {
    fail(ErrorKind::usage, "{}: field {}{} is {}, expected {}", source_, prefix_, name, at(name).dump(), expected);
  }

 private:
  const Json& json_;
  std::string source_;
  std::string prefix_;
};

}  // namespace kbh
