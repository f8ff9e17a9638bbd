// The graph network of `doppler`: latents of the nodes for the heads, and a gate that says which
// head suits a task.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agents/learned/policy_file.h"
#include "agents/learned/policy_heads.h"

namespace doppler {

struct DopplerNetworkOptions {
  std::int64_t n_latents = 2;     // of SEL, and as many of PLC
  std::int64_t hidden = 32;       // of H
  std::int64_t edge_hidden = 16;  // of the edge network
  std::int64_t steps = 3;         // of message passing
  std::int64_t n_heads = 0;       // that the gate chooses from; 0: no gate
  friend bool operator==(const DopplerNetworkOptions&, const DopplerNetworkOptions&) = default;
};

// What the network reads of one task, made once. Immutable, thread safe.
class NetworkInputs {
 public:
  explicit NetworkInputs(const PlacementModel& model);
  ~NetworkInputs();
  NetworkInputs(NetworkInputs&&) noexcept;
  NetworkInputs& operator=(NetworkInputs&&) noexcept;

 private:
  friend class DopplerNetwork;
  struct Tensors;
  std::unique_ptr<Tensors> tensors_;
};

// What is known of a head on a task without a run of the engine. The first number is what its
// makespan promises to be: the logarithm of the partial schedule's makespan, with contention plus
// the time of the busiest channel, over the least of the task's heads. The others are about the
// assignment: schedule over the lower bound (logarithm), busiest channel and mean transfers a
// device over the schedule, busiest device over the schedule (logarithm).
inline constexpr std::size_t kEstimateFeatures = 5;
using EstimateFeatures = std::array<float, kEstimateFeatures>;

// Where a loss points to: its derivative by the latents of one task.
struct LatentGradient {
  const NetworkInputs* inputs = nullptr;
  Latents gradient = {};
};

// What the gate learns from: on one task, the logarithm of each head's makespan over the best
// known one of the task.
struct GateExample {
  std::vector<float> readout = {};               // DopplerNetwork::readout() of the task
  std::vector<EstimateFeatures> estimates = {};  // by head
  std::vector<float> loss = {};                  // by head; 0 or more
};

// One thread. Message passing runs once for latents() and once for readout(); nothing of it depends
// on the episode. LibTorch uses one thread of its own.
class DopplerNetwork {
 public:
  DopplerNetwork(const DopplerNetworkOptions& options, std::uint64_t seed);
  // Of a policy file; throws ParseError for arrays of another shape.
  DopplerNetwork(const PolicyFile& file, const std::string& source);
  ~DopplerNetwork();
  DopplerNetwork(DopplerNetwork&&) noexcept;
  DopplerNetwork& operator=(DopplerNetwork&&) noexcept;

  [[nodiscard]] const DopplerNetworkOptions& options() const { return options_; }

  // z(v), each column with mean 0 and variance 1 over the nodes (0 where all are equal).
  [[nodiscard]] Latents latents(const NetworkInputs& inputs) const;
  // What the gate sees of a graph: mean and maximum of H over the nodes, [2 hidden].
  [[nodiscard]] std::vector<float> readout(const NetworkInputs& inputs) const;
  // By head: the expected logarithm of its makespan over the task's best, up to a constant of the
  // task: the first of its estimates plus what the gate has learnt, at first 0; less is better.
  // Requires a gate and the estimates of n_heads heads.
  [[nodiscard]] std::vector<float> gate_scores(std::span<const float> readout,
                                               std::span<const EstimateFeatures> estimates) const;

  // One step of Adam for the sum of the losses. Throws RunError if a gradient is not finite, and
  // nothing changes.
  void learn(std::span<const LatentGradient> gradients, double learning_rate);
  // One step of Adam for the gate alone: the mean over the examples of the loss that is expected if
  // a head is drawn by softmax(-score / temperature). Returns it.
  double learn_gate(std::span<const GateExample* const> examples, double learning_rate);

  // Adds a gate for so many heads.
  void add_gate(std::int64_t n_heads, std::uint64_t seed);

  // Parameters, and the options under "network" in `extra`.
  void write(PolicyFile& file) const;
  // Parameters and the optimizers' state; exact.
  [[nodiscard]] std::string state() const;
  void restore(const std::string& state);

 private:
  struct Modules;
  DopplerNetworkOptions options_;
  std::unique_ptr<Modules> modules_;
};

}  // namespace doppler
