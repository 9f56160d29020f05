// How the ceilings of a GPU are measured.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <limits>

#include "base/error.hpp"
#include "base/statistics.hpp"
#include "device/cuda/ceilings.hpp"
#include "device/cuda/ceilings_loops.hpp"
#include "device/cuda/cold_timer.hpp"
#include "device/cuda/device_code.hpp"
#include "device/cuda/nvml.hpp"

namespace kbh::cuda {
namespace {

constexpr std::int64_t kSmallestSet = 256 << 10;
constexpr std::int64_t kLargestSet = std::int64_t{4} << 30;
// Written and read by a flush, in second-level caches, as in a grade: nothing of a call is left, and no line to write
// back.
constexpr std::int64_t kSweeps = 6;
constexpr double kLimitSeconds = 10;

// Every loop is tried a few times, the best of them many times.
constexpr int kTrials = 5;
constexpr std::size_t kFinalists = 3;
constexpr int kSamples = 20;

constexpr double kBurstUs = 100;
constexpr double kSustainedSampleUs = 50'000;
constexpr double kWarmUpSeconds = 0.2;  // until power has found the clock that it allows
constexpr double kSustainedSeconds = 0.55;

using Queue = std::function<void(CUstream)>;

/// Nothing when the device's code has no such kernel.
CUfunction find_kernel(const Module& module, const std::string& name) {
  CUfunction function = nullptr;
  const CUresult result = driver().function(&function, module.get(), name.c_str());
  if (result != CUDA_ERROR_NOT_FOUND) check(result, "cannot look up a kernel of the ceilings");
  return function;
}

void allow_shared(CUfunction function, unsigned bytes) {
  check(driver().set_function_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        static_cast<int>(bytes)),
        "cannot reserve shared memory");
}

unsigned resident_blocks(CUfunction function, unsigned threads, unsigned shared) {
  int blocks = 0;
  check(driver().blocks_per_multiprocessor(&blocks, function, static_cast<int>(threads), shared),
        "cannot ask for a kernel's occupancy");
  return static_cast<unsigned>(std::max(blocks, 1));
}

/// Calls under a clock that starts behind a clean flush.
class Stopwatch {
 public:
  explicit Stopwatch(const DeviceInfo& device) : timer_(device, kSweeps * device.l2_bytes) {}

  TimedCall call(const Queue& queue) {
    constexpr int kAttempts = 5;
    for (int i = 0; i < kAttempts; ++i) {
      const TimedCall call = timer_.time(queue, Flush::clean, kLimitSeconds);
      if (call.timed_out) fail(ErrorKind::machine, "a loop of the ceilings runs for more than {} s", kLimitSeconds);
      check(call.status, "a loop of the ceilings failed");
      if (!call.gave_up) return call;
    }
    fail(ErrorKind::machine, "this machine is too busy to queue a GPU's kernels within 200 ms");
  }

  double faster_quartile_us(const Queue& queue, int samples) {
    std::vector<double> us;
    for (int i = 0; i < samples; ++i) us.push_back(call(queue).event_us);
    return quantile(us, 0.25);
  }

  /// Of the best loop. All get a few samples, the finalists as many as it takes.
  double best_us(const std::vector<Queue>& loops) {
    std::vector<std::pair<double, const Queue*>> order;
    for (const Queue& loop : loops) order.emplace_back(faster_quartile_us(loop, kTrials), &loop);
    std::sort(order.begin(), order.end());
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < std::min(kFinalists, order.size()); ++i)
      best = std::min(best, faster_quartile_us(*order[i].second, kSamples));
    return best;
  }

  [[nodiscard]] CUstream stream() const { return timer_.stream(); }

 private:
  ColdTimer timer_;
};

// ---- Memory

