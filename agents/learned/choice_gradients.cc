#include "agents/learned/choice_gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "agents/learned/dense_rows.h"
#include "agents/learned/kept_value.h"

namespace doppler {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor as_double(const at::Tensor& x) {
  return x.to(torch::kCPU, torch::kFloat64).contiguous();
}

std::int64_t length(const std::vector<std::int32_t>& values) {
  return static_cast<std::int64_t>(values.size());
}

template <class T>
std::span<const T> part(const std::vector<T>& values, const std::vector<std::int32_t>& first,
                        std::size_t segment) {
  const auto begin = static_cast<std::size_t>(first[segment]);
  return std::span(values).subspan(begin, static_cast<std::size_t>(first[segment + 1]) - begin);
}

class PathSums : public torch::autograd::Function<PathSums> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& states,
                            const std::shared_ptr<const PathPlan>& paths) {
    context->saved_data["paths"] = keep(paths);
    context->saved_data["n_classes"] = states.size(0);
    context->saved_data["like"] = states.new_empty({0});
    const at::Tensor from = as_double(states);
    const std::int64_t width = states.size(1);
    at::Tensor sums = torch::empty({length(paths->state), width}, torch::kFloat64);
    const double* const in = from.const_data_ptr<double>();
    double* const out = sums.mutable_data_ptr<double>();
    for (std::size_t p = 0; p < paths->state.size(); ++p) {
      double* const row = out + static_cast<std::int64_t>(p) * width;
      const double* const own = in + paths->state[p] * width;
      const double* const rest = paths->next[p] < 0 ? nullptr : out + paths->next[p] * width;
      for (std::int64_t j = 0; j < width; ++j) row[j] = own[j] + (rest ? rest[j] : 0);
    }
    return sums.to(states.device());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto paths = kept_value<PathPlan>(context->saved_data["paths"]);
    const at::Tensor like = context->saved_data["like"].toTensor();
    at::Tensor of_sums = as_double(gradients[0]).clone();
    const std::int64_t width = of_sums.size(1);
    at::Tensor of_states =
        torch::zeros({context->saved_data["n_classes"].toInt(), width}, torch::kFloat64);
    double* const sums = of_sums.mutable_data_ptr<double>();
    double* const states = of_states.mutable_data_ptr<double>();
    for (std::size_t p = paths->state.size(); p-- > 0;) {
      const double* const row = sums + static_cast<std::int64_t>(p) * width;
      double* const own = states + paths->state[p] * width;
      for (std::int64_t j = 0; j < width; ++j) own[j] += row[j];
      if (paths->next[p] < 0) continue;
      double* const rest = sums + paths->next[p] * width;
      for (std::int64_t j = 0; j < width; ++j) rest[j] += row[j];
    }
    return {of_states.to(like.options()), at::Tensor()};
  }
};

class StandardisedRows : public torch::autograd::Function<StandardisedRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table,
                            const std::shared_ptr<const Segments>& segments, torch::Dtype dtype) {
    const at::Tensor from = as_double(table);
    const auto width = static_cast<std::size_t>(table.size(1));
    at::Tensor out = torch::empty({length(segments->row), table.size(1)}, dtype);
    at::Tensor deviations =
        torch::empty({static_cast<std::int64_t>(segments->size()), table.size(1)}, torch::kFloat64);
    std::vector<double> scratch(2 * width);
    std::vector<const double*> rows;
    AT_DISPATCH_FLOATING_TYPES(dtype, "standardised_rows", [&] {
      for (std::size_t s = 0; s < segments->size(); ++s) {
        rows.clear();
        for (std::int32_t row : part(segments->row, segments->first, s)) {
          rows.push_back(from.const_data_ptr<double>() + static_cast<std::size_t>(row) * width);
        }
        const auto begin = static_cast<std::size_t>(segments->first[s]) * width;
        standardise_rows(rows, part(segments->weight, segments->first, s), width,
                         out.mutable_data_ptr<scalar_t>() + begin, width, scratch.data());
        std::copy_n(scratch.begin(), width, deviations.mutable_data_ptr<double>() + s * width);
      }
    });
    context->saved_data["segments"] = keep(segments);
    context->saved_data["n_rows"] = table.size(0);
    context->saved_data["device"] = table.device();
    context->saved_data["out"] = out.detach();
    context->saved_data["deviations"] = deviations;
    return out.to(table.device());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto segments = kept_value<Segments>(context->saved_data["segments"]);
    const at::Tensor out = context->saved_data["out"].toTensor();
    const at::Tensor deviations = context->saved_data["deviations"].toTensor();
    const at::Tensor of_out = gradients[0].to(torch::kCPU).contiguous();
    const auto width = static_cast<std::size_t>(out.size(1));
    at::Tensor of_table =
        torch::zeros({context->saved_data["n_rows"].toInt(), out.size(1)}, torch::kFloat64);
    double* const to = of_table.mutable_data_ptr<double>();
    std::vector<double> scratch(2 * width);
    std::vector<double*> rows;
    AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "standardised_rows", [&] {
      for (std::size_t s = 0; s < segments->size(); ++s) {
        rows.clear();
        for (std::int32_t row : part(segments->row, segments->first, s)) {
          rows.push_back(to + static_cast<std::size_t>(row) * width);
        }
        const auto begin = static_cast<std::size_t>(segments->first[s]) * width;
        standardise_rows_backward(rows, part(segments->weight, segments->first, s), width,
                                  out.const_data_ptr<scalar_t>() + begin,
                                  of_out.const_data_ptr<scalar_t>() + begin,
                                  deviations.const_data_ptr<double>() + s * width, scratch.data());
      }
    });
    return {of_table.to(context->saved_data["device"].toDevice()), at::Tensor(), at::Tensor()};
  }
};

