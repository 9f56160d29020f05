#include "cli/watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <ctime>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/files.hpp"
#include "cli/terminal.hpp"
#include "report/printable.hpp"

namespace kbh::cli {
namespace {

// Enough for a number to steer by, little enough to answer within some seconds.
constexpr double kSecondsPerShape = 0.5;

/// Waits until `file` is saved. Editors write in place or rename a new file over the old: the folder sees both.
class SaveWatcher {
 public:
  explicit SaveWatcher(const fs::path& file) : name_(file.filename().string()), fd_(::inotify_init1(IN_CLOEXEC)) {
    const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
    if (!fd_ || ::inotify_add_watch(fd_.get(), folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
      fail_errno(fmt::format("cannot watch {}", folder.string()));
  }

  void wait() const {
    alignas(inotify_event) char buffer[sizeof(inotify_event) + NAME_MAX + 1];
    for (;;) {
      const ssize_t n = ::read(fd_.get(), buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail_errno("inotify");
      for (const char* at = buffer; at < buffer + n;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        if (event->len > 0 && name_ == event->name) return;
        at += sizeof(inotify_event) + event->len;
      }
    }
  }

 private:
  std::string name_;
  UniqueFd fd_;
};

/// A file called submission.cpp stands for its folder, so that its headers travel.
fs::path submission_of(const fs::path& file) {
  if (file.filename() != "submission.cpp") return file;
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

std::string clock_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &parts);
  return text;
}

void print_result(const Grade& result) {
  if (result.finding) {
    fmt::print("{}  {}: {}\n", clock_time(), name_of(result.verdict), printable(result.finding->what));
    for (const std::string& detail : result.finding->details) fmt::print("          {}\n", printable(detail));
    return;
  }
  for (const ShapeScore& s : result.score->shapes)
    fmt::print("{}  {}  {:.1f} us ({:.1f} .. {:.1f})  {:.2f} GB/s  attainable {:.3f}  (not a grade)\n", clock_time(),
               s.shape.text(), s.time_us, s.machine_interval_us.low, s.machine_interval_us.high, s.gbs,
               s.attainable_fraction);
}

}  // namespace

int watch(const GradeArguments& arguments) {
  const fs::path file = arguments.watch;
  if (!fs::is_regular_file(file)) fail(ErrorKind::usage, "--watch {}: no such file", file.string());
  const Problem& problem = problem_of(arguments, file);
  Deck deck = find_deck(arguments.deck.empty() ? "cpu" : arguments.deck);
  require_runner(deck, arguments.device);
  deck.sampling.seconds_per_shape = kSecondsPerShape;
  deck.sampling.min_samples = std::min(deck.sampling.min_samples, 10);
  GradeOptions options;
  options.mode = Mode::bench;
  options.level = level_of(arguments);
  options.shape = static_cast<std::size_t>(std::max(0, arguments.shape));
  if (*options.shape >= deck.shapes_of(problem).size())
    fail(ErrorKind::usage, "--shape {}: deck {} has {} shapes", *options.shape, deck.name,
         deck.shapes_of(problem).size());

  Terminal terminal(arguments.quiet);
  const GradeContext context{problem, deck, options, terminal.progress(), nullptr};
  const SaveWatcher watcher(file);
  Workbench workbench;
  fmt::print(stderr, "kbh: watching {}; every save compiles it and times {} (not a grade); ctrl-c ends\n",
             file.string(), deck.shapes_of(problem)[*options.shape].shape.text());
  for (int runs = 1;; ++runs) {
    try {
      const Grade result = grade(context, read_submission(submission_of(file), std::nullopt), workbench);
      terminal.clear();
      print_result(result);
    } catch (const Error& error) {  // a half-written file: say so and wait for the next save
      terminal.clear();
      fmt::print("{}  {}\n", clock_time(), error.what());
    }
    std::fflush(stdout);
    if (arguments.watch_runs > 0 && runs >= arguments.watch_runs) return 0;
    watcher.wait();
  }
}

}  // namespace kbh::cli
