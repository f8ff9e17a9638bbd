// Adam: Kingma, Ba, ICLR 2015, with its default decay rates.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "agents/learned/policy_file.h"

namespace doppler {

class Adam {
 public:
  explicit Adam(std::vector<at::Tensor> parameters);

  // One step against the gradients, one a parameter.
  void step(const std::vector<at::Tensor>& gradients, double learning_rate);

  [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }
  [[nodiscard]] std::int64_t n_steps() const { return n_steps_; }
  // Both moments of every parameter, named `prefix`first.0 and so on.
  [[nodiscard]] std::vector<PolicyArray> arrays(const std::string& prefix) const;
  // Throws ParseError, and nothing changes, unless all are there.
  void set_arrays(const PolicyFile& file, const std::string& prefix, std::int64_t n_steps,
                  const std::string& source);

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> first_;   // running means of the gradients
  std::vector<at::Tensor> second_;  // and of their squares
  std::vector<at::Tensor> steps_;   // what LibTorch's operation counts, one a parameter
  std::int64_t n_steps_ = 0;
};

}  // namespace doppler
