// Tries to write into the grader's store and to read its records; every attempt fails, and the answer is right.
#include <fcntl.h>
#include <sys/stat.h>

#include "honest_topk.hpp"

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  if (::open("@STORE@/forged.json", O_CREAT | O_WRONLY, 0644) >= 0) return 21;
  if (::open("@STORE@", O_RDONLY | O_DIRECTORY) >= 0) return 22;
  if (::mkdir("@STORE@/forged", 0755) == 0) return 23;
  solve(problem_of(inputs, outputs));
  return 0;
}
