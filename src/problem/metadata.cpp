#include "problem/metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <sstream>

#include <toml++/toml.h>

#include "base/error.hpp"
#include "problem/problem_list.hpp"
#include "problem/registry.hpp"

namespace kbh {
namespace {

constexpr std::array<std::string_view, 16> kFields = {
    "id",     "title",         "aliases",       "version", "summary",   "domain", "precision",    "tolerance",
    "regime", "flops_formula", "bytes_formula", "dims",    "forbidden", "sota",   "prepared_cap", "parity"};
constexpr std::array<std::string_view, 4> kSotaFields = {"name", "url", "figure", "source"};
constexpr std::array<std::string_view, 3> kParityFields = {"relative", "rms", "absolute"};

std::string text_of(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

/// Reads fields of one table, with errors that name the document.
class Fields {
 public:
  Fields(toml::table table, std::string source, std::span<const std::string_view> known)
      : source_(std::move(source)), table_(std::move(table)), known_(known) {
    for (const auto& [key, value] : table_) refuse_unknown(key.str());
  }

  [[nodiscard]] bool has(std::string_view name) const { return table_.contains(name); }

  [[nodiscard]] Fields table(std::string_view name, std::span<const std::string_view> known) const {
    const toml::node& node = at(name);
    if (!node.is_table()) refuse(name, node, "a table");
    return {*node.as_table(), source_ + " [" + std::string(name) + "]", known};
  }

  /// 0 where it is absent.
  [[nodiscard]] double number(std::string_view name) const {
    if (!has(name)) return 0;
    const toml::node& node = at(name);
    const auto value = node.value<double>();
    if (!value || !(*value >= 0)) refuse(name, node, "a number of at least 0");
    return *value;
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
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) return;
    const std::string near = nearest_name(name, {known_.begin(), known_.end()});
    fail(ErrorKind::usage, "{}: unknown field {}{}", source_, name,
         near.empty() ? ": remove it" : fmt::format(", did you mean {}?", near));
  }

  std::string source_;
  toml::table table_;
  std::span<const std::string_view> known_;
};

toml::table parse(std::string_view toml, const std::string& source) {
  try {
    return toml::parse(toml, source);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::usage, "{}: line {}: {}", source, error.source().begin.line, error.description());
  }
}

}  // namespace

Problem read_metadata(std::string_view toml, const std::string& source) {
  const Fields fields(parse(toml, source), source, kFields);
  Problem problem;
  problem.id = fields.text("id");
  problem.title = fields.text("title");
  problem.aliases = fields.texts("aliases");
  problem.version = fields.positive("version");
  problem.summary = fields.text("summary");
  problem.domain = fields.text("domain");
  problem.precision = fields.text("precision");
  problem.tolerance = fields.text("tolerance");
  problem.regime = fields.regime();
  problem.flops_formula = fields.text("flops_formula");
  problem.bytes_formula = fields.text("bytes_formula");
  problem.dims = fields.texts("dims");
  problem.forbidden = fields.texts("forbidden");
  problem.prepared_cap = fields.number("prepared_cap");
  const Fields sota = fields.table("sota", kSotaFields);
  problem.sota = {sota.text("name"), sota.text("url"), sota.text("figure"), sota.text("source")};
  const Fields parity = fields.table("parity", kParityFields);
  problem.parity = {parity.number("relative"), parity.number("rms"), parity.number("absolute")};
  return problem;
}

Problem read_problem(std::string_view id) {
  const ProblemFolder folder = problem_folder(id);
  Problem problem = read_metadata(folder.toml, fmt::format("src/problems/{}/problem.toml", id));
  expect(problem.id == id, "problem.toml has the id of its folder");
  problem.prompt = folder.prompt;
  problem.reference_python = folder.reference_python;
  problem.reference_cpp = folder.reference_cpp;
  return problem;
}

}  // namespace kbh
