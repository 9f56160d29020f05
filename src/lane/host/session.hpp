// The session of a submission that brings host code of its own, on the CPU.
//
// Between calls the whole worker is stopped (SIGSTOP). Our clock runs from SIGCONT to seeing "done"; then every thread
// is stopped again, and outputs are compared while nothing of the worker can run.
#pragma once

#include <filesystem>
#include <memory>

#include "deck/deck.hpp"
#include "lane/session.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh::host {

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

class Session : public kbh::Session {
 public:
  /// Starts the worker and calibrates the clock with empty calls, before any foreign code is loaded. Throws Error when
  /// the machine cannot do it.
  explicit Session(const SessionSpec& spec);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::optional<Failure> load() override;  // its constructors run now, inside the sandbox
  std::optional<Failure> open_shape(const Shape& shape, const std::vector<TensorSpec>& tensors, int slots, int states,
                                    const FillState& fill_state) override;
  [[nodiscard]] const SlotMemory& slot(int index) const override;
  [[nodiscard]] int state_of(int slot) const override;
  std::optional<Failure> recreate(int state) override;
  void poison(int slot) override;
  std::optional<Failure> run(int slot) override;
  [[nodiscard]] std::string overrun(int slot) const override;
  std::optional<Failure> restless(int slot) override;
  [[nodiscard]] std::string log() const override;
  [[nodiscard]] bool log_truncated() const override;

  /// Calls the submission on each slot in turn; the worker stands still again when this returns.
  std::optional<Failure> call(std::span<const int> slots, CallReport* report);

  /// What an empty call costs on our clock (the least of the calibration).
  [[nodiscard]] double empty_call_us() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kbh::host
