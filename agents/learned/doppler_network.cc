#include "agents/learned/doppler_network.h"

#include <torch/torch.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "agents/learned/message_passing.h"

namespace doppler {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kHeadHidden = 32;
constexpr std::int64_t kContext = 8;        // numbers of a task that the gate sees
constexpr std::int64_t kHeadEmbedding = 8;  // numbers of a head
constexpr double kGateTemperature = 0.05;
constexpr double kWeightDecay = 1e-2;  // of the gate: there are few tasks

// Node v's sum of `in` over the path v, next[v], next[next[v]], ...
struct Path {
  std::vector<std::int32_t> next;   // -1: the end
  std::vector<std::int32_t> order;  // every node after its next
};

class PathSums : public torch::autograd::Function<PathSums> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& in,
                            const std::shared_ptr<const Path>& path) {
    context->saved_data["path"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(path));
    at::Tensor out = in.detach().clone().contiguous();
    const std::int64_t width = out.size(1);
    float* rows = out.data_ptr<float>();
    for (std::int32_t v : path->order) {
      const std::int32_t next = path->next[static_cast<std::size_t>(v)];
      if (next < 0) continue;
      for (std::int64_t j = 0; j < width; ++j) rows[v * width + j] += rows[next * width + j];
    }
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto holder = context->saved_data["path"].toCapsule();
    const Path& path = *static_cast<const Holder&>(*holder).path;
    at::Tensor out = gradients[0].clone().contiguous();
    const std::int64_t width = out.size(1);
    float* rows = out.data_ptr<float>();
    for (auto v = path.order.rbegin(); v != path.order.rend(); ++v) {
      const std::int32_t next = path.next[static_cast<std::size_t>(*v)];
      if (next < 0) continue;
      for (std::int64_t j = 0; j < width; ++j) rows[next * width + j] += rows[*v * width + j];
    }
    return {out, at::Tensor()};
  }

 private:
  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<const Path> held) : path(std::move(held)) {}
    std::shared_ptr<const Path> path;
  };
};

at::Tensor standardised(const at::Tensor& x) {
  const at::Tensor centred = x - x.mean(0, true);
  return centred / (centred.square().mean(0, true) + 1e-12).sqrt().clamp_min(1e-6);
}

std::vector<float> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  const float* begin = flat.const_data_ptr<float>();
  return {begin, begin + flat.numel()};
}

at::Tensor tensor_of(const std::vector<float>& values, std::int64_t n_columns) {
  return torch::tensor(at::ArrayRef<float>(values), torch::kFloat32).reshape({-1, n_columns});
}

std::int64_t n_features() {
  return static_cast<std::int64_t>(node_feature_names(NodeFeatures::full).size());
}

at::Generator generator_of(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

// Two layers with a ReLU between.
struct TwoLayers : torch::nn::Module {
  TwoLayers(std::int64_t n_inputs, std::int64_t n_hidden, std::int64_t n_outputs,
            at::Generator generator)
      : first(register_module("first", orthogonal_linear(n_inputs, n_hidden, generator))),
        second(register_module("second", orthogonal_linear(n_hidden, n_outputs, generator))) {}
  at::Tensor forward(const at::Tensor& x) { return second(torch::relu(first(x))); }
  torch::nn::Linear first;
  torch::nn::Linear second;
};

struct Gate : torch::nn::Module {
  Gate(std::int64_t hidden, std::int64_t n_heads, at::Generator generator)
      : context(register_module("context", orthogonal_linear(2 * hidden, kContext, generator))),
        heads(register_parameter(
            "heads", torch::empty({n_heads, kHeadEmbedding}).normal_(0, 0.1, generator))),
        score(register_module(
            "score", std::make_shared<TwoLayers>(
                         kContext + kHeadEmbedding + static_cast<std::int64_t>(kEstimateFeatures),
                         kHeadHidden, 1, generator))) {
    const torch::NoGradGuard no_gradient;
    score->second->weight.zero_();
  }
  torch::nn::Linear context;
  at::Tensor heads;
  std::shared_ptr<TwoLayers> score;
};

std::unique_ptr<torch::optim::Adam> adam(torch::nn::Module& module, double weight_decay) {
  return std::make_unique<torch::optim::Adam>(
      module.parameters(), torch::optim::AdamOptions(1e-3).weight_decay(weight_decay));
}

void step(torch::optim::Adam& optimizer, double learning_rate) {
  for (auto& group : optimizer.param_groups()) {
    static_cast<torch::optim::AdamOptions&>(group.options()).lr(learning_rate);
    for (const at::Tensor& parameter : group.params()) {
      if (parameter.grad().defined() && !parameter.grad().isfinite().all().item<bool>()) {
        throw RunError(
            "a gradient is not finite: training has diverged; try a smaller learning rate");
      }
    }
  }
  optimizer.step();
}

template <class Saved>
std::string archive(const Saved& saved) {
  std::ostringstream stream;
  torch::serialize::OutputArchive out;
  saved.save(out);
  out.save_to(stream);
  return stream.str();
}

template <class Loaded>
void unarchive(const std::string& bytes, Loaded& loaded) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  loaded.load(in);
}

}  // namespace

