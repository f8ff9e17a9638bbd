#include <string>

#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

TEST_CASE("bench reports what it measured") {
  const auto json = run_json({"bench", "--task", "chainmm@p100x4", "--seconds", "0.01", "--json"});
  CHECK(json["nodes"] == 76);
  CHECK(json["devices"] == 4);
  for (const char* kind : {"random_assignments", "one_node_changes"}) {
    const auto& speed = json[kind];
    CHECK(speed["makespans"].get<double>() > 0);
    CHECK(speed["seconds"].get<double>() >= 0.01);
    CHECK(speed["per_second"].get<double>() ==
          Approx(speed["makespans"].get<double>() / speed["seconds"].get<double>()));
  }
  const Answer text = run({"bench", "--task", "chainmm@p100x4", "--seconds", "0.01"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("makespans/s") != std::string::npos);
}

}  // namespace
}  // namespace doppler::testing
