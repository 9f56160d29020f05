// The grader's end of one worker: starts it in the sandbox, gives it memory, lets it run only while a call is being
// made.
//
// Between calls the whole worker is stopped (SIGSTOP). Our clock runs from SIGCONT to seeing "done"; then every thread
// is stopped again, and outputs are compared while nothing of the worker can run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "device/cpu/shared_memory.hpp"
#include "problem/problem.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh {

/// What ended a worker, or made it unusable. Data, not an exception: it is the submission's doing until shown
/// otherwise.
struct Failure {
  enum class Kind { crashed, timed_out, rejected, infra } kind = Kind::crashed;
  std::string what;  // one sentence
  std::string next;  // what the submitter can do
  std::vector<std::string> details;
};

struct SessionSpec {
  std::filesystem::path artifact;  // the shared object
  sandbox::Level level = sandbox::Level::full;
  DeckLimits limits;
  int threads = 1;
  std::int64_t shared_bytes = 0;  // the most that open_shape will map, on top of limits.memory_mib
  int calibration_calls = 12;
  std::function<void()> before_calibration_call;  // the cache flush
};

/// One call or batch, as both clocks saw it.
struct CallReport {
  std::vector<double> worker_us;  // claims of the worker, one per slot
  double grader_us = 0;           // our clock around all of them, empty call not yet subtracted
  double waited_us = 0;           // of which the worker's threads were ready but had no processor
};

/// Buffers of all slots of one shape, ours to write.
struct SlotMemory {
  std::vector<TensorView> tensors;  // state, then inputs: what Case::fill takes
  std::vector<TensorView> outputs;
};

class Session {
 public:
  /// Starts the worker and calibrates the clock with empty calls, before any foreign code is loaded. Throws Error when
  /// the machine cannot do it.
  explicit Session(const SessionSpec& spec);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Loads the artifact (its constructors run now, inside the sandbox).
  std::optional<Failure> load();

  /// New memory for `slots` slots over `states` sets of state, poisoned; creates the submission's objects. Closes the
  /// shape that was open. State must be filled by `fill_state(state index, state tensors)` before it returns.
  std::optional<Failure> open_shape(const Shape& shape, const std::vector<TensorSpec>& tensors, int slots, int states,
                                    const std::function<void(int, std::span<const TensorView>)>& fill_state);

  [[nodiscard]] const SlotMemory& slot(int index) const;

  /// The number of the state that a slot's calls use: slots take turns.
  [[nodiscard]] int state_of(int slot) const;

  /// Makes the submission's object of one state anew, after the caller has filled that state with other data.
  std::optional<Failure> recreate(int state);

  /// Fills the outputs of a slot with a pattern that no right answer holds, and renews its canaries.
  void poison(int slot);

  /// Calls the submission on each slot in turn; the worker stands still again when this returns.
  std::optional<Failure> call(std::span<const int> slots, CallReport* report);

  /// Hash of the outputs of these slots as they stand now.
  [[nodiscard]] std::uint64_t outputs_fingerprint(std::span<const int> slots) const;

  /// Empty when the bytes around the outputs (and inputs) of a slot are untouched, else which buffer was overrun.
  [[nodiscard]] std::string overrun(int slot) const;

  /// Lets the worker run for `seconds` with no call, looking at its threads `looks` times, then stops it again. Returns
  /// the largest share of looks at which one thread was running or waiting for a processor: 1 for a thread that works
  /// on, also on a machine so busy that it gets little time.
  double linger(double seconds, int looks);

  /// What the submission printed (at most limits.log_kib), and whether more was dropped.
  std::string log();
  [[nodiscard]] bool log_truncated() const;

  /// What an empty call costs on our clock (the least of the calibration).
  [[nodiscard]] double empty_call_us() const;
  [[nodiscard]] pid_t worker_pid() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kbh
