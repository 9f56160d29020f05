// kbh sealed lane: a submission is kernels and a plan of their launches; no host code of it runs when it is timed.
//
//     #include <kbh/sealed.h>
//
//     __global__ void scale(const float* x, float* y, int64_t n) { ... }
//
//     KBH_SEALED_PLAN(shape, plan) {
//       const int64_t n = shape["n"];
//       auto x = plan.input<float>(0);
//       auto y = plan.output<float>(0);
//       plan.run(scale, {.grid = {(n + 255) / 256}, .block = {256}}, x, y, n);
//     }
//
// The plan is made once per shape, in a process that has no GPU and sees no data: buffers are names, not addresses. The
// grader checks it, gives each call buffers of its own, and launches it. docs/sealed.md teaches the lane.
#ifndef KBH_SEALED_H
#define KBH_SEALED_H

#include <cuda.h>  // CUtensorMap and its enumerations
#include <kbh/sealed_abi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace kbh::sealed {

/// The numbers of the shape in hand: shape["batch"].
class Shape {
 public:
  Shape(const kbh_sealed_sink* sink, const kbh_sealed_dim* dims, int32_t count)
      : sink_(sink), dims_(dims), count_(count) {}

  /// A name that the problem does not have ends the plan with a message.
  std::int64_t operator[](const char* name) const {
    for (std::int32_t i = 0; i < count_; ++i)
      if (std::strcmp(dims_[i].name, name) == 0) return dims_[i].value;
    sink_->refuse(sink_->self, name);
    return 0;
  }

 private:
  const kbh_sealed_sink* sink_;
  const kbh_sealed_dim* dims_;
  std::int32_t count_;
};

/// A buffer by name, from `offset` on. `buffer + n` moves on by n elements.
template <typename T>
struct Buffer {
  std::uint32_t id = 0;
  std::uint64_t offset = 0;  // in bytes

  Buffer operator+(std::int64_t elements) const {
    return {id, offset + static_cast<std::uint64_t>(elements) * sizeof(T)};
  }
  /// The same memory with elements of another type.
  template <typename U>
  Buffer<std::conditional_t<std::is_const_v<T>, const U, U>> as() const {
    return {id, offset};
  }
};

/// Up to three numbers.
struct Extent {
  std::int64_t x = 1, y = 1, z = 1;
  constexpr Extent() = default;
  template <typename X, typename Y = int, typename Z = int>
  constexpr Extent(X first, Y second = 1, Z third = 1)
      : x(static_cast<std::int64_t>(first)),
        y(static_cast<std::int64_t>(second)),
        z(static_cast<std::int64_t>(third)) {}
};

/// How a kernel is launched. `cluster`: blocks per cluster, up to 16. `overlap`: programmatic dependent launch, this
/// kernel may begin before the plan's previous launch has ended (cudaGridDependencySynchronize waits for it).
struct Launch {
  Extent grid;
  Extent block;
  std::int64_t shared = 0;
  Extent cluster = {0, 0, 0};
  bool cooperative = false;
  bool overlap = false;
};

/// What cuTensorMapEncodeTiled takes. Strides are in bytes and leave out the innermost dimension; empty element strides
/// are ones.
struct TensorMapSpec {
  CUtensorMapDataType type;
  std::initializer_list<std::uint64_t> dims;
  std::initializer_list<std::uint64_t> strides;
  std::initializer_list<std::uint32_t> box;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  std::initializer_list<std::uint32_t> element_strides = {};
};

/// A tensor map by name: an argument for a parameter `const __grid_constant__ CUtensorMap`.
struct TensorMap {
  std::uint32_t id = 0;
};

namespace detail {

/// One argument for a kernel parameter of type P. A parameter's type is decayed: `const T` by value is T.
template <typename P>
struct Slot {
  P value{};
  kbh_sealed_argument argument{};

