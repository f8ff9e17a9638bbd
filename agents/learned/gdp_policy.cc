#include "agents/learned/gdp_policy.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <utility>

#include "agents/learned/graph_features.h"

namespace doppler {

namespace {

// What the gradient needs of an episode.
struct Played {
  std::vector<std::int32_t> device;  // by place in the order: what the log-probability is of
  std::vector<float> outputs;        // y; of an episode that passes messages each step
};

DeviceId device_of(std::size_t index) { return DeviceId(static_cast<std::int64_t>(index)); }

class GdpPolicy : public ReinforcePolicy {
 public:
  GdpPolicy(const GdpOptions& options, const PolicyTasks& tasks, torch::Device device,
            std::shared_ptr<GdpNetwork> network, PolicyTraits traits)
      : ReinforcePolicy(std::move(traits)),
        time_(options.message_passing),
        device_(device),
        network_(std::move(network)) {
    network_->to(device_);
    for (const auto& model : tasks) tasks_.push_back(std::make_shared<const GdpTask>(model));
  }

  void begin(const UpdateScope& scope) override {
    task_ = scope.task;
    weights_ = network_->weights();
    played_.resize(scope.n_episodes);
    rollouts_.resize(scope.pool->n_threads());
    for (auto& rollouts : rollouts_) rollouts.resize(tasks_.size());
    if (time_ == MessagePassingTime::step) return;
    // All episodes draw from the same probabilities.
    GdpRollout& shared = rollout(0);
    shared.begin(weights_);
    probabilities_.clear();
    for (auto part = shared.next_segment(); !part.empty(); part = shared.next_segment()) {
      probabilities_.insert(probabilities_.end(), part.begin(), part.end());
    }
    outputs_ = shared.outputs();
  }

  void play(const EpisodeOptions& options, std::size_t worker, std::size_t episode,
            PolicyEpisode& out) override {
    const GdpTask& task = *tasks_[task_];
    Draws draws(options.seed);
    out.assignment.devices.resize(task.order.size());
    out.n_steps = 1;
    out.steps.assign(1, std::vector<std::int32_t>(task.order.size(), 0));
    Played& played = played_[episode];
    played.device.resize(task.order.size());
    const auto decide = [&](std::size_t place, std::span<const float> logs) {
      const NodeId node = task.order[place];
      const DeviceId device = options.taught != nullptr
                                  ? (*options.taught)[node]
                                  : device_of(draw_choice(logs, options.epsilon, draws));
      out.assignment[node] = device;
      played.device[place] = device.value;
      return device;
    };
    const std::size_t n_devices = task.model->n_devices();
    if (time_ == MessagePassingTime::episode) {
      for (std::size_t place = 0; place < task.order.size(); ++place) {
        decide(place, std::span(probabilities_).subspan(place * n_devices, n_devices));
      }
      return;
    }
    GdpRollout& own = rollout(worker);
    own.begin(weights_);
    for (auto part = own.next_segment(); !part.empty(); part = own.next_segment()) {
      for (std::size_t i = 0; i * n_devices < part.size(); ++i) {
        const std::size_t place = own.segment_begin() + i;
        own.placed(place, decide(place, part.subspan(i * n_devices, n_devices)));
      }
    }
    played.outputs = own.outputs();
  }

  PartGradient gradient(const GradientRequest& request) override {
    const GdpTask& task = *tasks_[task_];
    const auto parameters = network_->parameters();
    const auto n_nodes = static_cast<std::int64_t>(task.order.size());
    if (n_nodes == 0) return GradientSum(parameters).result();
    const auto n_episodes = static_cast<std::int64_t>(played_.size());
    at::Tensor x = network_->nodes(rows());
    std::vector<float> outputs = outputs_;
    if (time_ == MessagePassingTime::step) {
      outputs.clear();
      for (const Played& played : played_) {
        outputs.insert(outputs.end(), played.outputs.begin(), played.outputs.end());
      }
    }
    at::Tensor scores = network_->scores(x, table(outputs, x.size(1)), n_nodes);
    if (time_ == MessagePassingTime::episode) scores = scores.repeat({n_episodes, 1});
    auto targets = std::make_shared<ChoiceTargets>();
    const std::size_t n_devices = task.model->n_devices();
    for (const Played& played : played_) {
      for (std::int32_t device : played.device) {
        const std::size_t begin = targets->target.size();
        targets->target.resize(begin + n_devices, 0);
        targets->target[begin + static_cast<std::size_t>(device)] = 1;
        targets->first.push_back(static_cast<std::int32_t>(targets->target.size()));
      }
    }
    targets->weight.assign(targets->target.size(), 1);
    return gradient_of(choice_values(scores.reshape({-1}), targets), request, parameters);
  }

