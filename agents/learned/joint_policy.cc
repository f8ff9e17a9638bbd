#include "agents/learned/joint_policy.h"

#include <ATen/CPUGeneratorImpl.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "agents/learned/torch_device.h"

namespace doppler {

namespace {

class JointPolicy : public ReinforcePolicy {
 public:
  JointPolicy(const JointOptions& options, const PolicyTasks& tasks, torch::Device device,
              std::shared_ptr<JointNetwork> network, PolicyTraits traits)
      : ReinforcePolicy(std::move(traits)),
        options_(options),
        device_(device),
        network_(std::move(network)) {
    network_->to(device_);
    for (const auto& model : tasks) {
      starts_.emplace_back(std::make_shared<const PaperTask>(model, n_steps()), device_);
    }
  }

  void begin(const UpdateScope& scope) override {
    task_ = scope.task;
    weights_ = network_->weights();
    played_.resize(scope.n_episodes);
    if (options_.message_passing == MessagePassingTime::step) return;
    embedding_ = network_->embed(starts_[task_]);
    plain_ = plain_embedding(embedding_);
  }

  void play(const EpisodeOptions& options, std::size_t /*worker*/, std::size_t episode,
            PolicyEpisode& out) override {
    Played& played = played_[episode];
    played = {};
    Shared shared{.task = &starts_[task_], .weights = &weights_, .embedding = &plain_};
    run(options, shared, played);
    out.assignment = played.episode.assignment;
    out.n_steps = played.episode.node.size();
    out.steps.assign(1, played.episode.step);
  }

  PartGradient gradient(const GradientRequest& request) override {
    if (options_.message_passing == MessagePassingTime::step) return gradient_by_step(request);
    std::vector<JointEpisode> episodes;
    for (Played& played : played_) episodes.push_back(std::move(played.episode));
    const JointNetwork::Embedding embedding = std::exchange(embedding_, {});
    return gradient_of(network_->choices(starts_[task_], embedding, episodes), request,
                       network_->parameters());
  }

  Assignment decide(std::size_t task) override {
    const JointWeights weights = network_->weights();
    JointEmbedding embedding;
    if (options_.message_passing == MessagePassingTime::episode) {
      const torch::NoGradGuard no_gradient;
      embedding = plain_embedding(network_->embed(starts_[task]));
    }
    Shared shared{.task = &starts_[task], .weights = &weights, .embedding = &embedding};
    Played played;
    run({.record = false}, shared, played);
    return played.episode.assignment;
  }

 private:
  struct Played {
    JointEpisode episode = {};
    std::vector<PaperTensors> tensors = {};  // of each recorded step, if messages pass each step
  };
  // What episodes of one task use together.
  struct Shared {
    const PaperTensors* task = nullptr;
    const JointWeights* weights = nullptr;
    const JointEmbedding* embedding = nullptr;  // of the episode; unless messages pass each step
  };

  [[nodiscard]] int n_steps() const { return static_cast<int>(options_.sizes.steps); }

  void run(const EpisodeOptions& options, const Shared& shared, Played& played) {
    const SingleThreadedTorch single_threaded;
    const PaperTask& start = *shared.task->task;
    const bool each_step = options_.message_passing == MessagePassingTime::step;
    JointEpisode& episode = played.episode;
    PartialSchedule schedule(start.model);
    JointRollout of_episode(shared.task->task);
    if (!each_step) of_episode.begin(*shared.weights, *shared.embedding);
    if (options.teacher != nullptr) options.teacher->begin(start.model, options.seed);
    Draws draws(options.seed);
    while (!schedule.complete()) {
      std::optional<Step> now;
      if (each_step) now.emplace(*this, start, schedule, *shared.weights);
      JointRollout& rollout = now ? now->rollout : of_episode;
      rollout.score(schedule);
      NodeAndDevice chosen = rollout.best();
      if (options.epsilon > 0 && draws.uniform() < options.epsilon) {
        const auto candidates = schedule.candidates();
        chosen.node = candidates[draws.below(candidates.size())];
        chosen.device = DeviceId(static_cast<std::int64_t>(draws.below(start.model->n_devices())));
      }
      if (options.record) {
        rollout.record(schedule, chosen, options.teacher, episode);
        if (now && played.tensors.size() < episode.step.size()) {
          played.tensors.push_back(std::move(now->tensors));
        }
      }
      episode.node.push_back(chosen.node);
      schedule.place(chosen.node, chosen.device);
      if (!each_step) of_episode.placed(chosen.node, chosen.device);
    }
    episode.assignment = schedule.assignment();
  }

