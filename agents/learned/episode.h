// An episode of a policy that is learnt by REINFORCE: how it is to act, and what the trainer reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agents/draws.h"
#include "agents/learned/teacher.h"

namespace doppler {

struct EpisodeOptions {
  // The share of choices that are uniform; the others are as the policy chooses.
  double epsilon = 0;
  std::uint64_t seed = 0;
  // The targets are its choices; without one the targets are the episode's own.
  Teacher* teacher = nullptr;
  bool record = true;  // fill what only the gradient needs
  // Of a policy that imitates assignments (PolicyTraits): what to imitate.
  const Assignment* taught = nullptr;
};

struct PolicyEpisode {
  Assignment assignment = {};  // at the end
  std::size_t n_steps = 0;
  // By part of the policy: of each choice that its gradient counts, the number of its step;
  // ascending.
  std::vector<std::vector<std::int32_t>> steps = {};
  // Of a policy that refines (PolicyTraits): where the episode began, and the node whose device
  // each step set.
  Assignment start = {};
  std::vector<NodeId> order = {};
};

// One of the choices: with probability epsilon a uniform one, else drawn by its probability.
// `log_probabilities`: at least one.
std::size_t draw_choice(std::span<const float> log_probabilities, double epsilon, Draws& draws);
// The choice of the largest score, ties to the first.
std::size_t best_choice(std::span<const float> scores);

}  // namespace doppler
