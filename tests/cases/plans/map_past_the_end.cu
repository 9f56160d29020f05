// A tensor map that reaches behind its buffer.
// expect verdict: rejected
// expect stage: plan
// expect says: tensor map 0: reaches
#include <kbh/sealed.h>

__global__ void copy(const __grid_constant__ CUtensorMap map, float* y) {
  y[0] = static_cast<float>(reinterpret_cast<uint64_t>(&map) & 1);
}

KBH_SEALED_PLAN(shape, plan) {
  auto map = plan.tensor_map(plan.scratch<float>(1024), {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                                                         .dims = {32, 33},
                                                         .strides = {128},
                                                         .box = {32, 8},
                                                         .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  plan.run(copy, {.grid = 1, .block = 1}, map, plan.output<float>(0));
}
