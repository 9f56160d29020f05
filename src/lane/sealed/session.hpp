// The session of a sealed submission: a worker of our own around its kernels, on one GPU.
//
// The grader allocates every buffer and exports it; the worker maps inputs read-only. SlotMemory are page-locked
// mirrors on the host: `run` and `sample` bring inputs over before and outputs back after a call.
#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "deck/deck.hpp"
#include "device/cuda/cold_timer.hpp"
#include "lane/sealed/plan.hpp"
#include "lane/session.hpp"
#include "sandbox/sandbox.hpp"

namespace kbh::sealed {

struct SessionSpec {
  std::filesystem::path cubin;
  std::map<std::string, std::uint64_t> writable_globals;  // bytes by name
  std::function<const Plan&(const Shape&)> plan_of;       // checked plans, by shape
  sandbox::Level level = sandbox::Level::full;
  DeckLimits limits;
  int device = 0;
  std::int64_t sweep_bytes = 0;  // of the flush
};

/// One timed call or batch.
struct Timed {
  double event_us = 0;   // between two events of the device
  double host_us = 0;    // by the worker's host clock, around the same
  double clock_mhz = 0;  // of a multiprocessor
  bool gave_up = false;  // the gate opened by itself: not a cold, queued call
};

class Session : public kbh::Session {
 public:
  /// Starts the worker. Throws Error(machine) when there is no device.
  explicit Session(const SessionSpec& spec);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::optional<Failure> load() override;
  std::optional<Failure> open_shape(const Shape& shape, const std::vector<TensorSpec>& tensors, int slots, int states,
                                    const FillState& fill_state) override;
  [[nodiscard]] const SlotMemory& slot(int index) const override;
  [[nodiscard]] int state_of(int slot) const override;
  std::optional<Failure> recreate(int state) override;
  void poison(int slot) override;
  std::optional<Failure> run(int slot) override;
  [[nodiscard]] std::string overrun(int slot) const override;
  /// Nothing: when the device has ended a call there is no one left to work.
  std::optional<Failure> restless(int slot) override;
  [[nodiscard]] std::string log() const override;
  [[nodiscard]] bool log_truncated() const override;

  /// Of the worker's timer; known once loaded.
  [[nodiscard]] cuda::Floors floors() const;

  /// One cold call.
  std::optional<Failure> sample(int slot, cuda::Flush flush, Timed* timed);

  /// Calls in a row after one flush, each on a slot of its own.
  std::optional<Failure> batch(std::span<const int> slots, Timed* timed);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kbh::sealed
