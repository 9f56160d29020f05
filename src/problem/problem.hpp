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

/// State (weights and the like) is given once to kbh_create and may be prepared untimed; inputs come with every call.
enum class Role { state, input, output };
std::string_view name_of(Role role);

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
std::string_view name_of(Regime regime);

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

/// The oracle's answer: one array of doubles per output; empty where the comparison derives it from the inputs.
struct Expected {
  std::vector<std::vector<double>> outputs;
  /// Per output, where the tolerance needs more than the answer itself: the scale of each element (compare.hpp).
  std::vector<std::vector<double>> scales;
};

/// How far an output may lie from the oracle. An element passes when |out - ref| <= a * scale + r * |ref|; besides, the
/// relative Frobenius error |out - ref| / |ref| is bounded over the tensor and over each group (a row, a chunk). 0
/// where there is no such bound. How each number is derived stands beside it, in the problem's folder.
struct Bounds {
  double a = 0;
  double r = 0;
  double frobenius = 0;
  double group = 0;
  bool exact = false;  // equal to the oracle rounded once to the output's dtype; nothing else is looked at
};

/// What upstream's checker accepts: |out - ref| <= atol + rtol * |out| (sic), per output.
struct UpstreamTolerance {
  double atol = 0;
  double rtol = 0;
};

/// How a case arranges its calls.
enum class CaseKind {
  single,      // one draw, one call
  repeated,    // several calls on the same buffers and state, whose inputs change a little between them
  two_states,  // two objects, each with its own state, called in turn (problems with state only)
};

/// One way to draw data, and the mutants it must kill.
struct Case {
  std::string name;
  std::string about;  // one line: what it is and which shortcut it catches
  CaseKind kind = CaseKind::single;
  bool nominal = false;  // upstream's distribution; the one that is timed
  /// False when the case makes no sense for the shape (k = n, say). Empty: always.
  std::function<bool(const Shape&)> applies;
  /// Draws the tensors of role state. Empty for problems without.
  std::function<void(const DrawKey&, std::span<const TensorView> state)> fill_state;
  /// Draws the inputs. `tensors` are state (already drawn, not to be changed), then inputs, in the problem's order.
  std::function<void(const DrawKey&, std::span<const TensorView> tensors)> fill;
  /// CaseKind::repeated: how many calls, and what changes before call `step` (1, 2, ...). `former` is the oracle's
  /// answer to the call before.
  int calls = 2;
  std::function<void(const DrawKey&, int step, std::span<const TensorView> tensors, const Expected& former)> change;
  Bounds bounds;
  std::optional<UpstreamTolerance> upstream;  // only where upstream has this case
  std::vector<std::string> kills;             // mutants that fail here by a factor of 2 at least, proven by lint
  std::vector<std::string> barely_kills;      // mutants that fail here, by less: honest kernels come that near
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
  double worst = 0;  // largest error / bound; 0 where everything is exactly right
  std::int64_t bad = 0;
  std::int64_t total = 0;
  std::optional<Mismatch> mismatch;
  std::string note;  // what else was seen and decides nothing, such as how an accumulator rounds; mostly empty
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

/// The published library line that submissions are held against.
struct Sota {
  std::string name;
  std::string url;
  std::string figure;  // as published, with its machine
  std::string source;
};

/// How far a public PyTorch reference lies from the oracle by its own roundings: |d| <= relative * |ref| + rms *
/// rms(ref)
/// + absolute. Golden data are held to it.
struct Parity {
  double relative = 0;
  double rms = 0;
  double absolute = 0;
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
  std::string precision;  // "e4m3 inputs, fp32 accumulation, bf16 output"
  Regime regime = Regime::memory;
  std::string flops_formula;
  std::string bytes_formula;
  std::vector<std::string> dims;  // names of the shape's numbers, in order
  std::vector<std::string> forbidden;
  double prepared_cap = 0;  // bytes of prepared data, at most, as a multiple of the state's bytes
  Sota sota;
  Parity parity;

  // texts of the problem's folder
  std::string_view prompt;            // prompt.md, a template (prompt.hpp)
  std::string_view reference_python;  // reference.py
  std::string_view reference_cpp;     // reference.hpp

  // code
  std::function<std::vector<TensorSpec>(const Shape&)> tensors;
  std::function<Work(const Shape&)> work;
  /// Nothing when the shape lies in the declared domain, else what is wrong with it.
  std::function<std::optional<std::string>(const Shape&)> outside_domain;
  /// Shapes beside `listed` that must be right too (never timed).
  std::function<std::vector<Shape>(const Shape& listed)> neighbours;
  std::function<Expected(const Shape&, std::span<const ConstTensorView> tensors)> oracle;
  /// Changes a few secret rows of a nominal draw's inputs and brings `expected` up to date: a timed call gets new
  /// content without paying for the whole oracle. Empty where drawing all anew is cheap.
  std::function<void(const DrawKey&, std::span<const TensorView> tensors, Expected& expected)> refresh;
  std::function<Comparison(const Shape&, const Case&, std::span<const ConstTensorView> tensors, const Expected&,
                           std::span<const ConstTensorView> outputs)>
      compare;
  /// reference.hpp, a plain right answer in the outputs' own dtypes: lint holds it against every case.
  Answer honest;
  std::vector<Case> cases;
  std::vector<Mutant> mutants;

  [[nodiscard]] bool has_state() const;
  [[nodiscard]] const Case& nominal() const;
  [[nodiscard]] const Case* find_case(std::string_view name) const;
};

}  // namespace kbh
