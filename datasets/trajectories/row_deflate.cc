#include "datasets/trajectories/row_deflate.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <stdexcept>

namespace doppler {
namespace {

constexpr std::size_t kReach = 32768;  // of a deflate match
constexpr std::size_t kLongestMatch = 258;
constexpr std::size_t kShortestMatch = 3;
constexpr std::size_t kShortestOther = 4;       // a match that costs more bits for its distance
constexpr std::size_t kBatch = 1024;            // bytes of small rows that are encoded together
constexpr std::uint64_t kAdlerModulus = 65521;  // the largest prime below 2^16

struct Bits {
  std::uint32_t bits = 0;
  int n_bits = 0;
};

constexpr std::uint32_t reversed(std::uint32_t code, int n_bits) {
  std::uint32_t result = 0;
  for (int i = 0; i < n_bits; ++i) result |= ((code >> i) & 1U) << (n_bits - 1 - i);
  return result;
}

// RFC 1951, 3.2.6.
constexpr Bits symbol(std::uint32_t value) {
  if (value < 144) return {reversed(0x30 + value, 8), 8};
  if (value < 256) return {reversed(0x190 + value - 144, 9), 9};
  if (value < 280) return {reversed(value - 256, 7), 7};
  return {reversed(0xc0 + value - 280, 8), 8};
}

constexpr std::array<Bits, 256> kLiterals = [] {
  std::array<Bits, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) table[i] = symbol(i);
  return table;
}();

// RFC 1951, 3.2.5: codes 257 to 285, each followed by extra bits.
constexpr std::array<Bits, kLongestMatch + 1> kLengths = [] {
  std::array<Bits, kLongestMatch + 1> table{};
  std::size_t length = kShortestMatch;
  for (std::uint32_t code = 257; code < 285; ++code) {
    const int n_extra = code < 265 ? 0 : static_cast<int>((code - 261) / 4);
    for (std::uint32_t extra = 0; extra < (1U << n_extra) && length < kLongestMatch; ++extra) {
      const Bits base = symbol(code);
      table[length++] = {base.bits | extra << base.n_bits, base.n_bits + n_extra};
    }
  }
  table[kLongestMatch] = symbol(285);
  return table;
}();

Bits distance_code(std::size_t distance) {
  std::uint32_t code = 0;
  std::size_t base = 1;
  while (true) {
    const int n_extra = code < 4 ? 0 : static_cast<int>(code / 2) - 1;
    const std::size_t span = std::size_t{1} << n_extra;
    if (distance < base + span) {
      const auto extra = static_cast<std::uint32_t>(distance - base);
      return {reversed(code, 5) | extra << 5, 5 + n_extra};
    }
    base += span;
    ++code;
  }
}

std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// How many bytes from `a` and `b` on are equal, at most `limit`.
std::size_t equal_bytes(const std::uint8_t* a, const std::uint8_t* b, std::size_t limit) {
  std::size_t n = 0;
  while (n + 32 <= limit) {
    const std::uint64_t differ =
        (word_at(a + n) ^ word_at(b + n)) | (word_at(a + n + 8) ^ word_at(b + n + 8)) |
        (word_at(a + n + 16) ^ word_at(b + n + 16)) | (word_at(a + n + 24) ^ word_at(b + n + 24));
    if (differ != 0) break;
    n += 32;
  }
  while (n < limit && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

struct RowDeflate::Zlib {
  z_stream stream{};
  Zlib() {
    if (deflateInit(&stream, 1) != Z_OK) throw std::bad_alloc();
  }
  ~Zlib() { deflateEnd(&stream); }
  Zlib(const Zlib&) = delete;
  Zlib& operator=(const Zlib&) = delete;

  void run(std::span<const std::byte> bytes, int flush, std::string& out) {
    std::array<char, 16384> buffer;
    // zlib does not change its input; its interface predates const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    std::size_t left = bytes.size();
    do {
      stream.avail_in = static_cast<uInt>(std::min<std::size_t>(left, 1U << 30));
      left -= stream.avail_in;
      const int how = left == 0 ? flush : Z_NO_FLUSH;
      do {
        stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
        stream.avail_out = static_cast<uInt>(buffer.size());
        if (deflate(&stream, how) == Z_STREAM_ERROR) throw std::logic_error("zlib refuses a row");
        out.append(buffer.data(), buffer.size() - stream.avail_out);
      } while (stream.avail_out == 0);
    } while (left > 0);
  }
};

RowDeflate::RowDeflate(std::size_t row_bytes) : row_bytes_(row_bytes) {
  if (row_bytes == 0) throw std::logic_error("a row without bytes");
  if (row_bytes > kReach) {
    zlib_ = std::make_unique<Zlib>();
    return;
  }
  const auto code = [](std::size_t distance) {
    const Bits bits = distance_code(distance);
    return Code{bits.bits, bits.n_bits};
  };
  one_row_ = code(row_bytes);
  if (2 * row_bytes <= kReach) two_rows_ = code(2 * row_bytes);
  one_byte_ = code(1);
  window_.resize(std::max(8 * row_bytes, 4 * kBatch));
  begin();
}

RowDeflate::~RowDeflate() = default;
RowDeflate::RowDeflate(RowDeflate&&) noexcept = default;
RowDeflate& RowDeflate::operator=(RowDeflate&&) noexcept = default;

void RowDeflate::begin() {
  out_.assign("\x78\x01", 2);  // zlib, window of 32 KiB, fastest
  bits_ = 3;                   // the last block; fixed codes
  n_bits_ = 3;
  encoded_ = size_ = matched_ = 0;
  row_sum_ = row_weighted_ = 0;
  adler_a_ = 1;
  adler_b_ = 0;
}

void RowDeflate::add(std::span<const std::byte> row) {
  if (zlib_) {
    zlib_->run(row, Z_NO_FLUSH, out_);
    return;
  }
  if (size_ + row_bytes_ > window_.size()) {
    encode_pending();
    // Two rows, and bytes that may still have to be put one by one.
    const std::size_t kept = std::min(
        size_, (2 * row_bytes_ + kShortestMatch + row_bytes_ - 1) / row_bytes_ * row_bytes_);
    std::memmove(window_.data(), window_.data() + size_ - kept, kept);
    size_ = encoded_ = kept;
  }
  std::memcpy(window_.data() + size_, row.data(), row_bytes_);
  size_ += row_bytes_;
  if (size_ - encoded_ >= kBatch || row_bytes_ >= kBatch / 4) encode_pending();
}

void RowDeflate::encode_pending() { encode(size_); }

// [encoded_, end) is whole rows.
void RowDeflate::encode(std::size_t end) {
  const std::uint8_t* const bytes = window_.data();
  while (encoded_ < end) {
    const std::size_t row_end = encoded_ + row_bytes_;
    std::size_t at = encoded_;
    const bool has_previous = at >= row_bytes_;
    while (at < row_end) {
      if (has_previous) {
        const std::size_t same = equal_bytes(bytes + at, bytes + at - row_bytes_, row_end - at);
        matched_ += same;
        at += same;
        encoded_ = at;
        if (at == row_end) break;
        flush_match();
      }
      at = encode_changed(at, row_end);
      encoded_ = at;
    }
    encoded_ = row_end;
    end_row();
  }
}

// One token for a byte that differs from the row before; returns where it ends.
std::size_t RowDeflate::encode_changed(std::size_t at, std::size_t row_end) {
  const std::uint8_t* const bytes = window_.data();
  std::size_t length = 1;
  if (two_rows_.n_bits > 0 && at >= 2 * row_bytes_) {
    const std::size_t same = equal_bytes(bytes + at, bytes + at - 2 * row_bytes_, row_end - at);
    if (same >= kShortestOther) length = same;
  }
  const Code* distance = length > 1 ? &two_rows_ : nullptr;
  if (distance == nullptr && at > 0) {
    const std::size_t same = equal_bytes(bytes + at, bytes + at - 1, row_end - at);
    if (same >= kShortestOther) {
      length = same;
      distance = &one_byte_;
    }
  }
  if (distance == nullptr) {
    const Bits literal = kLiterals[bytes[at]];
    put_bits(literal.bits, literal.n_bits);
  } else {
    put_match(length, *distance);
  }
  note_change(at, length, row_end);
  return at + length;
}

void RowDeflate::note_change(std::size_t at, std::size_t length, std::size_t row_end) {
  const std::uint8_t* const bytes = window_.data();
  const bool has_previous = at >= row_bytes_;
  for (std::size_t i = at; i < at + length; ++i) {
    const int before = has_previous ? bytes[i - row_bytes_] : 0;
    const int change = int{bytes[i]} - before;
    row_sum_ += change;
    row_weighted_ += change * static_cast<std::int64_t>(row_end - i);
  }
}

void RowDeflate::end_row() {
  // Sums of at most 32 KiB bytes, so that nothing overflows.
  adler_b_ = (adler_b_ + row_bytes_ * adler_a_ + static_cast<std::uint64_t>(row_weighted_)) %
             kAdlerModulus;
  adler_a_ = (adler_a_ + static_cast<std::uint64_t>(row_sum_)) % kAdlerModulus;
}

void RowDeflate::flush_match() {
  if (matched_ >= kShortestMatch) {
    put_match(matched_, one_row_);
  } else {
    for (std::size_t i = encoded_ - matched_; i < encoded_; ++i) {
      const Bits literal = kLiterals[window_[i]];
      put_bits(literal.bits, literal.n_bits);
    }
  }
  matched_ = 0;
}

void RowDeflate::put_match(std::size_t length, const Code& distance) {
  while (length > 0) {
    // What is left over must be long enough for a match, too.
    std::size_t part = std::min(length, kLongestMatch);
    if (length > part && length - part < kShortestMatch) part -= kShortestMatch;
    const Bits code = kLengths[part];
    put_bits(code.bits | std::uint64_t{distance.bits} << code.n_bits,
             code.n_bits + distance.n_bits);
    length -= part;
  }
}

void RowDeflate::put_bits(std::uint64_t bits, int n_bits) {
  bits_ |= bits << n_bits_;
  n_bits_ += n_bits;
  if (n_bits_ < 32) return;
  char four[4];
  for (int i = 0; i < 4; ++i) four[i] = static_cast<char>(bits_ >> (8 * i) & 0xFF);
  out_.append(four, 4);
  bits_ >>= 32;
  n_bits_ -= 32;
}

std::string RowDeflate::finish() {
  if (zlib_) {
    zlib_->run({}, Z_FINISH, out_);
    deflateReset(&zlib_->stream);
    std::string result = std::move(out_);
    out_.clear();
    return result;
  }
  encode_pending();
  flush_match();
  const Bits end = symbol(256);
  put_bits(end.bits, end.n_bits);
  for (; n_bits_ > 0; n_bits_ -= 8, bits_ >>= 8) out_ += static_cast<char>(bits_ & 0xFF);
  const auto adler = static_cast<std::uint32_t>(adler_b_ << 16 | adler_a_);
  for (int shift = 24; shift >= 0; shift -= 8) out_ += static_cast<char>(adler >> shift & 0xFF);
  std::string result = out_;
  begin();
  return result;
}

}  // namespace doppler
