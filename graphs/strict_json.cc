#include "graphs/strict_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "graphs/error.h"
#include "graphs/parse_error.h"

namespace doppler {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxReason = 300;  // bytes of a message that may hold a user's text
constexpr std::size_t kMaxField = 60;    // bytes of a field's name in a path
constexpr std::string_view kUnlimitedText = "unlimited";

// The beginning of a user's text, cut between characters.
std::string beginning(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xC0U) == 0x80U) {
    --max_bytes;
  }
  return std::string(text.substr(0, max_bytes)) + "...";
}

// The library's message without its id and its own account of the place.
std::string reason_of(std::string_view message) {
  const std::size_t id = message.find("] ");
  if (id != std::string_view::npos) message.remove_prefix(id + 2);
  const std::size_t column = message.find(", column ");
  if (message.starts_with("parse error at ") && column != std::string_view::npos) {
    const std::size_t colon = message.find(": ", column);
    if (colon != std::string_view::npos) message.remove_prefix(colon + 2);
  }
  return beginning(message, kMaxReason);
}

}  // namespace

Json parse_strict_json(std::string_view content, const std::string& source) {
  // The library takes a zero byte for the end of the text.
  if (const std::size_t nul = content.find('\0'); nul != std::string_view::npos) {
    throw_parse_error(content, source, nul, "a zero byte; this is not a text file");
  }
  std::vector<std::set<std::string>> open_objects;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) {
      throw ParseError(source + ": nested more than " + std::to_string(kMaxDepth) + " deep");
    }
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open_objects.back().insert(key).second) {
        throw ParseError(source + ": field " + doppler::quoted(key) +
                         " is given twice in one object; keep one of them");
      }
    }
    return true;
  };
  try {
    return Json::parse(content, watch);
  } catch (const Json::parse_error& error) {
    throw_parse_error(content, source, error.byte > 0 ? error.byte - 1 : 0,
                      reason_of(error.what()));
  } catch (const Json::exception& error) {
    throw ParseError(source + ": " + reason_of(error.what()));
  }
}

std::string write_json(const nlohmann::ordered_json& document, std::string_view what) {
  try {
    return document.dump(2) + "\n";
  } catch (const Json::exception&) {
    throw InvalidError(std::string(what) +
                       " holds text that is not UTF-8 and cannot be written; rename it");
  }
}

void JsonElement::fail(const std::string& what) const {
  throw ParseError(*source_ + ": " + (path_.empty() ? "" : path_ + ": ") +
                   beginning(what, kMaxReason));
}

void JsonElement::fail_type(std::string_view wanted) const {
  std::string seen = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (seen.size() > 40) seen = std::string("a long ") + value_->type_name();
  fail("expected " + std::string(wanted) + ", found " + seen);
}

void JsonElement::expect_format(std::string_view format, std::int64_t version) const {
  const std::string& found = field("format").text();
  if (found != format) {
    field("format").fail("this is a " + doppler::quoted(found) + " file; expected '" +
                         std::string(format) + "'");
  }
  const std::int64_t found_version =
      field("version").integer(0, std::numeric_limits<std::int64_t>::max());
  if (found_version != version) {
    field("version").fail("version " + std::to_string(found_version) +
                          " is not known; this program reads version " + std::to_string(version));
  }
}

void JsonElement::allow_fields(std::initializer_list<std::string_view> allowed) const {
  for (const auto& [name, value] : fields()) {
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    const std::vector<std::string> known(allowed.begin(), allowed.end());
    const std::vector<std::string> nearest = nearest_names(name, known);
    std::string names;
    for (const std::string& candidate : nearest.empty() ? known : nearest) {
      names += (names.empty() ? "" : ", ") + candidate;
    }
    value.fail(nearest.empty() ? "unknown field; known: " + names
                               : "unknown field; did you mean " + names + "?");
  }
}

JsonElement JsonElement::field(std::string_view name) const {
  const auto found = find(name);
  if (!found) fail("field \"" + std::string(name) + "\" is missing");
  return *found;
}

std::optional<JsonElement> JsonElement::find(std::string_view name) const {
  if (!value_->is_object()) fail_type("an object");
  const auto found = value_->find(name);
  if (found == value_->end()) return std::nullopt;
  return JsonElement(*found, *source_, path_ + "/" + beginning(name, kMaxField));
}

std::vector<std::pair<std::string, JsonElement>> JsonElement::fields() const {
  if (!value_->is_object()) fail_type("an object");
  std::vector<std::pair<std::string, JsonElement>> result;
  for (const auto& [name, value] : value_->items()) {
    result.emplace_back(name,
                        JsonElement(value, *source_, path_ + "/" + beginning(name, kMaxField)));
  }
  return result;
}

std::vector<JsonElement> JsonElement::elements() const {
  if (!value_->is_array()) fail_type("an array");
  std::vector<JsonElement> result;
  for (const Json& element : *value_) {
    result.push_back(JsonElement(element, *source_, path_ + "/" + std::to_string(result.size())));
  }
  return result;
}

bool JsonElement::boolean() const {
  if (!value_->is_boolean()) fail_type("true or false");
  return value_->get<bool>();
}

const std::string& JsonElement::text() const {
  if (!value_->is_string()) fail_type("text");
  return value_->get_ref<const std::string&>();
}

std::int64_t JsonElement::integer(std::int64_t minimum, std::int64_t maximum) const {
  const std::string wanted =
      "a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum);
  if (!value_->is_number_integer()) fail_type(wanted);
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    fail_type(wanted);
  }
  const auto value = value_->get<std::int64_t>();
  if (value < minimum || value > maximum) fail_type(wanted);
  return value;
}

ParameterValue JsonElement::scalar() const {
  if (value_->is_boolean()) return boolean();
  if (value_->is_string()) return text();
  if (value_->is_number_integer()) {
    return integer(std::numeric_limits<std::int64_t>::min(),
                   std::numeric_limits<std::int64_t>::max());
  }
  if (!value_->is_number()) fail_type("a number, text, true or false");
  return value_->get<double>();
}

double JsonElement::quantity() const {
  if (!value_->is_number()) fail_type("a number of at least 0");
  const auto value = value_->get<double>();
  if (!(value >= 0) || !std::isfinite(value)) fail_type("a number of at least 0");
  return value;
}

double JsonElement::rate() const {
  if (value_->is_string() && text() == kUnlimitedText) {
    return std::numeric_limits<double>::infinity();
  }
  if (!value_->is_number()) fail_type("a number above 0, or \"unlimited\"");
  const auto value = value_->get<double>();
  if (!(value > 0) || !std::isfinite(value)) fail_type("a number above 0, or \"unlimited\"");
  if (!std::isfinite(1 / value)) fail("too small: its inverse overflows");
  return value;
}

nlohmann::ordered_json rate_json(double rate) {
  if (std::isinf(rate)) return kUnlimitedText;
  return rate;
}

}  // namespace doppler
