// Tables for terminals.
#pragma once

#include <string>
#include <vector>

#include "grade/types.hpp"

namespace kbh {

enum class Align { left, right };

/// Columns as wide as their content, two spaces apart, a rule below the header. Widths count code points.
struct Table {
  std::vector<std::string> header;
  std::vector<Align> align;
  std::vector<std::vector<std::string>> rows;
  [[nodiscard]] std::string text() const;
};

/// What a person reads after a grade: shapes, geomeans, verdict, where the record lies, and the next step on failure.
std::string grade_text(const Grade& grade, const Problem& problem, const Deck& deck, const std::string& record,
                       bool colour);

}  // namespace kbh
