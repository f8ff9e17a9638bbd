#include "agents/learned/paper_step_policy.h"

#include <numeric>
#include <utility>

#include "agents/learned/torch_device.h"

namespace doppler {

namespace {

template <class T>
std::vector<T> part(const std::vector<T>& values, std::size_t begin, std::size_t end,
                    std::size_t width = 1) {
  return {values.begin() + static_cast<std::ptrdiff_t>(begin * width),
          values.begin() + static_cast<std::ptrdiff_t>(end * width)};
}

class PaperStepPolicy : public ReinforcePolicy {
 public:
  PaperStepPolicy(PaperNetwork network, const PolicyTasks& tasks, torch::Device device)
      : ReinforcePolicy(paper_traits(network)), device_(device), network_(std::move(network)) {
    for (const PolicyPart& part : traits().parts) part.module->to(device);
    for (const auto& model : tasks) {
      starts_.push_back(std::make_shared<const PaperTask>(model, n_steps()));
    }
  }

  void begin(const UpdateScope& scope) override {
    task_ = scope.task;
    weights_ = network_.weights();
    played_.resize(scope.n_episodes);
  }

  void play(const EpisodeOptions& options, std::size_t /*worker*/, std::size_t episode,
            PolicyEpisode& out) override {
    Played& played = played_[episode];
    played = {};
    run(*starts_[task_], options, weights_, played);
    out.assignment = played.episode.assignment;
    out.n_steps = played.episode.node.size();
    out.steps.clear();
    if (network_.select) out.steps.push_back(played.episode.select_step);
    if (network_.place) {
      out.steps.emplace_back(out.n_steps);
      std::iota(out.steps.back().begin(), out.steps.back().end(), 0);
    }
  }

  PartGradient gradient(const GradientRequest& request) override {
    const PolicyPart& part = traits().parts[request.part];
    GradientSum sum(part.module->parameters());
    std::size_t at = 0;
    GradientRequest one{
        .weights = {0}, .entropy_weight = request.entropy_weight, .n_episodes = request.n_episodes};
    for (const Played& played : played_) {
      const PaperEpisode& episode = played.episode;
      if (part.module == network_.select) {
        for (std::size_t k = 0; k < episode.select_step.size(); ++k) {
          one.weights = {request.weights[at++]};
          sum.add(select_choice(played, k), one);
        }
      } else {
        for (std::size_t step = 0; step < episode.node.size(); ++step) {
          one.weights = {request.weights[at++]};
          sum.add(place_choice(played, step), one);
        }
      }
    }
    return sum.result();
  }

  Assignment decide(std::size_t task) override {
    Played played;
    run(*starts_[task], {.record = false}, network_.weights(), played);
    return played.episode.assignment;
  }

 private:
  struct Played {
    PaperEpisode episode = {};
    std::vector<PaperTensors> tensors = {};  // by step
  };

  [[nodiscard]] int n_steps() const { return static_cast<int>(network_.sizes.steps); }

  void run(const PaperTask& start, const EpisodeOptions& options, const PaperWeights& weights,
           Played& played) const {
    const SingleThreadedTorch single_threaded;
    PartialSchedule schedule(start.model);
    if (options.teacher != nullptr) options.teacher->begin(start.model, options.seed);
    Draws draws(options.seed);
    played.episode.select_first.assign(1, 0);
    while (!schedule.complete()) {
      PaperTensors tensors(std::make_shared<const PaperTask>(start, schedule, n_steps()), device_);
      const PaperEmbedding embedding = plain_embedding(network_, tensors);
      PaperRollout rollout(tensors.task, network_.halves);
      rollout.begin(weights, embedding);
      for (NodeId node : played.episode.node) rollout.placed(node, schedule.device(node));
      rollout.step(options, draws, schedule, played.episode);
      if (options.record) played.tensors.push_back(std::move(tensors));
    }
    played.episode.assignment = schedule.assignment();
  }

  // Of the k-th recorded step of SEL.
  ChoiceValues select_choice(const Played& played, std::size_t k) {
    const PaperEpisode& episode = played.episode;
    const auto begin = static_cast<std::size_t>(episode.select_first[k]);
    const auto end = static_cast<std::size_t>(episode.select_first[k + 1]);
    PaperEpisode one;
    one.select_step = {episode.select_step[k]};
    one.select_first = {0, static_cast<std::int32_t>(end - begin)};
    one.select_row = part(episode.select_row, begin, end);
    one.select_count = part(episode.select_count, begin, end);
    one.select_target = part(episode.select_target, begin, end);
    one.select_features = part(episode.select_features, begin, end, kPaperNodeFeatures);
    const PaperTensors& tensors = played.tensors[static_cast<std::size_t>(episode.select_step[k])];
    return network_.select->choices(tensors, network_.select->embed(tensors), {&one, 1});
  }

  // Of one step of PLC; the steps before it say what is on the devices.
  ChoiceValues place_choice(const Played& played, std::size_t step) {
    const PaperEpisode& episode = played.episode;
    const std::size_t n_devices = starts_[task_]->model->n_devices();
    PaperEpisode so_far;
    so_far.node = part(episode.node, 0, step + 1);
    so_far.place_target = part(episode.place_target, 0, step + 1, n_devices);
    so_far.place_features =
        part(episode.place_features, 0, step + 1, n_devices * kPaperDeviceFeatures);
    so_far.assignment = episode.assignment;
    const PaperTensors& tensors = played.tensors[step];
    const ChoiceValues all =
        network_.place->choices(tensors, network_.place->embed(tensors), {&so_far, 1});
    const auto last = static_cast<std::int64_t>(step);
    return {.log_probability = all.log_probability.narrow(0, last, 1),
            .entropy = all.entropy.narrow(0, last, 1)};
  }

  torch::Device device_;
  PaperNetwork network_;
  std::vector<std::shared_ptr<const PaperTask>> starts_;  // by task, with nothing placed
  // Of the update in progress.
  std::size_t task_ = 0;
  PaperWeights weights_;
  std::vector<Played> played_;
};

}  // namespace

std::unique_ptr<ReinforcePolicy> make_paper_step_policy(PaperNetwork network,
                                                        const PolicyTasks& tasks,
                                                        torch::Device device) {
  return std::make_unique<PaperStepPolicy>(std::move(network), tasks, device);
}

}  // namespace doppler
