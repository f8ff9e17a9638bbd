// doppler-gym graph: show, generate, convert and check graphs.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "cli/commands/commands.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "cli/table.h"
#include "cli/units.h"
#include "datasets/clusters.h"
#include "datasets/workloads.h"
#include "graphs/analysis.h"
#include "graphs/error.h"
#include "graphs/formats.h"
#include "graphs/lower_bound.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "Show, generate, convert and check graphs",
    .examples = R"(doppler-gym graph show --workload chainmm --cluster p100x4
doppler-gym graph convert model.txt model.json)"};

constexpr HelpText kShowHelp = {
    .summary = "Statistics of a graph, and its critical path on a cluster",
    .examples = R"(doppler-gym graph show model.json --cluster p100x4
doppler-gym graph show --workload llama-layer --devices 8 --json
doppler-gym graph show model.txt --dot | dot -Tsvg > model.svg)"};

constexpr HelpText kGenerateHelp = {
    .summary = "Write the graph of a workload",
    .examples = R"(doppler-gym graph generate llama-layer --devices 4 --out layer.json
doppler-gym graph generate 'chainmm(n=4096,shards=8)' --to dot)"};

constexpr HelpText kConvertHelp = {.summary = "Read a graph in one format, write it in another",
                                   .examples = R"(doppler-gym graph convert model.txt model.json
doppler-gym graph convert model.json - --to dot)"};

constexpr HelpText kCheckHelp = {
    .summary = "Say whether a graph file is sound: exit code 0, or not",
    .examples = R"(doppler-gym graph check model.json && echo good)"};

struct GraphOptions {
  std::string file;  // to read
  std::string out;   // to write; empty or "-": standard output
  std::optional<std::string> workload;
  std::optional<std::string> cluster;
  std::optional<std::int64_t> devices;
  std::optional<std::string> format;
  bool dot = false;
  bool json = false;
};

constexpr std::int64_t kMostDevices = 4096;  // as in cluster presets

// What the format's name, else the file's ending, else nothing says.
GraphFormat output_format(const GraphOptions& options) {
  if (options.format) {
    const GraphFormat format = parse_graph_format(*options.format);
    if (format != GraphFormat::msr) return format;
    throw UsageError("--to: graphs are not written in format 'msr'; give json, text or dot");
  }
  if (options.out.ends_with(".dot") || options.out.ends_with(".gv")) return GraphFormat::dot;
  if (options.out.ends_with(".txt")) return GraphFormat::text;
  return GraphFormat::json;
}

std::string written(const Graph& graph, GraphFormat format) {
  switch (format) {
    case GraphFormat::json:
      return to_json(graph);
    case GraphFormat::text:
      return to_text(graph);
    case GraphFormat::dot:
      return to_dot(graph);
    case GraphFormat::msr:
      break;
  }
  throw std::logic_error("format 'msr' is not written");
}

// Writes the graph that `make` gives; what is wrong with the output is told before that work.
void deliver_graph(const GraphOptions& options, const std::function<Graph()>& make) {
  const std::string path = options.out == "-" ? "" : options.out;
  const GraphFormat format = output_format(options);
  check_can_save(path);
  deliver(path, written(make(), format));
}

Graph graph_to_show(const GraphOptions& options, const std::optional<Cluster>& cluster) {
  if (options.file.empty() == !options.workload) {
    throw UsageError("graph show needs a FILE or --workload NAME, one of them");
  }
  if (!options.workload) {
    if (options.devices) throw UsageError("--devices goes with --workload; a file is not cut");
    return load_graph(options.file);
  }
  const auto devices = cluster ? static_cast<std::int64_t>(cluster->n_devices()) : 4;
  return make_workload(*options.workload, options.devices.value_or(devices));
}

struct KindUse {
  std::size_t n_nodes = 0;
  double flops = 0;
  double output_bytes = 0;
};

