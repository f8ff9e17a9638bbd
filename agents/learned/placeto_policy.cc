#include "agents/learned/placeto_policy.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace doppler {

namespace {

// Rows of nodes in states of the graph, and entries of masks, of one batch of the gradient.
constexpr std::size_t kBatchRows = std::size_t{1} << 15;
constexpr std::size_t kBatchShares = std::size_t{1} << 22;

// What the gradient needs of an episode; by place in the order.
struct Played {
  std::vector<std::int32_t> device;
  std::vector<double> target;  // [n_nodes, n_devices]
};

class PlacetoPolicy : public ReinforcePolicy {
 public:
  PlacetoPolicy(const PlacetoOptions& options, const PolicyTasks& tasks, torch::Device device,
                std::shared_ptr<PlacetoNetwork> network, PolicyTraits traits)
      : ReinforcePolicy(std::move(traits)),
        options_(options),
        device_(device),
        network_(std::move(network)) {
    network_->to(device_);
    for (const auto& model : tasks) tasks_.push_back(std::make_shared<const PlacetoTask>(model));
  }

  void begin(const UpdateScope& scope) override {
    task_ = scope.task;
    weights_ = network_->weights();
    played_.resize(scope.n_episodes);
    rollouts_.resize(scope.pool->n_threads());
    for (auto& rollouts : rollouts_) rollouts.resize(tasks_.size());
    if (!each_step()) probabilities_ = probabilities_of_start(tasks_[task_], weights_);
  }

  void play(const EpisodeOptions& options, std::size_t worker, std::size_t episode,
            PolicyEpisode& out) override {
    auto& rollout = rollouts_[worker][task_];
    if (!rollout) rollout = std::make_unique<PlacetoRollout>(tasks_[task_]);
    const PlacetoTask& task = *tasks_[task_];
    const std::size_t n = task.n_nodes();
    const std::size_t n_devices = task.model->n_devices();
    Draws draws(options.seed);
    std::optional<PartialSchedule> schedule;  // of the visited nodes, for the teacher
    if (options.teacher != nullptr) {
      schedule.emplace(task.model);
      options.teacher->begin(task.model, options.seed);
    }
    Played& played = played_[episode];
    played.device.resize(n);
    played.target.assign(n * n_devices, 0);
    out.assignment.devices.resize(n);
    out.n_steps = n;
    out.steps.assign(1, std::vector<std::int32_t>(n));
    std::iota(out.steps[0].begin(), out.steps[0].end(), 0);
    if (options_.refines) {
      out.start = task.start;
      out.order = task.order;
    }
    if (each_step()) rollout->begin(weights_, start_of(task));
    for (std::size_t v = 0; v < n; ++v) {
      const NodeId node = task.order[v];
      const auto chosen = static_cast<std::int64_t>(draw_choice(
          each_step() ? next_scores(*rollout, v)
                      : std::span<const float>(probabilities_).subspan(v * n_devices, n_devices),
          options.epsilon, draws));
      const DeviceId device(chosen);
      taught(options.teacher, schedule, node, device, played.target.data() + v * n_devices);
      played.device[v] = device.value;
      out.assignment[node] = device;
      if (each_step()) rollout->placed(v, device);
      if (schedule) schedule->place(node, device);
    }
  }

  PartGradient gradient(const GradientRequest& request) override {
    GradientSum sum(network_->parameters());
    std::size_t n_done = 0;
    for (const Played& played : played_) {
      const std::size_t n = played.device.size();
      const std::size_t most = std::max<std::size_t>(
          1, (each_step() ? kBatchRows : kBatchShares) / std::max<std::size_t>(n, 1));
      for (std::size_t begin = 0; begin < n; begin += most) {
        const std::size_t end = std::min(n, begin + most);
        GradientRequest part{.weights = {},
                             .entropy_weight = request.entropy_weight,
                             .n_episodes = request.n_episodes};
        const auto first = request.weights.begin() + static_cast<std::ptrdiff_t>(n_done);
        part.weights.assign(first, first + static_cast<std::ptrdiff_t>(end - begin));
        n_done += end - begin;
        sum.add(choices(played, begin, end), part);
      }
    }
    return sum.result();
  }

  Assignment decide(std::size_t task_index) override {
    const std::shared_ptr<const PlacetoTask>& task = tasks_[task_index];
    const PlacetoWeights weights = network_->weights();
    const std::size_t n_devices = task->model->n_devices();
    std::vector<float> probabilities;
    if (!each_step()) probabilities = probabilities_of_start(task, weights);
    PlacetoRollout rollout(task);
    if (each_step()) rollout.begin(weights, start_of(*task));
    Assignment assignment;
    assignment.devices.resize(task->n_nodes());
    for (std::size_t v = 0; v < task->n_nodes(); ++v) {
      const std::span<const float> logs =
          each_step() ? next_scores(rollout, v)
                      : std::span<const float>(probabilities).subspan(v * n_devices, n_devices);
      const DeviceId device(static_cast<std::int64_t>(best_choice(logs)));
      assignment[task->order[v]] = device;
      if (each_step()) rollout.placed(v, device);
    }
    return assignment;
  }

 private:
  [[nodiscard]] bool each_step() const {
    return options_.message_passing == MessagePassingTime::step;
  }
  [[nodiscard]] const Assignment* start_of(const PlacetoTask& task) const {
    return options_.refines ? &task.start : nullptr;
  }

  static std::span<const float> next_scores(PlacetoRollout& rollout, std::size_t v) {
    rollout.visit(v);
    rollout.update();
    return rollout.score(v);
  }

