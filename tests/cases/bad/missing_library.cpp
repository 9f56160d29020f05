// An undefined symbol is found when the object is loaded.
// expect verdict: rejected
// expect says: cannot be loaded
#include "honest_topk.hpp"

extern "C" void a_function_of_some_library();

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  solve(problem_of(inputs, outputs));
  a_function_of_some_library();
  return 0;
}