/// One way to move bytes with one launch.
struct MemoryLoop {
  CUfunction function = nullptr;
  bool bulk = false;
  unsigned threads = 1;
  unsigned turn_bytes = 0;  // of a block; bulk copies: of a stage
  unsigned stages = 0;      // bulk copies: of the ring
  unsigned resident_blocks = 0;
  bool one_turn_each = false;  // as many blocks as turns; else the resident ones take turns
};

class Memory {
 public:
  Memory(const DeviceInfo& device, const Module& code, Stopwatch& watch)
      : watch_(watch), bytes_(kLargestSet), sink_(allocate(sizeof(unsigned))) {
    while (bytes_ > device.memory_bytes / 4) bytes_ /= 2;
    data_ = allocate(static_cast<std::size_t>(bytes_));
    fill(kernel(code, "kbh_fill"), device);
    for (const Verb verb : {Verb::read, Verb::write, Verb::copy}) loops_[index(verb)] = loops(verb, device, code);
  }

  [[nodiscard]] std::vector<std::int64_t> set_sizes() const {
    std::vector<std::int64_t> sizes;
    for (std::int64_t bytes = kSmallestSet; bytes <= bytes_; bytes *= 2) sizes.push_back(bytes);
    return sizes;
  }

  BandwidthPoint bandwidth(std::int64_t bytes) {
    return {bytes, best_us(Verb::read, bytes), best_us(Verb::write, bytes), best_us(Verb::copy, bytes)};
  }

 private:
  enum class Verb { read, write, copy };
  static std::size_t index(Verb verb) { return static_cast<std::size_t>(verb); }

  void fill(CUfunction function, const DeviceInfo& device) {
    CUdeviceptr data = data_.get();
    auto count = static_cast<std::uint64_t>(bytes_) / 16;
    launch(function, {static_cast<unsigned>(8 * device.multiprocessors), 256}, watch_.stream(), {&data, &count});
    check(driver().synchronize_stream(watch_.stream()), "cannot fill memory");
  }

  static std::vector<MemoryLoop> loops(Verb verb, const DeviceInfo& device, const Module& code) {
    const char* const name = std::array{"read", "write", "copy"}[index(verb)];
    const auto multiprocessors = static_cast<unsigned>(device.multiprocessors);
    std::vector<MemoryLoop> all;
    for (const unsigned in_flight : {1U, 2U, 4U, 8U}) {
      CUfunction function = kernel(code, fmt::format("kbh_{}_{}", name, in_flight).c_str());
      for (const unsigned threads : {128U, 256U, 512U}) {
        const unsigned turn = threads * in_flight * 16;
        const unsigned resident = multiprocessors * resident_blocks(function, threads, 0);
        for (const bool one_turn_each : {false, true})
          all.push_back({function, false, threads, turn, 0, resident, one_turn_each});
      }
    }
    CUfunction bulk = find_kernel(code, fmt::format("kbh_{}_bulk", name));
    if (!bulk) return all;
    struct Ring {
      unsigned stage_bytes, stages, blocks;
    };
    const unsigned threads = verb == Verb::write ? 256 : 1;  // a write makes its bytes first
    for (const Ring ring : {Ring{32 << 10, 6, 1},
                            {16 << 10, 12, 1},
                            {16 << 10, 6, 2},
                            {8 << 10, 24, 1},
                            {8 << 10, 12, 2},
                            {4 << 10, 24, 2}}) {
      allow_shared(bulk, 192 << 10);
      all.push_back({bulk, true, threads, ring.stage_bytes, ring.stages, multiprocessors * ring.blocks});
    }
    return all;
  }

  double best_us(Verb verb, std::int64_t bytes) {
    const std::int64_t moved = verb == Verb::copy ? bytes / 2 : bytes;
    std::vector<Queue> queues;
    for (const MemoryLoop& loop : loops_[index(verb)]) {
      const std::int64_t turns = moved / loop.turn_bytes;
      if (turns == 0) continue;
      if (loop.one_turn_each && turns <= loop.resident_blocks) continue;  // that is the loop before
      const auto blocks =
          static_cast<unsigned>(loop.one_turn_each ? turns : std::min<std::int64_t>(turns, loop.resident_blocks));
      queues.emplace_back([=, this](CUstream stream) { move(verb, loop, blocks, bytes, stream); });
    }
    return watch_.best_us(queues);
  }