struct NetworkInputs::Tensors {
  MessageInputs messages;
  at::Tensor features;  // [n_nodes, n_features]
  std::shared_ptr<const Path> b_path;
  std::shared_ptr<const Path> t_path;
};

NetworkInputs::NetworkInputs(const PlacementModel& model) {
  const GraphFeatures features = graph_features(model, NodeFeatures::full);
  const int steps = static_cast<int>(DopplerNetworkOptions{}.steps);
  auto b_path = std::make_shared<Path>();
  auto t_path = std::make_shared<Path>();
  b_path->next = model.levels().b_next;
  t_path->next = model.levels().t_next;
  // By b-level is topological: predecessors first, which is what the t-path needs.
  for (NodeId node : model.b_level_order()) t_path->order.push_back(node.value);
  b_path->order.assign(t_path->order.rbegin(), t_path->order.rend());
  tensors_ = std::make_unique<Tensors>(
      Tensors{.messages = MessageInputs(features, message_plan(features, steps)),
              .features = tensor_of(features.nodes, static_cast<std::int64_t>(features.n_columns)),
              .b_path = std::move(b_path),
              .t_path = std::move(t_path)});
}
NetworkInputs::~NetworkInputs() = default;
NetworkInputs::NetworkInputs(NetworkInputs&&) noexcept = default;
NetworkInputs& NetworkInputs::operator=(NetworkInputs&&) noexcept = default;

struct DopplerNetwork::Modules {
  struct Policies : torch::nn::Module {
    Policies(const DopplerNetworkOptions& options, at::Generator generator)
        : messages(register_module("messages",
                                   std::make_shared<MessagePassing>(
                                       MessagePassingOptions{.n_features = n_features(),
                                                             .hidden = options.hidden,
                                                             .edge_hidden = options.edge_hidden,
                                                             .steps = options.steps},
                                       generator))),
          select(register_module(
              "select", std::make_shared<TwoLayers>(n_features() + 3 * options.hidden, kHeadHidden,
                                                    options.n_latents, generator))),
          place(register_module(
              "place", std::make_shared<TwoLayers>(n_features() + options.hidden, kHeadHidden,
                                                   options.n_latents, generator))) {}
    std::shared_ptr<MessagePassing> messages;
    std::shared_ptr<TwoLayers> select;
    std::shared_ptr<TwoLayers> place;
  };

  // H of each node, [n_nodes, hidden].
  at::Tensor embed(const NetworkInputs::Tensors& inputs) {
    return policies->messages->forward(inputs.messages)
        .index_select(0, inputs.messages.node_class());
  }

  // [n_nodes, n_latents] of SEL and of PLC.
  std::pair<at::Tensor, at::Tensor> latents(const NetworkInputs::Tensors& inputs) {
    const at::Tensor h = embed(inputs);
    const at::Tensor b_sums = standardised(PathSums::apply(h, inputs.b_path));
    const at::Tensor t_sums = standardised(PathSums::apply(h, inputs.t_path));
    return {standardised(
                policies->select->forward(torch::cat({inputs.features, h, b_sums, t_sums}, 1))),
            standardised(policies->place->forward(torch::cat({inputs.features, h}, 1)))};
  }

