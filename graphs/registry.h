// One typed registry for everything that has a name: workloads, clusters, engines, agents, action
// modes. An entry describes itself: a one-line summary, a source, a schema of parameters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graphs/error.h"

namespace doppler {

using ParameterValue = std::variant<bool, std::int64_t, double, std::string>;

// One parameter of a registered thing. The type is that of `default_value`; bounds are inclusive
// and only for numbers; `choices`, when not empty, lists the accepted strings.
struct ParameterSpec {
  std::string name;
  std::string summary;
  ParameterValue default_value;
  std::optional<double> minimum = std::nullopt;
  std::optional<double> maximum = std::nullopt;
  std::vector<std::string> choices = {};

  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

// A name with arguments as users write it: `llama-stack(layers=4)`, `uniform(8)`, `ffnn`. Names and
// keys are letters, digits and "_-.+"; blanks around them and around values do not count. Values
// may hold balanced parentheses and brackets, and inside these commas and '='. Positional values
// come first.
struct NamedCall {
  std::string name;
  std::vector<std::string> positional;
  std::vector<std::pair<std::string, std::string>> named;

  // Throws UsageError that shows the text and the column of a syntax mistake.
  static NamedCall parse(std::string_view text);
  friend bool operator==(const NamedCall&, const NamedCall&) = default;
};

// Checked values for a schema: every parameter has a value, of its type, in its range.
class Parameters {
 public:
  Parameters() = default;
  // Positional values fill the schema in its order. Throws UsageError for an unknown name (with the
  // nearest ones), a value given twice, of the wrong type, or out of range. Whole numbers are
  // decimal, booleans are `true` and `false`.
  Parameters(std::span<const ParameterSpec> schema, const NamedCall& call);

  // The value of a parameter of the schema; T is bool, int64_t, double or std::string.
  // Throws std::logic_error for a name or a type that the schema does not have.
  template <class T>
  [[nodiscard]] T get(std::string_view name) const {
    const T* found = std::get_if<T>(&value(name));
    if (found == nullptr) throw_wrong_type(name);
    return *found;
  }
  // Whether the user gave the value (false: it is the default).
  [[nodiscard]] bool given(std::string_view name) const;
  // `name(a=1,b=2)` with the given parameters only, in schema order: the canonical spelling.
  [[nodiscard]] std::string canonical() const;

  friend bool operator==(const Parameters&, const Parameters&) = default;

 private:
  struct Item {
    std::string name;
    ParameterValue value;
    bool given = false;
    friend bool operator==(const Item&, const Item&) = default;
  };
  [[nodiscard]] const ParameterValue& value(std::string_view name) const;
  [[noreturn]] void throw_wrong_type(std::string_view name) const;
  std::string owner_;
  std::vector<Item> items_;
};

// Up to three of `names` that are nearest to `name` by edit distance, nearest first; those that are
// too far to be a slip are left out.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names);

// "unknown WHAT 'NAME'; did you mean A, B? known: ..." as a UsageError.
[[noreturn]] void throw_unknown_name(std::string_view what, std::string_view name,
                                     std::span<const std::string> known);

// What every registered thing says of itself; a registry's T derives from this.
struct Description {
  std::string name;     // lower case, words joined by '-'
  std::string summary;  // one line
  std::string source;   // paper and section, vendor's data sheet, or "own"
  std::vector<ParameterSpec> parameters = {};
};

// Named things of one kind, iterated in the order of their names. Not thread safe while adding;
// every const member is thread safe.
template <class T>
class Registry {
 public:
  // `what` names the kind in messages: "workload", "agent".
  explicit Registry(std::string what) : what_(std::move(what)) {}

  // Throws UsageError for a name that is already taken or empty.
  void add(T entry) {
    std::string name = entry.name;
    if (name.empty()) throw UsageError("a " + what_ + " needs a name");
    if (!entries_.emplace(name, std::move(entry)).second) {
      throw UsageError("a " + what_ + " named '" + name + "' is registered already");
    }
  }

  [[nodiscard]] bool contains(std::string_view name) const { return entries_.contains(name); }

  // Throws UsageError that lists the nearest names.
  [[nodiscard]] const T& at(std::string_view name) const {
    auto found = entries_.find(name);
    if (found == entries_.end()) throw_unknown_name(what_, name, names());
    return found->second;
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, entry] : entries_) result.push_back(name);
    return result;
  }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }  // of pair<const string, T>
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  std::string what_;
  std::map<std::string, T, std::less<>> entries_;
};

}  // namespace doppler
