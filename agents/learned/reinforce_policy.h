// What the trainer (reinforce_trainer.h) needs of a policy: REINFORCE (Williams, 1992) is the same
// for all of them.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agents/learned/choice_gradients.h"
#include "agents/learned/episode.h"
#include "agents/learned/policy_file.h"
#include "env/thread_pool.h"

namespace doppler {

// A network with a loss and an optimiser of its own.
struct PolicyPart {
  std::string name;   // before the names of its arrays: "select"; empty: the only part
  std::string title;  // in messages: "SEL"
  std::shared_ptr<torch::nn::Module> module;
};

struct PolicyTraits {
  std::string kind;  // what its policy files are called
  std::vector<PolicyPart> parts = {};
  std::vector<std::int64_t> sizes = {};  // of the networks; runs of other sizes are other runs
  std::int64_t n_devices = 0;            // that it has outputs for; 0: it serves any number
  // Stage I imitates an assignment that the teacher decides once for each task, not the teacher's
  // choices on the policy's own episode.
  bool imitates_assignments = false;
  // An episode goes from one full assignment to another, node by node; each is measured (1 +
  // n_nodes evaluations), and the reward of a step is by how much the makespan falls.
  bool refines = false;
};

// Of one part, in one update.
struct GradientRequest {
  std::size_t part = 0;
  std::vector<double> weights = {};  // of each counted choice of all episodes, in their order
  double entropy_weight = 0;
  std::size_t n_episodes = 0;
};
// loss = - (sum of weight x log-probability + entropy weight x entropy over the choices)
//        / episodes
struct PartGradient {
  double loss = 0;
  double entropy = 0;  // mean over the choices
  double norm = 0;
  std::vector<at::Tensor> parts = {};  // one a parameter
};

// The episodes of one update.
struct UpdateScope {
  std::size_t task = 0;
  std::size_t n_episodes = 0;
  ThreadPool* pool = nullptr;
};

// One thread, but for what is said of play() and gradient().
class ReinforcePolicy {
 public:
  virtual ~ReinforcePolicy() = default;
  ReinforcePolicy(const ReinforcePolicy&) = delete;
  ReinforcePolicy& operator=(const ReinforcePolicy&) = delete;

  [[nodiscard]] const PolicyTraits& traits() const { return traits_; }

  // Before the episodes of an update, with the parameters that all of them use.
  virtual void begin(const UpdateScope& scope) = 0;
  // Plays an episode of the update and keeps what its gradient needs. By several threads at once,
  // each as another worker (a number below pool->n_threads()) with another episode.
  virtual void play(const EpisodeOptions& options, std::size_t worker, std::size_t episode,
                    PolicyEpisode& out) = 0;
  // After the episodes; once for each part. By several threads at once, each with another part.
  virtual PartGradient gradient(const GradientRequest& request) = 0;
  // The greedy episode of a task.
  virtual Assignment decide(std::size_t task) = 0;

 protected:
  explicit ReinforcePolicy(PolicyTraits traits) : traits_(std::move(traits)) {}

 private:
  PolicyTraits traits_;
};

using PolicyTasks = std::vector<std::shared_ptr<const PlacementModel>>;

// The gradient of a part whose choices come in one batch.
PartGradient gradient_of(const ChoiceValues& values, const GradientRequest& request,
                         const std::vector<at::Tensor>& parameters);
// The same for choices in several batches, one after another: only one has its graph in memory.
class GradientSum {
 public:
  explicit GradientSum(std::vector<at::Tensor> parameters);
  // `request`: with the weights of this batch.
  void add(const ChoiceValues& values, const GradientRequest& request);
  [[nodiscard]] PartGradient result() const;

 private:
  std::vector<at::Tensor> parameters_;
  PartGradient sum_;
  double n_choices_ = 0;
};

// The number of devices that all tasks have. Throws UsageError, for a policy of `agent` that has
// outputs for one number of devices, if they differ.
std::int64_t common_devices(const PolicyTasks& tasks, const std::string& agent);

// All parameters of all parts, named by part and module.
std::vector<PolicyArray> policy_arrays(const PolicyTraits& traits);
// Throws ParseError, and nothing changes, unless every parameter is there with its shape.
void set_policy_arrays(const PolicyTraits& traits, const PolicyFile& file,
                       const std::string& source);
// The content of a policy file, and the other way. The latter throws ParseError, and nothing
// changes, for a file that does not fit: of another kind, network or number of devices.
std::string write_policy(const PolicyTraits& traits);
void read_policy(const PolicyTraits& traits, std::string_view content, const std::string& source);

}  // namespace doppler
