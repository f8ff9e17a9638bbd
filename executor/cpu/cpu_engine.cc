#include "executor/cpu/cpu_engine.h"

#include "executor/cpu/cpu_devices.h"
#include "executor/runtime/real_engine.h"

namespace doppler {

EngineEntry cpu_engine_entry() {
  EngineEntry entry;
  entry.name = "cpu";
  entry.summary = "real execution on this machine: a thread and memory for each device";
  entry.source = "own";
  entry.parameters = {
      {.name = "emulate_links",
       .summary = "a transfer takes at least latency + bytes / bandwidth of the cluster's link",
       .default_value = true},
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
      {.name = "goes_first",
       .summary = "its threads go before those of other programs, if the system allows it",
       .default_value = true},
      {.name = "seed",
       .summary = "of the data in the graph inputs",
       .default_value = std::int64_t{0},
       .minimum = 0}};
  entry.make = [](const Parameters& parameters) -> std::unique_ptr<Engine> {
    return std::make_unique<runtime::RealEngine>(runtime::RealEngineOptions{
        .open =
            [goes_first = parameters.get<bool>("goes_first")](const Cluster& cluster,
                                                              bool limit_memory) {
              return cpu::open_cpu_devices(cluster, limit_memory, goes_first);
            },
        .lanes = runtime::Lanes::channels,
        .emulate_links = parameters.get<bool>("emulate_links"),
        .warm_up = parameters.get<std::int64_t>("warm_up"),
        .repeats = parameters.get<std::int64_t>("repeats"),
        .input_seed = static_cast<std::uint64_t>(parameters.get<std::int64_t>("seed"))});
  };
  return entry;
}

}  // namespace doppler