  at::Tensor scores(std::span<const float> readout, std::span<const EstimateFeatures> estimates) {
    const auto n_heads = static_cast<std::int64_t>(estimates.size());
    std::vector<float> flat;
    for (const EstimateFeatures& row : estimates) flat.insert(flat.end(), row.begin(), row.end());
    const at::Tensor context = torch::tanh(
        gate->context(torch::tensor(at::ArrayRef<float>(readout.data(), readout.size()))));
    const at::Tensor table = tensor_of(flat, static_cast<std::int64_t>(kEstimateFeatures));
    const at::Tensor learnt =
        gate->score
            ->forward(torch::cat({context.expand({n_heads, kContext}), gate->heads, table}, 1))
            .squeeze(1);
    return table.select(1, 0) + learnt;
  }

  std::shared_ptr<Policies> policies;
  std::shared_ptr<Gate> gate;  // or none
  std::unique_ptr<torch::optim::Adam> policies_optimizer;
  std::unique_ptr<torch::optim::Adam> gate_optimizer;
};

DopplerNetwork::DopplerNetwork(const DopplerNetworkOptions& options, std::uint64_t seed)
    : options_(options), modules_(std::make_unique<Modules>()) {
  torch::set_num_threads(1);
  options_.n_heads = 0;
  modules_->policies = std::make_shared<Modules::Policies>(options, generator_of(seed));
  modules_->policies_optimizer = adam(*modules_->policies, 0);
  if (options.n_heads > 0) add_gate(options.n_heads, seed + 1);
}

namespace {

DopplerNetworkOptions options_of(const PolicyFile& file, const std::string& source) {
  try {
    const auto& network = file.extra.at("network");
    const auto number = [&](const char* name) { return network.at(name).get<std::int64_t>(); };
    return {.n_latents = number("n_latents"),
            .hidden = number("hidden"),
            .edge_hidden = number("edge_hidden"),
            .steps = number("steps"),
            .n_heads = number("n_heads")};
  } catch (const nlohmann::json::exception&) {
    throw ParseError(source + ": this policy does not say the shape of its network");
  }
}

template <class Visit>
void for_each_parameter(torch::nn::Module& policies, torch::nn::Module* gate, Visit&& visit) {
  for (auto& item : policies.named_parameters()) visit("policies." + item.key(), item.value());
  if (gate == nullptr) return;
  for (auto& item : gate->named_parameters()) visit("gate." + item.key(), item.value());
}

}  // namespace

DopplerNetwork::DopplerNetwork(const PolicyFile& file, const std::string& source)
    : DopplerNetwork(options_of(file, source), 0) {
  const torch::NoGradGuard no_gradient;
  for_each_parameter(*modules_->policies, modules_->gate.get(),
                     [&](const std::string& name, at::Tensor parameter) {
                       const PolicyArray& array = file.array(name, parameter.sizes().vec(), source);
                       parameter.copy_(tensor_of(array.values, 1).view(parameter.sizes()));
                     });
}

DopplerNetwork::~DopplerNetwork() = default;
DopplerNetwork::DopplerNetwork(DopplerNetwork&&) noexcept = default;
DopplerNetwork& DopplerNetwork::operator=(DopplerNetwork&&) noexcept = default;

void DopplerNetwork::add_gate(std::int64_t n_heads, std::uint64_t seed) {
  options_.n_heads = n_heads;
  modules_->gate = std::make_shared<Gate>(options_.hidden, n_heads, generator_of(seed));
  modules_->gate_optimizer = adam(*modules_->gate, kWeightDecay);
}

Latents DopplerNetwork::latents(const NetworkInputs& inputs) const {
  const torch::NoGradGuard no_gradient;
  const auto [select, place] = modules_->latents(*inputs.tensors_);
  return {.n_latents = static_cast<std::size_t>(options_.n_latents),
          .select = values_of(select),
          .place = values_of(place)};
}

