#include "deck/section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.hpp"
#include "problem/registry.hpp"

namespace kbh {
namespace {

std::string printed(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array_of_tables()) return "a list of tables";
  if (const auto* string = node.as_string()) return fmt::format("\"{}\"", string->get());
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

std::string quoted(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", value);
  return text;
}

bool contains(const std::vector<std::string>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

Section::Section(const toml::table& table, std::string name, std::string file, const std::vector<std::string>& known)
    : table_(&table), name_(std::move(name)), file_(std::move(file)) {
  for (const auto& [key, value] : table) {
    if (contains(known, key.str())) continue;
    const std::string near = nearest_name(key.str(), known);
    fail(ErrorKind::usage, "{}: {} is unknown{}; expected {}", place_of(value), name_of(key.str()),
         near.empty() ? "" : fmt::format(", did you mean {}?", near),
         known.empty() ? "nothing here" : fmt::format("one of {}", fmt::join(known, ", ")));
  }
}

std::string Section::text(std::string_view key) const {
  const auto value = at(key).value<std::string>();
  if (!value || value->empty()) refuse(key, "text that is not empty");
  return *value;
}

std::string Section::text_of(std::string_view key, const std::vector<std::string>& allowed) const {
  const auto value = at(key).value<std::string>();
  if (!value || !contains(allowed, *value)) refuse(key, "one of " + quoted(allowed));
  return *value;
}

std::vector<std::string> Section::texts_of(std::string_view key, const std::vector<std::string>& allowed) const {
  const std::string expected = "a list of different ones of " + quoted(allowed);
  const toml::array* list = at(key).as_array();
  if (list == nullptr || list->empty()) refuse(key, expected);
  std::vector<std::string> values;
  for (const toml::node& node : *list) {
    const auto value = node.value<std::string>();
    if (!value || !contains(allowed, *value) || contains(values, *value)) refuse(key, expected);
    values.push_back(*value);
  }
  return values;
}

std::vector<std::string> Section::texts(std::string_view key) const {
  const std::string expected = "a list of texts";
  const toml::array* list = at(key).as_array();
  if (list == nullptr || list->empty()) refuse(key, expected);
  std::vector<std::string> values;
  for (const toml::node& node : *list) {
    const auto value = node.value<std::string>();
    if (!value || value->empty()) refuse(key, expected);
    values.push_back(*value);
  }
  return values;
}

bool Section::flag(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const toml::node& node = at(key);
  if (!node.is_boolean()) refuse(key, "true or false");
  return node.as_boolean()->get();
}

std::int64_t Section::integer(std::string_view key, std::int64_t least, std::int64_t most) const {
  const toml::node& node = at(key);
  const std::int64_t value = node.is_integer() ? node.as_integer()->get() : 0;
  if (!node.is_integer() || value < least || value > most)
    refuse(key, most == std::numeric_limits<std::int64_t>::max()
                    ? fmt::format("a whole number of at least {}", least)
                    : fmt::format("a whole number from {} to {}", least, most));
  return value;
}

double Section::number(std::string_view key, double least, double most) const {
  const toml::node& node = at(key);
  // value<double>() would take a boolean too.
  const double value = node.is_number() ? node.value<double>().value_or(least - 1) : least - 1;
  if (std::isnan(value) || value < least || value > most)
    refuse(key, fmt::format("a number from {} to {}", least, most));
  return value;
}

std::optional<Section> Section::section(std::string_view key, const std::vector<std::string>& known) const {
  if (!has(key)) return std::nullopt;
  const toml::table* table = at(key).as_table();
  if (table == nullptr) refuse(key, fmt::format("a table, [{}]", key));
  return Section(*table, name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key), file_, known);
}

std::vector<Section> Section::sections(std::string_view key, const std::vector<std::string>& known) const {
  const std::string name = fmt::format("{}.{}", name_, key);
  const toml::array* list = at(key).as_array();
  if (list == nullptr || list->empty() || !list->is_array_of_tables())
    refuse(key, fmt::format("a list of tables, [[{}]]", name));
  std::vector<Section> found;
  for (const toml::node& node : *list) found.emplace_back(*node.as_table(), name, file_, known);
  return found;
}

std::vector<std::string> Section::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : *table_) names.emplace_back(key.str());
  return names;
}

void Section::refuse(std::string_view key, std::string_view expected) const {
  const toml::node& node = at(key);
  fail(ErrorKind::usage, "{}: {} is {}, expected {}", place_of(node), name_of(key), printed(node), expected);
}

void Section::refuse(std::string_view message) const {
  fail(ErrorKind::usage, "{}: {}{}", place_of(*table_), name_.empty() ? "" : fmt::format("[{}] ", name_), message);
}

const toml::node& Section::at(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) fail(ErrorKind::usage, "{}: {} is missing: add it", place_of(*table_), name_of(key));
  return *node;
}

std::string Section::name_of(std::string_view key) const {
  return name_.empty() ? std::string(key) : fmt::format("[{}] {}", name_, key);
}

std::string Section::place_of(const toml::node& node) const {
  const auto line = node.source().begin.line;
  return line == 0 ? file_ : fmt::format("{}:{}", file_, line);
}

}  // namespace kbh
