#include "agents/learned/policy_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "graphs/error.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"

namespace doppler {

namespace {

constexpr std::string_view kFormat = "doppler-policy";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMaxValues = std::int64_t{1} << 31;  // of an array
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Base64 of RFC 4648, section 4.
std::string encode(const std::vector<float>& values) {
  std::string bytes;
  bytes.reserve(values.size() * 4);
  for (float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>((bits >> shift) & 0xFFU));
    }
  }
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::uint32_t byte =
          i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
      group = (group << 8U) | byte;
    }
    const std::size_t n_digits = std::min<std::size_t>(bytes.size() - i, 3) + 1;
    for (std::size_t k = 0; k < 4; ++k) {
      text.push_back(k < n_digits ? kAlphabet[(group >> (18 - 6 * k)) & 63U] : '=');
    }
  }
  return text;
}

std::array<std::int8_t, 256> digit_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}

std::vector<float> decode(const JsonElement& element, std::size_t n_values) {
  static const std::array<std::int8_t, 256> kDigits = digit_values();
  const std::string& text = element.text();
  const std::size_t n_bytes = n_values * 4;
  if (text.size() != (n_bytes + 2) / 3 * 4) {
    element.fail("the shape has " + std::to_string(n_values) + " values, which take " +
                 std::to_string((n_bytes + 2) / 3 * 4) + " characters of base64, but there are " +
                 std::to_string(text.size()) + "; the file is damaged");
  }
  std::vector<unsigned char> bytes;
  bytes.reserve(n_bytes + 2);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const bool padding = text[i + k] == '=' && bytes.size() + k > n_bytes;
      const int digit = padding ? 0 : kDigits[static_cast<unsigned char>(text[i + k])];
      if (digit < 0) element.fail("not base64 (RFC 4648); the file is damaged");
      group = (group << 6U) | static_cast<std::uint32_t>(digit);
    }
    for (unsigned shift = 24; shift > 0; shift -= 8) {
      bytes.push_back(static_cast<unsigned char>((group >> (shift - 8)) & 0xFFU));
    }
  }
  std::vector<float> values(n_values);
  for (std::size_t i = 0; i < n_values; ++i) {
    std::uint32_t bits = 0;
    for (std::size_t k = 4; k-- > 0;) bits = (bits << 8U) | bytes[i * 4 + k];
    values[i] = std::bit_cast<float>(bits);
    if (!std::isfinite(values[i])) {
      element.fail("value " + std::to_string(i) + " is not finite; train again");
    }
  }
  return values;
}

std::string checksum(const PolicyFile& policy) {
  Hasher hasher;
  hasher.add(policy.kind);
  for (const PolicyArray& array : policy.arrays) {
    hasher.add(array.name);
    for (std::int64_t size : array.shape) hasher.add(static_cast<std::uint64_t>(size));
    for (float value : array.values) {
      hasher.add(static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(value)));
    }
  }
  hasher.add(policy.extra.dump());
  constexpr std::string_view kHexadecimal = "0123456789abcdef";
  std::string text;
  for (unsigned shift = 64; shift > 0; shift -= 4) {
    text.push_back(kHexadecimal[(hasher.digest() >> (shift - 4)) & 15U]);
  }
  return text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return "[" + text + "]";
}

// The number of values; -1 if it is out of range.
std::int64_t n_values_of(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (std::int64_t size : shape) {
    if (size < 0 || (size > 0 && n > kMaxValues / size)) return -1;
    n *= size;
  }
  return n;
}

void check(const PolicyFile& policy) {
  std::set<std::string> names;
  for (const PolicyArray& array : policy.arrays) {
    const std::string what = "policy array '" + array.name + "'";
    if (!names.insert(array.name).second) throw InvalidError(what + " is there twice");
    if (n_values_of(array.shape) != static_cast<std::int64_t>(array.values.size())) {
      throw InvalidError(what + " has " + std::to_string(array.values.size()) +
                         " values, its shape is " + shape_text(array.shape));
    }
    if (!std::ranges::all_of(array.values, [](float value) { return std::isfinite(value); })) {
      throw InvalidError(what + " has a value that is not finite");
    }
  }
}

PolicyArray parse_array(const JsonElement& element) {
  element.allow_fields({"name", "shape", "float32"});
  PolicyArray array{.name = element.field("name").text(), .shape = {}, .values = {}};
  for (const JsonElement& size : element.field("shape").elements()) {
    array.shape.push_back(size.integer(0, kMaxValues));
  }
  const std::int64_t n_values = n_values_of(array.shape);
  if (n_values < 0) element.field("shape").fail("too many values");
  array.values = decode(element.field("float32"), static_cast<std::size_t>(n_values));
  return array;
}

}  // namespace

const PolicyArray& PolicyFile::array(std::string_view name, const std::vector<std::int64_t>& shape,
                                     const std::string& source) const {
  const auto at = std::ranges::find(arrays, name, &PolicyArray::name);
  const std::string wanted = std::string(name) + " " + shape_text(shape);
  if (at == arrays.end()) {
    throw ParseError(source + ": the policy has no array " + wanted +
                     "; it is of another network than this agent's");
  }
  if (at->shape != shape) {
    throw ParseError(source + ": this agent needs " + wanted + ", the policy has " +
                     shape_text(at->shape) + "; it is of another network");
  }
  return *at;
}

std::string write_policy(const PolicyFile& policy) {
  check(policy);
  nlohmann::ordered_json document;
  document["format"] = kFormat;
  document["version"] = kVersion;
  document["kind"] = policy.kind;
  document["written_by"] = DOPPLER_VERSION;
  document["checksum"] = checksum(policy);
  auto& arrays = document["arrays"] = nlohmann::ordered_json::array();
  for (const PolicyArray& array : policy.arrays) {
    arrays.push_back(
        {{"name", array.name}, {"shape", array.shape}, {"float32", encode(array.values)}});
  }
  document["extra"] = policy.extra;
  return write_json(document, "a policy");
}

PolicyFile parse_policy(std::string_view content, std::string_view kind,
                        const std::string& source) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement root(document, source);
  root.expect_format(kFormat, kVersion);
  root.allow_fields({"format", "version", "kind", "written_by", "checksum", "arrays", "extra"});
  PolicyFile policy;
  policy.kind = root.field("kind").text();
  if (policy.kind != kind) {
    root.field("kind").fail("this is a policy of '" + policy.kind + "', not of '" +
                            std::string(kind) + "'");
  }
  static_cast<void>(root.field("written_by").text());
  std::set<std::string> names;
  for (const JsonElement& element : root.field("arrays").elements()) {
    policy.arrays.push_back(parse_array(element));
    if (!names.insert(policy.arrays.back().name).second) element.fail("the name is there twice");
  }
  static_cast<void>(root.field("extra").fields());
  policy.extra = document["extra"];
  if (root.field("checksum").text() != checksum(policy)) {
    root.field("checksum")
        .fail("it is " + checksum(policy) + " for this content; the file is damaged or was edited");
  }
  return policy;
}

}  // namespace doppler
