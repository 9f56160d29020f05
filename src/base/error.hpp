// How kbh reports what went wrong.
//
// Three worlds, kept apart:
//   * what a *submission* does wrong is data (a Verdict), never an exception;
//   * what a *person or machine* does wrong is an Error, thrown once and printed once, at the edge (src/cli);
//   * what a *programmer* does wrong aborts loudly: KBH_EXPECT has no recovery on purpose.
#pragma once

#include <fmt/core.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace kbh {

enum class ErrorKind {
  usage,     // exit 2: an argument or an input file is wrong
  machine,   // exit 3: this machine cannot do it (no compiler, no sandbox, no GPU)
  internal,  // exit 4: our fault, or the disk's
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] int exit_code() const noexcept { return 2 + static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws an internal Error that ends with the text of `errno`.
[[noreturn]] void fail_errno(const std::string& what);

/// A contract between our own functions. Prints file, line and message, then aborts.
void expect(bool condition, const char* message, std::source_location where = std::source_location::current());

}  // namespace kbh
