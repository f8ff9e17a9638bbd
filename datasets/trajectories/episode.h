// One recorded episode, its arrays compressed, and its form as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graphs/graph.h"

namespace doppler {

// Of an array's elements, by numpy's names; `boolean` is "bool".
enum class ElementType : std::uint8_t {
  boolean,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64
};
std::string_view to_string(ElementType type);
std::optional<ElementType> parse_element_type(std::string_view name);
std::size_t size_of(ElementType type);  // bytes
ElementType element_type(DType dtype);  // of float32, int32 and int8

// What a row of an array holds: the elements of one step. A regular value.
struct ArrayLayout {
  std::string path;  // within the episode: "actions", "observations/placement"
  ElementType type = ElementType::float32;
  std::vector<std::int64_t> shape;  // of a row; every size at least 1

  [[nodiscard]] std::size_t row_bytes() const;
  friend bool operator==(const ArrayLayout&, const ArrayLayout&) = default;
};

// Rows as zlib streams of `rows_per_chunk` rows each; the last stream may hold more rows than there
// are, which mean nothing. A regular value.
struct EncodedArray {
  ArrayLayout layout;
  std::int64_t n_rows = 0;
  std::int64_t rows_per_chunk = 1;
  std::vector<std::string> chunks = {};

  // The rows, one after the other. Throws InvalidError for streams that do not hold them.
  [[nodiscard]] std::string decode() const;
  friend bool operator==(const EncodedArray&, const EncodedArray&) = default;
};

using AttributeValue = std::variant<std::int64_t, std::uint64_t, double, std::string>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

// The arrays of a task, the same in each of its episodes; kept once.
using FixedArrays = std::vector<EncodedArray>;

struct Episode {
  std::int64_t n_steps = 0;
  Attributes attributes = {};             // "seed", "makespan", ...
  std::vector<EncodedArray> arrays = {};  // observations have n_steps + 1 rows, the others n_steps
  // Second names of arrays: ("infos/action_mask", "observations/action_mask").
  std::vector<std::pair<std::string, std::string>> links = {};
  std::shared_ptr<const FixedArrays> fixed = {};  // below "static"; null: none

  [[nodiscard]] const AttributeValue* attribute(std::string_view name) const;  // null: none
  [[nodiscard]] const EncodedArray* array(std::string_view path) const;        // null: none
  // About the memory that it takes, without `fixed`.
  [[nodiscard]] std::size_t n_bytes() const;
};

// Episodes as bytes, exact; fixed arrays that several share are written once.
std::string to_bytes(const std::vector<Episode>& episodes);
// Throws InvalidError for bytes that are damaged; nothing that they claim is allocated unseen.
std::vector<Episode> episodes_from_bytes(std::string_view bytes);

}  // namespace doppler
