// The worker: a sandboxed process that loads one submission and calls it when told. It knows no seed, no expected value
// and no tolerance.
#pragma once

namespace kbh::worker {

/// Serves the grader on protocol::kSocketFd until it hangs up. Returns the process's exit code.
int serve();

}  // namespace kbh::worker