  /// Each time in another piece of the memory, as a submission's buffers rotate too.
  void move(Verb verb, const MemoryLoop& loop, unsigned blocks, std::int64_t bytes, CUstream stream) {
    constexpr std::int64_t kPieces = 4;
    const std::int64_t piece = piece_++ % std::min(kPieces, bytes_ / bytes);
    CUdeviceptr from = data_.get() + static_cast<CUdeviceptr>(piece * bytes);
    CUdeviceptr to = from + static_cast<CUdeviceptr>(bytes / 2);
    CUdeviceptr sink = sink_.get();
    auto moved = static_cast<std::uint64_t>(verb == Verb::copy ? bytes / 2 : bytes);
    std::uint64_t count = moved / 16;
    unsigned stage_bytes = loop.turn_bytes;
    unsigned stages = loop.stages;
    Grid grid{blocks, loop.threads, 0};
    if (loop.bulk) {
      grid.shared = verb == Verb::write ? stage_bytes : stages * stage_bytes;
      if (verb == Verb::read) launch(loop.function, grid, stream, {&from, &moved, &stage_bytes, &stages});
      if (verb == Verb::write) launch(loop.function, grid, stream, {&from, &moved, &stage_bytes});
      if (verb == Verb::copy) launch(loop.function, grid, stream, {&to, &from, &moved, &stage_bytes, &stages});
      return;
    }
    if (verb == Verb::read) launch(loop.function, grid, stream, {&from, &count, &sink});
    if (verb == Verb::write) launch(loop.function, grid, stream, {&from, &count});
    if (verb == Verb::copy) launch(loop.function, grid, stream, {&to, &from, &count});
  }

  Stopwatch& watch_;
  std::int64_t bytes_;
  DeviceMemory data_;
  DeviceMemory sink_;
  std::array<std::vector<MemoryLoop>, 3> loops_;
  std::int64_t piece_ = 0;
};

// ---- Arithmetic

/// One way to multiply and add, on every multiprocessor.
struct MathLoop {
  std::string name;  // of the kernel
  std::string text;
  double flops_per_turn = 0;  // of a block
  unsigned threads = 0;
  unsigned shared = 0;
};

/// How many values of each operand one step of a matrix instruction sums over: 32 bytes of them.
struct MatrixFormat {
  const char* dtype;
  int depth;
};
constexpr std::array<MatrixFormat, 5> kMatrixFormats = {
    {{"fp8_e4m3", 32}, {"int8", 32}, {"bf16", 16}, {"fp16", 16}, {"tf32", 8}}};

double flops(int warps_or_groups, int instructions, int m, int n, int k) {
  return 2.0 * warps_or_groups * instructions * m * n * k;
}

std::vector<MathLoop> matrix_loops(const MatrixFormat& format) {
  std::vector<MathLoop> all;
  for (const int groups : {1, 2, 3})
    all.push_back({fmt::format("kbh_wgmma_{}", format.dtype), fmt::format("wgmma, warpgroups: {}", groups),
                   flops(groups, kWgmmaStages * kWgmmaStepsPerStage, kWgmmaM, kWgmmaN, format.depth),
                   static_cast<unsigned>(groups) * 128, wgmma_shared_bytes(groups)});
  all.push_back({fmt::format("kbh_mma_{}", format.dtype), "mma.sync",
                 flops(8, kMmaSteps * kMmaTiles, 16, 8, format.depth), 256, 0});
  return all;
}

std::vector<MathLoop> fp64_loops() {
  return {{"kbh_wide_mma_fp64", "mma.sync 16 x 8 x 16", flops(8, kMmaTiles, 16, 8, 16), 256, 0},
          {"kbh_mma_fp64", "mma.sync 8 x 8 x 4", flops(8, kMmaSteps * kMmaTiles, 8, 8, 4), 256, 0}};
}

