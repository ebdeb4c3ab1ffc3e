#include "stager/parts.hpp"

#include <algorithm>

namespace pipeline::stager {

using nlohmann::json;

std::vector<std::string> part_urls(const json& signed_parts) {
  const std::string before = signed_parts.at("before"), after = signed_parts.at("after");
  std::vector<std::string> urls;
  for (const auto& signature : signed_parts.at("signatures"))
    urls.push_back(before + std::to_string(urls.size() + 1) + after + signature.get<std::string>());
  return urls;
}

std::uint64_t part_size(std::uint64_t bytes, std::size_t urls) {
  constexpr std::uint64_t mebibyte = 1u << 20;
  const auto fair = (bytes + urls - 1) / urls;
  return std::max(min_part, (fair + mebibyte - 1) / mebibyte * mebibyte);
}

core::Digest send_parts(const std::string& what, const file_tree::Content& content,
                        const std::vector<std::string>& urls, std::uint64_t part,
                        Transfer& transfer, json& tags) {
  core::Hasher hasher;
  std::size_t number = 0;
  std::uint64_t begin = 0;
  do {
    const auto size = std::min(part, content.size() - begin);
    std::uint64_t hashed = 0;  // The bytes are read more than once, in order.
    tags.push_back(transfer.send(
        what, urls.at(number++), size, [&](std::uint64_t offset, std::span<char> into) {
          const auto count = content.read(
              begin + offset, into.first(std::min<std::uint64_t>(into.size(), size - offset)));
          if (offset == hashed) {
            hasher.update({into.data(), count});
            hashed += count;
          }
          return count;
        }));
    begin += part;
  } while (begin < content.size());
  return hasher.finish();
}

}  // namespace pipeline::stager
