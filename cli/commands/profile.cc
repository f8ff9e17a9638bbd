// doppler-gym profile: measured seconds of a task's nodes and links.
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "executor/calibration/measure.h"
#include "executor/engine.h"
#include "graphs/cluster_format.h"

namespace doppler::cli {
namespace {

constexpr HelpText kHelp = {
    .summary = "Measure each node and link of a task on a real engine",
    .details =
        R"(Writes a profile (JSON): seconds of each node by its kind and shapes, alone on a device
of each kind, and latency and bandwidth of each link, by transfers one at a time. Other commands
read it with --profile instead of the analytical cost model.)",
    .examples =
        R"(doppler-gym profile --task llama-block@cpu2 --engine cpu --out profile.json
doppler-gym simulate --task llama-block@cpu2 --profile profile.json --agent critical-path)"};

struct ProfileOptions {
  std::string engine;
  ProblemOptions problem;
  std::int64_t runs = 3;
  std::string out;
};

void profile(const ProfileOptions& options) {
  check_can_save(options.out);
  const std::unique_ptr<Engine> engine = make_engine(options.engine);
  const Task task = make_problem(options.problem);
  deliver(options.out, to_json(measure_profile(*engine, task.graph, task.cluster, options.runs)));
}

}  // namespace

void add_profile(Command& program) {
  Command command = program.add("profile", kHelp);
  auto options = std::make_shared<ProfileOptions>();
  command.option({"--engine", "NAME", "What runs them; see doppler-gym tasks --engines"},
                 into(options->engine), true);
  command.option({"--runs", "N", "Runs of the engine of which times are the medians. Default 3"},
                 into(options->runs, 1));
  command.option({"--out", "FILE", "Where to write. Default: standard output"}, into(options->out));
  add_problem_options(command, options->problem);
  command.run([options] { profile(*options); });
}

}  // namespace doppler::cli