  /// A value: converted as a call would.
  template <typename A>
  explicit Slot(const A& given) : value(static_cast<P>(given)) {
    static_assert(std::is_convertible_v<A, P>, "an argument does not convert to the kernel's parameter");
    static_assert(std::is_trivially_copyable_v<P>, "kernel parameters are plain data");
    argument = {KBH_SEALED_VALUE, 0, 0, &value, static_cast<std::uint32_t>(sizeof(P)), 0};
  }
  Slot(const Slot&) = delete;
};

template <typename T>
struct Slot<T*> {
  kbh_sealed_argument argument{};
  void* none = nullptr;

  template <typename U>
  explicit Slot(const Buffer<U>& buffer) {
    static_assert(std::is_const_v<T> || !std::is_const_v<U>, "the kernel would write to a read-only buffer");
    static_assert(std::is_void_v<T> || std::is_same_v<std::remove_cv_t<T>, std::remove_cv_t<U>>,
                  "the buffer has elements of another type; buffer.as<T>() says that you mean it");
    argument = {KBH_SEALED_POINTER, buffer.id, buffer.offset, nullptr, sizeof(void*), std::is_const_v<T> ? 0u : 1u};
  }
  explicit Slot(std::nullptr_t) { argument = {KBH_SEALED_VALUE, 0, 0, &none, sizeof(void*), 0}; }
  Slot(const Slot&) = delete;
};

template <>
struct Slot<CUtensorMap> {
  kbh_sealed_argument argument{};
  explicit Slot(const TensorMap& map) {
    argument = {KBH_SEALED_TENSOR_MAP, map.id, 0, nullptr, static_cast<std::uint32_t>(sizeof(CUtensorMap)), 0};
  }
  Slot(const Slot&) = delete;
};

}  // namespace detail

class Plan {
 public:
  explicit Plan(const kbh_sealed_sink* sink) : sink_(sink) {}

  /// Tensor `index` of its role, in the problem's order (`kbh problems ID`). T has the size of the tensor's elements.
  template <typename T>
  Buffer<const T> state(std::uint32_t index) {
    return {sink_->buffer(sink_->self, KBH_SEALED_STATE, index, 0), 0};
  }
  template <typename T>
  Buffer<const T> input(std::uint32_t index) {
    return {sink_->buffer(sink_->self, KBH_SEALED_INPUT, index, 0), 0};
  }
  template <typename T>
  Buffer<T> output(std::uint32_t index) {
    return {sink_->buffer(sink_->self, KBH_SEALED_OUTPUT, index, 0), 0};
  }
  /// Memory for one call: poisoned before it, forgotten after it. 256-byte aligned, as the two below.
  template <typename T>
  Buffer<T> scratch(std::int64_t elements) {
    return made<T>(KBH_SEALED_SCRATCH, elements);
  }
  /// Zeros, that every call must leave as zeros.
  Buffer<std::uint32_t> counters(std::int64_t count) { return made<std::uint32_t>(KBH_SEALED_COUNTERS, count); }
  /// Data made from the state, once and untimed, by `prepare` launches. The problem caps the bytes.
  template <typename T>
  Buffer<T> prepared(std::int64_t elements) {
    return made<T>(KBH_SEALED_PREPARED, elements);
  }

  /// A timed launch. At most 32 of them, in order; each begins when the one before has ended (see Launch::overlap).
  template <typename... P, typename... A>
  void run(void (*kernel)(P...), const Launch& launch, const A&... arguments) {
    add(KBH_SEALED_RUN, kernel, launch, arguments...);
  }
  /// A launch that runs once per state: reads state and prepared buffers, writes prepared ones.
  template <typename... P, typename... A>
  void prepare(void (*kernel)(P...), const Launch& launch, const A&... arguments) {
    add(KBH_SEALED_PREPARE, kernel, launch, arguments...);
  }
  /// A timed step that clears a whole scratch or counter buffer.
  template <typename T>
  void zero(const Buffer<T>& buffer) {
    sink_->zero(sink_->self, buffer.id);
  }

