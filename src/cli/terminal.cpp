#include "cli/terminal.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace kbh::cli {

Terminal::Terminal(bool quiet) : quiet_(quiet), is_terminal_(::isatty(STDERR_FILENO) == 1) {}
Terminal::~Terminal() { clear(); }

bool Terminal::colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && !(no_colour && *no_colour);
}

void Terminal::clear() {
  if (is_terminal_ && !shown_.empty()) fmt::print(stderr, "\r\033[K");
  shown_.clear();
}

void Terminal::show(const std::string& line) {
  if (quiet_ || line == shown_) return;
  if (is_terminal_) {
    fmt::print(stderr, "\r\033[K{}", line);
    std::fflush(stderr);
  }
  shown_ = line;
}

Progress Terminal::progress() {
  Progress progress;
  progress.stage = [this](Stage stage) {
    stage_ = stage;
    if (quiet_) return;
    if (is_terminal_) return show(fmt::format("{} ...", name_of(stage)));
    fmt::print(stderr, "kbh: {}\n", name_of(stage));
  };
  progress.step = [this](const std::string& text, int done, int total) {
    if (is_terminal_) return show(fmt::format("{} {}/{}  {}", name_of(stage_), done, total, text));
    // Without a terminal: one line per shape, not per sample.
    if (!quiet_ && !text.empty() && text != shown_) fmt::print(stderr, "kbh: {} {}\n", name_of(stage_), text);
    shown_ = text;
  };
  progress.note = [this](const std::string& line) {
    if (quiet_) return;
    if (is_terminal_) return show(line);
    fmt::print(stderr, "kbh: {}\n", line);
  };
  return progress;
}

}  // namespace kbh::cli
