// Compression of rows that differ little from one another, as the observations of an episode do.
//
// What comes out is a zlib stream (RFC 1950, 1951) that any reader of HDF5's deflate filter
// understands. It takes a tenth of zlib's time, for it looks for repetitions in three places only:
// one row before, two rows before (modes that alternate), and the byte before (runs). One block of
// fixed Huffman codes; the checksum is kept up from changes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace doppler {

// One stream after another. For one thread. Memory: about four rows and what has been written.
class RowDeflate {
 public:
  explicit RowDeflate(std::size_t row_bytes);  // at least 1
  ~RowDeflate();
  RowDeflate(RowDeflate&&) noexcept;
  RowDeflate& operator=(RowDeflate&&) noexcept;

  [[nodiscard]] std::size_t row_bytes() const { return row_bytes_; }
  // Requires row_bytes() bytes.
  void add(std::span<const std::byte> row);
  // The stream of all rows since the last one ended; the next add() begins another.
  std::string finish();

 private:
  struct Zlib;  // for rows beyond the reach of a deflate match, 32 KiB
  struct Code {
    std::uint32_t bits = 0;
    int n_bits = 0;
  };

  // The row that the present one is compared with; distance 0: none.
  struct Base {
    std::size_t distance = 0;
    Code code = {};
    std::size_t age = 0;  // 0: the row before, 1: the one before that
  };
  // Of a row, for Adler-32.
  struct Sums {
    std::int64_t plain = 0;
    std::int64_t weighted = 0;  // of (row_bytes - i) x byte i
  };

  void begin();
  void encode_pending();
  void encode(std::size_t end);
  void choose_base();
  std::size_t encode_changed(std::size_t at, std::size_t row_end);
  void flush_match(const Base& base);
  void put_match(std::size_t length, const Code& distance);
  void put_bits(std::uint64_t bits, int n_bits);
  void end_row(const Sums& sums);

  std::size_t row_bytes_;
  std::unique_ptr<Zlib> zlib_;
  std::string out_;  // grows ahead of what is in it: n_out_ bytes
  std::size_t n_out_ = 0;
  std::uint64_t bits_ = 0;
  int n_bits_ = 0;

  // Rows still needed, then those that are not encoded yet.
  std::vector<std::uint8_t> window_;
  std::size_t encoded_ = 0;  // up to here
  std::size_t size_ = 0;
  std::size_t matched_ = 0;  // bytes before encoded_ that equal their base and are not put yet
  Code one_row_;
  Code two_rows_;
  Code one_byte_;

  Base base_;
  Sums sums_[2];  // of the row before, and of the one before that
  std::uint64_t adler_a_ = 1;
  std::uint64_t adler_b_ = 0;
};

}  // namespace doppler
