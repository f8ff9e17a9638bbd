// Iterated local search over assignments.
//
// Lourenco, Martin, Stuetzle, "Iterated Local Search", Handbook of Metaheuristics, 2003. Neighbours
// are drawn at random and taken if they are not worse. After `patience` x nodes x (devices - 1)
// neighbours without a new least makespan of this descent, the search goes back to the best
// assignment, moves `kick` random nodes, whatever that costs, and descends again.
#include <limits>

#include "agents/search/search.h"
#include "agents/search/walk.h"

namespace doppler {

namespace {

struct LocalSearchOptions {
  std::string start;
  MoveKinds moves = MoveKinds::all;
  double patience = 0;  // of the number of one-node neighbours
  std::int64_t kick = 0;
};

class LocalSearch : public Agent {
 public:
  explicit LocalSearch(LocalSearchOptions options) : options_(std::move(options)) {}
  [[nodiscard]] bool has_steps() const override { return false; }

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    Evaluations evaluations(*model, options);
    Moves moves(*model, options_.moves);
    Moves kicks(*model, MoveKinds::single);
    Draws draws(options.seed);
    Walk walk(evaluations, start_assignment(options_.start, model, draws.next()));
    if (!moves.any()) return evaluations.decision();

    const double patience = options_.patience * static_cast<double>(model->n_nodes()) *
                            static_cast<double>(model->n_devices() - 1);
    double least = walk.makespan();  // of this descent
    double n_failed = 0;
    while (evaluations.left()) {
      if (n_failed >= patience) {
        walk.return_to_best();
        for (std::int64_t i = 0; i < options_.kick && evaluations.left(); ++i) {
          const auto changes = kicks.draw(walk.present(), draws);
          walk.propose(changes);
          walk.accept(changes);
        }
        least = std::numeric_limits<double>::infinity();
        n_failed = 0;
        continue;
      }
      const auto changes = moves.draw(walk.present(), draws);
      const double makespan = walk.propose(changes);
      if (makespan <= walk.makespan()) walk.accept(changes);
      ++n_failed;
      if (makespan < least) {
        least = makespan;
        n_failed = 0;
      }
    }
    return evaluations.decision();
  }

 private:
  LocalSearchOptions options_;
};

}  // namespace

AgentEntry local_search_entry() {
  AgentEntry entry;
  entry.name = "local-search";
  entry.summary = "iterated local search: takes what is not worse, kicks the best when stuck";
  entry.source = "Lourenco, Martin, Stuetzle, Handbook of Metaheuristics, 2003";
  entry.family = "search";
  entry.parameters = {
      start_parameter(),
      moves_parameter(),
      {.name = "patience",
       .summary = "neighbours without gain before a kick, over nodes x (devices - 1)",
       .default_value = 2.0,
       .minimum = 0.0,
       .maximum = 1e6},
      {.name = "kick",
       .summary = "nodes that a kick moves",
       .default_value = std::int64_t{4},
       .minimum = 1,
       .maximum = 1e6},
  };
  entry.make = [](const Parameters& parameters) {
    return std::make_unique<LocalSearch>(
        LocalSearchOptions{.start = parameters.get<std::string>("start"),
                           .moves = parse_move_kinds(parameters.get<std::string>("moves")),
                           .patience = parameters.get<double>("patience"),
                           .kick = parameters.get<std::int64_t>("kick")});
  };
  return entry;
}

}  // namespace doppler
