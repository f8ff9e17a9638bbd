#include <string>

#include "datasets/tasks.h"
#include "graphs/file.h"
#include "graphs/formats.h"
#include "tests/support/catch.h"
#include "tests/support/reference.h"

namespace doppler {
namespace {

struct Published {
  const char* name;
  const char* file;
  std::size_t n_nodes;
  std::size_t n_edges;
  std::size_t n_devices;
};
constexpr Published kPublished[] = {
    {"chainmm", "gdp_chain_mm_112nodes", 76, 80, 4},
    {"ffnn", "gdp_ffnn_192nodes", 180, 208, 4},
    {"llama-block", "gdp_transformer_block_215nodes", 182, 234, 4},
    {"llama-layer", "gdp_full_transformer_layer_261nodes", 229, 284, 4},
    {"llama-block-8", "8gpu_transformer_block", 302, 398, 8},
    {"llama-layer-8", "8gpu_full_transformer", 367, 470, 8},
};

TEST_CASE("published graphs are tasks of raw costs on uniform devices, without contention") {
  for (const Published& published : kPublished) {
    INFO(published.name);
    const Task task = make_task("published/" + std::string(published.name));
    CHECK(task.graph.n_nodes() == published.n_nodes);
    CHECK(task.graph.n_edges() == published.n_edges);
    CHECK(task.cluster == Cluster::uniform(static_cast<std::int64_t>(published.n_devices)));
    CHECK(task.cost_model == CostModel::raw());
    CHECK(task.options == RunOptions{.network = Network::independent});
    CHECK_THAT(task.graph.name(), Catch::Contains("CC BY 4.0"));
    for (std::size_t v = 0; v < task.graph.n_nodes(); ++v) {
      const NodeId node{static_cast<std::int64_t>(v)};
      CHECK(task.graph.tensor_bytes(task.graph.first_tensor(node)) ==
            4 * task.graph.raw_compute()[v]);
    }
  }
}

TEST_CASE("published graphs equal the files of the reference folder") {
  for (const Published& published : kPublished) {
    INFO(published.name);
    const auto path = testing::reference_file("graphs/" + std::string(published.file) + ".txt");
    if (!path) continue;
    const Graph expected = parse_graph_text(read_file(*path), *path);
    const Graph graph = make_task("published/" + std::string(published.name)).graph;
    REQUIRE(graph.n_nodes() == expected.n_nodes());
    REQUIRE(graph.n_edges() == expected.n_edges());
    for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
      const NodeId node{static_cast<std::int64_t>(v)};
      CHECK(graph.node(node) == expected.node(node));
      CHECK(graph.raw_compute()[v] == expected.raw_compute()[v]);
    }
    for (std::size_t e = 0; e < graph.n_edges(); ++e) {
      const EdgeId edge{static_cast<std::int64_t>(e)};
      CHECK(graph.edge(edge) == expected.edge(edge));
    }
    CHECK(std::vector(graph.inputs().begin(), graph.inputs().end()) ==
          std::vector(expected.inputs().begin(), expected.inputs().end()));
  }
}

TEST_CASE("published graph files are written as this version writes them") {
  for (const Published& published : kPublished) {
    const std::string path =
        std::string(DOPPLER_SOURCE_FOLDER) + "/datasets/published/" + published.name + ".json";
    INFO(path);
    const std::string content = read_file(path);
    CHECK(to_json(parse_graph_json(content, path)) == content);
  }
}

}  // namespace
}  // namespace doppler
