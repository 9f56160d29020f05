// One table of a TOML file, read strictly: what is not asked for is refused, what is asked for has its type and range.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

namespace kbh {

/// All errors are Error(usage): "FILE:LINE: [TABLE] KEY is VALUE, expected ...".
class Section {
 public:
  /// `name` is how errors call the table; empty for the top of the file. Refuses keys that are not `known`, with the
  /// nearest that is.
  Section(const toml::table& table, std::string name, std::string file, const std::vector<std::string>& known);

  [[nodiscard]] bool has(std::string_view key) const { return table_->contains(key); }

  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::string text_of(std::string_view key, const std::vector<std::string>& allowed) const;
  [[nodiscard]] std::vector<std::string> texts_of(std::string_view key, const std::vector<std::string>& allowed) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t least,
                                     std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  [[nodiscard]] double number(std::string_view key, double least, double most) const;

  /// A table below this one; nothing when there is none.
  [[nodiscard]] std::optional<Section> section(std::string_view key, const std::vector<std::string>& known) const;
  /// The tables of an array of tables.
  [[nodiscard]] std::vector<Section> sections(std::string_view key, const std::vector<std::string>& known) const;
  [[nodiscard]] std::vector<std::string> keys() const;

  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;
  /// About the table as a whole.
  [[noreturn]] void refuse(std::string_view message) const;

 private:
  [[nodiscard]] const toml::node& at(std::string_view key) const;
  [[nodiscard]] std::string name_of(std::string_view key) const;
  [[nodiscard]] std::string place_of(const toml::node& node) const;

  const toml::table* table_;  // owned by the reader of the file
  std::string name_;
  std::string file_;
};

}  // namespace kbh
