#pragma once

#include <kbh/host.h>

#include <string>

namespace kbh::host {

/// A loaded submission. Loading runs its constructors: only ever done inside a sandboxed worker.
struct Library {
  decltype(&kbh_run) run = nullptr;
  decltype(&kbh_create) create = nullptr;    // may be absent
  decltype(&kbh_destroy) destroy = nullptr;  // may be absent
};

/// Loads `path` with RTLD_NOW | RTLD_LOCAL. On failure `problem` says why and `run` is null.
Library load_library(const std::string& path, std::string* problem);

}  // namespace kbh::host
