#include "graphs/json_stream.h"

#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>

#include "graphs/error.h"
#include "graphs/number_text.h"
#include "graphs/parse_error.h"
#include "graphs/registry.h"

namespace doppler {
namespace {

// Walks the content and notes how far the tokeniser has come.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* n_consumed) : at_(at), n_consumed_(n_consumed) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*n_consumed_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  std::size_t* n_consumed_;
};

bool is_between_tokens(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':';
}

std::string found(const JsonScalar& value) {
  switch (value.index()) {
    case 0:
      return "null";
    case 1:
      return std::get<bool>(value) ? "true" : "false";
    case 2:
      return std::to_string(std::get<std::int64_t>(value));
    case 3:
      return number_text(std::get<double>(value));
    default:
      return "the text " + quoted(std::get<std::string_view>(value));
  }
}

}  // namespace

// Hands the events of the library on.
class JsonStreamReader::Events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Events(JsonStreamReader& reader) : reader_(reader) {}

  bool null() override { return scalar(std::monostate(), false); }
  bool boolean(bool value) override { return scalar(value, false); }
  bool number_integer(number_integer_t value) override { return scalar(value, true); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return scalar(static_cast<double>(value), true);
    }
    return scalar(static_cast<std::int64_t>(value), true);
  }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value, true); }
  bool string(string_t& value) override { return scalar(std::string_view(value), false); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(std::size_t) override {
    reader_.begin_event(false);
    reader_.open(true);
    return true;
  }
  bool start_array(std::size_t) override {
    reader_.begin_event(false);
    reader_.open(false);
    return true;
  }
  bool key(string_t& name) override {
    reader_.begin_event(false);
    reader_.key(name);
    return true;
  }
  bool end_object() override {
    reader_.begin_event(false);
    reader_.close();
    return true;
  }
  bool end_array() override {
    reader_.begin_event(false);
    reader_.close();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception...] parse error at line 1, column 2: syntax error while parsing value -
    // what; last read: '...'"
    std::string_view text = error.what();
    for (std::string_view head : {"] ", "column ", ": ", " - "}) {
      const std::size_t found = text.find(head);
      if (found != std::string_view::npos) text.remove_prefix(found + head.size());
    }
    text = text.substr(0, text.find("; last read: "));
    throw_parse_error(reader_.content_, reader_.source_, position == 0 ? 0 : position - 1,
                      "not JSON: " + std::string(text.substr(0, 120)));
  }

 private:
  bool scalar(const JsonScalar& value, bool is_number) {
    reader_.begin_event(is_number);
    reader_.value(value);
    return true;
  }

  JsonStreamReader& reader_;
};

JsonStreamReader::JsonStreamReader(std::string_view content, std::string source)
    : content_(content), source_(std::move(source)) {}

void JsonStreamReader::parse() {
  // The library takes a NUL byte for the end of the text.
  if (const std::size_t nul = content_.find('\0'); nul != std::string_view::npos) {
    throw_parse_error(content_, source_, nul, "a zero byte; this is not a text file");
  }
  event_end_ = byte_order_mark(content_);
  Events events(*this);
  nlohmann::json::sax_parse(CountingIterator(content_.data(), &n_consumed_),
                            CountingIterator(content_.data() + content_.size(), &n_consumed_),
                            &events);
}

void JsonStreamReader::fail(const std::string& message) const {
  throw_parse_error(content_, source_, event_, message);
}

void JsonStreamReader::begin_event(bool is_number) {
  event_ = event_end_;
  while (event_ < n_consumed_ && is_between_tokens(content_[event_])) ++event_;
  // The tokeniser sees the end of a number in the byte after it.
  const bool is_ahead = is_number && n_consumed_ > event_ &&
                        (content_[n_consumed_ - 1] < '0' || content_[n_consumed_ - 1] > '9');
  event_end_ = is_ahead ? n_consumed_ - 1 : n_consumed_;
}

void JsonStreamReader::open(bool is_object) {
  Container container = enter(is_object);
  if (!levels_.empty()) ++levels_.back().count;
  levels_.push_back({std::move(container)});
}

void JsonStreamReader::close() {
  Level& level = levels_.back();
  if (const auto& object = level.container.object) {
    for (std::size_t i = 0; i < object->fields.size(); ++i) {
      if (object->fields[i].is_required && (level.seen >> i & 1U) == 0) {
        fail(std::string(object->what) + " ends here without its field '" +
             std::string(object->fields[i].name) + "'");
      }
    }
  }
  leave();
  levels_.pop_back();
}

void JsonStreamReader::key(std::string_view name) {
  Level& level = levels_.back();
  const JsonObject& object = *level.container.object;
  for (std::size_t i = 0; i < object.fields.size(); ++i) {
    if (object.fields[i].name != name) continue;
    if ((level.seen >> i & 1U) != 0) {
      fail("the field " + quoted(name) + " stands twice in " + std::string(object.what));
    }
    level.seen |= std::uint32_t{1} << i;
    level.field = static_cast<int>(i);
    return;
  }
  std::vector<std::string> known;
  for (const JsonField& known_field : object.fields) known.emplace_back(known_field.name);
  try {
    throw_unknown_name("field of " + std::string(object.what), name, known);
  } catch (const UsageError& error) {
    fail(error.what());
  }
}

void JsonStreamReader::value(const JsonScalar& value) {
  scalar(value);
  if (!levels_.empty()) ++levels_.back().count;
}

std::int64_t JsonStreamReader::as_integer(const JsonScalar& value, std::string_view what,
                                          std::int64_t least, std::int64_t most) const {
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr || *integer < least || *integer > most) {
    fail(std::string(what) + " is a whole number from " + std::to_string(least) + " to " +
         std::to_string(most) + ", found " + found(value));
  }
  return *integer;
}

double JsonStreamReader::as_amount(const JsonScalar& value, std::string_view what) const {
  double number = -1;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    number = static_cast<double>(*integer);
  } else if (const auto* floating = std::get_if<double>(&value)) {
    number = *floating;
  }
  if (number < 0) {
    fail(std::string(what) + " is a number of at least 0, found " + found(value));
  }
  return number;
}

std::string JsonStreamReader::as_string(const JsonScalar& value, std::string_view what) const {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text == nullptr) fail(std::string(what) + " is a text, found " + found(value));
  return std::string(*text);
}

}  // namespace doppler
