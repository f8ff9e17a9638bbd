#include "datasets/trajectories/episode.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "graphs/enum_names.h"
#include "graphs/error.h"

namespace doppler {
namespace {

struct TypeInfo {
  ElementType type;
  std::string_view name;
  std::size_t size;
};
constexpr TypeInfo kTypes[] = {
    {ElementType::boolean, "bool", 1},    {ElementType::int8, "int8", 1},
    {ElementType::uint8, "uint8", 1},     {ElementType::int16, "int16", 2},
    {ElementType::uint16, "uint16", 2},   {ElementType::int32, "int32", 4},
    {ElementType::uint32, "uint32", 4},   {ElementType::int64, "int64", 8},
    {ElementType::uint64, "uint64", 8},   {ElementType::float32, "float32", 4},
    {ElementType::float64, "float64", 8},
};

const TypeInfo& info(ElementType type) { return kTypes[static_cast<std::size_t>(type)]; }

[[noreturn]] void fail_damaged() {
  throw InvalidError("the recorded episodes are damaged: their lengths do not fit together");
}

class Writer {
 public:
  template <class T>
  void add(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add_text(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  void add_count(std::size_t n) { add(static_cast<std::uint64_t>(n)); }
  void add_array(const EncodedArray& array) {
    add_text(array.layout.path);
    add(static_cast<std::uint8_t>(array.layout.type));
    add_count(array.layout.shape.size());
    for (std::int64_t size : array.layout.shape) add(size);
    add(array.n_rows);
    add(array.rows_per_chunk);
    add_count(array.chunks.size());
    for (const std::string& chunk : array.chunks) add_text(chunk);
  }
  void reserve(std::size_t n) { bytes_.reserve(n); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    T value;
    if (bytes_.size() < sizeof value) fail_damaged();
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string take_text() {
    const auto n = take<std::uint64_t>();
    if (n > bytes_.size()) fail_damaged();
    std::string text(bytes_.substr(0, n));
    bytes_.remove_prefix(n);
    return text;
  }
  // Of things that take at least one byte each.
  std::size_t take_count() {
    const auto n = take<std::uint64_t>();
    if (n > bytes_.size()) fail_damaged();
    return static_cast<std::size_t>(n);
  }
  EncodedArray take_array() {
    EncodedArray array;
    array.layout.path = take_text();
    const auto type = take<std::uint8_t>();
    if (type >= std::size(kTypes)) fail_damaged();
    array.layout.type = static_cast<ElementType>(type);
    for (std::size_t n = take_count(); n > 0; --n) {
      array.layout.shape.push_back(take<std::int64_t>());
      if (array.layout.shape.back() < 1) fail_damaged();
    }
    array.n_rows = take<std::int64_t>();
    array.rows_per_chunk = take<std::int64_t>();
    if (array.n_rows < 0 || array.rows_per_chunk < 1) fail_damaged();
    for (std::size_t n = take_count(); n > 0; --n) array.chunks.push_back(take_text());
    return array;
  }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

void inflate_chunk(const std::string& chunk, std::size_t n_bytes, std::string& out) {
  const std::size_t begin = out.size();
  out.resize(begin + n_bytes);
  uLongf written = n_bytes;
  const int code = uncompress(reinterpret_cast<Bytef*>(out.data() + begin), &written,
                              reinterpret_cast<const Bytef*>(chunk.data()), chunk.size());
  if (code != Z_OK || written != n_bytes) {
    throw InvalidError("an array's compressed rows are damaged");
  }
}

}  // namespace

std::string_view to_string(ElementType type) { return info(type).name; }

std::optional<ElementType> parse_element_type(std::string_view name) {
  for (const TypeInfo& type : kTypes) {
    if (type.name == name) return type.type;
  }
  return std::nullopt;
}

std::size_t size_of(ElementType type) { return info(type).size; }

ElementType element_type(DType dtype) {
  if (dtype == DType::int8) return ElementType::int8;
  if (dtype == DType::int32) return ElementType::int32;
  return ElementType::float32;
}

std::size_t ArrayLayout::row_bytes() const {
  std::size_t n = size_of(type);
  for (std::int64_t size : shape) n *= static_cast<std::size_t>(size);
  return n;
}

std::string EncodedArray::decode() const {
  const std::size_t row = layout.row_bytes();
  const auto n_needed = static_cast<std::size_t>((n_rows + rows_per_chunk - 1) / rows_per_chunk);
  if (chunks.size() != n_needed) throw InvalidError("an array lacks some of its rows");
  std::string rows;
  for (const std::string& chunk : chunks) {
    inflate_chunk(chunk, row * static_cast<std::size_t>(rows_per_chunk), rows);
  }
  rows.resize(row * static_cast<std::size_t>(n_rows));
  return rows;
}

const AttributeValue* Episode::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

const EncodedArray* Episode::array(std::string_view path) const {
  for (const EncodedArray& one : arrays) {
    if (one.layout.path == path) return &one;
  }
  return nullptr;
}

std::size_t Episode::n_bytes() const {
  std::size_t n = sizeof *this;
  for (const EncodedArray& one : arrays) {
    n += sizeof one + one.layout.path.size();
    for (const std::string& chunk : one.chunks) n += chunk.size();
  }
  return n;
}

std::string to_bytes(const std::vector<Episode>& episodes) {
  std::map<const FixedArrays*, std::uint64_t> numbers;
  std::vector<const FixedArrays*> fixed;
  std::size_t n_bytes = 0;
  for (const Episode& episode : episodes) {
    n_bytes += 2 * episode.n_bytes();
    if (!episode.fixed) continue;
    if (numbers.emplace(episode.fixed.get(), fixed.size()).second) {
      fixed.push_back(episode.fixed.get());
    }
  }
  Writer writer;
  writer.reserve(n_bytes);
  writer.add_count(fixed.size());
  for (const FixedArrays* arrays : fixed) {
    writer.add_count(arrays->size());
    for (const EncodedArray& array : *arrays) writer.add_array(array);
  }
  writer.add_count(episodes.size());
  for (const Episode& episode : episodes) {
    writer.add(episode.n_steps);
    writer.add(episode.fixed ? numbers.at(episode.fixed.get())
                             : std::numeric_limits<std::uint64_t>::max());
    writer.add_count(episode.attributes.size());
    for (const auto& [name, value] : episode.attributes) {
      writer.add_text(name);
      writer.add(static_cast<std::uint8_t>(value.index()));
      std::visit(
          [&](const auto& held) {
            if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>) {
              writer.add_text(held);
            } else {
              writer.add(held);
            }
          },
          value);
    }
    writer.add_count(episode.arrays.size());
    for (const EncodedArray& array : episode.arrays) writer.add_array(array);
    writer.add_count(episode.links.size());
    for (const auto& [name, target] : episode.links) {
      writer.add_text(name);
      writer.add_text(target);
    }
  }
  return writer.take();
}

std::vector<Episode> episodes_from_bytes(std::string_view bytes) {
  Reader reader(bytes);
  std::vector<std::shared_ptr<const FixedArrays>> fixed;
  for (std::size_t n = reader.take_count(); n > 0; --n) {
    FixedArrays arrays;
    for (std::size_t k = reader.take_count(); k > 0; --k) arrays.push_back(reader.take_array());
    fixed.push_back(std::make_shared<const FixedArrays>(std::move(arrays)));
  }
  std::vector<Episode> episodes;
  for (std::size_t n = reader.take_count(); n > 0; --n) {
    Episode episode;
    episode.n_steps = reader.take<std::int64_t>();
    const auto number = reader.take<std::uint64_t>();
    if (number != std::numeric_limits<std::uint64_t>::max()) {
      if (number >= fixed.size()) fail_damaged();
      episode.fixed = fixed[number];
    }
    for (std::size_t k = reader.take_count(); k > 0; --k) {
      std::string name = reader.take_text();
      switch (reader.take<std::uint8_t>()) {
        case 0:
          episode.attributes.emplace_back(name, reader.take<std::int64_t>());
          break;
        case 1:
          episode.attributes.emplace_back(name, reader.take<std::uint64_t>());
          break;
        case 2:
          episode.attributes.emplace_back(name, reader.take<double>());
          break;
        case 3:
          episode.attributes.emplace_back(name, reader.take_text());
          break;
        default:
          fail_damaged();
      }
    }
    for (std::size_t k = reader.take_count(); k > 0; --k) {
      episode.arrays.push_back(reader.take_array());
    }
    for (std::size_t k = reader.take_count(); k > 0; --k) {
      std::string name = reader.take_text();
      std::string target = reader.take_text();
      episode.links.emplace_back(std::move(name), std::move(target));
    }
    episodes.push_back(std::move(episode));
  }
  if (!reader.empty()) fail_damaged();
  return episodes;
}

}  // namespace doppler
