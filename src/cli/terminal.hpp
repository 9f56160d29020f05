// Progress on stderr: one changing line on a terminal, one line per stage elsewhere.
#pragma once

#include <string>

#include "grade/types.hpp"

namespace kbh::cli {

class Terminal {
 public:
  explicit Terminal(bool quiet);
  ~Terminal();
  Progress progress();
  /// Takes the changing line away, so that other output starts on a clean one.
  void clear();
  [[nodiscard]] static bool colour();  // for stdout: a terminal, and NO_COLOR is not set

 private:
  void show(const std::string& line);
  bool quiet_;
  bool is_terminal_;
  Stage stage_ = Stage::admit;
  std::string shown_;
};

}  // namespace kbh::cli
