#include "agents/learned/reinforce_policy.h"

#include <algorithm>
#include <cmath>

#include "graphs/error.h"

namespace doppler {

namespace {

std::string prefix_of(const PolicyPart& part) { return part.name.empty() ? "" : part.name + "."; }

}  // namespace

PartGradient gradient_of(const ChoiceValues& values, const GradientRequest& request,
                         const std::vector<at::Tensor>& parameters) {
  GradientSum sum(parameters);
  sum.add(values, request);
  return sum.result();
}

GradientSum::GradientSum(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
  sum_.parts.resize(parameters_.size());
}

void GradientSum::add(const ChoiceValues& values, const GradientRequest& request) {
  const at::Tensor factors = torch::tensor(at::ArrayRef<double>(request.weights), torch::kFloat64);
  const at::Tensor entropy = values.entropy.sum();
  const at::Tensor loss =
      -((values.log_probability * factors).sum() + request.entropy_weight * entropy) /
      static_cast<double>(request.n_episodes);
  sum_.loss += loss.item<double>();
  sum_.entropy += entropy.item<double>();
  n_choices_ += static_cast<double>(request.weights.size());
  const auto parts = torch::autograd::grad({loss}, parameters_, {}, /*retain_graph=*/std::nullopt,
                                           /*create_graph=*/false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].defined()) continue;
    sum_.parts[i] = sum_.parts[i].defined() ? sum_.parts[i] + parts[i] : parts[i];
  }
}

PartGradient GradientSum::result() const {
  PartGradient gradient = sum_;
  gradient.entropy /= std::max(1.0, n_choices_);
  double squares = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& part = gradient.parts[i];
    if (!part.defined()) part = torch::zeros_like(parameters_[i]);
    const double norm = part.norm().item<double>();
    squares += norm * norm;
  }
  gradient.norm = std::sqrt(squares);
  return gradient;
}

std::int64_t common_devices(const PolicyTasks& tasks, const std::string& agent) {
  const std::size_t n_devices = tasks.front()->n_devices();
  for (const auto& model : tasks) {
    if (model->n_devices() == n_devices) continue;
    throw UsageError("a policy of '" + agent + "' has one output a device, and these tasks have " +
                     std::to_string(n_devices) + " and " + std::to_string(model->n_devices()) +
                     " devices; give tasks of equally many");
  }
  return static_cast<std::int64_t>(n_devices);
}

std::vector<PolicyArray> policy_arrays(const PolicyTraits& traits) {
  std::vector<PolicyArray> arrays;
  for (const PolicyPart& part : traits.parts) {
    for (const auto& item : part.module->named_parameters()) {
      const at::Tensor from = item.value().detach().to(torch::kCPU, torch::kFloat32).contiguous();
      const float* const data = from.const_data_ptr<float>();
      arrays.push_back({.name = prefix_of(part) + item.key(),
                        .shape = item.value().sizes().vec(),
                        .values = {data, data + from.numel()}});
    }
  }
  return arrays;
}

void set_policy_arrays(const PolicyTraits& traits, const PolicyFile& file,
                       const std::string& source) {
  std::vector<std::pair<at::Tensor, const PolicyArray*>> found;
  for (const PolicyPart& part : traits.parts) {
    for (const auto& item : part.module->named_parameters()) {
      found.emplace_back(item.value(), &file.array(prefix_of(part) + item.key(),
                                                   item.value().sizes().vec(), source));
    }
  }
  const torch::NoGradGuard no_gradient;
  for (auto& [parameter, array] : found) {
    parameter.copy_(torch::tensor(at::ArrayRef<float>(array->values)).view(parameter.sizes()));
  }
}

std::string write_policy(const PolicyTraits& traits) {
  PolicyFile file;
  file.kind = traits.kind;
  file.arrays = policy_arrays(traits);
  if (traits.n_devices > 0) file.extra["n_devices"] = traits.n_devices;
  return write_policy(file);
}

void read_policy(const PolicyTraits& traits, std::string_view content, const std::string& source) {
  const PolicyFile file = parse_policy(content, traits.kind, source);
  if (traits.n_devices > 0 && file.extra.contains("n_devices") &&
      file.extra["n_devices"] != traits.n_devices) {
    throw ParseError(source + ": this policy of '" + traits.kind + "' has outputs for " +
                     file.extra["n_devices"].dump() + " devices, the task has " +
                     std::to_string(traits.n_devices) +
                     "; it carries over to other graphs, not to other numbers of devices: train "
                     "one for this number");
  }
  set_policy_arrays(traits, file, source);
}

}  // namespace doppler
