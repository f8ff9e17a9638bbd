// Reading JSON as a stream of events, without a document in memory.
//
// A reader of one file format derives from JsonStreamReader and says for each container and scalar
// what it is. JsonStreamReader refuses unknown, repeated and missing fields, what no format here
// has (NUL bytes, trailing text), and knows the place of every event, so that each refusal names
// line and column.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace doppler {

inline constexpr std::int64_t kLargestId = std::numeric_limits<std::int32_t>::max();

// A field that an object may have, or must have.
struct JsonField {
  std::string_view name;
  bool is_required = false;
};

// An object of the format, at most 32 fields; `what` is for messages: "a node".
struct JsonObject {
  std::string_view what;
  std::span<const JsonField> fields;
};

// null, a boolean, a whole number, any other number, or a string. Whole numbers beyond int64 are
// doubles.
using JsonScalar = std::variant<std::monostate, bool, std::int64_t, double, std::string_view>;

class JsonStreamReader {
 public:
  // `content` outlives the reader; `source` stands for the file in messages.
  JsonStreamReader(std::string_view content, std::string source);
  JsonStreamReader(const JsonStreamReader&) = delete;
  JsonStreamReader& operator=(const JsonStreamReader&) = delete;
  virtual ~JsonStreamReader() = default;

 protected:
  // A place of the format: a number of the derived class; `object` is nothing for an array.
  struct Container {
    int place = 0;
    std::optional<JsonObject> object;
  };

  // An object or array begins. Returns what it is, or calls fail().
  virtual Container enter(bool is_object) = 0;
  // The innermost container ends; place() still names it.
  virtual void leave() {}
  // A value in the innermost container; for an object, of its field().
  virtual void scalar(const JsonScalar& value) = 0;

  // Reads all of the content. Throws ParseError.
  void parse();

  // Containers around the current event, and the innermost one.
  [[nodiscard]] std::size_t depth() const { return levels_.size(); }
  [[nodiscard]] int place() const { return levels_.back().container.place; }
  // The index in JsonObject::fields of the current field of the innermost container, an object.
  [[nodiscard]] int field() const { return levels_.back().field; }
  // Values and containers that the innermost container has had before this one.
  [[nodiscard]] std::size_t count() const { return levels_.back().count; }

  // Throws ParseError with the place of the current event.
  [[noreturn]] void fail(const std::string& message) const;

  // The value as what the format wants there, or fail(); `what` is for the message: "'flops'".
  [[nodiscard]] std::int64_t as_integer(const JsonScalar& value, std::string_view what,
                                        std::int64_t least, std::int64_t most) const;
  // A number of at least 0.
  double as_amount(const JsonScalar& value, std::string_view what) const;
  [[nodiscard]] std::string as_string(const JsonScalar& value, std::string_view what) const;

 private:
  class Events;
  struct Level {
    Container container;
    std::uint32_t seen = 0;  // fields, by bit
    int field = 0;
    std::size_t count = 0;
  };

  void begin_event(bool is_number);
  void open(bool is_object);
  void close();
  void key(std::string_view name);
  void value(const JsonScalar& value);

  std::string_view content_;
  std::string source_;
  std::vector<Level> levels_;
  std::size_t n_consumed_ = 0;  // bytes that the tokeniser has taken
  std::size_t event_ = 0;       // where the current event's token begins
  std::size_t event_end_ = 0;   // where it ends
};

}  // namespace doppler
