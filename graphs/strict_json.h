// Small JSON documents, read strictly: what is not understood is refused, with its place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphs/registry.h"

namespace doppler {

// The document. Throws ParseError "source:line:column: what" for bad syntax, a field that is given
// twice in one object, numbers that no double holds, nesting deeper than 64. O(size log size): the
// fields of an object come sorted, for looking them up in the file's order takes their square.
nlohmann::json parse_strict_json(std::string_view content, const std::string& source);

// A document as text with indentation; numbers read back exactly. Throws InvalidError that names
// `what` for text that is not UTF-8.
std::string write_json(const nlohmann::ordered_json& document, std::string_view what);

// One value of a document and its path, for checked access. Everything throws ParseError
// "source: /path: what; how to mend it". Keeps references to the document and to the source.
class JsonElement {
 public:
  JsonElement(const nlohmann::json& value, const std::string& source)
      : value_(&value), source_(&source) {}

  [[noreturn]] void fail(const std::string& what) const;

  // Requires an object with `format` and `version` as given, in any order, among other fields.
  void expect_format(std::string_view format, std::int64_t version) const;
  // Requires an object that has no other fields than these.
  void allow_fields(std::initializer_list<std::string_view> fields) const;

  [[nodiscard]] JsonElement field(std::string_view name) const;                   // must be there
  [[nodiscard]] std::optional<JsonElement> find(std::string_view name) const;     // may be there
  [[nodiscard]] std::vector<std::pair<std::string, JsonElement>> fields() const;  // of an object
  [[nodiscard]] std::vector<JsonElement> elements() const;                        // of an array

  [[nodiscard]] bool is_text() const { return value_->is_string(); }
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::int64_t integer(std::int64_t minimum, std::int64_t maximum) const;
  // A boolean, a whole number, any other finite number, or text.
  [[nodiscard]] ParameterValue scalar() const;
  // A finite number of at least 0.
  [[nodiscard]] double quantity() const;
  // A number above 0 whose inverse is finite, or "unlimited" for infinity.
  [[nodiscard]] double rate() const;

 private:
  JsonElement(const nlohmann::json& value, const std::string& source, std::string path)
      : value_(&value), source_(&source), path_(std::move(path)) {}
  [[noreturn]] void fail_type(std::string_view wanted) const;

  const nlohmann::json* value_;
  const std::string* source_;
  std::string path_;  // JSON pointer; empty for the document
};

// What JsonElement::rate() reads.
nlohmann::ordered_json rate_json(double rate);

}  // namespace doppler
