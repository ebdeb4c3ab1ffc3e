#include "file_tree/tar_writer.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace pipeline::file_tree {
namespace {

constexpr std::uint64_t tar_block = 512;

std::string octal(std::uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
  return text;
}

/// Returns the block of a header whose values fit into its fields.
std::string ustar_header(const TarHeader& header) {
  std::string block(tar_block, '\0');
  const auto put = [&](std::size_t offset, std::string_view text) {
    block.replace(offset, text.size(), text);
  };
  put(0, header.name);
  put(100, octal(header.mode, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(header.size, 11));
  put(136, octal(static_cast<std::uint64_t>(header.time), 11));
  put(148, "        ");
  block[156] = header.type;
  put(157, header.link);
  put(257, std::string_view("ustar\00000", 8));
  std::uint64_t sum = 0;
  for (const unsigned char c : block) sum += c;
  put(148, octal(sum, 6));
  block[154] = '\0';
  return block;
}

/// Returns a pax record, `LENGTH KEY=VALUE\n`. The length includes its own digits.
std::string record(const std::string& key, const std::string& value) {
  const auto rest = key.size() + value.size() + 3;
  auto length = rest + std::to_string(rest).size();
  length = rest + std::to_string(length).size();
  return std::to_string(length) + " " + key + "=" + value + "\n";
}

}  // namespace

std::string tar_header(TarHeader header) {
  constexpr std::size_t max_text = 100;
  constexpr std::uint64_t max_size = 077777777777;
  if (header.type == '5' && !header.name.ends_with('/')) header.name += '/';
  std::string records;
  if (header.name.size() > max_text) records += record("path", header.name);
  if (header.link.size() > max_text) records += record("linkpath", header.link);
  if (header.size > max_size) records += record("size", std::to_string(header.size));
  std::string extension;
  if (!records.empty())
    extension = ustar_header(
                    {.type = 'x', .name = "././@PaxHeader", .mode = 0644, .size = records.size()}) +
                records + tar_padding(records.size());
  header.name.resize(std::min(header.name.size(), max_text));
  header.link.resize(std::min(header.link.size(), max_text));
  header.size = std::min(header.size, max_size);
  header.time = std::min(header.time, static_cast<std::int64_t>(max_size));
  return extension + ustar_header(header);
}

std::string tar_padding(std::uint64_t size) {
  return std::string((tar_block - size % tar_block) % tar_block, '\0');
}

std::string tar_end() { return std::string(2 * tar_block, '\0'); }

}  // namespace pipeline::file_tree
