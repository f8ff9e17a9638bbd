#include "agents/learned/paper_policy.h"

#include <numeric>
#include <utility>

#include "agents/learned/paper_step_policy.h"

namespace doppler {

namespace {

class PaperPolicy : public ReinforcePolicy {
 public:
  PaperPolicy(PaperNetwork network, const PolicyTasks& tasks, torch::Device device)
      : ReinforcePolicy(paper_traits(network)), network_(std::move(network)) {
    for (const PolicyPart& part : traits().parts) part.module->to(device);
    for (const auto& model : tasks) {
      tensors_.emplace_back(
          std::make_shared<const PaperTask>(model, static_cast<int>(network_.sizes.steps)), device);
    }
  }

  void begin(const UpdateScope& scope) override {
    scope_ = scope;
    const PaperTensors& tensors = tensors_[scope.task];
    scope.pool->run(2, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        if (i == 0 && network_.select) select_ = network_.select->embed(tensors);
        if (i == 1 && network_.place) place_ = network_.place->embed(tensors);
      }
    });
    weights_ = network_.weights();
    embedding_ = plain_embedding(select_, place_);
    episodes_.resize(scope.n_episodes);
    rollouts_.resize(scope.pool->n_threads());
    for (auto& rollouts : rollouts_) rollouts.resize(tensors_.size());
  }

  void play(const EpisodeOptions& options, std::size_t worker, std::size_t episode,
            PolicyEpisode& out) override {
    auto& rollout = rollouts_[worker][scope_.task];
    if (!rollout) {
      rollout = std::make_unique<PaperRollout>(tensors_[scope_.task].task, network_.halves);
    }
    PaperEpisode& played = episodes_[episode];
    rollout->run(weights_, embedding_, options, played);
    out.assignment = played.assignment;
    out.n_steps = played.node.size();
    out.steps.clear();
    if (network_.select) out.steps.push_back(played.select_step);
    if (network_.place) {
      out.steps.emplace_back(out.n_steps);
      std::iota(out.steps.back().begin(), out.steps.back().end(), 0);
    }
  }

  PartGradient gradient(const GradientRequest& request) override {
    const PaperTensors& tensors = tensors_[scope_.task];
    // What the episodes were played with is not needed any more.
    if (traits().parts[request.part].module == network_.select) {
      const SelectPolicy::Embedding embedding = std::exchange(select_, {});
      return gradient_of(network_.select->choices(tensors, embedding, episodes_), request,
                         network_.select->parameters());
    }
    const PlacePolicy::Embedding embedding = std::exchange(place_, {});
    return gradient_of(network_.place->choices(tensors, embedding, episodes_), request,
                       network_.place->parameters());
  }

  Assignment decide(std::size_t task) override {
    PaperRollout rollout(tensors_[task].task, network_.halves);
    PaperEpisode episode;
    rollout.run(network_.weights(), plain_embedding(network_, tensors_[task]), {.record = false},
                episode);
    return episode.assignment;
  }

 private:
  PaperNetwork network_;
  std::vector<PaperTensors> tensors_;  // by task
  // Of the update in progress.
  UpdateScope scope_;
  SelectPolicy::Embedding select_;
  PlacePolicy::Embedding place_;
  PaperWeights weights_;
  PaperEmbedding embedding_;
  std::vector<PaperEpisode> episodes_;
  std::vector<std::vector<std::unique_ptr<PaperRollout>>> rollouts_;  // by worker, task
};

}  // namespace

std::string paper_policy_kind(PaperHalves halves, MessagePassingTime time) {
  std::string name = "doppler";
  if (halves != PaperHalves::both) name += halves == PaperHalves::select ? "-sel" : "-plc";
  return name + "(preset=paper" +
         (time == MessagePassingTime::step ? ",message_passing=step)" : ")");
}

PolicyTraits paper_traits(const PaperNetwork& network) {
  PolicyTraits traits{.kind = paper_policy_kind(network.halves, network.message_passing)};
  if (network.select) traits.parts.push_back({"select", "SEL", network.select});
  if (network.place) traits.parts.push_back({"place", "PLC", network.place});
  traits.sizes = {network.sizes.hidden, network.sizes.edge_hidden, network.sizes.head,
                  network.sizes.steps};
  return traits;
}

MakeReinforcePolicy paper_policy(const PaperOptions& options) {
  return [sizes = options.sizes, halves = options.halves, time = options.message_passing](
             const PolicyTasks& tasks, torch::Device device,
             std::uint64_t seed) -> std::unique_ptr<ReinforcePolicy> {
    PaperNetwork network(sizes, seed, halves, time);
    if (time == MessagePassingTime::step) {
      return make_paper_step_policy(std::move(network), tasks, device);
    }
    return std::make_unique<PaperPolicy>(std::move(network), tasks, device);
  };
}

std::unique_ptr<Trainer> make_paper_trainer(const PaperOptions& options,
                                            const TrainProblem& problem) {
  return make_reinforce_trainer(paper_policy(options), options.training, problem);
}

}  // namespace doppler