  Assignment decide(std::size_t task) override {
    const GdpWeights weights = network_->weights();
    const std::size_t n_devices = tasks_[task]->model->n_devices();
    GdpRollout rollout(tasks_[task], time_);
    Assignment assignment;
    assignment.devices.resize(tasks_[task]->order.size());
    rollout.begin(weights);
    for (auto part = rollout.next_segment(); !part.empty(); part = rollout.next_segment()) {
      for (std::size_t i = 0; i * n_devices < part.size(); ++i) {
        const std::size_t place = rollout.segment_begin() + i;
        const auto logs = part.subspan(i * n_devices, n_devices);
        const DeviceId best = device_of(best_choice(logs));
        assignment[tasks_[task]->order[place]] = best;
        rollout.placed(place, best);
      }
    }
    return assignment;
  }

 private:
  GdpRollout& rollout(std::size_t worker) {
    auto& rollout = rollouts_[worker][task_];
    if (!rollout) rollout = std::make_unique<GdpRollout>(tasks_[task_], time_);
    return *rollout;
  }

  at::Tensor table(const std::vector<float>& values, std::int64_t n_columns) const {
    return torch::tensor(at::ArrayRef<float>(values)).view({-1, n_columns}).to(device_);
  }

  // What GraphSAGE reads in the present update, by episode where they differ: a node's row before
  // it is placed and, once its segment is done, another.
  [[nodiscard]] GdpRows rows() const {
    const GdpTask& task = *tasks_[task_];
    const std::size_t n = task.order.size();
    GdpRows rows;
    if (time_ == MessagePassingTime::episode) {
      rows.features = table(task.features, static_cast<std::int64_t>(task.n_features));
      for (std::size_t v = 0; v < n; ++v) rows.own.push_back(static_cast<std::int64_t>(v));
      rows.first = task.first;
      rows.neighbour = task.neighbour;
      return rows;
    }
    const auto segment = static_cast<std::size_t>(network_->sizes().segment);
    const std::size_t n_columns = task.n_features + task.model->n_devices();
    std::vector<float> features(played_.size() * 2 * n * n_columns, 0);
    rows.first.push_back(0);
    for (std::size_t e = 0; e < played_.size(); ++e) {
      const std::size_t before = 2 * n * e;
      const std::size_t after = before + n;
      for (std::size_t v = 0; v < n; ++v) {
        for (std::size_t row : {before + v, after + v}) {
          std::copy_n(task.features.begin() + static_cast<std::ptrdiff_t>(v * task.n_features),
                      task.n_features,
                      features.begin() + static_cast<std::ptrdiff_t>(row * n_columns));
        }
        const auto device = static_cast<std::size_t>(played_[e].device[v]);
        features[(after + v) * n_columns + task.n_features + device] = 1;
        rows.own.push_back(static_cast<std::int64_t>(before + v));
        for (std::int32_t at = task.first[v]; at < task.first[v + 1]; ++at) {
          const auto u = static_cast<std::size_t>(task.neighbour[static_cast<std::size_t>(at)]);
          const bool is_placed = u / segment < v / segment;
          rows.neighbour.push_back(static_cast<std::int32_t>((is_placed ? after : before) + u));
        }
        rows.first.push_back(static_cast<std::int32_t>(rows.neighbour.size()));
      }
    }
    rows.features = table(features, static_cast<std::int64_t>(n_columns));
    return rows;
  }

  MessagePassingTime time_;
  torch::Device device_;
  std::shared_ptr<GdpNetwork> network_;
  std::vector<std::shared_ptr<const GdpTask>> tasks_;
  // Of the update in progress.
  std::size_t task_ = 0;
  GdpWeights weights_;
  std::vector<float> probabilities_;  // [n_nodes, n_devices], logarithms; and
  std::vector<float> outputs_;        // y; unless messages pass each step
  std::vector<Played> played_;
  std::vector<std::vector<std::unique_ptr<GdpRollout>>> rollouts_;  // by worker, task
};

}  // namespace

std::string gdp_kind(MessagePassingTime time) {
  return time == MessagePassingTime::episode ? "gdp" : "gdp(message_passing=step)";
}

MakeReinforcePolicy gdp_policy(const GdpOptions& options) {
  return [options](const PolicyTasks& tasks, torch::Device device, std::uint64_t seed) {
    const std::int64_t n_devices = common_devices(tasks, "gdp");
    const std::int64_t n_features =
        static_cast<std::int64_t>(node_feature_names(NodeFeatures::paper).size()) +
        gdp_placement_features(options.message_passing, static_cast<std::size_t>(n_devices));
    const auto network = std::make_shared<GdpNetwork>(
        options.sizes, n_features, n_devices, at::make_generator<at::CPUGeneratorImpl>(seed));
    PolicyTraits traits{.kind = gdp_kind(options.message_passing),
                        .parts = {{"", "gdp's policy", network}},
                        .sizes = {options.sizes.hidden, options.sizes.wide, options.sizes.heads,
                                  options.sizes.segment},
                        .n_devices = n_devices,
                        .imitates_assignments = true};
    return std::make_unique<GdpPolicy>(options, tasks, device, network, std::move(traits));
  };
}

}  // namespace doppler
