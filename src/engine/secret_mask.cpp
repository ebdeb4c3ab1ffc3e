#include "engine/secret_mask.hpp"

#include <algorithm>

namespace pipeline::engine {

SecretMask::SecretMask(std::vector<std::string> secrets) : secrets_(std::move(secrets)) {
  std::erase_if(secrets_, [](const std::string& secret) { return secret.size() < 3; });
  std::ranges::sort(secrets_, [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string SecretMask::feed(std::string_view bytes) {
  if (secrets_.empty()) return std::string(bytes);
  pending_ += bytes;
  return take(false);
}

std::string SecretMask::finish() { return take(true); }

std::string SecretMask::take(bool at_end) {
  std::string shown;
  std::size_t position = 0;
  const std::string_view text = pending_;
  while (position < text.size()) {
    const auto rest = text.substr(position);
    const auto whole = std::ranges::find_if(
        secrets_, [&](const auto& secret) { return rest.starts_with(secret); });
    const auto cut = std::ranges::find_if(secrets_, [&](const auto& secret) {
      return rest.size() < secret.size() && std::string_view(secret).starts_with(rest);
    });
    if (!at_end && cut != secrets_.end())
      break;  // also where a shorter secret matches already: the longer one may still come
    if (whole != secrets_.end()) {
      shown += "***";
      position += whole->size();
    } else {
      shown += text[position++];
    }
  }
  pending_.erase(0, position);
  return shown;
}

}  // namespace pipeline::engine
