#include "datasets/trajectories/row_deflate.h"

#include <zlib.h>

#include <random>
#include <string>

#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

std::string inflated(const std::string& stream, std::size_t n_bytes) {
  std::string bytes(n_bytes + 1, '\0');
  uLongf size = bytes.size();
  // zlib checks the Adler-32 sum as well.
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                     reinterpret_cast<const Bytef*>(stream.data()), stream.size()) == Z_OK);
  bytes.resize(size);
  return bytes;
}

std::string compressed(RowDeflate& deflate, const std::string& rows) {
  const auto bytes = std::as_bytes(std::span(rows));
  for (std::size_t at = 0; at < rows.size(); at += deflate.row_bytes()) {
    deflate.add(bytes.subspan(at, deflate.row_bytes()));
  }
  return deflate.finish();
}

// Rows of which each keeps most of the one before, or of the one before that.
std::string rows_of(std::size_t row, std::size_t n_rows, double change, std::mt19937& random) {
  std::string rows;
  std::uniform_real_distribution<double> uniform(0, 1);
  for (std::size_t r = 0; r < n_rows; ++r) {
    const std::size_t back = uniform(random) < 0.3 && r >= 2 ? 2 : 1;
    const bool is_blank = uniform(random) < 0.1;
    for (std::size_t i = 0; i < row; ++i) {
      const bool is_new = r < back || uniform(random) < change;
      const char kept = r < back ? '\0' : rows[(r - back) * row + i];
      rows += is_blank ? '\0' : is_new ? static_cast<char>(random() % 5 == 0 ? random() : 7) : kept;
    }
  }
  return rows;
}

TEST_CASE("zlib reads back what RowDeflate writes") {
  std::mt19937 random(1);
  for (const std::size_t row :
       {1, 2, 3, 4, 7, 8, 80, 229, 233, 916, 5000, 16384, 16385, 32768, 32769, 100000}) {
    RowDeflate deflate(row);
    for (const std::size_t n_rows : {1, 2, 3, 9, 459}) {
      if (row * n_rows > 3'000'000) continue;
      for (const double change : {0.0, 0.002, 0.05, 1.0}) {
        const std::string rows = rows_of(row, n_rows, change, random);
        INFO(row << " bytes, " << n_rows << " rows, change " << change);
        const std::string stream = compressed(deflate, rows);
        CHECK(inflated(stream, rows.size()) == rows);
      }
    }
  }
}

TEST_CASE("Every length of a match and every gap between matches is written rightly") {
  for (std::size_t gap = 1; gap <= 700; ++gap) {
    RowDeflate deflate(700);
    std::string rows(700, 'a');
    rows += rows;
    rows[700 + gap - 1] = 'b';
    rows += rows;
    rows[4 * 700 - gap] = 'c';
    CHECK(inflated(compressed(deflate, rows), rows.size()) == rows);
  }
}

TEST_CASE("Rows that repeat cost little") {
  RowDeflate deflate(916);
  const std::string rows(916 * 459, '\xff');
  CHECK(compressed(deflate, rows).size() < rows.size() / 90);
}

TEST_CASE("Streams follow one another in one object") {
  RowDeflate deflate(4);
  CHECK(inflated(compressed(deflate, "abcdabcd"), 8) == "abcdabcd");
  CHECK(inflated(compressed(deflate, "abcdabce"), 8) == "abcdabce");
  CHECK(inflated(deflate.finish(), 0).empty());
}

}  // namespace
}  // namespace doppler::testing
