#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "sandbox/bubblewrap.hpp"
#include "sandbox/landlock.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/untested.hpp"

namespace kbh::sandbox {
namespace {

constexpr double kPatience = 5;

std::string first_line(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

// Empty when the level works, else the reason.
std::string reason_against(Level level) {
  try {
    const RunResult result = run_untested({.level = level, .argv = {"/bin/true"}}, kPatience, 4096);
    if (result.ok()) return {};
    if (!result.output.empty()) return first_line(result.output);
    return result.timed_out ? "no answer" : fmt::format("exit code {}, signal {}", result.exit_code, result.signal);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string version_of(const std::string& bwrap) {
  try {
    return first_line(run_untested({.level = Level::none, .argv = {bwrap, "--version"}}, kPatience, 4096).output);
  } catch (const Error&) {
    return "bubblewrap";
  }
}

long kernel_setting(const char* path, long missing) {
  long value = missing;
  std::ifstream(path) >> value;
  return value;
}

std::string how_to_get_user_namespaces() {
  if (kernel_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1)
    return "AppArmor forbids user namespaces (Ubuntu): sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  if (kernel_setting("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
    return "user namespaces are switched off: sudo sysctl -w kernel.unprivileged_userns_clone=1";
  if (kernel_setting("/proc/sys/user/max_user_namespaces", 1) == 0)
    return "user namespaces are switched off: sudo sysctl -w user.max_user_namespaces=15000";
  return "probably a container that forbids namespaces: start it with --security-opt seccomp=unconfined --security-opt "
         "apparmor=unconfined --security-opt systempaths=unconfined, or become an ordinary user";
}

void explain_lack_of_full(Support& support, const std::string& reason) {
  if (!support.bubblewrap.empty()) {
    support.why = "bubblewrap does not work here: " + reason;
    support.missing = how_to_get_user_namespaces();
  } else if (const char* chosen = std::getenv("KBH_BWRAP")) {
    support.why = fmt::format("KBH_BWRAP={} is not a program", chosen);
    support.missing = "unset KBH_BWRAP, or let it name bubblewrap's bwrap";
  } else {
    support.why = "bubblewrap is not installed";
    support.missing = "apt-get install bubblewrap";
  }
}

Support find_out() {
  Support support;
  support.landlock_abi = landlock::abi();
  support.bubblewrap = bubblewrap::find();
  const std::string against_reduced =
      support.landlock_abi > 0 ? reason_against(Level::reduced) : "the kernel has no Landlock (Linux 5.13)";
  support.reduced = against_reduced.empty();
  const std::string against_full = support.bubblewrap.empty() ? "-" : reason_against(Level::full);
  if (against_full.empty()) {
    support.level = Level::full;
    support.why = version_of(support.bubblewrap) + " with user namespaces";
    return support;
  }
  explain_lack_of_full(support, against_full);
  if (support.reduced) {
    support.level = Level::reduced;
    support.why += fmt::format("; Landlock (ABI {}), seccomp and limits work", support.landlock_abi);
  } else {
    support.why += "; level reduced does not work either: " + against_reduced;
  }
  return support;
}

}  // namespace

const Support& support() {
  static const Support found = find_out();
  return found;
}

}  // namespace kbh::sandbox
