// What an environment is to be.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/ids.h"

namespace doppler {

enum class Reward : std::uint8_t {
  sparse,  // 0, then -makespan / time scale at the end
  dense    // minus the growth of the partial schedule; sums to the same return
};
enum class Features : std::uint8_t {
  paper,  // 5 a node, 1 an edge, 5 a device, as in the DOPPLER paper
  full    // and what else is known to matter, above all where partners sit
};
// The order in which `place` goes over the nodes.
enum class PlaceOrder : std::uint8_t { b_level, topological };
enum class OnIllegal : std::uint8_t {
  raise,    // IllegalActionError that names the legal actions; the state is unchanged
  penalize  // reward -1, StepResult::illegal; truncation after n_nodes of them
};

std::string_view to_string(Reward reward);
std::string_view to_string(Features features);
std::string_view to_string(PlaceOrder order);
std::string_view to_string(OnIllegal on_illegal);
// Throw UsageError that lists the names.
Reward parse_reward(std::string_view name);
Features parse_features(std::string_view name);
PlaceOrder parse_place_order(std::string_view name);
OnIllegal parse_on_illegal(std::string_view name);

// A regular value.
struct EnvOptions {
  std::string mode = "sequential";  // a registered action mode
  Reward reward = Reward::sparse;
  Features features = Features::paper;
  PlaceOrder order = PlaceOrder::b_level;  // `place` alone
  OnIllegal on_illegal = OnIllegal::raise;
  std::string engine = "simulator";  // a registered engine, with parameters
  bool factored = false;             // `joint` alone: MultiDiscrete(nodes, devices)
  // What arrays are padded to; 0: the largest of the tasks.
  std::int64_t max_nodes = 0;
  std::int64_t max_edges = 0;
  std::int64_t max_devices = 0;
  // The makespan, in time scales, that stands for an assignment that does not fit into memory.
  double memory_penalty = 10;
  // `refine` alone: where the episode starts; empty: a random assignment from the seed.
  std::vector<DeviceId> initial = {};

  friend bool operator==(const EnvOptions&, const EnvOptions&) = default;
  friend std::ostream& operator<<(std::ostream& out, const EnvOptions& options);
};

}  // namespace doppler
