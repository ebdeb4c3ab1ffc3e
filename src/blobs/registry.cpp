// Finds the kind of store that an address belongs to.
#include <algorithm>

#include "blobs/kind.hpp"
#include "core/diagnostic.hpp"

namespace pipeline::blobs {
namespace {

const Kind* kind_of(std::string_view url) {
  const auto all = kinds();
  const auto found =
      std::ranges::find_if(all, [&](const Kind* kind) { return url.starts_with(kind->scheme); });
  return found == all.end() ? nullptr : *found;
}

}  // namespace

std::optional<std::string> read_address(const std::string& text,
                                        const std::filesystem::path& base) {
  for (const auto* kind : kinds())
    if (auto url = kind->read_address(text, base)) return url;
  return std::nullopt;
}

std::vector<Option> options_of(std::string_view url) {
  std::vector<Option> options;
  for (const auto* kind : kinds())
    if (url.empty() || url.starts_with(kind->scheme))
      options.insert(options.end(), kind->options.begin(), kind->options.end());
  return options;
}

bool can_presign(std::string_view url) {
  const auto* kind = kind_of(url);
  return kind && kind->can_presign;
}

std::vector<std::string> example_addresses() {
  std::vector<std::string> examples;
  for (const auto* kind : kinds()) examples.emplace_back(kind->example);
  return examples;
}

std::unique_ptr<BlobStore> open(asio::io_context& loop,
                                const settings::RemoteStoreSettings& settings,
                                async::RetryPolicy retry_policy) {
  if (const auto* kind = kind_of(settings.url)) return kind->open(loop, settings, retry_policy);
  throw core::InputError(
      "this version of pipe knows no remote store with the address " + settings.url,
      "use the version of pipe that wrote the address");
}

}  // namespace pipeline::blobs
