#include "store/run_folder.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kbh {
namespace {

constexpr const char* kRunning = "grading.json";
constexpr const char* kResult = "grade.json";
constexpr const char* kInterrupted = "interrupted.json";

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d_%H%M%S", &parts);
  return text;
}

/// Changes with every boot: a pid from before the last one means nothing.
std::string boot_id() {
  try {
    std::string id = read_text("/proc/sys/kernel/random/boot_id");
    while (!id.empty() && id.back() == '\n') id.pop_back();
    return id;
  } catch (const Error&) {
    return "unknown";
  }
}

/// Start time of a process in clock ticks since boot; empty when it is gone. Tells a pid from its reuse.
std::string start_time_of(pid_t pid) {
  try {
    const std::string stat = read_text(fmt::format("/proc/{}/stat", pid));
    std::size_t at = stat.rfind(')');
    for (int field = 0; field < 20 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
    if (at == std::string::npos) return {};
    return stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
  } catch (const Error&) {
    return {};
  }
}

bool still_running(const Json& running) {
  if (!running.is_object() || running.value("boot_id", "") != boot_id()) return false;
  const pid_t pid = running.value("pid", 0);
  return pid > 0 && start_time_of(pid) == running.value("start_time", "?");
}

std::string safe_name(std::string_view name) {
  std::string safe;
  for (const char c : name) safe += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ? c : '_';
  return safe.substr(0, 80);
}

void remove_temporary_files(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& file : list_files(folder))
    if (file.filename().string().find(".tmp-") != std::string::npos) fs::remove(folder / file, ignored);
}

}  // namespace

RunFolder::RunFolder(const fs::path& store, std::string_view name) {
  std::error_code error;
  fs::create_directories(store, error);
  if (error)
    fail(ErrorKind::usage, "cannot create the store {}: {} (choose another with --store or KBH_STORE)", store.string(),
         error.message());
  const std::string base = timestamp() + "_" + safe_name(name);
  for (int attempt = 0;; ++attempt) {
    path_ = store / (attempt == 0 ? base : fmt::format("{}-{}", base, attempt + 1));
    if (fs::create_directory(path_, error)) break;
    if (error)
      fail(ErrorKind::usage, "cannot create {}: {} (choose another store with --store or KBH_STORE)", path_.string(),
           error.message());
  }
  save(kRunning, to_text({{"schema", "kbh.grading/1"},
                          {"pid", ::getpid()},
                          {"boot_id", boot_id()},
                          {"start_time", start_time_of(::getpid())}}));
}

void RunFolder::save(const std::string& name, std::string_view content) const {
  const fs::path target = path_ / name;
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error) fail(ErrorKind::internal, "cannot create {}: {}", target.parent_path().string(), error.message());
  write_atomic(target, content);
}

void RunFolder::finish(const Json& grade) const {
  save(kResult, to_text(grade));
  std::error_code ignored;
  fs::remove(path_ / kRunning, ignored);
}

std::vector<std::string> clean_store(const fs::path& store) {
  std::vector<std::string> cleaned;
  if (!fs::is_directory(store)) return cleaned;
  for (const auto& entry : fs::directory_iterator(store)) {
    const fs::path marker = entry.path() / kRunning;
    if (!entry.is_directory() || !fs::exists(marker)) continue;
    std::error_code error;
    if (fs::exists(entry.path() / kResult)) {  // died between the result and the removal: the result stands
      fs::remove(marker, error);
      continue;
    }
    const Json running = Json::parse(read_text(marker), nullptr, false);
    if (still_running(running)) continue;
    remove_temporary_files(entry.path());
    write_atomic(entry.path() / kInterrupted,
                 to_text({{"schema", "kbh.interrupted/1"},
                          {"what", "the grader died before this grade was over; what lies here is what it had done"}}));
    fs::remove(marker, error);
    cleaned.push_back(entry.path().filename().string());
  }
  return cleaned;
}

}  // namespace kbh