std::vector<MathLoop> fp32_loops() {
  std::vector<MathLoop> all;
  for (const unsigned threads : {256U, 512U})
    all.push_back({"kbh_fma_fp32", fmt::format("fused multiply-add, {} threads", threads),
                   2.0 * threads * kFmaChains * kFmaSteps, threads, 0});
  return all;
}

class Math {
 public:
  Math(const DeviceInfo& device, const Module& code, Stopwatch& watch)
      : multiprocessors_(static_cast<unsigned>(device.multiprocessors)),
        code_(code),
        watch_(watch),
        sink_(allocate(sizeof(unsigned))) {}

  /// Nothing when the device has none of the loops.
  std::optional<MathPeak> peak(const std::vector<MathLoop>& loops) {
    MathPeak best;
    std::optional<Running> fastest;
    for (const MathLoop& loop : loops) {
      CUfunction function = find_kernel(code_, loop.name);
      if (!function) continue;
      const Running running = burst(loop, function);
      if (running.tflops <= best.burst_tflops) continue;
      best.burst_tflops = running.tflops;
      best.loop = loop.text;
      fastest = running;
    }
    if (!fastest) return std::nullopt;
    sustain(*fastest, best);
    return best;
  }

 private:
  struct Running {
    CUfunction function = nullptr;
    Grid grid;
    double flops_per_turn = 0;  // of the whole grid
    double start_us = 0;        // launch and preparation of the operands
    int turns = 0;              // for about kBurstUs
    double tflops = 0;
  };

  Queue queue(const Running& r, int turns) {
    return [=, this](CUstream stream) mutable {
      CUdeviceptr sink = sink_.get();
      launch(r.function, r.grid, stream, {&turns, &sink});
    };
  }

  Running burst(const MathLoop& loop, CUfunction function) {
    if (loop.shared > 0) allow_shared(function, loop.shared);
    Running r;
    r.function = function;
    r.grid = {multiprocessors_ * resident_blocks(function, loop.threads, loop.shared), loop.threads, loop.shared};
    r.flops_per_turn = loop.flops_per_turn * r.grid.blocks;
    r.start_us = watch_.faster_quartile_us(queue(r, 0), kTrials);
    double us = 0;
    for (r.turns = 8; us < kBurstUs / 4;) {
      r.turns *= 2;
      if (r.turns > 1 << 28) fail(ErrorKind::internal, "{} takes no time", loop.name);
      us = watch_.call(queue(r, r.turns)).event_us - r.start_us;
    }
    r.turns = std::max(1, static_cast<int>(r.turns * kBurstUs / us));
    us = watch_.faster_quartile_us(queue(r, r.turns), kSamples) - r.start_us;
    r.tflops = r.flops_per_turn * r.turns / us * 1e-6;
    return r;
  }

