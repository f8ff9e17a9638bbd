// A table in plain text whose columns are as wide as they must be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace doppler::cli {

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // Requires one cell a column; std::logic_error otherwise.
  void add(std::vector<std::string> row);
  // Lines that end in a newline, titles first, without blanks at their ends.
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Characters of a UTF-8 text.
std::size_t display_width(std::string_view text);

}  // namespace doppler::cli
