#include "agents/learned/paper_decoder.h"

#include <utility>

#include "agents/learned/torch_device.h"

namespace doppler {

PaperDecoder::PaperDecoder(std::shared_ptr<const PaperNetwork> network)
    : network_(std::move(network)), weights_(network_->weights()) {}

void PaperDecoder::begin(std::shared_ptr<const PlacementModel> model) {
  if (model != model_) {
    const SingleThreadedTorch single_threaded;
    const auto task =
        std::make_shared<const PaperTask>(model, static_cast<int>(network_->sizes.steps));
    const PaperTensors tensors(task, torch::TensorOptions());
    embedding_ = plain_embedding(*network_, tensors);
    rollout_ = std::make_unique<PaperRollout>(task, network_->halves);
    model_ = std::move(model);
    ++n_embeddings_;
  }
  rollout_->begin(weights_, embedding_);
  n_followed_ = 0;
}

// Tells the rollout what has been placed since it was last asked.
void PaperDecoder::follow(const PartialSchedule& schedule) {
  if (schedule.n_placed() == n_followed_) return;
  if (schedule.n_placed() == n_followed_ + 1) {
    rollout_->placed(schedule.last_placed(), schedule.device(schedule.last_placed()));
  } else {
    rollout_->begin(weights_, embedding_);
    for (std::size_t v = 0; v < model_->n_nodes(); ++v) {
      const NodeId node{static_cast<std::int64_t>(v)};
      if (schedule.placed(node)) rollout_->placed(node, schedule.device(node));
    }
  }
  n_followed_ = schedule.n_placed();
}

NodeId PaperDecoder::select(const PartialSchedule& schedule) {
  follow(schedule);
  return rollout_->choose_node(schedule);
}

DeviceId PaperDecoder::place(const PartialSchedule& schedule, NodeId node) {
  follow(schedule);
  return rollout_->choose_device(schedule, node);
}

Assignment PaperDecoder::decide() {
  PaperEpisode episode;
  rollout_->run(weights_, embedding_, {.record = false}, episode);
  n_followed_ = 0;
  return episode.assignment;
}

}  // namespace doppler
