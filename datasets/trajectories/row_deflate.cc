#include "datasets/trajectories/row_deflate.h"

#include <zlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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
#ifdef __SSE2__
  const auto load = [](const std::uint8_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  for (; n + 64 <= limit; n += 64) {
    const __m128i first = _mm_cmpeq_epi8(load(a + n), load(b + n));
    const __m128i second = _mm_cmpeq_epi8(load(a + n + 16), load(b + n + 16));
    const __m128i third = _mm_cmpeq_epi8(load(a + n + 32), load(b + n + 32));
    const __m128i fourth = _mm_cmpeq_epi8(load(a + n + 48), load(b + n + 48));
    const __m128i all = _mm_and_si128(_mm_and_si128(first, second), _mm_and_si128(third, fourth));
    if (_mm_movemask_epi8(all) != 0xFFFF) break;
  }
#endif
  for (; n + 8 <= limit; n += 8) {
    const std::uint64_t differ = word_at(a + n) ^ word_at(b + n);
    if (differ == 0) continue;
    if constexpr (std::endian::native == std::endian::little) {
      return n + static_cast<std::size_t>(std::countr_zero(differ)) / 8;
    }
    break;
  }
  while (n < limit && a[n] == b[n]) ++n;
  return n;
}

// The same where few are likely to be equal: at least kShortestOther, or 0.
std::size_t equal_run(const std::uint8_t* a, const std::uint8_t* b, std::size_t limit) {
  if (limit < kShortestOther || std::memcmp(a, b, kShortestOther) != 0) return 0;
  return equal_bytes(a, b, limit);
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
  if (out_.size() < 64) out_.resize(64);
  out_[0] = '\x78';  // zlib, window of 32 KiB
  out_[1] = '\x01';  // fastest
  n_out_ = 2;
  bits_ = 3;  // the last block; fixed codes
  n_bits_ = 3;
  encoded_ = size_ = matched_ = 0;
  base_ = {};
  sums_[0] = sums_[1] = {};
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

// The row before, or the one before that: whichever begins like the row at encoded_ for longer.
void RowDeflate::choose_base() {
  const std::uint8_t* const row = window_.data() + encoded_;
  const Base before = base_;
  base_ = {};
  if (encoded_ >= row_bytes_) {
    base_ = {row_bytes_, one_row_, 0};
    const std::size_t same = equal_bytes(row, row - row_bytes_, row_bytes_);
    const bool may_look_further =
        same < row_bytes_ && two_rows_.n_bits > 0 && encoded_ >= 2 * row_bytes_;
    if (may_look_further && equal_bytes(row, row - 2 * row_bytes_, row_bytes_) > same) {
      base_ = {2 * row_bytes_, two_rows_, 1};
    }
  }
  // A match goes on into the next row only at the same distance.
  if (matched_ > 0 && base_.distance != before.distance) flush_match(before);
}

// [encoded_, end) is whole rows.
void RowDeflate::encode(std::size_t end) {
  const std::uint8_t* const bytes = window_.data();
  while (encoded_ < end) {
    const std::size_t row_end = encoded_ + row_bytes_;
    choose_base();
    Sums sums = base_.distance > 0 ? sums_[base_.age] : Sums{};
    while (encoded_ < row_end) {
      const std::uint8_t* const at = bytes + encoded_;
      if (base_.distance > 0 && *at == at[-static_cast<std::ptrdiff_t>(base_.distance)]) {
        const std::size_t same = equal_bytes(at, at - base_.distance, row_end - encoded_);
        matched_ += same;
        encoded_ += same;
        continue;
      }
      if (matched_ > 0) flush_match(base_);
      const std::size_t length = encode_changed(encoded_, row_end);
      for (std::size_t i = encoded_; i < encoded_ + length; ++i) {
        const int change = int{bytes[i]} - (base_.distance > 0 ? bytes[i - base_.distance] : 0);
        sums.plain += change;
        sums.weighted += change * static_cast<std::int64_t>(row_end - i);
      }
      encoded_ += length;
    }
    end_row(sums);
  }
}

// One token for a byte that differs from the base; returns how many bytes it stands for.
std::size_t RowDeflate::encode_changed(std::size_t at, std::size_t row_end) {
  const std::uint8_t* const bytes = window_.data();
  if (at > 0) {
    const std::size_t length = equal_run(bytes + at, bytes + at - 1, row_end - at);
    if (length > 0) {
      put_match(length, one_byte_);
      return length;
    }
  }
  const Bits literal = kLiterals[bytes[at]];
  put_bits(literal.bits, literal.n_bits);
  return 1;
}

void RowDeflate::end_row(const Sums& sums) {
  sums_[1] = sums_[0];
  sums_[0] = sums;
  // Sums of at most 32 KiB bytes, so that nothing overflows.
  adler_b_ = (adler_b_ + row_bytes_ * adler_a_ + static_cast<std::uint64_t>(sums.weighted)) %
             kAdlerModulus;
  adler_a_ = (adler_a_ + static_cast<std::uint64_t>(sums.plain)) % kAdlerModulus;
}

// What ends at encoded_.
void RowDeflate::flush_match(const Base& base) {
  if (matched_ >= kShortestMatch) {
    put_match(matched_, base.code);
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
  if (n_out_ + 4 > out_.size()) out_.resize(2 * out_.size() + 64);
  char* const four = out_.data() + n_out_;
  for (int i = 0; i < 4; ++i) four[i] = static_cast<char>(bits_ >> (8 * i) & 0xFF);
  n_out_ += 4;
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
  flush_match(base_);
  const Bits end = symbol(256);
  put_bits(end.bits, end.n_bits);
  std::string result(out_.data(), n_out_);
  for (; n_bits_ > 0; n_bits_ -= 8, bits_ >>= 8) result += static_cast<char>(bits_ & 0xFF);
  const auto adler = static_cast<std::uint32_t>(adler_b_ << 16 | adler_a_);
  for (int shift = 24; shift >= 0; shift -= 8) result += static_cast<char>(adler >> shift & 0xFF);
  begin();
  return result;
}

}  // namespace doppler
