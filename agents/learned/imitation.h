// Stage I: the policies are made to choose what somebody else chose.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agents/learned/doppler_network.h"
#include "agents/learned/policy_gradient.h"

namespace doppler {

// A task to imitate on.
struct ImitationTask {
  const NetworkInputs* inputs = nullptr;
  PolicyGradient* gradient = nullptr;  // of the task
  std::size_t n_nodes = 0;
};

// An episode of a teacher.
struct ImitationExample {
  std::size_t task = 0;  // index
  const Trajectory* trajectory = nullptr;
};

// Maximises the log-probability of trajectories under a head and the network, by Adam (Kingma, Ba,
// ICLR 2015), all examples of an update in one batch: the loss is the mean over the examples of
// -log-probability over nodes.
class Imitation {
 public:
  struct Rates {
    double head = 0.02;
    double network = 1e-3;
  };

  Imitation(std::vector<ImitationTask> tasks, Head head) : tasks_(std::move(tasks)), head_(head) {}

  // One step. Returns the loss before it. Throws RunError if it is not finite; nothing changes.
  double update(DopplerNetwork& network, std::span<const ImitationExample> examples,
                const Rates& rates);
  [[nodiscard]] const Head& head() const { return head_; }

  [[nodiscard]] nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  std::vector<ImitationTask> tasks_;
  Head head_;
  Head mean_ = {};    // of the gradient
  Head square_ = {};  // of its square
  std::int64_t n_updates_ = 0;
};

}  // namespace doppler
