// The libFuzzer entry of one reader, DOPPLER_FUZZ_READER.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const doppler::testing::Reader& reader = doppler::testing::reader(DOPPLER_FUZZ_READER);
  reader.read({reinterpret_cast<const char*>(data), size});
  return 0;
}
