#include "lane/host/library.hpp"

#include <dlfcn.h>

namespace kbh::host {
namespace {

template <typename Function>
Function symbol(void* handle, const char* name) {
  return reinterpret_cast<Function>(::dlsym(handle, name));
}

}  // namespace

Library load_library(const std::string& path, std::string* problem) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* text = ::dlerror();
    *problem = text ? text : "dlopen failed";
    return {};
  }
  Library library;
  library.run = symbol<decltype(library.run)>(handle, "kbh_run");
  library.create = symbol<decltype(library.create)>(handle, "kbh_create");
  library.destroy = symbol<decltype(library.destroy)>(handle, "kbh_destroy");
  if (!library.run) *problem = "it does not export kbh_run";
  return library;
}

}  // namespace kbh::host
