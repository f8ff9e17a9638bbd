// doppler-gym bench: how fast the simulator is on this machine.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "cli/units.h"
#include "graphs/error.h"
#include "graphs/hash.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "Measure how fast the simulator is here",
    .details = R"(Makespans a second of random assignments, and of one-node changes of one
assignment. Default problem: published/llama-layer.)",
    .examples = R"(doppler-gym bench
doppler-gym bench --task llama-layer@p100x4 --network fair --threads 2 --json)"};

constexpr const char* kDefaultTask = "published/llama-layer";
constexpr std::size_t kMostNodes = std::size_t{1} << 20;        // of all runs of a batch
constexpr std::size_t kMostNodesStored = std::size_t{1} << 26;  // of all assignments
constexpr std::size_t kMostAssignments = 256;
constexpr std::size_t kMostMoves = 1024;
constexpr std::size_t kMostMovesChecked = 64;

struct BenchOptions {
  ProblemOptions problem;
  double seconds = 1;
  std::int64_t threads = 1;
  bool json = false;
};

struct Speed {
  std::int64_t makespans = 0;
  double seconds = 0;
  [[nodiscard]] double per_second() const { return static_cast<double>(makespans) / seconds; }
};

struct Move {
  NodeId node;
  DeviceId device;
};

// Uniform draws for a seed.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : hash_(mix64(seed)) {}
  std::int64_t below(std::size_t n) {
    return static_cast<std::int64_t>(mix64(hash_ + ++count_) % n);
  }

 private:
  std::uint64_t hash_;
  std::uint64_t count_ = 0;
};

// How many runs a batch has: a batch of a large graph is short too, or --seconds would mean little.
std::size_t batch_size(std::size_t n_nodes, std::size_t most) {
  return std::clamp<std::size_t>(kMostNodes / n_nodes, 1, most);
}

// At least a row a thread, as far as memory allows.
std::size_t assignments_of(std::size_t n_nodes, std::int64_t threads) {
  const std::size_t n_threads = threads > 0 ? static_cast<std::size_t>(threads)
                                            : std::max(1U, std::thread::hardware_concurrency());
  const std::size_t stored = std::max<std::size_t>(1, kMostNodesStored / n_nodes);
  return std::min(std::max(batch_size(n_nodes, kMostAssignments), n_threads), stored);
}

// Repeats a batch, which returns how many makespans it computed, until the time is over.
Speed measure(double seconds, const std::function<std::int64_t()>& batch) {
  using Clock = std::chrono::steady_clock;
  batch();  // first calls allocate
  Speed speed;
  const auto start = Clock::now();
  do {
    speed.makespans += batch();
    speed.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  } while (speed.seconds < seconds);
  return speed;
}

// A speed is worth nothing if the values are wrong.
void check_moves(Simulator& simulator, std::span<const DeviceId> base,
                 std::span<const Move> moves) {
  std::vector<DeviceId> changed(base.begin(), base.end());
  simulator.set_base(base);
  for (const Move& move : moves) {
    changed[move.node.index()] = move.device;
    if (simulator.makespan_after_move(move.node, move.device) != simulator.makespan(changed)) {
      throw RunError(
          "a one-node change gives another makespan than a whole run; this is a fault "
          "of doppler-gym, please report it");
    }
    changed[move.node.index()] = base[move.node.index()];
  }
}

Json speed_json(const Speed& speed) {
  return {{"makespans", speed.makespans},
          {"seconds", speed.seconds},
          {"per_second", speed.per_second()}};
}

void bench(BenchOptions options) {
  if (!options.problem.task && !options.problem.graph) options.problem.task = kDefaultTask;
  const Task task = make_problem(options.problem);
  const std::size_t n_nodes = task.graph.n_nodes();
  const std::size_t n_devices = task.cluster.n_devices();
  if (n_nodes == 0) throw UsageError(task.name + " has no nodes; there is nothing to measure");

  Draws draws(task.options.seed);
  const std::size_t n_assignments = assignments_of(n_nodes, options.threads);
  std::vector<DeviceId> assignments;
  for (std::size_t i = 0; i < n_assignments * n_nodes; ++i) {
    assignments.emplace_back(draws.below(n_devices));
  }
  std::vector<Move> moves;
  for (std::size_t i = 0; i < batch_size(n_nodes, kMostMoves); ++i) {
    moves.push_back({NodeId{draws.below(n_nodes)}, DeviceId{draws.below(n_devices)}});
  }
  const std::span<const DeviceId> base(assignments.data(), n_nodes);

  Simulator simulator = task.simulator();
  check_moves(simulator, base, std::span(moves).first(std::min(moves.size(), kMostMovesChecked)));
  const Speed random = measure(options.seconds, [&] {
    const auto values = simulator.makespans(assignments, static_cast<int>(options.threads));
    return static_cast<std::int64_t>(values.size());
  });
  simulator.set_base(base);
  const Speed changes = measure(options.seconds, [&] {
    for (const Move& move : moves) simulator.makespan_after_move(move.node, move.device);
    return static_cast<std::int64_t>(moves.size());
  });

  if (options.json) {
    print(json_text({{"task", task.name},
                     {"nodes", n_nodes},
                     {"edges", task.graph.n_edges()},
                     {"devices", n_devices},
                     {"settings", settings_json(task)},
                     {"threads", options.threads},
                     {"random_assignments", speed_json(random)},
                     {"one_node_changes", speed_json(changes)}}));
    return;
  }
  print(task.name + ": " + std::to_string(n_nodes) + " nodes on " + std::to_string(n_devices) +
        " devices (" + settings_text(task) + ")\n" + "random assignments, --threads " +
        std::to_string(options.threads) + "  " + fixed(random.per_second(), 0) + " makespans/s\n" +
        "one-node changes, one thread   " + fixed(changes.per_second(), 0) + " makespans/s\n" +
        "measured here for " + fixed(random.seconds, 2) + " s and " + fixed(changes.seconds, 2) +
        " s; changes checked against whole runs first\n");
}

}  // namespace

void add_bench(Command& program) {
  Command command = program.add("bench", kHelp);
  auto options = std::make_shared<BenchOptions>();
  command.option({"--seconds", "S", "For how long each is measured. Default 1"},
                 into(options->seconds, 0.0, 3600.0));
  command.option({"--threads", "N", "For random assignments; 0: one a core. Default 1"},
                 into(options->threads, 0, 1024));
  command.flag("--json", "Print an object", options->json);
  add_problem_options(command, options->problem);
  command.run([options] { bench(*options); });
}

}  // namespace doppler::cli
