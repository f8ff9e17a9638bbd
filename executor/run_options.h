// How an engine runs an assignment.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

#include "graphs/cluster.h"
#include "graphs/graph.h"
#include "graphs/ids.h"

namespace doppler {

// What transfers do to one another.
enum class Network : std::uint8_t {
  independent,  // nothing: latency + bytes / bandwidth each
  channel,      // a transfer holds its channel alone, first requested first
  fair          // after its latency, its max-min fair share of the channel's capacity
};

// Which of the ready nodes of a device starts first.
enum class Choice : std::uint8_t {
  fifo,      // earliest ready; same instant: ascending id
  priority,  // highest priority; ties as fifo
  random     // each node draws a key from (seed, node); smallest first
};

enum class Schedule : std::uint8_t {
  work_conserving,  // whenever a slot is free and a node is ready there, one starts at once
  bulk_synchronous  // all nodes of depth k, barrier, all transfers of their outputs, barrier, k + 1
};

std::string_view to_string(Network network);
std::string_view to_string(Choice choice);
std::string_view to_string(Schedule schedule);
// Throw UsageError that lists the names.
Network parse_network(std::string_view name);
Choice parse_choice(std::string_view name);
Schedule parse_schedule(std::string_view name);

// A regular value. Engines other than the simulator ignore `network` and `noise`.
struct RunOptions {
  Network network = Network::channel;
  Choice choice = Choice::fifo;
  Schedule schedule = Schedule::work_conserving;
  // For Choice::priority, one a node, highest first; empty: the b-level.
  std::vector<double> priorities = {};
  // Where each graph input lies at 0, one device an input; empty: everywhere (replicated).
  std::vector<DeviceId> input_devices = {};
  // Each duration is multiplied by exp(s z - s^2 / 2), z standard normal; s >= 0.
  double noise = 0;
  // Of noise and Choice::random. The same seed is the same luck for every assignment.
  std::uint64_t seed = 0;
  // An assignment whose peak memory exceeds a device has makespan infinity.
  bool enforce_memory = false;
  // Fill Execution::nodes and Execution::transfers.
  bool record_timeline = true;

  // Whether executions depend on the seed.
  [[nodiscard]] bool has_luck() const { return noise > 0 || choice == Choice::random; }

  // Throws InvalidError: priorities or input devices of the wrong length or out of range, noise
  // that is negative, not finite or above 10.
  void check(const Graph& graph, const Cluster& cluster) const;
  friend bool operator==(const RunOptions&, const RunOptions&) = default;
  friend std::ostream& operator<<(std::ostream& out, const RunOptions& options);
};

}  // namespace doppler
