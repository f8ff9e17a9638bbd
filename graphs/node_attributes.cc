#include "graphs/node_attributes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "graphs/error.h"

namespace doppler {
namespace {

using Shape = std::vector<std::int64_t>;

bool all_zero(const Shape& values) {
  return std::all_of(values.begin(), values.end(), [](std::int64_t x) { return x == 0; });
}

// The text is written by hand because there may be millions of nodes.
void append(std::string& text, const Shape& values) {
  text += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(values[i]);
  }
  text += ']';
}

void append(std::string& text, double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  text.append(buffer.data(), end.ptr);
}

void append(std::string& text, const OperandPiece& piece, const Shape& operand_shape) {
  text += piece.source == OperandPiece::Source::edge ? "{\"edge\":" : "{\"input\":";
  text += std::to_string(piece.index);
  if (!all_zero(piece.start)) append(text += ",\"start\":", piece.start);
  if (piece.shape != operand_shape) append(text += ",\"shape\":", piece.shape);
  if (!all_zero(piece.to)) append(text += ",\"to\":", piece.to);
  text += '}';
}

void check_keys(const nlohmann::json& object, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) throw UsageError("an object is needed");
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw UsageError("key '" + key + "' is not known");
    }
  }
}

std::int64_t parse_integer(const nlohmann::json& value, std::string_view what) {
  if (!value.is_number_integer()) throw UsageError("'" + std::string(what) + "' is no integer");
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number > std::int64_t{1} << 53) {
    throw UsageError("'" + std::string(what) + "' is out of range");
  }
  return number;
}

Shape parse_shape(const nlohmann::json& object, const char* key, Shape otherwise) {
  if (!object.contains(key)) return otherwise;
  if (!object[key].is_array()) throw UsageError("'" + std::string(key) + "' is no array");
  Shape shape;
  for (const auto& value : object[key]) shape.push_back(parse_integer(value, key));
  return shape;
}

OperandPiece parse_piece(const nlohmann::json& object, const Shape& operand_shape) {
  check_keys(object, {"edge", "input", "start", "shape", "to"});
  if (object.contains("edge") == object.contains("input")) {
    throw UsageError("a piece needs either 'edge' or 'input'");
  }
  const bool is_edge = object.contains("edge");
  const char* key = is_edge ? "edge" : "input";
  const Shape zeros(operand_shape.size(), 0);
  OperandPiece piece;
  piece.source = is_edge ? OperandPiece::Source::edge : OperandPiece::Source::input;
  const std::int64_t index = parse_integer(object[key], key);
  if (index > INT32_MAX) throw UsageError("'" + std::string(key) + "' is out of range");
  piece.index = static_cast<std::int32_t>(index);
  piece.start = parse_shape(object, "start", zeros);
  piece.shape = parse_shape(object, "shape", operand_shape);
  piece.to = parse_shape(object, "to", zeros);
  for (const Shape* shape : {&piece.start, &piece.shape, &piece.to}) {
    if (shape->size() != operand_shape.size()) {
      throw UsageError("a piece has another number of axes than its operand");
    }
  }
  for (std::size_t axis = 0; axis < operand_shape.size(); ++axis) {
    if (piece.to[axis] + piece.shape[axis] > operand_shape[axis]) {
      throw UsageError("a piece reaches beyond its operand");
    }
  }
  return piece;
}

std::string parse_string(const nlohmann::json& object, const char* key) {
  if (!object.contains(key)) return "";
  if (!object[key].is_string()) throw UsageError("'" + std::string(key) + "' is no string");
  return object[key].get<std::string>();
}

double parse_number(const nlohmann::json& object, const char* key, double otherwise) {
  if (!object.contains(key)) return otherwise;
  if (!object[key].is_number()) throw UsageError("'" + std::string(key) + "' is no number");
  return object[key].get<double>();
}

NodeAttributes parse(const nlohmann::json& object) {
  check_keys(object, {"index", "operands", "factor", "offset", "rule", "start", "top_k"});
  NodeAttributes attributes;
  attributes.index = parse_string(object, "index");
  if (object.contains("operands")) {
    if (!object["operands"].is_array()) throw UsageError("'operands' is no array");
    for (const auto& entry : object["operands"]) {
      check_keys(entry, {"shape", "pieces"});
      NodeOperand operand;
      operand.shape = parse_shape(entry, "shape", {});
      if (!entry.contains("pieces") || !entry["pieces"].is_array()) {
        throw UsageError("an operand needs an array 'pieces'");
      }
      for (const auto& piece : entry["pieces"]) {
        operand.pieces.push_back(parse_piece(piece, operand.shape));
      }
      attributes.operands.push_back(std::move(operand));
    }
  }
  attributes.factor = parse_number(object, "factor", 1);
  attributes.offset = parse_number(object, "offset", 0);
  attributes.rule = parse_string(object, "rule");
  attributes.start = parse_shape(object, "start", {});
  if (object.contains("top_k")) attributes.top_k = parse_integer(object["top_k"], "top_k");
  return attributes;
}

}  // namespace

std::string to_json(const NodeAttributes& attributes) {
  std::string text = "{\"index\":" + nlohmann::json(attributes.index).dump() + ",\"operands\":[";
  for (std::size_t i = 0; i < attributes.operands.size(); ++i) {
    const NodeOperand& operand = attributes.operands[i];
    append(text += i > 0 ? ",{\"shape\":" : "{\"shape\":", operand.shape);
    text += ",\"pieces\":[";
    for (std::size_t p = 0; p < operand.pieces.size(); ++p) {
      if (p > 0) text += ',';
      append(text, operand.pieces[p], operand.shape);
    }
    text += "]}";
  }
  text += ']';
  if (attributes.factor != 1) append(text += ",\"factor\":", attributes.factor);
  if (attributes.offset != 0) append(text += ",\"offset\":", attributes.offset);
  if (!attributes.rule.empty()) text += ",\"rule\":" + nlohmann::json(attributes.rule).dump();
  if (!attributes.start.empty()) append(text += ",\"start\":", attributes.start);
  if (attributes.top_k != 0) text += ",\"top_k\":" + std::to_string(attributes.top_k);
  text += '}';
  return text;
}

NodeAttributes parse_node_attributes(std::string_view text, const std::string& source) {
  try {
    return parse(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw ParseError(source + ": attributes are not JSON: " + error.what());
  } catch (const UsageError& error) {
    throw ParseError(source + ": attributes: " + error.what() + "; see docs/node-attributes.md");
  }
}

}  // namespace doppler