  void sustain(const Running& r, MathPeak& peak) {
    using Clock = std::chrono::steady_clock;
    const int turns = static_cast<int>(r.turns * kSustainedSampleUs / kBurstUs);
    std::vector<double> us;
    std::vector<double> mhz;
    const auto begin = Clock::now();
    for (double seconds = 0; seconds < kWarmUpSeconds + kSustainedSeconds;) {
      const TimedCall call = watch_.call(queue(r, turns));
      if (seconds >= kWarmUpSeconds) us.push_back(call.event_us - r.start_us), mhz.push_back(call.clock_mhz);
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    peak.sustained_tflops = r.flops_per_turn * turns / quantile(us, 0.25) * 1e-6;
    peak.sustained_mhz = quantile(mhz, 0.75);
  }

  unsigned multiprocessors_;
  const Module& code_;
  Stopwatch& watch_;
  DeviceMemory sink_;
};

// ---- Launches

/// A graph of what `queue` puts on a stream.
class Graph {
 public:
  explicit Graph(const Queue& queue) {
    const Stream stream = make_stream();
    check(driver().begin_capture(stream.get(), CU_STREAM_CAPTURE_MODE_RELAXED), "cannot capture a graph");
    queue(stream.get());
    CUgraph graph = nullptr;
    check(driver().end_capture(stream.get(), &graph), "cannot capture a graph");
    const CUresult made = driver().instantiate_graph(&executable_, graph, 0);
    driver().destroy_graph(graph);
    check(made, "cannot instantiate a graph");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { driver().destroy_graph_exec(executable_); }

  void launch(CUstream stream) const { check(driver().launch_graph(executable_, stream), "cannot launch a graph"); }

 private:
  CUgraphExec executable_ = nullptr;
};

void launch_cluster(CUfunction function, CUstream stream) {
  constexpr unsigned kBlocks = 8;
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {kBlocks, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = kBlocks;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  check(driver().launch(&config, function, nullptr, nullptr), "cannot launch a cluster");
}

/// Of the smallest launches: one warp, one cluster.
LaunchFloors launch_floors(const DeviceInfo& device, Stopwatch& watch) {
  const Module code = load_device_code("timing");
  CUfunction empty = kernel(code, "kbh_empty");
  const Grid grid{1, 32};
  const Queue one = [&](CUstream stream) { launch(empty, grid, stream, {}); };
  const Graph graph(one);
  LaunchFloors floors;
  floors.nothing_us = watch.faster_quartile_us([](CUstream) {}, kSamples);
  floors.empty_kernel_us = watch.faster_quartile_us(one, kSamples);
  floors.two_kernels_us = watch.faster_quartile_us(
      [&](CUstream stream) {
        one(stream);
        one(stream);
      },
      kSamples);
  floors.graph_us = watch.faster_quartile_us([&](CUstream stream) { graph.launch(stream); }, kSamples);
  if (device.major >= 9)
    floors.cluster_us = watch.faster_quartile_us([&](CUstream stream) { launch_cluster(empty, stream); }, kSamples);
  return floors;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace

Ceilings measure_ceilings(const DeviceInfo& device, const CeilingsProgress& progress) {
  const Context context(device.index);
  Ceilings c;
  c.device = device.name;
  c.uuid = device.uuid;
  c.driver = driver_text(device);
  c.measured_at = now_text();
  c.l2_bytes = device.l2_bytes;
  c.bus_gbs = device.bus_gbs();

  Stopwatch watch(device);
  c.floors = launch_floors(device, watch);
  progress(fmt::format("launch floor {:.2f} us", c.launch_floor_us()));
  const Module code = load_device_code("ceilings");
  {
    Memory memory(device, code, watch);
    for (const std::int64_t bytes : memory.set_sizes()) {
      const BandwidthPoint& p = c.bandwidth.emplace_back(memory.bandwidth(bytes));
      progress(fmt::format("{} KiB: read {:.2f} us, write {:.2f}, copy {:.2f}; {:.0f}, {:.0f}, {:.0f} GB/s",
                           p.bytes >> 10, p.read_us, p.write_us, p.copy_us, p.read_gbs(), p.write_gbs(), p.copy_gbs()));
    }
  }
  Math math(device, code, watch);
  const auto peak = [&](const char* dtype, const std::vector<MathLoop>& loops) {
    const auto found = math.peak(loops);
    if (!found) return;
    c.math[dtype] = *found;
    progress(fmt::format("{}: {:.1f} TFLOP/s in a burst, {:.1f} sustained at {:.0f} MHz ({})", dtype,
                         found->burst_tflops, found->sustained_tflops, found->sustained_mhz, found->loop));
  };
  for (const MatrixFormat& format : kMatrixFormats) peak(format.dtype, matrix_loops(format));
  peak("fp64", fp64_loops());
  peak("fp32", fp32_loops());
  return c;
}

}  // namespace kbh::cuda
