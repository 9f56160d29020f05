// A plan written past the planner, with a pointer far outside: the grader believes none of it.
// expect verdict: rejected
// expect stage: plan
// expect says: points
#include <fcntl.h>
#include <kbh/sealed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__global__ void copy(const float* x, float* y) { y[0] = x[0]; }

static const char* const kPlan =
    "{\"refused\":\"\",\"buffers\":[{\"kind\":2,\"index\":0,\"bytes\":0},{\"kind\":3,\"index\":0,\"bytes\":0}],"
    "\"tensor_maps\":[],\"steps\":[{\"phase\":2,\"launch\":{\"kernel\":\"_Z4copyPKfPf\",\"grid\":[1,1,1],"
    "\"block\":[1,1,1],\"cluster\":[0,0,0],\"shared\":0,\"cooperative\":false,\"overlap\":false,\"arguments\":["
    "{\"kind\":2,\"size\":8,\"id\":0,\"offset\":123456789012,\"writable\":false},"
    "{\"kind\":2,\"size\":8,\"id\":1,\"offset\":0,\"writable\":true}]}}]}";

// The planner's own command line says where the plan goes.
__attribute__((constructor)) static void writes_it_itself() {
  char line[4096] = {};
  const int fd = open("/proc/self/cmdline", O_RDONLY);
  if (read(fd, line, sizeof line - 1) < 0) return;
  const char* path = line;
  for (int i = 0; i < 3; ++i) path += strlen(path) + 1;
  FILE* out = fopen(path, "w");
  if (!out) return;
  // One for every shape, or their number would give it away: each begins with [[" in the list of shapes.
  const char* shapes = path + strlen(path) + 1;
  char before = '[';
  for (const char* at = shapes; (at = strstr(at, "[[\"")) != nullptr; ++at, before = ',') {
    fputc(before, out);
    fputs(kPlan, out);
  }
  fputc(']', out);
  fclose(out);
  _exit(0);
}

KBH_SEALED_PLAN(shape, plan) {
  plan.run(copy, {.grid = 1, .block = 1}, plan.input<float>(0), plan.output<float>(0));
}
