// Episodes of the paper's two policies, in plain loops: LibTorch gives the embeddings once, not a
// number a step.
//
//   SEL scores a candidate v by  out . act(W [act(Wf f(v)) | H(v) | H on v's b-path | on its
//     t-path] + c), with f and the two path sums standardised over the candidates
//   PLC scores a device d by     out . act(W [act(Wg g(d)) | act(Wf f(v)) | H(v) | H on d] + c),
//     with g and the device sums standardised over the devices
// act is LeakyReLU. What depends on v alone, W's part of H(v) and of PLC's f(v), is computed once a
// class (`*_base`). A row stands for all candidates that SEL cannot tell apart.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agents/draws.h"
#include "agents/learned/episode.h"
#include "agents/learned/paper_task.h"

namespace doppler {

// Parameters that a step needs; matrices [inputs, outputs], outputs of the heads padded with zeros.
struct PaperWeights {
  std::size_t hidden = 0;  // padded
  std::size_t head = 0;    // padded
  struct Policy {
    std::vector<float> own;       // [5 + 1, hidden], Wf (Wg), the last row its bias
    std::vector<float> combined;  // [3 hidden (2 hidden), head], W without its part in the base
    std::vector<float> out;       // [head + 1], the last its bias
  };
  Policy select;
  Policy place;
};

// What the parameters make of a task.
struct PaperEmbedding {
  std::vector<float> select_base;  // [n_classes, head]
  std::vector<double> b_paths;     // [n_b_paths, hidden], standardised over the nodes
  std::vector<double> t_paths;     // [n_t_paths, hidden]
  std::vector<float> place_base;   // [n_classes, head]
  std::vector<float> place_state;  // [n_classes, hidden], H
};

// An episode and what its gradient needs.
struct PaperEpisode {
  // Steps of SEL that have something to decide: more than one row. Their rows, one after another.
  std::vector<std::int32_t> select_step;   // [k] number of the step in the episode
  std::vector<std::int32_t> select_first;  // [k + 1] into the rows
  std::vector<std::int32_t> select_row;    // [rows]
  std::vector<double> select_count;        // [rows] candidates that the row stands for
  std::vector<double> select_target;       // [rows] candidates to be chosen
  std::vector<float> select_features;      // [rows, 5], standardised over the candidates
  // Every step of PLC.
  std::vector<NodeId> node;           // [n_nodes], in the order of selection
  std::vector<double> place_target;   // [n_nodes, n_devices] 1: to be chosen
  std::vector<float> place_features;  // [n_nodes, n_devices, 5], standardised over the devices
  Assignment assignment;
  double log_probability = 0;  // of its choices by the policies that are learnt, by their softmax
};

// Which of the two policies are learnt. The other one is a rule: SEL the candidate of largest
// b-level, PLC the device of earliest start, ties to the smaller id.
enum class PaperHalves : std::uint8_t { both, select, place };
constexpr bool learns_select(PaperHalves halves) { return halves != PaperHalves::place; }
constexpr bool learns_place(PaperHalves halves) { return halves != PaperHalves::select; }

struct NodeAndDevice {
  NodeId node;
  DeviceId device;
};

// Serves one thread.
class PaperRollout {
 public:
  explicit PaperRollout(std::shared_ptr<const PaperTask> task,
                        PaperHalves halves = PaperHalves::both);

  // Before the first step of an episode. Both outlive its steps.
  void begin(const PaperWeights& weights, const PaperEmbedding& embedding);

  // Scores the candidates: rows(), their counts and log-probabilities of one candidate each.
  // O(candidates).
  void score_candidates(const PartialSchedule& schedule);
  [[nodiscard]] std::span<const std::int32_t> rows() const { return rows_; }
  [[nodiscard]] std::span<const double> counts() const { return counts_; }
  [[nodiscard]] std::span<const float> candidate_log_probabilities() const { return row_scores_; }
  // The candidate of the largest score, ties to the smaller id; after score_candidates().
  [[nodiscard]] NodeId best_candidate(const PartialSchedule& schedule) const;

  // Log-probabilities of the devices for `node`, [n_devices]. O(devices + degree).
  void score_devices(const PartialSchedule& schedule, NodeId node);
  [[nodiscard]] std::span<const float> device_log_probabilities() const { return device_scores_; }
  [[nodiscard]] DeviceId best_device() const;  // ties to the smaller id
  // What the policies or the rules choose.
  NodeId choose_node(const PartialSchedule& schedule);
  DeviceId choose_device(const PartialSchedule& schedule, NodeId node);
  // After each placement.
  void placed(NodeId node, DeviceId device);

  // One step of an episode on any schedule: chooses, records in `episode` (its log-probability and,
  // if options.record, what the gradient needs; the node always), places.
  void step(const EpisodeOptions& options, Draws& draws, PartialSchedule& schedule,
            PaperEpisode& episode);
  // A whole episode, begin() included. Its storage is reused.
  void run(const PaperWeights& weights, const PaperEmbedding& embedding,
           const EpisodeOptions& options, PaperEpisode& episode);

  [[nodiscard]] const PaperTask& task() const { return *task_; }

 private:
  void own_layer(const PaperWeights::Policy& policy, std::span<const double> features,
                 std::size_t stride);
  void finish_scores(const PaperWeights::Policy& policy, std::span<float> scores) const;
  [[nodiscard]] std::int32_t row_index(NodeId node) const;
  void record_select(const PartialSchedule& schedule, NodeId chosen, Teacher* teacher,
                     PaperEpisode& episode);
  void record_place(const PartialSchedule& schedule, NodeAndDevice chosen, Teacher* teacher,
                    PaperEpisode& episode);

  std::shared_ptr<const PaperTask> task_;
  PaperHalves halves_;
  const PaperWeights* weights_ = nullptr;
  const PaperEmbedding* embedding_ = nullptr;
  PartialSchedule schedule_;                // of run()
  std::vector<double> device_sums_;         // [n_devices, hidden]
  std::vector<std::int32_t> rows_;          // of the present candidates, distinct
  std::vector<double> counts_;              // [rows]
  std::vector<std::int32_t> index_of_row_;  // [all rows] in rows_, valid where mark_ is the walk
  std::vector<std::uint64_t> mark_;
  std::uint64_t walk_ = 0;
  std::vector<float> row_scores_;
  std::vector<float> device_scores_;
  std::vector<double> ones_;             // [n_devices]
  std::vector<double> select_features_;  // [rows, 5] standardised
  std::vector<double> place_features_;   // [n_devices, 5] standardised
  // Scratch.
  std::vector<double> starts_;
  std::vector<const double*> tables_;
  std::vector<double> moments_;
  std::vector<float> inputs_;
  std::vector<float> hidden_;
  std::vector<NodeId> taught_nodes_;
  std::vector<DeviceId> taught_devices_;
};

}  // namespace doppler
