#include "stager/parts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace pipeline::stager {

using nlohmann::json;

namespace {

/// Content that is divided into parts of equal size, but for the last one.
struct Division {
  const file_tree::Content& content;
  const std::uint64_t part;

  std::size_t count() const {
    return std::max<std::uint64_t>(1, (content.size() + part - 1) / part);
  }
  std::uint64_t size(std::size_t i) const { return std::min(part, content.size() - i * part); }
  /// Passes a part, in pieces.
  void read(std::size_t i, const std::function<void(std::string_view)>& on_bytes) const {
    std::array<char, 64 << 10> piece;
    const auto read_at = reader(i);
    for (std::uint64_t done = 0; done < size(i);) {
      const auto got = read_at(done, piece);
      if (got == 0) throw core::EnvironmentError("a file became shorter while it was read");
      on_bytes({piece.data(), got});
      done += got;
    }
  }
  /// Returns a function that reads within a part. Must not outlive this object.
  std::function<std::size_t(std::uint64_t, std::span<char>)> reader(std::size_t i) const {
    return [this, i](std::uint64_t offset, std::span<char> into) {
      return content.read(i * part + offset,
                          into.first(std::min<std::uint64_t>(into.size(), size(i) - offset)));
    };
  }
};

}  // namespace

std::vector<std::string> part_urls(const json& signed_parts) {
  const std::string before = signed_parts.at("before"), after = signed_parts.at("after");
  std::vector<std::string> urls;
  for (const auto& signature : signed_parts.at("signatures"))
    urls.push_back(before + std::to_string(urls.size() + 1) + after + signature.get<std::string>());
  return urls;
}

PartSums hash_parts(const file_tree::Content& content, std::uint64_t part, ThreadBudget& threads,
                    const std::function<void(std::string_view)>& on_bytes) {
  const Division division{content, part};
  PartSums sums;
  sums.md5s.resize(division.count());
  core::Hasher hasher;
  InOrder hashing([&](std::size_t i) {
    division.read(i, [&](std::string_view bytes) {
      hasher.update(bytes);
      if (on_bytes) on_bytes(bytes);
    });
  });
  Workers workers(sums.md5s.size(), threads);
  workers.run([&](std::size_t i) {
    hashing.ready(i);
    sums.md5s[i] = md5(division.size(i), division.reader(i));
  });
  sums.digest = hasher.finish();
  return sums;
}

SentParts send_parts(const std::string& what, const file_tree::Content& content,
                     const std::vector<std::string>& urls, Parts parts, Transfer& transfer,
                     const std::function<void(std::string_view)>& on_bytes) {
  const Division division{content, parts.size};
  std::vector<std::string> received(division.count());
  core::Hasher hasher;
  // The hash follows closely behind the parts that are being sent, so that a file is read from the
  // disk once.
  InOrder hashing([&](std::size_t i) {
    division.read(i, [&](std::string_view bytes) {
      if (!parts.sums) hasher.update(bytes);
      if (on_bytes) on_bytes(bytes);
    });
  });
  Workers workers(received.size(), transfer.threads());
  workers.run([&](std::size_t i) {
    hashing.ready(i);
    received[i] = transfer.send(what, urls.at(i), division.size(i), division.reader(i),
                                parts.sums ? parts.sums->md5s.at(i) : std::string());
  });
  SentParts sent;
  sent.digest = parts.sums ? parts.sums->digest : hasher.finish();
  for (auto& tag : received) sent.tags.push_back(std::move(tag));
  return sent;
}

}  // namespace pipeline::stager
