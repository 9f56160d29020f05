#include "sandbox/sandbox.hpp"

#include <sys/prctl.h>

#include "base/error.hpp"
#include "sandbox/landlock.hpp"
#include "sandbox/seccomp.hpp"

namespace kbh::sandbox {
namespace {

constexpr Level kLevels[] = {Level::none, Level::reduced, Level::full};

}  // namespace

std::string_view name_of(Level level) {
  switch (level) {
    case Level::none:
      return "none";
    case Level::reduced:
      return "reduced";
    case Level::full:
      return "full";
  }
  return "?";
}

std::optional<Level> level_from(std::string_view name) {
  for (const Level level : kLevels)
    if (name == name_of(level)) return level;
  return std::nullopt;
}

std::filesystem::path seen_at(const Bind& bind, Level level) {
  return level == Level::full && !bind.inside.empty() ? bind.inside : bind.host;
}

void restrict_self(Level level, Profile profile) {
  if (level == Level::none) return;
  expect(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS");
  if (landlock::abi() > 0)
    expect(landlock::restrict(landlock::isolation().get()) == 0, "the kernel refuses the Landlock ruleset");
  seccomp::load(profile);
}

}  // namespace kbh::sandbox
