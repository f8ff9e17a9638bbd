// The differentiable pieces of the paper's scores that LibTorch has no fast operation for. All run
// on the CPU, on whatever device their tensors are, and standardise in double.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "agents/learned/paper_task.h"

namespace doppler {

// Consecutive groups of rows of a table.
struct Segments {
  std::vector<std::int32_t> first = {0};  // [n_segments + 1]
  std::vector<std::int32_t> row;          // [n] index in the table
  std::vector<double> weight;             // [n] how many rows it stands for

  [[nodiscard]] std::size_t size() const { return first.size() - 1; }
};

// Sums of states over paths: [n_classes, h] to [n_paths, h], in float64. O(paths).
at::Tensor path_sums(const at::Tensor& states, std::shared_ptr<const PathPlan> paths);

// The rows of a float64 table, standardised by column within each segment: [n, h] of `dtype`.
at::Tensor standardised_rows(const at::Tensor& table, std::shared_ptr<const Segments> segments,
                             torch::Dtype dtype);

// Placements of several episodes, one after another.
struct Placements {
  std::size_t n_devices = 1;
  std::vector<std::int32_t> episode_first = {0};  // [n_episodes + 1] into the steps
  std::vector<std::int32_t> state;                // [n_steps] class of the node that is placed
  std::vector<std::int32_t> device;               // [n_steps] where
};
// For each step, the sums of the states of what is on each device before it, standardised over the
// devices: [n_classes, h] to [n_steps x n_devices, h], of the dtype of `states`.
at::Tensor standardised_device_sums(const at::Tensor& states,
                                    std::shared_ptr<const Placements> placements);

// Choices among weighted alternatives: segments of scores, where score i stands for weight[i] equal
// alternatives of which target[i] are to be chosen (at least one of a segment).
struct ChoiceTargets {
  std::vector<std::int32_t> first = {0};
  std::vector<double> weight;
  std::vector<double> target;
};
// By softmax over the alternatives of each segment: the log-probability that one of the targets is
// chosen, and the entropy; float64 [n_segments] each.
struct ChoiceValues {
  at::Tensor log_probability;
  at::Tensor entropy;
};
ChoiceValues choice_values(const at::Tensor& scores, std::shared_ptr<const ChoiceTargets> targets);

}  // namespace doppler
