#include "agents/learned/policy_file.h"

#include <limits>

#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

PolicyFile example() {
  PolicyFile policy;
  policy.kind = "example";
  policy.arrays = {{.name = "weight", .shape = {2, 2}, .values = {1, -0.5F, 3e-20F, 0}},
                   {.name = "bias", .shape = {1}, .values = {7}},
                   {.name = "nothing", .shape = {0, 3}, .values = {}},
                   {.name = "number", .shape = {}, .values = {0.1F}}};
  policy.extra = {{"makespan", 0.1}, {"note", "trained on chainmm"}};
  return policy;
}

PolicyFile parse(const std::string& text) { return parse_policy(text, "example", "p.json"); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("a policy reads back as it was written, and writes the same text again") {
  const PolicyFile policy = example();
  const std::string text = write_policy(policy);
  CHECK(parse(text) == policy);
  CHECK(write_policy(parse(text)) == text);
}

TEST_CASE("the arrays are little-endian base64") {
  // 1.0F is 00 00 80 3f.
  PolicyFile policy;
  policy.kind = "example";
  policy.arrays = {{.name = "one", .shape = {1}, .values = {1}}};
  CHECK(write_policy(policy).find("\"AACAPw==\"") != std::string::npos);
}

TEST_CASE("what is no policy of this agent is refused with its reason") {
  const std::string text = write_policy(example());
  using Catch::Contains;
  CHECK_THROWS_WITH(parse("{}"), Contains("p.json") && Contains("format"));
  CHECK_THROWS_AS(parse("what"), ParseError);
  CHECK_THROWS_AS(parse(""), ParseError);
  CHECK_THROWS_WITH(parse(replaced(text, "doppler-policy", "doppler-graph")),
                    Contains("'doppler-graph' file"));
  CHECK_THROWS_WITH(parse(replaced(text, "\"version\": 1", "\"version\": 2")),
                    Contains("version 2 is not known; this program reads version 1"));
  CHECK_THROWS_WITH(parse_policy(text, "other", "p.json"),
                    Contains("of 'example', not of 'other'"));
  CHECK_THROWS_WITH(parse(replaced(text, "\"extra\"", "\"extras\"")), Contains("extras"));
  CHECK_THROWS_WITH(parse(replaced(text, "\"makespan\": 0.1", "\"makespan\": 0.2")),
                    Contains("damaged or was edited"));
  CHECK_THROWS_WITH(parse(replaced(text, "AACAPw", "AACAPx")), Contains("damaged or was edited"));
  CHECK_THROWS_WITH(parse(replaced(text, "AACAPw", "AAC*Pw")), Contains("not base64"));
  CHECK_THROWS_WITH(parse(replaced(text, "AACAPw", "AACAP")), Contains("base64"));
  CHECK_THROWS_WITH(parse(replaced(text, "\"bias\"", "\"weight\"")), Contains("twice"));
  for (std::size_t length = 0; length < text.size(); length += 13) {
    CHECK_THROWS_AS(parse(text.substr(0, length)), ParseError);
  }
}

TEST_CASE("an array of another shape is refused, and both are named") {
  const PolicyFile policy = example();
  CHECK(policy.array("bias", {1}, "p.json").values == std::vector<float>{7});
  CHECK_THROWS_WITH(policy.array("weight", {2, 3}, "p.json"),
                    Catch::Contains("weight [2 x 3]") && Catch::Contains("[2 x 2]"));
  CHECK_THROWS_WITH(policy.array("gain", {1}, "p.json"), Catch::Contains("no array gain"));
}

TEST_CASE("a policy that breaks its own rules is not written") {
  PolicyFile policy = example();
  policy.arrays[0].shape = {5};
  CHECK_THROWS_AS(write_policy(policy), InvalidError);
  policy = example();
  policy.arrays[1].values[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(write_policy(policy), InvalidError);
  policy = example();
  policy.arrays[1].name = "weight";
  CHECK_THROWS_AS(write_policy(policy), InvalidError);
}

}  // namespace
}  // namespace doppler
