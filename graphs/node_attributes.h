// What an engine needs to run one node: Node::attributes as a value.
//
// A node computes one output from its operands; kind and index expression say how. An operand is a
// dense tensor that is put together from pieces, each a box of the tensor of an in-edge or of a
// graph input. The JSON text and the meaning of every kind are in docs/node-attributes.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace doppler {

// A box of a source tensor, copied to a place in the operand. All arrays have the operand's rank.
struct OperandPiece {
  enum class Source : std::uint8_t { edge, input };

  Source source = Source::edge;
  std::int32_t index = 0;           // edge: place in Graph::in_edges(node); input: InputId
  std::vector<std::int64_t> start;  // first element of the box in the source tensor
  std::vector<std::int64_t> shape;  // extent of the box
  std::vector<std::int64_t> to;     // its first element in the operand

  friend bool operator==(const OperandPiece&, const OperandPiece&) = default;
};

// The pieces cover the operand without overlap.
struct NodeOperand {
  std::vector<std::int64_t> shape;
  std::vector<OperandPiece> pieces;

  friend bool operator==(const NodeOperand&, const NodeOperand&) = default;
};

struct NodeAttributes {
  // Labels of each operand's axes and of the output's: "i k, k j -> i j". A label that the output
  // lacks is reduced over.
  std::string index;
  std::vector<NodeOperand> operands;

  // Of single kinds; left out of the JSON text where they have these defaults.
  double factor = 1;                // affine
  double offset = 0;                // affine
  std::string rule;                 // aggregate: "sum" or "max"; fill: "causal"
  std::vector<std::int64_t> start;  // fill: the block's first element in the whole tensor
  std::int64_t top_k = 0;           // route

  friend bool operator==(const NodeAttributes&, const NodeAttributes&) = default;
};

std::string to_json(const NodeAttributes& attributes);
// Throws ParseError for a text that is not of this form; `source` names the node in the message.
NodeAttributes parse_node_attributes(std::string_view text, const std::string& source);

}  // namespace doppler
