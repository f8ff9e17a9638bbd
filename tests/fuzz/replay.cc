// The fuzz corpus and thousands of mutations of it, the same in each run: every reader gives a
// value or a doppler::Error.
#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/file.h"
#include "tests/fuzz/readers.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

std::vector<std::string> corpus(std::string_view reader) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(DOPPLER_SOURCE_FOLDER) /
                                                  "tests/fuzz/corpus" / std::string(reader))) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const std::string& path : paths) texts.push_back(read_file(path));
  return texts;
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<std::string>& texts) : bits_(seed), texts_(texts) {}

  std::string mutate(std::string text) {
    for (std::size_t n = 1 + below(4); n > 0; --n) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(bits_() % n); }

  void change(std::string& text) {
    static constexpr std::array<std::string_view, 28> kTokens = {
        "-1",
        "1e999",
        "1e308",
        "1000000000000000000",
        "2147483648",
        "99999999999999999999",
        "nan",
        "inf",
        "null",
        "true",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "\"",
        ",",
        ":",
        "\n",
        "\r\n",
        " ",
        "0",
        "\xFF",
        "\\ud800",
        "\xE2\x82",
        "\xEF\xBB\xBF",
        "=",
    };
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(text.size() - at, 40) + 1);
    switch (below(9)) {
      case 0:  // a bit
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:  // a byte
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.insert(at, text.substr(at, length));
        break;
      case 5:
        text.insert(at, kTokens[below(kTokens.size())]);
        break;
      case 6:
        text.insert(at, 1, static_cast<char>('0' + below(10)));
        break;
      case 7: {  // the beginning of this text, the end of another
        const std::string& other = texts_[below(texts_.size())];
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
      default:  // a token in place of a part
        text.replace(at, length, kTokens[below(kTokens.size())]);
        break;
    }
  }

  std::mt19937_64 bits_;
  const std::vector<std::string>& texts_;
};

TEST_CASE("Readers accept the corpus, so that mutations start from what they know") {
  for (const testing::Reader& reader : testing::readers()) {
    for (const std::string& text : corpus(reader.name)) {
      INFO(reader.name << ": " << text);
      CHECK(reader.read(text));
    }
  }
}

// What the reader threw that it must not throw; empty if it did as it should.
std::string complaint(const testing::Reader& reader, const std::string& text) {
  try {
    reader.read(text);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST_CASE("Readers refuse or accept every mutation of their corpus, and crash on none") {
  constexpr std::uint64_t kMutations = 4000;
  for (const testing::Reader& reader : testing::readers()) {
    const std::vector<std::string> texts = corpus(reader.name);
    REQUIRE_FALSE(texts.empty());
    for (std::uint64_t seed = 0; seed < kMutations; ++seed) {
      const std::string text = Mutator(seed, texts).mutate(texts[seed % texts.size()]);
      const std::string found = complaint(reader, text);
      if (found.empty()) continue;
      INFO(reader.name << ", mutation " << seed << ": " << text);
      FAIL_CHECK(found);
    }
  }
}

}  // namespace
}  // namespace doppler
