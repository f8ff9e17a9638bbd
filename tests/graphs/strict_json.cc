#include "graphs/strict_json.h"

#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

TEST_CASE("A scalar of a document keeps its type") {
  const auto scalar = [](const char* text) {
    const nlohmann::json document = parse_strict_json(text, "f");
    const std::string source = "f";
    return JsonElement(document, source).scalar();
  };
  CHECK(scalar("true") == ParameterValue(true));
  CHECK(scalar("-3") == ParameterValue(std::int64_t{-3}));
  CHECK(scalar("0.5") == ParameterValue(0.5));
  CHECK(scalar("1e3") == ParameterValue(1000.0));
  CHECK(scalar("\"a\"") == ParameterValue(std::string("a")));
  CHECK_THROWS_AS(scalar("null"), ParseError);
  CHECK_THROWS_AS(scalar("[1]"), ParseError);
  CHECK_THROWS_AS(scalar("18446744073709551615"), ParseError);
}

}  // namespace
}  // namespace doppler
