// A constructor that registers a kernel of its own making: names alone are taken from it.
// expect verdict: rejected
// expect stage: plan
// expect says: is not in the device code
#include <dlfcn.h>
#include <kbh/sealed.h>

using Register = void (*)(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);

static void no_kernel(float*) {}

__attribute__((constructor)) static void registers_itself() {
  const auto add = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "__cudaRegisterFunction"));
  add(nullptr, reinterpret_cast<const char*>(no_kernel), nullptr, "kernel_of_nobody", -1, nullptr, nullptr, nullptr,
      nullptr, nullptr);
}

KBH_SEALED_PLAN(shape, plan) { plan.run(no_kernel, {.grid = 1, .block = 1}, plan.output<float>(0)); }
