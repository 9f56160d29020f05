#include "lane/staging.hpp"

#include "base/error.hpp"

namespace kbh {

Staging::Staging(const std::string& program, const fs::path& artifact) {
  fs::permissions(folder_.path(), fs::perms(0755));
  const fs::path home = executable_path().parent_path();
  copy(home / program, program);
  for (const auto& entry : fs::directory_iterator(home))
    if (entry.path().filename().string().starts_with("lib") && entry.path().string().find(".so") != std::string::npos)
      copy(entry.path(), entry.path().filename());
  copy(artifact, "submission.so");
}

void Staging::copy(const fs::path& from, const fs::path& name) const {
  std::error_code error;
  fs::copy_file(from, folder_.path() / name, fs::copy_options::overwrite_existing, error);
  if (error) fail(ErrorKind::machine, "cannot copy {} for the sandbox: {}", from.string(), error.message());
  fs::permissions(folder_.path() / name, fs::perms(0755));
}

}  // namespace kbh
