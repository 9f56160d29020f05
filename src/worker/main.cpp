#include "base/error.hpp"
#include "sandbox/sandbox.hpp"
#include "worker/worker.hpp"
#ifdef KBH_WITH_CUDA
#include "worker/sealed.hpp"
#endif

int main(int argc, char** argv) {
  try {
    // Started by kbh only: kbh-worker LEVEL LANE, with the socket and (host lane) the control page as descriptors 3, 4.
    const auto level = argc == 3 ? kbh::sandbox::level_from(argv[1]) : std::nullopt;
    const std::string_view lane = argc == 3 ? argv[2] : "";
    if (!level || (lane != "host" && lane != "sealed")) {
      fmt::print(stderr, "kbh-worker is started by kbh; it is no command of its own\n");
      return 2;
    }
    if (lane == "sealed") {
#ifdef KBH_WITH_CUDA
      kbh::sandbox::restrict_self(*level, kbh::sandbox::Profile::device);
      return kbh::worker::serve_sealed();
#else
      fmt::print(stderr, "kbh-worker was built without CUDA\n");
      return 2;
#endif
    }
    kbh::sandbox::restrict_self(*level, kbh::sandbox::Profile::worker);
    return kbh::worker::serve();
  } catch (const std::exception& error) {
    fmt::print(stderr, "kbh-worker: {}\n", error.what());
    return 70;
  }
}
