#include "problem/metadata.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include <toml++/toml.h>

#include "base/error.hpp"
#include "problem/registry.hpp"

namespace kbh {
namespace {

constexpr std::array<std::string_view, 12> kFields = {
    "id",        "title",  "aliases",       "version",       "summary", "domain",
    "tolerance", "regime", "flops_formula", "bytes_formula", "dims",    "forbidden"};

std::string text_of(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

/// Reads fields of one document, with errors that name it.
class Fields {
 public:
  Fields(std::string_view toml, const std::string& source) : source_(source) {
    try {
      table_ = toml::parse(toml, source);
    } catch (const toml::parse_error& error) {
      fail(ErrorKind::usage, "{}: line {}: {}", source, error.source().begin.line, error.description());
    }
    for (const auto& [key, value] : table_) refuse_unknown(key.str());
  }

  [[nodiscard]] std::string text(std::string_view name) const {
    const toml::node& node = at(name);
    const auto value = node.value<std::string>();
    if (!value || value->empty()) refuse(name, node, "text that is not empty");
    return *value;
  }

  [[nodiscard]] int positive(std::string_view name) const {
    const toml::node& node = at(name);
    const auto value = node.is_integer() ? node.value<int>() : std::nullopt;
    if (!value || *value < 1) refuse(name, node, "a whole number of at least 1");
    return *value;
  }

  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const {
    const toml::node& node = at(name);
    const toml::array* array = node.as_array();
    if (!array) refuse(name, node, "a list of texts");
    std::vector<std::string> values;
    for (const toml::node& element : *array) {
      const auto value = element.value<std::string>();
      if (!value || value->empty()) refuse(name, node, "a list of texts");
      values.push_back(*value);
    }
    return values;
  }

  [[nodiscard]] Regime regime() const {
    const std::string value = text("regime");
    if (value == "memory") return Regime::memory;
    if (value == "compute") return Regime::compute;
    refuse("regime", at("regime"), "\"memory\" or \"compute\"");
  }

 private:
  [[nodiscard]] const toml::node& at(std::string_view name) const {
    const toml::node* node = table_.get(name);
    if (!node) fail(ErrorKind::usage, "{}: field {} is missing: add it", source_, name);
    return *node;
  }

  [[noreturn]] void refuse(std::string_view name, const toml::node& node, std::string_view expected) const {
    fail(ErrorKind::usage, "{}: line {}: field {} is {}, expected {}", source_, node.source().begin.line, name,
         text_of(node), expected);
  }

  void refuse_unknown(std::string_view name) const {
    if (std::find(kFields.begin(), kFields.end(), name) != kFields.end()) return;
    const std::string near = nearest_name(name, {kFields.begin(), kFields.end()});
    fail(ErrorKind::usage, "{}: unknown field {}{}", source_, name,
         near.empty() ? ": remove it" : fmt::format(", did you mean {}?", near));
  }

  std::string source_;
  toml::table table_;
};

}  // namespace

Problem read_metadata(std::string_view toml, const std::string& source) {
  const Fields fields(toml, source);
  Problem problem;
  problem.id = fields.text("id");
  problem.title = fields.text("title");
  problem.aliases = fields.texts("aliases");
  problem.version = fields.positive("version");
  problem.summary = fields.text("summary");
  problem.domain = fields.text("domain");
  problem.tolerance = fields.text("tolerance");
  problem.regime = fields.regime();
  problem.flops_formula = fields.text("flops_formula");
  problem.bytes_formula = fields.text("bytes_formula");
  problem.dims = fields.texts("dims");
  problem.forbidden = fields.texts("forbidden");
  return problem;
}

}  // namespace kbh
