// Decides by a trained pair of policies, greedily, step by step or whole episodes.
#pragma once

#include <memory>
#include <vector>

#include "agents/learned/paper_network.h"

namespace doppler {

// The network's parameters are not changed any more, so what they make of a task is computed once
// and kept for as long as the same task is asked for again. Serves one thread.
class PaperDecoder {
 public:
  explicit PaperDecoder(std::shared_ptr<const PaperNetwork> network);

  // Before the first step of an episode. Message passing runs if the last episode was of another
  // model.
  void begin(std::shared_ptr<const PlacementModel> model);
  NodeId select(const PartialSchedule& schedule);
  DeviceId place(const PartialSchedule& schedule, NodeId node);

  // A whole episode of begin()'s model.
  Assignment decide();
  // How often message passing has run.
  [[nodiscard]] std::int64_t n_embeddings() const { return n_embeddings_; }

 private:
  void follow(const PartialSchedule& schedule);

  std::shared_ptr<const PaperNetwork> network_;
  PaperWeights weights_;
  std::shared_ptr<const PlacementModel> model_;
  PaperEmbedding embedding_;
  std::unique_ptr<PaperRollout> rollout_;
  std::size_t n_followed_ = 0;  // placements that the rollout knows
  std::int64_t n_embeddings_ = 0;
};

}  // namespace doppler
