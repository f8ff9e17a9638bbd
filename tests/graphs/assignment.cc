// Assignments: their check, their file, their hash.
#include "graphs/assignment.h"

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/graphs/refusal.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

Assignment assignment_of(const std::vector<std::int64_t>& devices) {
  Assignment assignment;
  for (std::int64_t device : devices) assignment.devices.emplace_back(device);
  return assignment;
}

std::string refused(const std::string& text) {
  CAPTURE(text.substr(0, 200));
  return testing::refusal("a.json", [&] { (void)parse_assignment(text, "a.json"); });
}

TEST_CASE("An assignment file is one list of devices and reads back") {
  CHECK(parse_assignment("{\"assignment\": [0, 2, 1]}", "a") == assignment_of({0, 2, 1}));
  CHECK(parse_assignment("{\"assignment\": []}", "a") == Assignment());
  CHECK(to_json(assignment_of({3, 0})) == "{\"assignment\": [3, 0]}\n");
  std::vector<std::int64_t> devices;
  for (std::int64_t v = 0; v < 5000; ++v) devices.push_back(v * v % 1024);
  devices.push_back(2147483647);
  CHECK(parse_assignment(to_json(assignment_of(devices)), "a") == assignment_of(devices));
}

TEST_CASE("Assignment files that are damaged or say something else are refused with the place") {
  CHECK(refused("").starts_with("1:1: "));
  CHECK(refused("[0, 1]").starts_with("1:1: "));
  CHECK(refused("0").starts_with("1:1: "));
  CHECK(refused("{}").find("'assignment'") != std::string::npos);
  CHECK(refused("{\"assignment\": [0, 1], \"makespan\": 3}").starts_with("1:24: unknown field"));
  CHECK(refused("{\"assignment\": [0], \"assignment\": [1]}").find("twice") != std::string::npos);
  CHECK(refused("{\"assignments\": [0]}").find("did you mean assignment?") != std::string::npos);
  CHECK(refused("{\"assignment\":\n [0,\n -1]}").starts_with("3:2: "));
  for (const char* devices : {"3", "{}", "\"0\"", "null", "[0.0]", "[1.5]", "[\"0\"]", "[null]",
                              "[true]", "[[0]]", "[2147483648]", "[1000000000000000000]", "[-1]",
                              "[1e2]", "[99999999999999999999]", "[0,]", "[0 1]", "[0"}) {
    refused("{\"assignment\": " + std::string(devices) + "}");
  }
  refused("{\"assignment\": [0]} x");
  refused(std::string("{\"assignment\": [0]}\0", 20));
  CHECK_THROWS_AS(read_assignment("/nonexistent/a.json"), RunError);
  CHECK_THROWS_AS(read_assignment(std::filesystem::temp_directory_path().string()), RunError);
}

TEST_CASE("An assignment is checked against graph and cluster") {
  GraphBuilder builder;
  for (const char* name : {"a", "b", "c"}) builder.add_node({.name = name});
  const Graph graph = builder.build();
  const Cluster cluster = Cluster::uniform(2);
  CHECK_NOTHROW(assignment_of({0, 1, 0}).check(graph, cluster));
  CHECK_NOTHROW(Assignment(3, DeviceId{1}).check(graph, cluster));
  CHECK_THROWS_WITH(assignment_of({0, 1}).check(graph, cluster),
                    "the assignment has 2 devices, the graph has 3 nodes; give one device for each "
                    "node");
  CHECK_THROWS_WITH(assignment_of({0, 2, 5}).check(graph, cluster),
                    "the assignment puts node 1 on device 2; the cluster has devices 0 to 1");
  CHECK_THROWS_AS(assignment_of({0, 0, -1}).check(graph, cluster), InvalidError);
}

TEST_CASE("Equal assignments hash equally and print their devices") {
  CHECK(assignment_of({0, 1}).hash() == assignment_of({0, 1}).hash());
  CHECK(assignment_of({0, 1}).hash() != assignment_of({1, 0}).hash());
  CHECK(assignment_of({0}).hash() != assignment_of({0, 0}).hash());
  std::ostringstream text;
  text << assignment_of({0, 2}) << Assignment();
  CHECK(text.str() == "[0 2][]");
  Assignment changed(2, DeviceId{0});
  changed[NodeId{1}] = DeviceId{2};
  CHECK(changed == assignment_of({0, 2}));
}

}  // namespace
}  // namespace doppler