std::map<std::string, KindUse> use_by_kind(const Graph& graph) {
  std::map<std::string, KindUse> result;
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    const NodeId node{static_cast<std::int64_t>(v)};
    KindUse& use = result[std::string(graph.kind(node))];
    ++use.n_nodes;
    use.flops += graph.flops(node);
    for (std::size_t i = 0; i < graph.n_outputs(node); ++i) {
      use.output_bytes += graph.tensor_bytes(
          TensorId{graph.first_tensor(node).value + static_cast<std::int64_t>(i)});
    }
  }
  return result;
}

Json graph_json(const Graph& graph) {
  Json kinds = Json::object();
  double flops = 0;
  double output_bytes = 0;
  for (const auto& [kind, use] : use_by_kind(graph)) {
    kinds[kind] = {
        {"nodes", use.n_nodes}, {"flops", use.flops}, {"output_bytes", use.output_bytes}};
    flops += use.flops;
    output_bytes += use.output_bytes;
  }
  double input_bytes = 0;
  for (const GraphInput& input : graph.inputs()) input_bytes += input.tensor.bytes;
  return {{"name", graph.name()},
          {"nodes", graph.n_nodes()},
          {"edges", graph.n_edges()},
          {"tensors", graph.n_tensors()},
          {"inputs", graph.n_inputs()},
          {"levels", level_widths(graph).size()},
          {"width", width(graph)},
          {"flops", flops},
          {"output_bytes", output_bytes},
          {"input_bytes", input_bytes},
          {"raw_costs", graph.raw_devices() > 0},
          {"kinds", std::move(kinds)}};
}

Json on_cluster_json(const Graph& graph, const Cluster& cluster) {
  const CostModel cost_model = CostModel::of(graph);
  cost_model.check(graph, cluster);
  const CostTable costs(graph, cluster, cost_model);
  const auto path_json = [&](bool compute_only) -> Json {
    const CriticalPath path = critical_path(graph, costs, {.compute_only = compute_only});
    Json nodes = Json::array();
    for (NodeId node : path.nodes) nodes.push_back(node.value);
    return {{"seconds", path.seconds}, {"nodes", std::move(nodes)}};
  };
  return {{"name", cluster.name()},
          {"devices", cluster.n_devices()},
          {"critical_path", path_json(false)},
          {"critical_path_compute_only", path_json(true)},
          {"lower_bound", lower_bound(graph, cluster, costs)},
          {"time_scale", time_scale(graph, cluster, costs)}};
}

std::string graph_text(const Json& json) {
  const bool raw = json["raw_costs"];
  std::string text = json["name"].get<std::string>() + ": " + json["nodes"].dump() + " nodes, " +
                     json["edges"].dump() + " edges, " + json["inputs"].dump() + " inputs, " +
                     json["levels"].dump() + " levels, width " + json["width"].dump() + "\n";
  text += "total compute  " + flops_text(json["flops"], raw) + "\n";
  text += "outputs        " + bytes_text(json["output_bytes"], raw) + "\n";
  text += "inputs         " + bytes_text(json["input_bytes"], raw) + "\n";
  if (json.contains("cluster")) {
    const Json& on = json["cluster"];
    const double seconds = on["critical_path"]["seconds"];
    const Unit unit = time_unit(seconds, raw);
    text += "on " + on["name"].get<std::string>() + ", " + on["devices"].dump() + " devices:\n";
    text += "  critical path  " + with_unit(seconds, unit) + " with mean transfers, " +
            with_unit(on["critical_path_compute_only"]["seconds"], unit) + " without\n";
    text += "  lower bound    " + with_unit(on["lower_bound"], unit) + "\n";
    text += "  time scale     " + with_unit(on["time_scale"], unit) + "\n";
  }
  Table table(
      {{"kind"}, {"nodes", Align::right}, {"compute", Align::right}, {"outputs", Align::right}});
  for (const auto& [kind, use] : json["kinds"].items()) {
    table.add({kind.empty() ? "(none)" : kind, use["nodes"].dump(), flops_text(use["flops"], raw),
               bytes_text(use["output_bytes"], raw)});
  }
  return text + "\n" + table.to_string();
}