  // Of every node, by messages passed once over where the episode begins; [n_nodes, n_devices].
  std::vector<float> probabilities_of_start(const std::shared_ptr<const PlacetoTask>& task,
                                            const PlacetoWeights& weights) const {
    PlacetoRollout rollout(task);
    rollout.begin(weights, start_of(*task));
    std::vector<float> probabilities;
    for (std::size_t v = 0; v < task->n_nodes(); ++v) {
      const auto logs = rollout.score(v);
      probabilities.insert(probabilities.end(), logs.begin(), logs.end());
    }
    return probabilities;
  }

  static void taught(Teacher* teacher, const std::optional<PartialSchedule>& schedule, NodeId node,
                     DeviceId device, double* targets) {
    std::vector<DeviceId> devices(1, device);
    if (teacher != nullptr) {
      std::vector<NodeId> nodes;
      teacher->nodes(*schedule, nodes);  // an agent expects to be asked for it first
      teacher->devices(*schedule, node, devices);
    }
    for (DeviceId one : devices) targets[one.index()] = 1;
  }

  // Features of all nodes in the states in which nodes begin to end of an episode are placed, or in
  // the one in which it begins.
  [[nodiscard]] at::Tensor features(const Played& played, std::size_t begin,
                                    std::size_t end) const {
    const PlacetoTask& task = *tasks_[task_];
    const Assignment* const start = start_of(task);
    const std::size_t n_columns = kPlacetoOwnFeatures + task.model->n_devices();
    const std::size_t n_states = each_step() ? end - begin : 1;
    std::vector<float> values(task.n_nodes() * n_states * n_columns, 0);
    for (std::size_t v = 0; v < task.n_nodes(); ++v) {
      for (std::size_t s = 0; s < n_states; ++s) {
        float* const row = values.data() + (v * n_states + s) * n_columns;
        row[0] = task.costs[2 * v];
        row[1] = task.costs[2 * v + 1];
        const bool is_placed = each_step() && v < begin + s;
        row[2] = each_step() && v == begin + s ? 1.0F : 0.0F;
        row[3] = is_placed ? 1.0F : 0.0F;
        if (is_placed) {
          row[kPlacetoOwnFeatures + static_cast<std::size_t>(played.device[v])] = 1;
        } else if (start != nullptr) {
          row[kPlacetoOwnFeatures + (*start)[task.order[v]].index()] = 1;
        }
      }
    }
    return torch::tensor(at::ArrayRef<float>(values))
        .view({static_cast<std::int64_t>(task.n_nodes()), static_cast<std::int64_t>(n_states),
               static_cast<std::int64_t>(n_columns)})
        .to(device_);
  }

  // Of the choices for nodes begin to end.
  [[nodiscard]] ChoiceValues choices(const Played& played, std::size_t begin, std::size_t end) {
    const PlacetoTask& task = *tasks_[task_];
    std::vector<std::int64_t> queries(end - begin);
    std::iota(queries.begin(), queries.end(), static_cast<std::int64_t>(begin));
    const at::Tensor embedding = network_->embed(features(played, begin, end), tasks_[task_]);
    const at::Tensor scores = network_->scores(embedding, queries, group_shares(task, queries));
    auto targets = std::make_shared<ChoiceTargets>();
    const auto n_devices = static_cast<std::ptrdiff_t>(task.model->n_devices());
    const auto first = played.target.begin() + static_cast<std::ptrdiff_t>(begin) * n_devices;
    targets->target.assign(first, first + static_cast<std::ptrdiff_t>(end - begin) * n_devices);
    targets->weight.assign(targets->target.size(), 1);
    for (std::size_t q = 1; q <= end - begin; ++q) {
      targets->first.push_back(static_cast<std::int32_t>(q) * static_cast<std::int32_t>(n_devices));
    }
    return choice_values(scores.reshape({-1}), targets);
  }

  PlacetoOptions options_;
  torch::Device device_;
  std::shared_ptr<PlacetoNetwork> network_;
  std::vector<std::shared_ptr<const PlacetoTask>> tasks_;
  // Of the update in progress.
  std::size_t task_ = 0;
  PlacetoWeights weights_;
  std::vector<float> probabilities_;  // by messages passed once
  std::vector<Played> played_;
  std::vector<std::vector<std::unique_ptr<PlacetoRollout>>> rollouts_;  // by worker, task
};

}  // namespace

std::string placeto_kind(const PlacetoOptions& options) {
  return std::string("placeto(preset=") + (options.refines ? "paper" : "one-pass") +
         (options.message_passing == MessagePassingTime::step ? "" : ",message_passing=episode") +
         ")";
}

MakeReinforcePolicy placeto_policy(const PlacetoOptions& options) {
  return [options](const PolicyTasks& tasks, torch::Device device, std::uint64_t seed) {
    const std::int64_t n_devices = common_devices(tasks, "placeto");
    const auto network = std::make_shared<PlacetoNetwork>(
        options.sizes, n_devices, at::make_generator<at::CPUGeneratorImpl>(seed));
    PolicyTraits traits{.kind = placeto_kind(options),
                        .parts = {{"", "placeto's policy", network}},
                        .sizes = {options.sizes.width, options.sizes.head, options.sizes.rounds},
                        .n_devices = n_devices,
                        .refines = options.refines};
    return std::make_unique<PlacetoPolicy>(options, tasks, device, network, std::move(traits));
  };
}

}  // namespace doppler
