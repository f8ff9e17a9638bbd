// JSON as the command writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace doppler::cli {

// Indented, with a newline at the end; doubles so that they read back exactly; bytes of names that
// are not UTF-8 are replaced.
inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Without line breaks inside, for long lists of records.
inline std::string compact_json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// null for an empty value.
template <class T>
nlohmann::ordered_json json_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace doppler::cli
