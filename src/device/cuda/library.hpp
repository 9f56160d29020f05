// Which file the loader took for a library that was opened by its name alone.
#pragma once

#include <dlfcn.h>

#include <string>

namespace kbh::cuda {

/// The file that holds a function.
template <typename Function>
std::string file_of(Function* function) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(function), &info) == 0 || !info.dli_fname) return "unknown";
  return info.dli_fname;
}

}  // namespace kbh::cuda