void show(const GraphOptions& options) {
  if (options.dot && options.json) {
    throw UsageError("--dot and --json exclude each other; give one");
  }
  std::optional<Cluster> cluster;
  if (options.cluster) cluster = make_cluster(*options.cluster);
  const Graph graph = graph_to_show(options, cluster);
  if (options.dot) {
    print(to_dot(graph));
    return;
  }
  Json json = graph_json(graph);
  if (cluster) json["cluster"] = on_cluster_json(graph, *cluster);
  print(options.json ? json_text(json) : graph_text(json));
}

void check(const GraphOptions& options) {
  const Graph graph = load_graph(options.file);
  if (options.json) {
    print(json_text({{"file", options.file},
                     {"nodes", graph.n_nodes()},
                     {"edges", graph.n_edges()},
                     {"inputs", graph.n_inputs()}}));
    return;
  }
  print(options.file + ": sound, " + std::to_string(graph.n_nodes()) + " nodes, " +
        std::to_string(graph.n_edges()) + " edges, " + std::to_string(graph.n_inputs()) +
        " inputs\n");
}

void add_show(Command& graph) {
  Command command = graph.add("show", kShowHelp);
  auto options = std::make_shared<GraphOptions>();
  command.option({"FILE", "", "A graph file of any readable format; - is standard input"},
                 into(options->file));
  command.option({"--workload", "NAME", "A generated graph instead of a file"},
                 into(options->workload));
  command.option({"--devices", "N",
                  "For how many devices a workload is cut. Default: those of the cluster, else 4"},
                 into(options->devices, 1, kMostDevices));
  command.option({"--cluster", "NAME", "Also critical path and lower bound on this cluster"},
                 into(options->cluster));
  command.flag("--dot", "Print Graphviz DOT instead of statistics", options->dot);
  command.flag("--json", "Print an object", options->json);
  command.run([options] { show(*options); });
}

void add_generate(Command& graph) {
  Command command = graph.add("generate", kGenerateHelp);
  auto options = std::make_shared<GraphOptions>();
  command.option({"WORKLOAD", "", "A workload with parameters; see doppler-gym tasks --workloads"},
                 into(options->workload), true);
  command.option({"--devices", "N", "For how many devices it is cut. Default 4"},
                 into(options->devices, 1, kMostDevices));
  command.option({"--out", "FILE", "Where to write. Default: standard output"}, into(options->out));
  command.option({"--to", "FORMAT",
                  "json, text (the paper's format) or dot. Default: by the file's ending (.txt, "
                  ".dot), else json"},
                 into(options->format));
  command.run([options] {
    deliver_graph(*options,
                  [&] { return make_workload(*options->workload, options->devices.value_or(4)); });
  });
}

void add_convert(Command& graph) {
  Command command = graph.add("convert", kConvertHelp);
  auto options = std::make_shared<GraphOptions>();
  command.option({"IN", "", "A graph file of any readable format; - is standard input"},
                 into(options->file), true);
  command.option({"OUT", "", "The file to write; - is standard output"}, into(options->out), true);
  command.option({"--to", "FORMAT",
                  "json, text (the paper's format) or dot. Default: by the ending of OUT (.txt, "
                  ".dot), else json"},
                 into(options->format));
  command.run([options] { deliver_graph(*options, [&] { return load_graph(options->file); }); });
}

void add_check(Command& graph) {
  Command command = graph.add("check", kCheckHelp);
  auto options = std::make_shared<GraphOptions>();
  command.option({"FILE", "", "A graph file of any readable format; - is standard input"},
                 into(options->file), true);
  command.flag("--json", "Print an object", options->json);
  command.run([options] { check(*options); });
}

}  // namespace

void add_graph(Command& program) {
  Command command = program.add("graph", kHelp);
  add_show(command);
  add_generate(command);
  add_convert(command);
  add_check(command);
}

}  // namespace doppler::cli
