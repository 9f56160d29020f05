// What a problem is: tensors, work, data, an exact oracle, a comparison, and the proof (mutants) that the comparison
// bites.
//
// A Problem is a value made of plain functions. One folder below src/problems/ builds one; registry.cpp lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.hpp"

namespace kbh {

/// Named sizes such as {batch=64, n=8192, k=8}, in the problem's own order.
struct Shape {
  std::vector<std::pair<std::string, std::int64_t>> dims;

  /// Aborts when there is no such dimension: shapes are validated when they are read.
  [[nodiscard]] std::int64_t operator[](std::string_view name) const;
  /// "batch=64 n=8192 k=8"
  [[nodiscard]] std::string text() const;
  bool operator==(const Shape&) const = default;
};

enum class Role { state, input, output };

struct TensorSpec {
  std::string name;
  Role role = Role::input;
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;

  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};

/// A tensor's bytes, owned by somebody else. Row-major, dense, 64-byte aligned.
struct TensorView {
  const TensorSpec* spec = nullptr;
  std::byte* data = nullptr;

  template <typename T>
  [[nodiscard]] std::span<T> as() const {
    return {reinterpret_cast<T*>(data), static_cast<std::size_t>(spec->elements())};
  }
};

struct ConstTensorView {
  const TensorSpec* spec = nullptr;
  const std::byte* data = nullptr;

  ConstTensorView() = default;
  ConstTensorView(const TensorSpec* s, const std::byte* d) : spec(s), data(d) {}
  ConstTensorView(const TensorView& v) : spec(v.spec), data(v.data) {}  // NOLINT(google-explicit-constructor)

  template <typename T>
  [[nodiscard]] std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data), static_cast<std::size_t>(spec->elements())};
  }
};

enum class Regime { compute, memory };

/// What a shape costs, at least (architecture section 7).
struct Work {
  double flops = 0;           // true floating-point operations
  double min_bytes = 0;       // every byte that must move, once
  double upstream_flops = 0;  // upstream's own formulas, for comparison with its boards
  double upstream_bytes = 0;
  DType flops_dtype = DType::f32;  // which peak binds the flops
};

/// 128 secret bits. Drawn by the grader after the submission is built; never enters the worker.
using Seed = std::string;  // 16 bytes

/// Names one draw of data. Every tensor gets a stream of its own from it (base/philox.hpp).
struct DrawKey {
  Seed seed;
  std::string problem;
  int version = 1;
  Shape shape;
  std::string case_name;
  int trial = 0;

  /// Philox key of one tensor: the first 8 bytes of SHA-256 over all fields and the tensor's name.
  [[nodiscard]] std::uint64_t stream(std::string_view tensor) const;
};

/// How a case arranges its calls.
enum class CaseKind {
  single,    // one draw, one call
  in_place,  // a second call after a few elements of the same buffers have changed
};

/// One way to draw data, and the mutants it must kill.
struct Case {
  std::string name;
  std::string about;  // one line: what it is and which shortcut it catches
  CaseKind kind = CaseKind::single;
  bool nominal = false;  // upstream's distribution; the one that is timed
  /// False when the case makes no sense for the shape (k = n, say).
  std::function<bool(const Shape&)> applies;
  /// Draws state and inputs. `tensors` are those of role state and input, in the problem's order.
  std::function<void(const DrawKey&, std::span<const TensorView> tensors)> fill;
  /// CaseKind::in_place: changes a few unpredictable elements.
  std::function<void(const DrawKey&, std::span<const TensorView> tensors)> change;
  std::vector<std::string> kills;  // mutants that fail here, proven by lint
};

/// The oracle's answer: one array of doubles per output; empty where the comparison derives it from the inputs.
struct Expected {
  std::vector<std::vector<double>> outputs;
};

/// The worst element, in words a submitter can act on.
struct Mismatch {
  std::string output;
  std::vector<std::int64_t> index;
  std::string expected;  // left out of what a practice job returns
  std::string got;
  std::string rule;  // "values equal, position by position", with the tolerance and where it comes from
};

struct Comparison {
  bool pass = false;
  double worst = 0;  // largest error / bound; 0 for exact problems that pass
  std::int64_t bad = 0;
  std::int64_t total = 0;
  std::optional<Mismatch> mismatch;
};

/// Fills `outputs` from `tensors` (state and inputs), as a submission's call would. `previous` holds the outputs of the
/// former call on the same shape (empty at first): what a stale answer would return.
using Answer =
    std::function<void(const Shape&, std::span<const ConstTensorView> tensors, std::span<const TensorView> outputs,
                       std::span<const std::vector<std::byte>> previous)>;

/// A planted wrong kernel.
struct Mutant {
  std::string name;
  std::string about;
  /// False where the shortcut is no shortcut (keeping one candidate per thread is right when k = 1). Empty: everywhere.
  std::function<bool(const Shape&)> applies;
  Answer run;
};

struct Problem {
  // from problem.toml
  std::string id;
  std::string title;
  std::vector<std::string> aliases;
  int version = 1;
  std::string summary;
  std::string domain;  // in words, as `kbh problems` prints it
  std::string tolerance;
  Regime regime = Regime::memory;
  std::string flops_formula;
  std::string bytes_formula;
  std::vector<std::string> dims;  // names of the shape's numbers, in order
  std::vector<std::string> forbidden;

  // code
  std::function<std::vector<TensorSpec>(const Shape&)> tensors;
  std::function<Work(const Shape&)> work;
  /// Nothing when the shape lies in the declared domain, else what is wrong with it.
  std::function<std::optional<std::string>(const Shape&)> outside_domain;
  /// Shapes beside `listed` that must be right too (never timed).
  std::function<std::vector<Shape>(const Shape& listed)> neighbours;
  std::function<Expected(const Shape&, std::span<const ConstTensorView> tensors)> oracle;
  std::function<Comparison(const Shape&, std::span<const ConstTensorView> tensors, const Expected&,
                           std::span<const ConstTensorView> outputs)>
      compare;
  /// A plain right answer in the outputs' own dtypes: lint holds it against every case.
  Answer honest;
  std::vector<Case> cases;
  std::vector<Mutant> mutants;

  [[nodiscard]] const Case& nominal() const;
  [[nodiscard]] const Case* find_case(std::string_view name) const;
};

}  // namespace kbh
