#include "graphs/registry.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "graphs/number_text.h"
#include "graphs/parse_error.h"

namespace doppler {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == '+';
}

// Reads `name(value, key=value)` from left to right.
class CallParser {
 public:
  explicit CallParser(std::string_view text) : text_(text) {}

  NamedCall parse() {
    NamedCall call;
    skip_blanks();
    call.name = name("a name");
    skip_blanks();
    if (at_end()) return call;
    expect('(', "'(' or the end");
    skip_blanks();
    if (peek() != ')') {
      argument(call);
      while (peek() == ',') {
        ++at_;
        argument(call);
      }
    }
    expect(')', "',' or ')'");
    skip_blanks();
    if (!at_end()) fail("nothing may follow the closing ')'");
    return call;
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  // The next character; 0 at the end.
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  void skip_blanks() {
    while (!at_end() && is_blank(text_[at_])) ++at_;
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw UsageError(quoted(text_, 80) + ", column " + std::to_string(at_ + 1) + ": " + message);
  }
  void expect(char c, const std::string& what) {
    if (at_end() || text_[at_] != c) {
      fail("expected " + what +
           (at_end() ? ", found the end" : ", found " + quoted({&text_[at_], 1})));
    }
    ++at_;
  }
  std::string name(const std::string& what) {
    const std::size_t start = at_;
    while (!at_end() && is_name_character(text_[at_])) ++at_;
    if (at_ == start) fail("expected " + what + " (letters, digits, '-', '_', '.', '+')");
    return std::string(text_.substr(start, at_ - start));
  }

  // Up to the ',' or ')' that ends it; blanks at both ends are left out.
  std::string value() {
    skip_blanks();
    const std::size_t start = at_;
    std::size_t depth = 0;
    for (; !at_end(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && (c == ',' || c == ')')) break;
      if (c == '(' || c == '[') ++depth;
      if (depth > 0 && (c == ')' || c == ']')) --depth;
    }
    if (depth > 0) fail("a '(' or '[' is not closed; add what closes it");
    std::size_t end = at_;
    while (end > start && is_blank(text_[end - 1])) --end;
    return std::string(text_.substr(start, end - start));
  }

  void argument(NamedCall& call) {
    skip_blanks();
    const std::size_t start = at_;
    std::size_t key_end = at_;
    while (key_end < text_.size() && is_name_character(text_[key_end])) ++key_end;
    std::size_t equals = key_end;
    while (equals < text_.size() && is_blank(text_[equals])) ++equals;
    if (equals < text_.size() && text_[equals] == '=') {
      std::string key = name("a parameter before '='");
      at_ = equals + 1;
      call.named.emplace_back(std::move(key), value());
      return;
    }
    if (!call.named.empty()) fail("a value without a name may not follow one with a name");
    call.positional.push_back(value());
    if (call.positional.back().empty()) {
      at_ = start;
      fail("expected a value");
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string join(std::span<const std::string> names, std::size_t max_names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), max_names); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  if (names.size() > max_names) {
    text += " and " + std::to_string(names.size() - max_names) + " more";
  }
  return text;
}

std::string text_of(const ParameterValue& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  return std::get<std::string>(value);
}

// "a whole number from 1 to 8"
std::string expectation(const ParameterSpec& spec) {
  if (std::holds_alternative<bool>(spec.default_value)) return "true or false";
  if (std::holds_alternative<std::string>(spec.default_value)) {
    return "one of " + join(spec.choices, 20);
  }
  std::string text =
      std::holds_alternative<double>(spec.default_value) ? "a number" : "a whole number";
  if (spec.minimum && spec.maximum) {
    return text + " from " + number_text(*spec.minimum) + " to " + number_text(*spec.maximum);
  }
  if (spec.minimum) return text + " of at least " + number_text(*spec.minimum);
  if (spec.maximum) return text + " of at most " + number_text(*spec.maximum);
  return text;
}

template <class Number>
bool in_range(const ParameterSpec& spec, Number number) {
  const auto value = static_cast<double>(number);
  return !(spec.minimum && value < *spec.minimum) && !(spec.maximum && value > *spec.maximum);
}

// Nothing if the text is not of the type of the parameter or out of its range.
std::optional<ParameterValue> parse_value(const ParameterSpec& spec, const std::string& text) {
  if (std::holds_alternative<bool>(spec.default_value)) {
    if (text == "true") return true;
    if (text == "false") return false;
    return std::nullopt;
  }
  if (std::holds_alternative<std::int64_t>(spec.default_value)) {
    const auto integer = parse_int64(text);
    if (!integer || !in_range(spec, *integer)) return std::nullopt;
    return *integer;
  }
  if (std::holds_alternative<double>(spec.default_value)) {
    const auto number = parse_double(text);
    if (!number || !in_range(spec, *number)) return std::nullopt;
    return *number;
  }
  if (!spec.choices.empty() &&
      std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end()) {
    return std::nullopt;
  }
  return text;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Insertions, deletions, changes and swaps of neighbours that lead from one text to the other; case
// does not count (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

NamedCall NamedCall::parse(std::string_view text) { return CallParser(text).parse(); }

Parameters::Parameters(std::span<const ParameterSpec> schema, const NamedCall& call)
    : owner_(call.name) {
  for (const ParameterSpec& spec : schema) items_.push_back({spec.name, spec.default_value, false});
  const auto give = [&](std::size_t index, const std::string& text) {
    const std::string where = owner_ + ": parameter '" + schema[index].name + "'";
    if (items_[index].given) throw UsageError(where + " is given twice; leave one out");
    auto value = parse_value(schema[index], text);
    if (!value) {
      throw UsageError(where + " is " + quoted(text) + "; it must be " +
                       expectation(schema[index]));
    }
    items_[index].value = *std::move(value);
    items_[index].given = true;
  };
  if (call.positional.size() > schema.size()) {
    throw UsageError(owner_ + ": takes at most " + std::to_string(schema.size()) +
                     " values, found " + std::to_string(call.positional.size()));
  }
  for (std::size_t i = 0; i < call.positional.size(); ++i) give(i, call.positional[i]);
  for (const auto& argument : call.named) {
    const std::string& name = argument.first;
    const auto found =
        std::find_if(schema.begin(), schema.end(),
                     [&wanted = name](const auto& spec) { return spec.name == wanted; });
    if (found == schema.end()) {
      if (schema.empty()) {
        throw UsageError(owner_ + ": takes no parameters, found " + quoted(name));
      }
      std::vector<std::string> known;
      for (const ParameterSpec& spec : schema) known.push_back(spec.name);
      throw_unknown_name(owner_ + " parameter", name, known);
    }
    give(static_cast<std::size_t>(found - schema.begin()), argument.second);
  }
}

const ParameterValue& Parameters::value(std::string_view name) const {
  for (const Item& item : items_) {
    if (item.name == name) return item.value;
  }
  throw std::logic_error(owner_ + " has no parameter '" + std::string(name) + "'");
}

void Parameters::throw_wrong_type(std::string_view name) const {
  throw std::logic_error(owner_ + ": parameter '" + std::string(name) + "' has another type");
}

bool Parameters::given(std::string_view name) const {
  for (const Item& item : items_) {
    if (item.name == name) return item.given;
  }
  throw std::logic_error(owner_ + " has no parameter '" + std::string(name) + "'");
}

std::string Parameters::canonical() const {
  std::string arguments;
  for (const Item& item : items_) {
    if (!item.given) continue;
    arguments += (arguments.empty() ? "" : ",") + item.name + "=" + text_of(item.value);
  }
  return arguments.empty() ? owner_ : owner_ + "(" + arguments + ")";
}

std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names) {
  constexpr std::size_t kMaxLength = 100;  // nothing that long is a slip
  constexpr std::size_t kMaxNames = 3;
  if (name.size() > kMaxLength) return {};
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& candidate : names) {
    // A slip changes at most a third of a name; a part that was left out at its end is one as well.
    const std::size_t longest = std::max(name.size(), candidate.size());
    const std::size_t distance = edit_distance(name, candidate);
    const bool is_start = name.size() >= 3 && candidate.starts_with(name);
    if (distance <= std::max<std::size_t>(1, longest / 3) || is_start) {
      near.emplace_back(distance, candidate);
    }
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> result;
  for (std::size_t i = 0; i < std::min(near.size(), kMaxNames); ++i) {
    result.push_back(std::move(near[i].second));
  }
  return result;
}

void throw_unknown_name(std::string_view what, std::string_view name,
                        std::span<const std::string> known) {
  std::string message = "unknown " + std::string(what) + " " + quoted(name);
  const std::vector<std::string> near = nearest_names(name, known);
  if (!near.empty()) message += "; did you mean " + join(near, near.size()) + "?";
  message += (near.empty() ? "; known: " : " known: ") +
             (known.empty() ? std::string("none") : join(known, 40));
  throw UsageError(message);
}

}  // namespace doppler
