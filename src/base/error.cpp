#include "base/error.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kbh {

void fail_errno(const std::string& what) {
  const int code = errno;
  fail(ErrorKind::internal, "{}: {}", what, std::strerror(code));
}

void expect(bool condition, const char* message, std::source_location where) {
  if (condition) return;
  std::fprintf(stderr, "kbh: internal contract broken at %s:%u: %s\n", where.file_name(), where.line(), message);
  std::abort();
}

}  // namespace kbh
