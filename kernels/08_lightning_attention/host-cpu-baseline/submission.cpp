// One decode step of lightning attention, the plain way: row by row, each row of the memory is faded, written and read
// in one go.
//
// inputs   q, k, v  bf16 (B, H, 128)
//          s        fp32 (B, H, 128, 128)
//          decay    fp32 (H)
// outputs  s_next   fp32 (B, H, 128, 128)   decay * s + k v^T
//          o        bf16 (B, H, 128)        q s_next
#include <kbh/host.h>

#include <cstdint>

#include <kbh/numbers.hpp>

namespace {

constexpr int64_t kD = 128;

/// One head of one sequence. `s` and `s_next` are 128 x 128, the rest has 128 elements.
void step(const uint16_t* q, const uint16_t* k, const uint16_t* v, const float* s, float decay, float* s_next,
          uint16_t* o) {
  float value[kD], read[kD] = {};
  for (int64_t j = 0; j < kD; ++j) value[j] = kbh::from_bf16(v[j]);

  for (int64_t i = 0; i < kD; ++i) {
    const float key = kbh::from_bf16(k[i]), query = kbh::from_bf16(q[i]);
    for (int64_t j = 0; j < kD; ++j) {
      const float next = decay * s[i * kD + j] + key * value[j];
      s_next[i * kD + j] = next;
      read[j] += query * next;
    }
  }
  for (int64_t j = 0; j < kD; ++j) o[j] = kbh::to_bf16(read[j]);
}

}  // namespace

extern "C" int kbh_create(const kbh_context*, void** self) {
  *self = nullptr;
  return 0;
}

extern "C" void kbh_destroy(void*) {}

extern "C" int kbh_run(void*, const kbh_tensor* inputs, int32_t, const kbh_tensor* outputs, int32_t, void*) {
  const int64_t heads = inputs[0].shape[1], memories = inputs[0].shape[0] * heads;
  const auto* q = static_cast<const uint16_t*>(inputs[0].data);
  const auto* k = static_cast<const uint16_t*>(inputs[1].data);
  const auto* v = static_cast<const uint16_t*>(inputs[2].data);
  const auto* s = static_cast<const float*>(inputs[3].data);
  const auto* decay = static_cast<const float*>(inputs[4].data);
  auto* s_next = static_cast<float*>(outputs[0].data);
  auto* o = static_cast<uint16_t*>(outputs[1].data);

  for (int64_t m = 0; m < memories; ++m)
    step(q + m * kD, k + m * kD, v + m * kD, s + m * kD * kD, decay[m % heads], s_next + m * kD * kD, o + m * kD);
  return 0;
}
