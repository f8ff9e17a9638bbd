#include "executor/cuda/cuda_engine.h"

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "executor/cuda/cuda_devices.h"
#include "executor/runtime/real_engine.h"

namespace doppler {
namespace {

// Commands that a stream holds at most: the next one is there when one ends.
constexpr std::int32_t kDepth = 4;

// "[0,0,1,1]" or "0,0,1,1"; nothing: no list.
std::vector<std::int32_t> parse_gpus(const std::string& text) {
  std::string_view rest = text;
  if (!rest.empty() && rest.front() == '[' && rest.back() == ']') {
    rest = rest.substr(1, rest.size() - 2);
  }
  std::vector<std::int32_t> gpus;
  while (!rest.empty()) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    std::int32_t number = -1;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), number);
    if (error != std::errc() || end != item.data() + item.size() || number < 0) {
      throw UsageError("engine 'cuda': gpus '" + text.substr(0, 60) +
                       "' is no list of numbers of GPUs; write gpus=[0,0,1,1]");
    }
    gpus.push_back(number);
  }
  return gpus;
}

cuda::CudaOptions options_of(const Parameters& parameters) {
  cuda::CudaOptions options;
  options.gpus = parse_gpus(parameters.get<std::string>("gpus"));
  for (const auto precision :
       {cuda::Precision::float32, cuda::Precision::tf32, cuda::Precision::bfloat16}) {
    if (to_string(precision) == parameters.get<std::string>("precision")) {
      options.precision = precision;
    }
  }
  for (const auto transport :
       {cuda::Transport::peer, cuda::Transport::staged, cuda::Transport::nccl}) {
    if (to_string(transport) == parameters.get<std::string>("transport")) {
      options.transport = transport;
    }
  }
  return options;
}

}  // namespace

namespace cuda {

runtime::RealEngineOptions real_engine_options(const CudaOptions& options) {
  runtime::RealEngineOptions result;
  result.open = [options](const Cluster& cluster, bool limit_memory) {
    CudaOptions with_memory = options;
    for (const Device& device : cluster.parts().devices) {
      if (limit_memory) with_memory.memory.push_back(device.memory);
    }
    return open_cuda_devices(cluster.n_devices(), with_memory);
  };
  result.lanes = runtime::Lanes::pairs;
  // All transfers by NCCL stand in one line on each GPU: one that waits for its node there would
  // keep others from going.
  result.lookahead = {.depth = kDepth, .chained = options.transport != Transport::nccl};
  return result;
}

}  // namespace cuda

EngineEntry cuda_engine_entry() {
  EngineEntry entry;
  entry.name = "cuda";
  entry.summary = "real execution on GPUs: streams, cuBLAS, peer copies or NCCL";
  entry.source = "own";
  entry.parameters = {
      {.name = "gpus",
       .summary = "the GPU of each device, as [0,0,1,1]; empty: one after another",
       .default_value = std::string()},
      {.name = "precision",
       .summary = "of products of float32 matrices",
       .default_value = std::string("float32"),
       .choices = {"float32", "tf32", "bfloat16"}},
      {.name = "transport",
       .summary = "between GPUs: peer copies, copies staged in host memory, or NCCL",
       .default_value = std::string("peer"),
       .choices = {"peer", "staged", "nccl"}},
      {.name = "warm_up",
       .summary = "runs before those that count",
       .default_value = std::int64_t{1},
       .minimum = 0,
       .maximum = 1e6},
      {.name = "repeats",
       .summary = "runs that count; the median is the result",
       .default_value = std::int64_t{3},
       .minimum = 1,
       .maximum = 1e6},
      {.name = "seed",
       .summary = "of the data in the graph inputs",
       .default_value = std::int64_t{0},
       .minimum = 0}};
  entry.make = [](const Parameters& parameters) -> std::unique_ptr<Engine> {
    const cuda::CudaOptions options = options_of(parameters);
    cuda::need_gpu();
    runtime::RealEngineOptions engine = cuda::real_engine_options(options);
    engine.warm_up = parameters.get<std::int64_t>("warm_up");
    engine.repeats = parameters.get<std::int64_t>("repeats");
    engine.input_seed = static_cast<std::uint64_t>(parameters.get<std::int64_t>("seed"));
    return std::make_unique<runtime::RealEngine>(std::move(engine));
  };
  return entry;
}

}  // namespace doppler
