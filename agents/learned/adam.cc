#include "agents/learned/adam.h"

#include <utility>

namespace doppler {

namespace {

constexpr double kFirstDecay = 0.9;
constexpr double kSecondDecay = 0.999;
constexpr double kEpsilon = 1e-8;

PolicyArray array_of(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor from = tensor.to(torch::kCPU, torch::kFloat32).contiguous();
  const float* const data = from.const_data_ptr<float>();
  return {.name = name, .shape = tensor.sizes().vec(), .values = {data, data + from.numel()}};
}

}  // namespace

Adam::Adam(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
  for (at::Tensor& parameter : parameters_) {
    parameter = parameter.detach();  // the same storage
    first_.push_back(torch::zeros_like(parameter));
    second_.push_back(torch::zeros_like(parameter));
    steps_.push_back(torch::zeros({}, parameter.options().dtype(torch::kFloat32)));
  }
}

void Adam::step(const std::vector<at::Tensor>& gradients, double learning_rate) {
  const torch::NoGradGuard no_gradient;
  ++n_steps_;
  for (at::Tensor& step : steps_) step.fill_(n_steps_);
  at::_fused_adam_(parameters_, gradients, first_, second_, {}, steps_, learning_rate, kFirstDecay,
                   kSecondDecay, /*weight_decay=*/0, kEpsilon, /*amsgrad=*/false,
                   /*maximize=*/false);
}

std::vector<PolicyArray> Adam::arrays(const std::string& prefix) const {
  std::vector<PolicyArray> arrays;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    arrays.push_back(array_of(prefix + "first." + std::to_string(i), first_[i]));
    arrays.push_back(array_of(prefix + "second." + std::to_string(i), second_[i]));
  }
  return arrays;
}

void Adam::set_arrays(const PolicyFile& file, const std::string& prefix, std::int64_t n_steps,
                      const std::string& source) {
  std::vector<std::pair<at::Tensor, const PolicyArray*>> found;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::vector<std::int64_t> shape = parameters_[i].sizes().vec();
    const std::string number = std::to_string(i);
    found.emplace_back(first_[i], &file.array(prefix + "first." + number, shape, source));
    found.emplace_back(second_[i], &file.array(prefix + "second." + number, shape, source));
  }
  for (auto& [tensor, array] : found) {
    tensor.copy_(torch::tensor(at::ArrayRef<float>(array->values)).view(tensor.sizes()));
  }
  n_steps_ = n_steps;
}

}  // namespace doppler