class StandardisedDeviceSums : public torch::autograd::Function<StandardisedDeviceSums> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& states,
                            const std::shared_ptr<const Placements>& placements) {
    const at::Tensor from = as_double(states);
    const auto width = static_cast<std::size_t>(states.size(1));
    const std::size_t n_devices = placements->n_devices;
    const std::size_t n_steps = placements->state.size();
    at::Tensor out = torch::empty({static_cast<std::int64_t>(n_steps * n_devices), states.size(1)},
                                  states.dtype());
    at::Tensor deviations =
        torch::empty({static_cast<std::int64_t>(n_steps), states.size(1)}, torch::kFloat64);
    std::vector<double> sums(n_devices * width);
    const std::vector<double> ones(n_devices, 1);
    std::vector<const double*> rows;
    for (std::size_t d = 0; d < n_devices; ++d) rows.push_back(sums.data() + d * width);
    std::vector<double> scratch(2 * width);
    AT_DISPATCH_FLOATING_TYPES(states.scalar_type(), "standardised_device_sums", [&] {
      for (std::size_t e = 0; e + 1 < placements->episode_first.size(); ++e) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (auto s = static_cast<std::size_t>(placements->episode_first[e]);
             s < static_cast<std::size_t>(placements->episode_first[e + 1]); ++s) {
          standardise_rows(rows, ones, width,
                           out.mutable_data_ptr<scalar_t>() + s * n_devices * width, width,
                           scratch.data());
          std::copy_n(scratch.begin(), width, deviations.mutable_data_ptr<double>() + s * width);
          const double* const state = from.const_data_ptr<double>() +
                                      static_cast<std::size_t>(placements->state[s]) * width;
          double* const sum = sums.data() + static_cast<std::size_t>(placements->device[s]) * width;
          for (std::size_t j = 0; j < width; ++j) sum[j] += state[j];
        }
      }
    });
    context->saved_data["placements"] = keep(placements);
    context->saved_data["like"] = states.new_empty({0});
    context->saved_data["n_classes"] = states.size(0);
    context->saved_data["out"] = out.detach();
    context->saved_data["deviations"] = deviations;
    return out.to(states.device());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto placements = kept_value<Placements>(context->saved_data["placements"]);
    const at::Tensor out = context->saved_data["out"].toTensor();
    const at::Tensor deviations = context->saved_data["deviations"].toTensor();
    const at::Tensor of_out = gradients[0].to(torch::kCPU).contiguous();
    const auto width = static_cast<std::size_t>(out.size(1));
    const std::size_t n_devices = placements->n_devices;
    at::Tensor of_states =
        torch::zeros({context->saved_data["n_classes"].toInt(), out.size(1)}, torch::kFloat64);
    double* const to = of_states.mutable_data_ptr<double>();
    // Of the sums after the step: what is placed counts in all later steps of its episode.
    std::vector<double> sums(n_devices * width);
    const std::vector<double> ones(n_devices, 1);
    std::vector<double*> rows;
    for (std::size_t d = 0; d < n_devices; ++d) rows.push_back(sums.data() + d * width);
    std::vector<double> scratch(2 * width);
    AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "standardised_device_sums", [&] {
      for (std::size_t e = 0; e + 1 < placements->episode_first.size(); ++e) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (auto s = static_cast<std::size_t>(placements->episode_first[e + 1]);
             s-- > static_cast<std::size_t>(placements->episode_first[e]);) {
          double* const state = to + static_cast<std::size_t>(placements->state[s]) * width;
          const double* const sum =
              sums.data() + static_cast<std::size_t>(placements->device[s]) * width;
          for (std::size_t j = 0; j < width; ++j) state[j] += sum[j];
          standardise_rows_backward(
              rows, ones, width, out.const_data_ptr<scalar_t>() + s * n_devices * width,
              of_out.const_data_ptr<scalar_t>() + s * n_devices * width,
              deviations.const_data_ptr<double>() + s * width, scratch.data());
        }
      }
    });
    return {of_states.to(context->saved_data["like"].toTensor().options()), at::Tensor()};
  }
};

