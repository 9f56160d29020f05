// For support(), which finds out by trying; everybody else asks spawn and run.
#pragma once

#include "sandbox/sandbox.hpp"

namespace kbh::sandbox {

Child spawn_untested(const Spec& spec);
RunResult run_untested(Spec spec, double seconds, std::size_t output_limit);

}  // namespace kbh::sandbox
