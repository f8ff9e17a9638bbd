// GDP's network in plain loops, segment by segment; the formulas are in gdp_network.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "agents/learned/gdp_network.h"
#include "agents/learned/gdp_task.h"
#include "agents/learned/paper_task.h"

namespace doppler {

// Node features beside those of the task: where messages pass each step, that is before each
// segment, (one-hot) the device that a segment before has given the node.
inline std::int64_t gdp_placement_features(MessagePassingTime time, std::size_t n_devices) {
  return time == MessagePassingTime::step ? static_cast<std::int64_t>(n_devices) : 0;
}

// Serves one thread.
class GdpRollout {
 public:
  GdpRollout(std::shared_ptr<const GdpTask> task, MessagePassingTime time);

  // Before the first segment; the weights outlive the episode.
  void begin(const GdpWeights& weights);
  // Log-probabilities of the devices of the next segment's nodes, [nodes, n_devices]; empty: the
  // episode is over. Before the segment after it, placed() must have told the devices of these.
  std::span<const float> next_segment();
  // Number in the order of the first node of the present segment.
  [[nodiscard]] std::size_t segment_begin() const { return begin_; }
  // Has a meaning with MessagePassingTime::step alone.
  void placed(std::size_t place, DeviceId device);
  // y of all nodes, [n_nodes, hidden], in their order; after the last segment.
  [[nodiscard]] const std::vector<float>& outputs() const { return outputs_; }

 private:
  void project(std::size_t first, std::size_t n);
  void write_nodes(std::size_t n);
  void attend(std::size_t n);

  std::shared_ptr<const GdpTask> task_;
  MessagePassingTime time_;
  const GdpWeights* weights_ = nullptr;
  std::size_t n_columns_;
  std::vector<float> features_;  // [n_nodes, n_columns]
  std::vector<float> states_;    // [n_nodes, hidden] h
  std::vector<float> sent_;      // [n_nodes, hidden] sigmoid(W' h)
  std::vector<float> outputs_;   // [n_nodes, hidden] y
  std::size_t begin_ = 0;        // of the present segment
  std::size_t n_done_ = 0;
  // Of the present segment.
  std::vector<float> nodes_;  // [n, hidden] x
  std::vector<float> pairs_;  // [n, 2 hidden]
  std::vector<float> read_;   // [memory + n, hidden]
  std::vector<float> query_, key_, value_, attended_, wide_, mixed_;
  std::vector<float> scores_;  // [n, n_devices]
};

}  // namespace doppler
