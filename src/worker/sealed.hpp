// The worker of the sealed lane: our own host code around a submission's kernels. It loads the cubin, maps the grader's
// buffers (inputs read-only), launches the plan, and times it.
#pragma once

namespace kbh::worker {

/// Serves the grader on protocol::kSocketFd until it hangs up. Returns the process's exit code.
int serve_sealed();

}  // namespace kbh::worker
