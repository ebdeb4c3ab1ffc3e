#include "engine/secret_mask.hpp"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "core/base64.hpp"

namespace pipeline::engine {

namespace {

constexpr std::size_t shortest_line = 8, shortest_encoded = 8;

std::string hex(std::string_view bytes, bool upper) {
  const auto* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) (text += digits[byte >> 4]) += digits[byte & 15];
  return text;
}

/// Returns the text as curl, browsers and Python's quote() write it in a URL.
std::string url_encoded(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (std::isalnum(static_cast<unsigned char>(c)) ||
        std::string_view("-._~").find(c) != std::string_view::npos)
      text += c;
    else
      text += "%" + hex(std::string_view(&c, 1), true);
  }
  return text;
}

/// Adds the base64 form without its last group, which depends on the following bytes, for each of
/// the three alignments.
void add_base64(const std::string& secret, std::vector<std::string>& forms) {
  for (std::size_t before = 0; before < 3; ++before) {
    const auto text = core::encode_base64(std::string(before, '\0') + secret);
    const std::size_t first = before == 0 ? 0 : 4, end = (before + secret.size()) / 3 * 4;
    if (end > first) forms.push_back(text.substr(first, end - first));
  }
}

/// Adds the secret itself, its lines, and the forms in which programs print it: base64,
/// hexadecimal, as part of a URL, and in JSON.
void add_forms(const std::string& secret, std::vector<std::string>& forms) {
  forms.push_back(secret);
  for (std::size_t begin = 0; secret.find('\n') != secret.npos && begin < secret.size();) {
    const auto end = std::min(secret.find('\n', begin), secret.size());
    if (end - begin >= shortest_line) forms.push_back(secret.substr(begin, end - begin));
    begin = end + 1;
  }
  if (secret.size() < shortest_encoded) return;
  add_base64(secret, forms);
  forms.push_back(hex(secret, false));
  forms.push_back(hex(secret, true));
  forms.push_back(url_encoded(secret));
  const auto quoted =
      nlohmann::json(secret).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  forms.push_back(quoted.substr(1, quoted.size() - 2));
}

}  // namespace

SecretMask::SecretMask(const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets)
    if (secret.size() >= 3) add_forms(secret, secrets_);
  std::erase_if(secrets_, [](const std::string& form) { return form.size() < 3; });
  std::ranges::sort(secrets_);
  secrets_.erase(std::unique(secrets_.begin(), secrets_.end()), secrets_.end());
  for (const auto& secret : secrets_) begins_[static_cast<unsigned char>(secret.front())] = true;
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
    if (!begins_[static_cast<unsigned char>(text[position])]) {
      shown += text[position++];
      continue;
    }
    const auto rest = text.substr(position);
    const auto whole = std::ranges::find_if(
        secrets_, [&](const auto& secret) { return rest.starts_with(secret); });
    const auto cut = std::ranges::find_if(secrets_, [&](const auto& secret) {
      return rest.size() < secret.size() && std::string_view(secret).starts_with(rest);
    });
    if (!at_end && cut != secrets_.end())
      break;  // Waits even if a shorter secret matches already, because the longer one may still be
              // completed.
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
