// Enumerators and their names in files, commands and Python.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "graphs/error.h"

namespace doppler {

template <class T>
using EnumName = std::pair<T, std::string_view>;

// Throws std::logic_error for an enumerator that the list does not have.
template <class T>
std::string_view enum_name(std::span<const EnumName<T>> names, T value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  throw std::logic_error("an enumerator without a name");
}

// Throws UsageError that lists the names; `what` says what is named.
template <class T>
T parse_enum(std::span<const EnumName<T>> names, std::string_view what, std::string_view text) {
  std::string known_names;
  for (const auto& [known, name] : names) {
    if (name == text) return known;
    known_names += " " + std::string(name);
  }
  throw UsageError("unknown " + std::string(what) + " '" + std::string(text.substr(0, 40)) +
                   "'; known:" + known_names);
}

}  // namespace doppler
