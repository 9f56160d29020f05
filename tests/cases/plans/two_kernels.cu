// Two kernels, static and template, in an anonymous namespace; counters, scratch, overlap, a tensor map.
// expect verdict: not_graded
#include <kbh/sealed.h>

namespace {

template <int K>
__global__ void slices(const float* x, float* part, int64_t n) {
  if (threadIdx.x < K) part[threadIdx.x] = x[n - 1 - threadIdx.x];
}

struct Sizes {
  int values[16];
};

__global__ void merge(const float* part, unsigned* done, float* values, int64_t* indices, Sizes sizes,
                      const __grid_constant__ CUtensorMap map) {
  done[0] = 0;
  values[0] = part[sizes.values[3]];
  indices[0] = reinterpret_cast<int64_t>(&map) & 1;
}

}  // namespace

KBH_SEALED_PLAN(shape, plan) {
  const int64_t n = shape["n"];
  auto x = plan.input<float>(0);
  auto part = plan.scratch<float>(64);
  auto done = plan.counters(1);
  plan.run(slices<8>, {.grid = {(n + 255) / 256, shape["batch"]}, .block = 256}, x, part, n);
  // Rows of the map: 16 bytes apart at least, whatever n is.
  auto map = plan.tensor_map(part, {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                                    .dims = {4, 16},
                                    .strides = {16},
                                    .box = {4, 16},
                                    .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B});
  plan.zero(part);
  plan.run(merge, {.grid = 1, .block = 32, .shared = 1024, .overlap = true}, part, done, plan.output<float>(0),
           plan.output<int64_t>(1), Sizes{}, map);
}