  template <typename T>
  TensorMap tensor_map(const Buffer<T>& buffer, const TensorMapSpec& spec) {
    kbh_sealed_tensor_map map{};
    map.buffer = buffer.id;
    map.offset = buffer.offset;
    map.type = spec.type;
    map.rank = static_cast<std::int32_t>(spec.dims.size());
    const bool fits = copy(spec.dims, map.dims) && copy(spec.strides, map.strides) && copy(spec.box, map.box) &&
                      copy(spec.element_strides, map.element_strides) && spec.box.size() == spec.dims.size() &&
                      spec.strides.size() + 1 == spec.dims.size() &&
                      (spec.element_strides.size() == 0 || spec.element_strides.size() == spec.dims.size());
    require(fits, "a tensor map has 1 to 5 dims, as many box sizes, and one stride less");
    if (spec.element_strides.size() == 0)
      for (std::uint32_t& stride : map.element_strides) stride = 1;
    map.interleave = spec.interleave;
    map.swizzle = spec.swizzle;
    map.promotion = spec.promotion;
    map.fill = spec.fill;
    return {sink_->tensor_map(sink_->self, &map)};
  }

  /// Ends the plan with a message where the kernels cannot do what is asked.
  void require(bool condition, const char* what) {
    if (!condition) sink_->refuse(sink_->self, what);
  }

 private:
  template <typename T>
  Buffer<T> made(kbh_sealed_buffer kind, std::int64_t elements) {
    require(elements > 0 && elements < (std::int64_t{1} << 44), "a buffer has at least one element");
    return {sink_->buffer(sink_->self, kind, 0, static_cast<std::uint64_t>(elements) * sizeof(T)), 0};
  }

  template <typename T, std::size_t N>
  static bool copy(std::initializer_list<T> from, T (&to)[N]) {
    if (from.size() > N) return false;
    std::size_t i = 0;
    for (const T& value : from) to[i++] = value;
    return true;
  }

  template <typename... P, typename... A>
  void add(kbh_sealed_phase phase, void (*kernel)(P...), const Launch& launch, const A&... arguments) {
    static_assert(sizeof...(P) == sizeof...(A), "the kernel has another number of parameters");
    add_slots(phase, reinterpret_cast<const void*>(kernel), launch, detail::Slot<std::remove_cv_t<P>>(arguments)...);
  }

  template <typename... S>
  void add_slots(kbh_sealed_phase phase, const void* kernel, const Launch& l, const S&... slots) {
    const kbh_sealed_launch launch = {{l.grid.x, l.grid.y, l.grid.z},
                                      {l.block.x, l.block.y, l.block.z},
                                      {l.cluster.x, l.cluster.y, l.cluster.z},
                                      l.shared,
                                      l.cooperative ? 1u : 0u,
                                      l.overlap ? 1u : 0u};
    const kbh_sealed_argument arguments[sizeof...(S) + 1] = {slots.argument...};
    sink_->launch(sink_->self, phase, kernel, &launch, arguments, static_cast<std::uint32_t>(sizeof...(S)));
  }

  const kbh_sealed_sink* sink_;
};

}  // namespace kbh::sealed

/// Defines the plan: KBH_SEALED_PLAN(shape, plan) { ... }
#define KBH_SEALED_PLAN(shape, plan)                                                          \
  static void kbh_sealed_plan_body(const kbh::sealed::Shape& shape, kbh::sealed::Plan& plan); \
  extern "C" __attribute__((visibility("default"))) void kbh_sealed_plan(                     \
      const kbh_sealed_sink* kbh_sink, const kbh_sealed_dim* kbh_dims, int32_t kbh_count) {   \
    const kbh::sealed::Shape kbh_shape(kbh_sink, kbh_dims, kbh_count);                        \
    kbh::sealed::Plan kbh_plan(kbh_sink);                                                     \
    kbh_sealed_plan_body(kbh_shape, kbh_plan);                                                \
  }                                                                                           \
  static void kbh_sealed_plan_body(const kbh::sealed::Shape& shape, kbh::sealed::Plan& plan)

#endif
