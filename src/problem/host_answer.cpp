#include "problem/host_answer.hpp"

#include <vector>

namespace kbh {
namespace {

/// The descriptions of some tensors, alive as long as a call needs them.
class Descriptions {
 public:
  template <typename Views>
  Descriptions(const Views& views, Role role) {
    for (const auto& view : views)
      if (view.spec->role == role)
        add(*view.spec, const_cast<std::byte*>(view.data));  // NOLINT: the C ABI has no const
  }
  [[nodiscard]] const kbh_tensor* data() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].strides = strides_[i].data();
    return tensors_.data();
  }

 private:
  void add(const TensorSpec& spec, std::byte* data) {
    std::vector<std::int64_t> strides(spec.dims.size());
    std::int64_t stride = 1;
    for (std::size_t d = strides.size(); d-- > 0;) {
      strides[d] = stride;
      stride *= spec.dims[d];
    }
    strides_.push_back(std::move(strides));
    tensors_.push_back({.data = data,
                        .device = KBH_CPU,
                        .device_id = 0,
                        .ndim = static_cast<std::int32_t>(spec.dims.size()),
                        .dtype = static_cast<std::int32_t>(spec.dtype),
                        .shape = spec.dims.data(),
                        .strides = nullptr,
                        .flags = spec.role == Role::output ? 0u : static_cast<std::uint64_t>(KBH_READ_ONLY),
                        .name = spec.name.c_str()});
  }

  std::vector<std::vector<std::int64_t>> strides_;
  std::vector<kbh_tensor> tensors_;
};

}  // namespace

Answer host_answer(HostKernel kernel) {
  return [kernel = std::move(kernel)](const Shape&, std::span<const ConstTensorView> tensors,
                                      std::span<const TensorView> outputs, std::span<const std::vector<std::byte>>) {
    Descriptions state(tensors, Role::state);
    Descriptions inputs(tensors, Role::input);
    Descriptions out(outputs, Role::output);
    kernel(state.data(), inputs.data(), out.data());
  };
}

}  // namespace kbh