std::vector<float> DopplerNetwork::readout(const NetworkInputs& inputs) const {
  const torch::NoGradGuard no_gradient;
  const at::Tensor h = modules_->embed(*inputs.tensors_);
  return values_of(torch::cat({h.mean(0), std::get<0>(h.max(0))}));
}

std::vector<float> DopplerNetwork::gate_scores(std::span<const float> readout,
                                               std::span<const EstimateFeatures> estimates) const {
  const torch::NoGradGuard no_gradient;
  return values_of(modules_->scores(readout, estimates));
}

void DopplerNetwork::learn(std::span<const LatentGradient> gradients, double learning_rate) {
  modules_->policies->zero_grad();
  for (const LatentGradient& item : gradients) {
    const auto [select, place] = modules_->latents(*item.inputs->tensors_);
    torch::autograd::backward({select, place},
                              {tensor_of(item.gradient.select, options_.n_latents),
                               tensor_of(item.gradient.place, options_.n_latents)});
  }
  step(*modules_->policies_optimizer, learning_rate);
}

double DopplerNetwork::learn_gate(std::span<const GateExample* const> examples,
                                  double learning_rate) {
  modules_->gate->zero_grad();
  at::Tensor loss = torch::zeros({});
  for (const GateExample* example : examples) {
    const at::Tensor scores = modules_->scores(example->readout, example->estimates);
    const at::Tensor chosen = torch::softmax(-scores / kGateTemperature, 0);
    loss = loss + (chosen * tensor_of(example->loss, 1).squeeze(1)).sum();
  }
  loss = loss / static_cast<double>(examples.size());
  loss.backward();
  step(*modules_->gate_optimizer, learning_rate);
  return loss.item<double>();
}

void DopplerNetwork::write(PolicyFile& file) const {
  for_each_parameter(*modules_->policies, modules_->gate.get(),
                     [&](const std::string& name, const at::Tensor& parameter) {
                       file.arrays.push_back({name, parameter.sizes().vec(), values_of(parameter)});
                     });
  file.extra["network"] = {{"n_latents", options_.n_latents},
                           {"hidden", options_.hidden},
                           {"edge_hidden", options_.edge_hidden},
                           {"steps", options_.steps},
                           {"n_heads", options_.n_heads}};
}

std::string DopplerNetwork::state() const {
  nlohmann::json state = {{"policies", archive(*modules_->policies)},
                          {"policies_optimizer", archive(*modules_->policies_optimizer)},
                          {"n_heads", options_.n_heads}};
  for (const char* part : {"policies", "policies_optimizer"}) {
    const auto bytes = state[part].get<std::string>();
    state[part] = nlohmann::json::binary({bytes.begin(), bytes.end()});
  }
  if (modules_->gate) {
    const auto gate = archive(*modules_->gate);
    const auto optimizer = archive(*modules_->gate_optimizer);
    state["gate"] = nlohmann::json::binary({gate.begin(), gate.end()});
    state["gate_optimizer"] = nlohmann::json::binary({optimizer.begin(), optimizer.end()});
  }
  std::string bytes;
  nlohmann::json::to_cbor(state, bytes);
  return bytes;
}

void DopplerNetwork::restore(const std::string& bytes) {
  const nlohmann::json state = nlohmann::json::from_cbor(bytes);
  const auto part = [&](const char* name) {
    const auto& binary = state.at(name).get_binary();
    return std::string(binary.begin(), binary.end());
  };
  unarchive(part("policies"), *modules_->policies);
  unarchive(part("policies_optimizer"), *modules_->policies_optimizer);
  if (const auto n_heads = state.at("n_heads").get<std::int64_t>(); n_heads > 0) {
    add_gate(n_heads, 0);
    unarchive(part("gate"), *modules_->gate);
    unarchive(part("gate_optimizer"), *modules_->gate_optimizer);
  }
}

}  // namespace doppler
