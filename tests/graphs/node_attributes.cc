#include "graphs/node_attributes.h"

#include "graphs/error.h"
#include "tests/support/catch.h"

using namespace doppler;

namespace {

NodeAttributes example() {
  NodeAttributes attributes;
  attributes.index = "i k, k j -> i j";
  attributes.operands = {{{4, 6},
                          {{OperandPiece::Source::edge, 0, {0, 0}, {4, 2}, {0, 0}},
                           {OperandPiece::Source::edge, 1, {0, 3}, {4, 4}, {0, 2}}}},
                         {{6, 5}, {{OperandPiece::Source::input, 7, {0, 0}, {6, 5}, {0, 0}}}}};
  return attributes;
}

std::string message(std::string_view text) {
  try {
    parse_node_attributes(text, "graph.json: node 'x'");
  } catch (const ParseError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Attributes are written as documented") {
  CHECK(to_json(example()) ==
        R"({"index":"i k, k j -> i j","operands":[{"shape":[4,6],"pieces":[)"
        R"({"edge":0,"shape":[4,2]},{"edge":1,"start":[0,3],"shape":[4,4],"to":[0,2]}]},)"
        R"({"shape":[6,5],"pieces":[{"input":7}]}]})");
}

TEST_CASE("Attributes that are written are read back equal") {
  NodeAttributes attributes = example();
  CHECK(parse_node_attributes(to_json(attributes), "x") == attributes);
  attributes.factor = 1.0 / 3;
  attributes.offset = -1e-5;
  attributes.rule = "causal";
  attributes.start = {3, 4};
  attributes.top_k = 2;
  CHECK(parse_node_attributes(to_json(attributes), "x") == attributes);
  CHECK(parse_node_attributes(to_json(NodeAttributes{}), "x") == NodeAttributes{});
}

TEST_CASE("Attributes of a wrong form are refused with the place and the reason") {
  using Catch::Matchers::Contains;
  CHECK_THAT(message("{"), Contains("graph.json: node 'x'") && Contains("not JSON"));
  CHECK_THAT(message("[]"), Contains("object"));
  CHECK_THAT(message(R"({"indx":""})"), Contains("'indx'"));
  CHECK_THAT(message(R"({"index":3})"), Contains("no string"));
  CHECK_THAT(message(R"({"operands":{}})"), Contains("no array"));
  CHECK_THAT(message(R"({"operands":[{"shape":[2]}]})"), Contains("'pieces'"));
  CHECK_THAT(message(R"({"operands":[{"shape":[2],"pieces":[{}]}]})"), Contains("'edge' or"));
  CHECK_THAT(message(R"({"operands":[{"shape":[2],"pieces":[{"edge":0,"input":0}]}]})"),
             Contains("either"));
  CHECK_THAT(message(R"({"operands":[{"shape":[2],"pieces":[{"edge":-1}]}]})"),
             Contains("out of range"));
  CHECK_THAT(message(R"({"operands":[{"shape":[2],"pieces":[{"edge":9999999999}]}]})"),
             Contains("out of range"));
  CHECK_THAT(message(R"({"operands":[{"shape":[2.5],"pieces":[]}]})"), Contains("no integer"));
  CHECK_THAT(message(R"({"operands":[{"shape":[2],"pieces":[{"edge":0,"start":[0,0]}]}]})"),
             Contains("axes"));
  CHECK_THAT(message(R"({"operands":[{"shape":[2],"pieces":[{"edge":0,"to":[1]}]}]})"),
             Contains("beyond"));
  CHECK_THAT(message(R"({"operands":[{"shape":[18446744073709551615],"pieces":[]}]})"),
             Contains("out of range"));
  CHECK_THAT(message(R"({"factor":"x"})"), Contains("no number"));
  CHECK_THAT(message(R"({"top_k":1.5})"), Contains("no integer"));
}