// Of one segment.
struct Choice {
  double largest = -std::numeric_limits<double>::infinity();
  double total = 0;   // of weight x exp(score - largest)
  double wanted = 0;  // of target x exp(score - largest among the targets)
  double largest_wanted = -std::numeric_limits<double>::infinity();
  double mean = 0;  // of the score
};

Choice choice_of(std::span<const double> scores, std::span<const double> weights,
                 std::span<const double> targets) {
  Choice choice;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    choice.largest = std::max(choice.largest, scores[i]);
    if (targets[i] > 0) choice.largest_wanted = std::max(choice.largest_wanted, scores[i]);
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double share = weights[i] * std::exp(scores[i] - choice.largest);
    choice.total += share;
    choice.mean += share * scores[i];
    if (targets[i] > 0) choice.wanted += targets[i] * std::exp(scores[i] - choice.largest_wanted);
  }
  choice.mean /= choice.total;
  return choice;
}

class ChoiceLoss : public torch::autograd::Function<ChoiceLoss> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& scores,
                               const std::shared_ptr<const ChoiceTargets>& targets) {
    const at::Tensor from = as_double(scores);
    const std::span<const double> all(from.const_data_ptr<double>(), targets->weight.size());
    const std::size_t n = targets->first.size() - 1;
    at::Tensor log_probability = torch::empty({static_cast<std::int64_t>(n)}, torch::kFloat64);
    at::Tensor entropy = torch::empty_like(log_probability);
    for (std::size_t s = 0; s < n; ++s) {
      const auto begin = static_cast<std::size_t>(targets->first[s]);
      const auto weights = part(targets->weight, targets->first, s);
      const Choice choice = choice_of(all.subspan(begin, weights.size()), weights,
                                      part(targets->target, targets->first, s));
      const double log_total = choice.largest + std::log(choice.total);
      log_probability.mutable_data_ptr<double>()[s] =
          choice.largest_wanted + std::log(choice.wanted) - log_total;
      entropy.mutable_data_ptr<double>()[s] = log_total - choice.mean;
    }
    context->saved_data["targets"] = keep(targets);
    context->saved_data["scores"] = from.detach();
    context->saved_data["like"] = scores.new_empty({0});
    return {log_probability, entropy};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto targets = kept_value<ChoiceTargets>(context->saved_data["targets"]);
    const at::Tensor from = context->saved_data["scores"].toTensor();
    const std::span<const double> all(from.const_data_ptr<double>(), targets->weight.size());
    const at::Tensor of_log = as_double(gradients[0]);
    const at::Tensor of_entropy = as_double(gradients[1]);
    at::Tensor of_scores = torch::empty_like(from);
    for (std::size_t s = 0; s + 1 < targets->first.size(); ++s) {
      const auto begin = static_cast<std::size_t>(targets->first[s]);
      const auto weights = part(targets->weight, targets->first, s);
      const auto wanted = part(targets->target, targets->first, s);
      const auto scores = all.subspan(begin, weights.size());
      const Choice choice = choice_of(scores, weights, wanted);
      const double log_gradient = of_log.const_data_ptr<double>()[s];
      const double entropy_gradient = of_entropy.const_data_ptr<double>()[s];
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const double share = weights[i] * std::exp(scores[i] - choice.largest) / choice.total;
        double own = -share;
        if (wanted[i] > 0) {
          own += wanted[i] * std::exp(scores[i] - choice.largest_wanted) / choice.wanted;
        }
        of_scores.mutable_data_ptr<double>()[begin + i] =
            log_gradient * own - entropy_gradient * share * (scores[i] - choice.mean);
      }
    }
    return {of_scores.to(context->saved_data["like"].toTensor().options()), at::Tensor()};
  }
};

}  // namespace

at::Tensor path_sums(const at::Tensor& states, std::shared_ptr<const PathPlan> paths) {
  return PathSums::apply(states, std::move(paths));
}

at::Tensor standardised_rows(const at::Tensor& table, std::shared_ptr<const Segments> segments,
                             torch::Dtype dtype) {
  return StandardisedRows::apply(table, std::move(segments), dtype);
}

at::Tensor standardised_device_sums(const at::Tensor& states,
                                    std::shared_ptr<const Placements> placements) {
  return StandardisedDeviceSums::apply(states, std::move(placements));
}

ChoiceValues choice_values(const at::Tensor& scores, std::shared_ptr<const ChoiceTargets> targets) {
  const variable_list values = ChoiceLoss::apply(scores, std::move(targets));
  return {values[0], values[1]};
}

}  // namespace doppler