  // Message passing over the graph with what is placed.
  struct Step {
    Step(const JointPolicy& policy, const PaperTask& start, const PartialSchedule& schedule,
         const JointWeights& weights)
        : tensors(std::make_shared<const PaperTask>(start, schedule, policy.n_steps()),
                  policy.device_),
          rollout(tensors.task) {
      const torch::NoGradGuard no_gradient;
      embedding = plain_embedding(policy.network_->embed(tensors));
      rollout.begin(weights, embedding);
      for (std::size_t v = 0; v < start.model->n_nodes(); ++v) {
        const NodeId node{static_cast<std::int64_t>(v)};
        if (schedule.placed(node)) rollout.placed(node, schedule.device(node));
      }
    }
    PaperTensors tensors;
    JointEmbedding embedding;
    JointRollout rollout;
  };

  // Of the k-th recorded step, as an episode of its own.
  static JointEpisode only_step(const JointEpisode& episode, std::size_t k) {
    const auto begin = episode.first[k];
    const auto end = episode.first[k + 1];
    const auto part = [&](const auto& values, std::ptrdiff_t per_group) {
      return std::decay_t<decltype(values)>(values.begin() + begin * per_group,
                                            values.begin() + end * per_group);
    };
    const auto per_group = static_cast<std::ptrdiff_t>(episode.target.size() / episode.row.size());
    const std::int32_t step = episode.step[k];
    JointEpisode one;
    one.step = {step};
    one.first = {0, end - begin};
    one.row = part(episode.row, 1);
    one.count = part(episode.count, 1);
    one.target = part(episode.target, per_group);
    one.features =
        part(episode.features, per_group * static_cast<std::ptrdiff_t>(kPaperDeviceFeatures));
    one.node.assign(episode.node.begin(), episode.node.begin() + step + 1);
    one.assignment = episode.assignment;
    return one;
  }

  PartGradient gradient_by_step(const GradientRequest& request) {
    GradientSum sum(network_->parameters());
    std::size_t at = 0;
    for (const Played& played : played_) {
      for (std::size_t k = 0; k < played.tensors.size(); ++k) {
        const JointEpisode one = only_step(played.episode, k);
        const PaperTensors& tensors = played.tensors[k];
        const GradientRequest part{.weights = {request.weights[at++]},
                                   .entropy_weight = request.entropy_weight,
                                   .n_episodes = request.n_episodes};
        sum.add(network_->choices(tensors, network_->embed(tensors), {&one, 1}), part);
      }
    }
    return sum.result();
  }

  JointOptions options_;
  torch::Device device_;
  std::shared_ptr<JointNetwork> network_;
  std::vector<PaperTensors> starts_;  // by task, with nothing placed
  // Of the update in progress.
  std::size_t task_ = 0;
  JointWeights weights_;
  JointNetwork::Embedding embedding_;
  JointEmbedding plain_;
  std::vector<Played> played_;
};

}  // namespace

std::string joint_kind(MessagePassingTime time) {
  return time == MessagePassingTime::episode ? "joint" : "joint(message_passing=step)";
}

MakeReinforcePolicy joint_policy(const JointOptions& options) {
  return [options](const PolicyTasks& tasks, torch::Device device, std::uint64_t seed) {
    const auto network =
        std::make_shared<JointNetwork>(options.sizes, paper_node_columns(options.message_passing),
                                       at::make_generator<at::CPUGeneratorImpl>(seed));
    PolicyTraits traits{.kind = joint_kind(options.message_passing),
                        .parts = {{"", "joint's policy", network}},
                        .sizes = {options.sizes.hidden, options.sizes.edge_hidden,
                                  options.sizes.head, options.sizes.steps}};
    return std::make_unique<JointPolicy>(options, tasks, device, network, std::move(traits));
  };
}

}  // namespace doppler
