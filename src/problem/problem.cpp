#include "problem/problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"

namespace kbh {
namespace {

/// `size` bytes of `value`, lowest first, whatever the machine's own order.
void append_little_endian(std::string& bytes, std::uint64_t value, int size = 8) {
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
}

/// The length in front keeps two different lists of fields from having the same bytes.
void append_field(std::string& bytes, std::string_view field) {
  append_little_endian(bytes, field.size());
  bytes += field;
}

}  // namespace

std::int64_t Shape::operator[](std::string_view name) const {
  const auto found = std::find_if(dims.begin(), dims.end(), [&](const auto& dim) { return dim.first == name; });
  expect(found != dims.end(), "a shape has the dimension that is asked for");
  return found->second;
}

std::string Shape::text() const {
  std::string text;
  for (const auto& [name, value] : dims) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::state:
      return "state";
    case Role::input:
      return "input";
    case Role::output:
      return "output";
  }
  return "?";
}

std::string_view name_of(Regime regime) { return regime == Regime::memory ? "memory" : "compute"; }

std::int64_t TensorSpec::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

std::uint64_t DrawKey::stream(std::string_view tensor) const {
  std::string fields;
  append_field(fields, seed);
  append_field(fields, problem);
  append_field(fields, std::to_string(version));
  append_field(fields, shape.text());
  append_field(fields, case_name);
  append_field(fields, std::to_string(trial));
  append_field(fields, tensor);
  const Digest digest = sha256(fields);
  std::uint64_t key = 0;
  for (int i = 7; i >= 0; --i) key = key << 8 | digest[static_cast<std::size_t>(i)];
  return key;
}

bool Problem::has_state() const { return static_cast<bool>(nominal().fill_state); }

const Case& Problem::nominal() const {
  const auto found = std::find_if(cases.begin(), cases.end(), [](const Case& c) { return c.nominal; });
  expect(found != cases.end(), "every problem has a nominal case");
  return *found;
}

const Case* Problem::find_case(std::string_view name) const {
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return c.name == name; });
  return found == cases.end() ? nullptr : &*found;
}

}  // namespace kbh
