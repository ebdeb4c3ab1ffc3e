#include "stager/parts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace pipeline::stager {

using nlohmann::json;

namespace {

/// Passes a range of the content.
void read_range(const file_tree::Content& content, std::uint64_t begin, std::uint64_t size,
                const std::function<void(std::string_view)>& on_bytes) {
  std::array<char, 64 << 10> piece;
  for (std::uint64_t done = 0; done < size;) {
    const auto wanted = std::min<std::uint64_t>(piece.size(), size - done);
    const auto count = content.read(begin + done, std::span(piece).first(wanted));
    if (count == 0) throw core::EnvironmentError("a file became shorter while it was read");
    on_bytes({piece.data(), count});
    done += count;
  }
}

}  // namespace

std::vector<std::string> part_urls(const json& signed_parts) {
  const std::string before = signed_parts.at("before"), after = signed_parts.at("after");
  std::vector<std::string> urls;
  for (const auto& signature : signed_parts.at("signatures"))
    urls.push_back(before + std::to_string(urls.size() + 1) + after + signature.get<std::string>());
  return urls;
}

SentParts send_parts(const std::string& what, const file_tree::Content& content,
                     const std::vector<std::string>& urls, std::uint64_t part, Transfer& transfer,
                     const std::function<void(std::string_view)>& on_bytes) {
  const auto count = std::max<std::uint64_t>(1, (content.size() + part - 1) / part);
  const auto size_of = [&](std::size_t i) { return std::min(part, content.size() - i * part); };
  std::vector<std::string> received(count);
  core::Hasher hasher;
  const std::function<void(std::string_view)> take = [&](std::string_view bytes) {
    hasher.update(bytes);
    if (on_bytes) on_bytes(bytes);
  };
  // The hash follows closely behind the parts that are being sent, so that a file is read from the
  // disk once.
  InOrder hashing([&](std::size_t i) { read_range(content, i * part, size_of(i), take); });
  Workers workers(count, transfer.threads());
  workers.run([&](std::size_t i) {
    hashing.ready(i);
    received[i] = transfer.send(
        what, urls.at(i), size_of(i), [&](std::uint64_t offset, std::span<char> into) {
          return content.read(i * part + offset, into.first(std::min<std::uint64_t>(
                                                     into.size(), size_of(i) - offset)));
        });
  });
  SentParts sent;
  sent.digest = hasher.finish();
  for (auto& tag : received) sent.tags.push_back(std::move(tag));
  return sent;
}

}  // namespace pipeline::stager
