#include "engine/attempt/secret_mask.hpp"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "core/base64.hpp"

namespace pipeline::engine {

namespace {

constexpr std::size_t shortest_line = 8, shortest_encoded = 8;
/// Number of characters of a secret that must precede a line break for the break to count as part
/// of the secret. Such a text is held back until more bytes arrive; a line that merely ends with a
/// secret's first letter is not.
constexpr std::size_t least_before_break = 4;
/// Carriage returns that may stand between two characters of a secret: a terminal makes `\r\r\n` of
/// `\r\n`.
constexpr unsigned max_returns = 2;

std::string hex(std::string_view bytes, bool upper) {
  const auto* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) (text += digits[byte >> 4]) += digits[byte & 15];
  return text;
}

/// Returns the text as curl, browsers and Python's quote() write it in a URL: characters that are
/// neither letters nor digits nor in `plain` as numbers.
std::string url_encoded(std::string_view bytes, std::string_view plain) {
  std::string text;
  for (const char c : bytes) {
    if (std::isalnum(static_cast<unsigned char>(c)) || plain.find(c) != std::string_view::npos)
      text += c;
    else
      text += "%" + hex(std::string_view(&c, 1), true);
  }
  return text;
}

std::string in_json(const std::string& text, bool ascii) {
  const auto quoted =
      nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

/// Adds the base64 form without its last group, which depends on the following bytes, for each of
/// the three alignments.
void add_base64(const std::string& secret, std::vector<std::string>& forms) {
  for (std::size_t before = 0; before < 3; ++before) {
    const auto text = core::encode_base64(std::string(before, '\0') + secret);
    const std::size_t first = before == 0 ? 0 : 4, end = (before + secret.size()) / 3 * 4;
    if (end <= first) continue;
    forms.push_back(text.substr(first, end - first));
    auto& for_urls = forms.emplace_back(forms.back());
    std::ranges::replace(for_urls, '+', '-');
    std::ranges::replace(for_urls, '/', '_');
  }
}

/// Adds the secret itself, its lines, and the forms in which programs print it: base64,
/// hexadecimal, as part of a URL or a form, and in JSON.
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
  forms.push_back(url_encoded(secret, "-._~"));
  forms.push_back(url_encoded(secret, "-._~/"));
  auto& in_form = forms.emplace_back(url_encoded(secret, "-._~ "));
  std::ranges::replace(in_form, ' ', '+');
  forms.push_back(in_json(secret, false));
  forms.push_back(in_json(secret, true));
}

struct Match {
  enum { none, cut, whole } kind = none;  ///< cut: the text may match when more of it arrives.
  std::size_t length = 0, breaks = 0;
};

/// Matches the beginning of the text with this form of a secret, which may contain line breaks.
Match match(std::string_view text, std::string_view form) {
  Match found;
  bool is_broken = false;
  unsigned returns = 0;  // Without a bound, what a step prints could be held back without end.
  for (std::size_t matched = 0; matched < form.size();) {
    if (found.length == text.size()) {
      found.kind = Match::cut;
      return found;
    }
    const char next = text[found.length];
    if (next == form[matched]) {
      is_broken = false;
      returns = 0;
      ++matched;
    } else if (matched >= least_before_break && next == '\n' && !is_broken) {
      is_broken = true;
      ++found.breaks;
    } else if (matched < least_before_break || next != '\r' || is_broken ||
               ++returns > max_returns) {
      return found;
    }
    ++found.length;
  }
  found.kind = Match::whole;
  return found;
}

}  // namespace

SecretMask::SecretMask(const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets)
    if (secret.size() >= 3) {
      add_forms(secret, secrets_);
      // Programs strip surrounding blanks before they encode a secret.
      constexpr const char* white = " \t\r\n";
      const auto first = secret.find_first_not_of(white), last = secret.find_last_not_of(white);
      if (first != secret.npos && last + 1 - first < secret.size())
        add_forms(secret.substr(first, last + 1 - first), secrets_);
    }
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
    Match whole;
    bool is_cut = false;
    for (const auto& secret : secrets_) {
      if (secret.front() != rest.front()) continue;
      const auto found = match(rest, secret);
      is_cut |= found.kind == Match::cut;
      if (found.kind == Match::whole && whole.kind == Match::none) whole = found;
    }
    if (!at_end && is_cut)
      break;  // Waits even if a shorter secret matches already, because the longer one may still be
              // completed.
    if (whole.kind == Match::whole) {
      shown += "***" + std::string(whole.breaks, '\n');
      position += whole.length;
    } else {
      shown += text[position++];
    }
  }
  pending_.erase(0, position);
  return shown;
}

}  // namespace pipeline::engine
