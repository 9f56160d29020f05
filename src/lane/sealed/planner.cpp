#include "lane/sealed/planner.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/files.hpp"
#include "lane/staging.hpp"

namespace kbh::sealed {
namespace {

constexpr std::size_t kLogLimit = 64 << 10;
constexpr double kSeconds = 10;  // for all shapes together; a plan takes microseconds
constexpr std::size_t kLargestPlan = 16 << 20;

/// A file that foreign code wrote: no links followed, a regular file, of sane size.
std::string read_foreign(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (static_cast<std::uint64_t>(info.st_size) > kLargestPlan) return {};
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t n = ::read(fd.get(), text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

Json to_json(const std::vector<Shape>& shapes) {
  Json list = Json::array();
  for (const Shape& shape : shapes) {
    Json dims = Json::array();
    for (const auto& [name, value] : shape.dims) dims.push_back(Json::array({name, value}));
    list.push_back(dims);
  }
  return list;
}

}  // namespace

Planning plan(const fs::path& object, const std::vector<Shape>& shapes, sandbox::Level level,
              const DeckLimits& limits) {
  const Staging staging("kbh-planner");
  staging.add(object, "submission.so");
  const TempDir output("kbh-plan");
  fs::permissions(output.path(), fs::perms(0777));
  const sandbox::Bind home{staging.path(), "/kbh"};
  const sandbox::Bind out{output.path(), "/kbh-out"};
  sandbox::Spec box;
  box.level = level;
  box.profile = sandbox::Profile::worker;
  box.read_only = {home};
  box.writable = {out};
  box.argv = {(sandbox::seen_at(home, level) / "kbh-planner").string(), std::string(sandbox::name_of(level)),
              (sandbox::seen_at(home, level) / "submission.so").string(),
              (sandbox::seen_at(out, level) / "plan.json").string(), to_json(shapes).dump()};
  box.environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/tmp", "TMPDIR=/tmp"};
  box.limits.memory_bytes = limits.memory_mib << 20;
  box.limits.processes = 16;
  box.limits.file_bytes = static_cast<std::int64_t>(kLargestPlan);
  const sandbox::RunResult run = sandbox::run(box, kSeconds, kLogLimit);

  Planning planning;
  planning.log = run.output;
  planning.timed_out = run.timed_out;
  const std::string first = run.output.substr(0, run.output.find('\n'));
  if (run.timed_out) {
    planning.problem = fmt::format("the plan function took more than {:g} s", kSeconds);
  } else if (run.signal != 0) {
    planning.problem = fmt::format("the plan function died of signal {}", run.signal);
  } else if (run.exit_code != 0) {
    planning.problem = first.empty() ? fmt::format("the planner ended with code {}", run.exit_code) : first;
  }
  if (!planning.problem.empty()) return planning;
  const Json json = Json::parse(read_foreign(output.path() / "plan.json"), nullptr, false);
  if (!json.is_array() || json.size() > shapes.size()) {
    planning.problem = "the plan function left no plan";
    return planning;
  }
  try {
    for (const Json& one : json) planning.plans.push_back(plan_from_json(one));
  } catch (const Error& error) {
    planning.problem = error.what();
  }
  const bool whole = planning.plans.size() == shapes.size();
  if (planning.problem.empty() && !whole && (planning.plans.empty() || planning.plans.back().refused.empty()))
    planning.problem = "plans of some shapes are missing";
  return planning;
}

}  // namespace kbh::sealed
