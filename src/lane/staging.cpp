#include "lane/staging.hpp"

#include "base/error.hpp"

namespace kbh {

Staging::Staging(const std::string& program) {
  fs::permissions(folder_.path(), fs::perms(0755));
  const fs::path home = executable_path().parent_path();
  add(home / program, program);
  for (const auto& entry : fs::directory_iterator(home))
    if (entry.path().filename().string().starts_with("lib") && entry.path().string().find(".so") != std::string::npos)
      add(entry.path(), entry.path().filename());
}

void Staging::add(const fs::path& from, const fs::path& name) const {
  std::error_code error;
  for (fs::path folder; const fs::path& part : name.parent_path()) {
    fs::create_directory(folder_.path() / (folder /= part), error);
    fs::permissions(folder_.path() / folder, fs::perms(0755));
  }
  fs::copy_file(from, folder_.path() / name, fs::copy_options::overwrite_existing, error);
  if (error) fail(ErrorKind::machine, "cannot copy {} for the sandbox: {}", from.string(), error.message());
  fs::permissions(folder_.path() / name, fs::perms(0755));
}

}  // namespace kbh
