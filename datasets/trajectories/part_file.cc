#include "datasets/trajectories/part_file.h"

#include <zlib.h>

#include <cstring>
#include <string_view>

#include "graphs/error.h"
#include "graphs/file.h"

namespace doppler {
namespace {

constexpr std::string_view kMagic = "DGTP";
constexpr std::uint32_t kVersion = 1;

struct Header {
  char magic[4];
  std::uint32_t version;
  std::uint64_t recording;
  std::uint64_t first;
  std::uint32_t checksum;
  std::uint32_t zero;
};
static_assert(sizeof(Header) == 32);

std::uint32_t checksum(const Header& header, std::string_view body) {
  auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(&header), offsetof(Header, checksum));
  sum = crc32_z(sum, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

std::string part_name(std::int64_t first) {
  constexpr std::size_t kDigits = 12;
  const std::string number = std::to_string(first);
  return std::string(kDigits - std::min(kDigits, number.size()), '0') + number + ".part";
}

void write_part(const std::string& path, const Part& part) {
  const std::string body = to_bytes(part.episodes);
  Header header{.magic = {},
                .version = kVersion,
                .recording = part.recording,
                .first = static_cast<std::uint64_t>(part.first),
                .checksum = 0,
                .zero = 0};
  kMagic.copy(header.magic, kMagic.size());
  header.checksum = checksum(header, body);
  std::string content(reinterpret_cast<const char*>(&header), sizeof header);
  content += body;
  write_file(path, content);
}

Part read_part(const std::string& path) {
  const std::string content = read_file(path, std::size_t{64} << 30);
  Header header;
  const std::string_view view = content;
  if (!view.starts_with(kMagic)) {
    throw RunError(path + ": cannot read: it is no part of a recording");
  }
  if (view.size() < sizeof header) throw RunError(path + ": cannot read: it is cut off");
  std::memcpy(&header, view.data(), sizeof header);
  if (header.version > kVersion) {
    throw RunError(path + ": cannot read: its format " + std::to_string(header.version) +
                   " is newer than this library, which reads format " + std::to_string(kVersion) +
                   "; update doppler-gym");
  }
  const std::string_view body = view.substr(sizeof header);
  if (checksum(header, body) != header.checksum) {
    throw RunError(path + ": cannot read: it is damaged, its checksum does not match");
  }
  try {
    return {.recording = header.recording,
            .first = static_cast<std::int64_t>(header.first),
            .episodes = episodes_from_bytes(body)};
  } catch (const InvalidError& error) {
    throw RunError(path + ": cannot read: " + error.what());
  }
}

}  // namespace doppler
