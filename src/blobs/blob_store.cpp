#include "blobs/blob_store.hpp"

#include <algorithm>
#include <cstring>

#include "core/file.hpp"
#include "core/quantity.hpp"

namespace pipeline::blobs {

Body body_of(std::string text) {
  Body body;
  body.size = text.size();
  body.read = [text = std::move(text)](std::uint64_t offset, std::span<char> into) {
    const auto piece =
        std::string_view(text).substr(std::min<std::uint64_t>(offset, text.size()), into.size());
    std::memcpy(into.data(), piece.data(), piece.size());
    return piece.size();
  };
  return body;
}

BlobError too_large(const std::string& key, const std::string& url) {
  return {BlobError::Kind::damaged_blob, "cannot read " + key + " from " + url +
                                             ": it is larger than " +
                                             core::format_bytes(core::max_text_bytes)};
}

async::Task<std::vector<std::string>> BlobStore::list(std::string prefix) {
  auto found = co_await entries(std::move(prefix));
  std::vector<std::string> keys;
  keys.reserve(found.size());
  for (auto& entry : found) keys.push_back(std::move(entry.key));
  co_return keys;
}

async::Task<std::string> BlobStore::get_text(std::string key) {
  std::string text;
  const auto name = key;
  const std::function<void(std::string_view)> on_bytes = [&](std::string_view bytes) {
    if (text.size() + bytes.size() > core::max_text_bytes) throw too_large(name, url());
    text += bytes;
  };
  co_await get(std::move(key), Range{}, on_bytes);
  co_return text;
}

async::Task<std::optional<std::string>> BlobStore::find_text(std::string key,
                                                             core::CancelSource* cancel,
                                                             Lookup lookup) {
  auto found = co_await find_tagged(std::move(key), cancel, lookup);
  std::optional<std::string> text;
  if (found) text = std::move(found->text);
  co_return text;
}

}  // namespace pipeline::blobs
