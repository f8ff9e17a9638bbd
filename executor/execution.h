// What an engine returns.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "graphs/ids.h"

namespace doppler {

// One node's run; seconds from the start of the execution.
struct NodeRun {
  DeviceId device = {};
  std::int32_t slot = 0;  // of the device
  double ready = 0;       // every input is there
  double start = 0;
  double end = 0;
  friend bool operator==(const NodeRun&, const NodeRun&) = default;
};

// One tensor, or graph input, on its way to one other device.
struct TransferRun {
  bool of_input = false;  // of a graph input: `input`; else of a node's output: `tensor`
  TensorId tensor = {};
  InputId input = {};
  DeviceId from = {};
  DeviceId to = {};
  ChannelId channel = {};
  double requested = 0;  // seconds; when the producer ended
  double start = 0;      // when it took its channel (channel), else `requested`
  double end = 0;        // arrival
  double bytes = 0;      // without noise
  friend bool operator==(const TransferRun&, const TransferRun&) = default;
};

struct DeviceUse {
  double busy = 0;         // seconds that its slots computed, summed
  double peak_memory = 0;  // bytes
  friend bool operator==(const DeviceUse&, const DeviceUse&) = default;
};

// A device that had too little memory.
struct OutOfMemory {
  DeviceId device = {};
  double needed = 0;     // bytes: its peak
  double available = 0;  // bytes
  friend bool operator==(const OutOfMemory&, const OutOfMemory&) = default;
};

// A regular value. `nodes` is by node in the user's order, `transfers` in the order of their
// requests; both are empty if RunOptions::record_timeline is off.
struct Execution {
  double makespan = 0;  // seconds; infinity if out_of_memory
  std::vector<NodeRun> nodes = {};
  std::vector<TransferRun> transfers = {};
  std::vector<DeviceUse> devices = {};
  // Each tensor (and each placed graph input) is wanted once on each device that has a reader of
  // it.
  double bytes_moved = 0;  // over those that are another device than the producer's
  double bytes_local = 0;  // over those that are the producer's own
  std::optional<OutOfMemory> out_of_memory = std::nullopt;
  // Of every run that a real engine made to measure this one, in their order; `makespan` is their
  // median. Empty for the simulator.
  std::vector<double> makespans = {};
  // Seconds by which instants of different devices may be off; 0 where they share one clock.
  double clock_error = 0;

  friend bool operator==(const Execution&, const Execution&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Execution& execution);
};

}  // namespace doppler
