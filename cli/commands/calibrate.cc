// doppler-gym calibrate: a cluster file of this machine.
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "executor/calibration/measure.h"
#include "executor/engine.h"
#include "graphs/cluster_format.h"
#include "graphs/registry.h"

namespace doppler::cli {
namespace {

constexpr HelpText kHelp = {
    .summary = "Measure this machine as a cluster",
    .details =
        R"(Writes a cluster file (JSON) with the rates that a real engine reaches here while all
devices work: FLOP/s of matrix products, bytes/s of sums of large vectors, the launch overhead of
empty nodes, latency and bandwidth of transfers. For tasks: workload@FILE.)",
    .examples =
        R"(doppler-gym calibrate --engine cpu --devices 2 --out my-machine.cluster.json
doppler-gym simulate --task 'chainmm(n=1024)@my-machine.cluster.json' --agent critical-path)"};

constexpr double kGigabyte = 1e9;

struct CalibrateOptions {
  std::string engine;
  std::int64_t devices = 2;
  double memory = 4;
  std::string out;
};

void calibrate(const CalibrateOptions& options) {
  check_can_save(options.out);
  const std::unique_ptr<Engine> engine = make_engine(options.engine);
  const std::string kind = NamedCall::parse(options.engine).name;
  deliver(options.out,
          to_json(measure_cluster(*engine, kind, options.devices, options.memory * kGigabyte)));
}

}  // namespace

void add_calibrate(Command& program) {
  Command command = program.add("calibrate", kHelp);
  auto options = std::make_shared<CalibrateOptions>();
  command.option({"--engine", "NAME", "What is measured; see doppler-gym tasks --engines"},
                 into(options->engine), true);
  command.option({"--devices", "N", "Devices of the cluster. Default 2"},
                 into(options->devices, 1, static_cast<std::int64_t>(kMaxMeasuredDevices)));
  command.option({"--memory", "GB", "Memory of a device, 1e9 bytes. Default 4"},
                 into(options->memory, 0.001));
  command.option({"--out", "FILE", "Where to write. Default: standard output"}, into(options->out));
  command.run([options] { calibrate(*options); });
}

}  // namespace doppler::cli
