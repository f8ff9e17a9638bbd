// Simulated annealing over assignments.
//
// Kirkpatrick, Gelatt, Vecchi, "Optimization by Simulated Annealing", Science 220, 1983. A
// neighbour that is worse by x is accepted with probability exp(-x / temperature). The temperature
// falls geometrically with the share of the budget that is used, of evaluations or of seconds, from
// `hot` to `cold` times the makespan of the start, so that a search of any length ends cold. A
// start that does not fit into memory counts as one time scale.
#include <cmath>

#include "agents/search/search.h"
#include "agents/search/walk.h"

namespace doppler {

namespace {

struct AnnealingOptions {
  std::string start;
  MoveKinds moves = MoveKinds::all;
  double hot = 0;   // of the makespan of the start
  double cold = 0;  // the same
};

class Annealing : public Agent {
 public:
  explicit Annealing(AnnealingOptions options) : options_(std::move(options)) {}
  [[nodiscard]] bool has_steps() const override { return false; }

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    Evaluations evaluations(*model, options);
    Moves moves(*model, options_.moves);
    Draws draws(options.seed);
    Walk walk(evaluations, start_assignment(options_.start, model, draws.next()));
    if (!moves.any()) return evaluations.decision();

    const double unit = std::isfinite(walk.makespan()) ? walk.makespan() : model->time_scale();
    const double fall = std::log(options_.cold / options_.hot);
    while (evaluations.left()) {
      const double temperature = unit * options_.hot * std::exp(fall * evaluations.progress());
      const auto changes = moves.draw(walk.present(), draws);
      const double makespan = walk.propose(changes);
      // `<=` first: two assignments that do not fit into memory are equally good.
      if (makespan <= walk.makespan() ||
          draws.uniform() < std::exp((walk.makespan() - makespan) / temperature)) {
        walk.accept(changes);
      }
    }
    return evaluations.decision();
  }

 private:
  AnnealingOptions options_;
};

}  // namespace

AgentEntry annealing_entry() {
  AgentEntry entry;
  entry.name = "annealing";
  entry.summary = "simulated annealing: nodes, pairs, connected parts and meta-ops are moved";
  entry.source = "Kirkpatrick, Gelatt, Vecchi, Science 220, 1983";
  entry.family = "search";
  entry.parameters = {
      start_parameter(),
      moves_parameter(),
      {.name = "hot",
       .summary = "first temperature over the makespan of the start",
       .default_value = 0.005,
       .minimum = 1e-12,
       .maximum = 1e3},
      {.name = "cold",
       .summary = "last temperature over the makespan of the start",
       .default_value = 5e-5,
       .minimum = 1e-12,
       .maximum = 1e3},
  };
  entry.make = [](const Parameters& parameters) {
    return std::make_unique<Annealing>(
        AnnealingOptions{.start = parameters.get<std::string>("start"),
                         .moves = parse_move_kinds(parameters.get<std::string>("moves")),
                         .hot = parameters.get<double>("hot"),
                         .cold = parameters.get<double>("cold")});
  };
  return entry;
}

}  // namespace doppler
