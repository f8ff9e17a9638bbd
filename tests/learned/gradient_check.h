// Whether the gradient of a policy's loss is that of finite differences.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "agents/learned/reinforce_policy.h"
#include "tests/support/catch.h"

namespace doppler::testing {

// Plays two episodes of the policy's first task with uniform choices (they must not depend on the
// parameters) and checks, for each parameter, the entry of the largest slope. `replays`: what the
// episodes keep depends on the parameters and has a gradient; otherwise it is a constant.
// Parameters are drawn a little off first: with biases of 0 many units sit on the bend of their
// ReLU, where there is no slope. A step may still cross a bend, so the best of some lengths counts.
inline void check_gradient(ReinforcePolicy& policy, bool replays = true) {
  ThreadPool pool(1);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
  for (const PolicyPart& part : policy.traits().parts) {
    const torch::NoGradGuard no_gradient;
    for (at::Tensor& parameter : part.module->parameters()) {
      parameter.add_(0.1 * torch::randn(parameter.sizes(), generator));
    }
  }
  GradientRequest request{.entropy_weight = 0.7, .n_episodes = 2};
  const auto play = [&] {
    policy.begin({.task = 0, .n_episodes = 2, .pool = &pool});
    std::vector<std::vector<double>> weights(policy.traits().parts.size());
    for (std::size_t e = 0; e < 2; ++e) {
      const EpisodeOptions options{.epsilon = 1, .seed = 5 + e};
      PolicyEpisode episode;
      policy.play(options, 0, e, episode);
      for (std::size_t part = 0; part < weights.size(); ++part) {
        for (std::size_t i = 0; i < episode.steps[part].size(); ++i) {
          weights[part].push_back(0.2 * static_cast<double>(i % 7) - 0.5);
        }
      }
    }
    return weights;
  };
  for (std::size_t part = 0; part < policy.traits().parts.size(); ++part) {
    request.part = part;
    request.weights = play()[part];
    if (request.weights.empty()) continue;
    const PartGradient gradient = policy.gradient(request);
    std::size_t i = 0;
    for (const auto& item : policy.traits().parts[part].module->named_parameters()) {
      const at::Tensor slope = gradient.parts[i++].reshape({-1});
      const torch::NoGradGuard no_gradient;
      const at::Tensor flat = item.value().view({-1});
      const auto at = slope.abs().argmax().item<std::int64_t>();
      const float before = flat[at].item<float>();
      const auto loss_at = [&](float value) {
        flat[at] = value;
        if (replays) play();
        const torch::AutoGradMode gradient_again(true);
        return policy.gradient(request).loss;
      };
      const double found = slope[at].item<double>();
      double want = std::numeric_limits<double>::infinity();
      for (float step : {4e-3F, 2e-3F, 1e-3F, 5e-4F, 2.5e-4F}) {
        const double more = loss_at(before + step);
        const double less = loss_at(before - step);
        const double slope_here = (more - less) / (2.0 * step);
        if (std::abs(slope_here - found) < std::abs(want - found)) want = slope_here;
      }
      flat[at] = before;
      INFO(policy.traits().kind << " " << item.key());
      CHECK(found == Approx(want).epsilon(0.03).margin(3e-3));
    }
  }
}

}  // namespace doppler::testing
