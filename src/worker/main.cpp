#include "base/error.hpp"
#include "sandbox/sandbox.hpp"
#include "worker/worker.hpp"

int main(int argc, char** argv) {
  try {
    // Started by kbh only: kbh-worker LEVEL, with the socket and the control page as descriptors 3 and 4.
    const auto level = argc == 2 ? kbh::sandbox::level_from(argv[1]) : std::nullopt;
    if (!level) {
      fmt::print(stderr, "kbh-worker is started by kbh; it is no command of its own\n");
      return 2;
    }
    kbh::sandbox::restrict_self(*level, kbh::sandbox::Profile::worker);
    return kbh::worker::serve();
  } catch (const std::exception& error) {
    fmt::print(stderr, "kbh-worker: {}\n", error.what());
    return 70;
  }
}
