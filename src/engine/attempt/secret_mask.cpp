#include "engine/attempt/secret_mask.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>

#include <nlohmann/json.hpp>

#include "core/base64.hpp"

namespace pipeline::engine {

namespace {

using SecretForm = SecretMask::Form;

/// Shorter secrets are not hidden, because they occur everywhere.
constexpr std::size_t min_secret = 3;
/// Shorter lines of a secret, and encoded forms of shorter secrets, are not hidden, because they
/// may occur in other output.
constexpr std::size_t min_line = 8, min_encoded = 8;
/// Number of characters of a secret that must precede a line break for the break to count as part
/// of the secret. Such a text is held back until more bytes arrive; a line that merely ends with a
/// secret's first letter is not held back.
constexpr std::size_t min_before_break = 4;
/// Carriage returns that may stand between two characters of a secret: a terminal makes `\r\r\n` of
/// `\r\n`.
constexpr unsigned max_returns = 2;

constexpr const char *lower_digits = "0123456789abcdef", *upper_digits = "0123456789ABCDEF";

std::string hex(std::string_view bytes, const char* digits) {
  std::string text;
  for (const unsigned char byte : bytes) (text += digits[byte >> 4]) += digits[byte & 15];
  return text;
}

/// Returns the text as curl, browsers and Python's quote() write it in a URL. Letters, digits and
/// the characters in `plain` stay; others become `%` and their code in these hexadecimal digits.
std::string url_encoded(std::string_view bytes, std::string_view plain, const char* digits) {
  std::string text;
  for (const char c : bytes) {
    if (std::isalnum(static_cast<unsigned char>(c)) || plain.find(c) != std::string_view::npos)
      text += c;
    else
      text += "%" + hex(std::string_view(&c, 1), digits);
  }
  return text;
}

/// Returns the text as JSON without its quotes.
/// @param only_ascii other characters are escaped
std::string in_json(const std::string& text, bool only_ascii) {
  const auto quoted =
      nlohmann::json(text).dump(-1, ' ', only_ascii, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

/// Adds the base64 forms for each of the three alignments. The first digit may also have bits of
/// the byte before the secret, so there is a form for each value of these bits. The last digit may
/// have bits of the byte after the secret: then it is left out, and the form has an open end.
void add_base64(const std::string& secret, std::vector<SecretForm>& forms) {
  constexpr std::size_t digit_bits = 6, byte_bits = 8;
  for (std::size_t before = 0; before < 3; ++before) {
    const std::size_t foreign = before * byte_bits % digit_bits;
    const auto first = before * byte_bits / digit_bits;
    const auto bits = (before + secret.size()) * byte_bits;
    for (unsigned other = 0; other < 1U << foreign; ++other) {
      const auto text = core::encode_base64(std::string(before, static_cast<char>(other)) + secret);
      forms.push_back({text.substr(first, bits / digit_bits - first), bits % digit_bits != 0});
      auto& for_urls = forms.emplace_back(forms.back());
      std::ranges::replace(for_urls.text, '+', '-');
      std::ranges::replace(for_urls.text, '/', '_');
    }
  }
}

/// Adds the secret itself, its lines, and the forms in which programs print it: base64,
/// hexadecimal, as part of a URL or a form, and in JSON.
void add_forms(const std::string& secret, std::vector<SecretForm>& forms) {
  forms.push_back({secret});
  for (std::size_t begin = 0; secret.find('\n') != secret.npos && begin < secret.size();) {
    const auto end = std::min(secret.find('\n', begin), secret.size());
    if (end - begin >= min_line) forms.push_back({secret.substr(begin, end - begin)});
    begin = end + 1;
  }
  if (secret.size() < min_encoded) return;
  add_base64(secret, forms);
  for (const auto* digits : {lower_digits, upper_digits}) {
    forms.push_back({hex(secret, digits)});
    forms.push_back({url_encoded(secret, "-._~", digits)});
    forms.push_back({url_encoded(secret, "-._~/", digits)});
    auto& in_form = forms.emplace_back(SecretForm{url_encoded(secret, "-._~ ", digits)});
    std::ranges::replace(in_form.text, ' ', '+');
  }
  for (const bool only_ascii : {false, true}) forms.push_back({in_json(secret, only_ascii)});
}

struct Match {
  /// cut: the text may match when more of it arrives. open: the text matches, and a last digit of
  /// base64 may still arrive.
  enum { none, cut, open, whole } kind = none;
  std::size_t length = 0, breaks = 0;
};

/// A character that JSON writes with a backslash.
struct Escape {
  bool is_cut = false;     ///< The text may become one when more of it arrives.
  std::size_t length = 0;  ///< Length of the escape in the text.
  std::string bytes{};     ///< The character in UTF-8; empty: the text begins with no escape.
};

std::string utf8_of(char32_t c) {
  constexpr char32_t low = 0x3f;
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & low))};
  if (c < 0x10000)
    return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & low)), byte(0x80 | (c & low))};
  return {byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & low)), byte(0x80 | (c >> 6 & low)),
          byte(0x80 | (c & low))};
}

/// Reads the escape at the beginning of the text. Programs choose which characters they escape: Go
/// writes `\u0026` for `&`, PHP `\/`, and what reads such JSON shows the characters themselves.
Escape escape_at(std::string_view text) {
  constexpr std::size_t unit = 6;  // `\u0026`
  if (!text.starts_with('\\')) return {};
  if (text.size() == 1) return {.is_cut = true};
  constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  if (const auto known = letters.find(text[1]); known != letters.npos)
    return {.length = 2, .bytes = std::string(1, meanings[known])};
  bool is_cut = false;
  const auto unit_at = [&](std::size_t at) -> char32_t {
    const auto written = text.substr(std::min(at, text.size()), unit);
    std::uint32_t value = 0;
    const auto* const end = written.data() + written.size();
    is_cut |= written.size() < unit;
    if (written.size() < unit || !written.starts_with("\\u")) return 0xffff;
    const auto read = std::from_chars(written.data() + 2, end, value, 16);
    return read.ptr == end ? char32_t{value} : char32_t{0xffff};
  };
  const auto first = text[1] == 'u' ? unit_at(0) : char32_t{0xffff};
  if (first < 0xd800 || (first >= 0xe000 && first < 0xffff))
    return {.length = unit, .bytes = utf8_of(first)};
  if (first >= 0xd800 && first < 0xdc00) {
    const auto second = unit_at(unit);
    if (second >= 0xdc00 && second < 0xe000)
      return {.length = 2 * unit,
              .bytes = utf8_of(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))};
  }
  return {.is_cut = is_cut};
}

bool is_base64(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("+/-_").find(c) != std::string_view::npos;
}

/// Matches the beginning of the text with this form of a secret, which may contain line breaks, and
/// characters as JSON escapes them.
/// @param reads_escapes whether a backslash that the form has, too, is read as that of an escape
Match match(std::string_view text, const SecretForm& wanted, bool reads_escapes) {
  const std::string_view form = wanted.text;
  Match found;
  bool is_broken = false;
  unsigned returns = 0;  // Without a bound, what a step prints could be held back without end.
  for (std::size_t matched = 0; matched < form.size();) {
    if (found.length == text.size()) {
      found.kind = Match::cut;
      return found;
    }
    const char next = text[found.length];
    if (next == form[matched] && !(reads_escapes && next == '\\')) {
      is_broken = false;
      returns = 0;
      ++matched;
    } else if (matched >= min_before_break && next == '\n' && !is_broken) {
      is_broken = true;
      ++found.breaks;
    } else if (next == '\\') {
      const auto escape = escape_at(text.substr(found.length));
      if (escape.is_cut) {
        found.kind = Match::cut;
        return found;
      }
      if (escape.bytes.empty() || !form.substr(matched).starts_with(escape.bytes)) return found;
      is_broken = false;
      returns = 0;
      matched += escape.bytes.size();
      found.length += escape.length - 1;
    } else if (matched < min_before_break || next != '\r' || is_broken || ++returns > max_returns) {
      return found;
    }
    ++found.length;
  }
  found.kind = Match::whole;
  if (wanted.has_open_end && found.length == text.size()) found.kind = Match::open;
  if (wanted.has_open_end && found.length < text.size() && is_base64(text[found.length]))
    ++found.length;
  return found;
}

}  // namespace

SecretMask::SecretMask(const std::vector<std::string>& secrets) {
  std::vector<SecretForm> all;
  for (const auto& secret : secrets)
    if (secret.size() >= min_secret) {
      add_forms(secret, all);
      // Programs strip surrounding blanks before they encode a secret.
      constexpr const char* white = " \t\r\n";
      const auto first = secret.find_first_not_of(white), last = secret.find_last_not_of(white);
      if (first != secret.npos && last + 1 - first < secret.size())
        add_forms(secret.substr(first, last + 1 - first), all);
    }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::ranges::stable_sort(all, std::greater(), [](const auto& form) { return form.text.size(); });
  std::erase_if(all, [](const SecretForm& form) { return form.text.size() < min_secret; });
  constexpr std::size_t bytes = 256;
  if (!all.empty()) forms_.resize(bytes);
  for (auto& form : all) {
    form.has_backslash = form.text.find('\\') != form.text.npos;
    forms_[static_cast<unsigned char>(form.text.front())].push_back(std::move(form));
  }
}

std::string SecretMask::feed(std::string_view bytes) {
  if (forms_.empty()) return std::string(bytes);
  pending_ += bytes;
  return take(End::none);
}

std::string SecretMask::finish() { return take(End::reached); }
std::string SecretMask::finish_cut() { return take(End::cut); }

std::string SecretMask::take(End end) {
  std::string shown;
  std::size_t position = 0;
  const std::string_view text = pending_;
  while (position < text.size()) {
    const auto rest = text.substr(position);
    Match whole;
    bool is_cut = false;
    const auto look = [&](char first) {
      for (const auto& form : forms_[static_cast<unsigned char>(first)]) {
        for (const bool reads_escapes : {false, true}) {
          if (reads_escapes && !form.has_backslash) break;
          const auto found = match(rest, form, reads_escapes);
          is_cut |= found.kind == Match::cut || found.kind == Match::open;
          if (found.kind >= Match::open && whole.kind == Match::none) whole = found;
        }
      }
    };
    look(rest.front());
    if (rest.front() == '\\') {
      const auto escape = escape_at(rest);
      is_cut |= escape.is_cut;
      if (!escape.bytes.empty() && escape.bytes.front() != '\\') look(escape.bytes.front());
    }
    // Waits even if a shorter secret matches already, because the longer one may still be
    // completed.
    if (end == End::none && is_cut) break;
    if (whole.kind == Match::none && end == End::cut && is_cut && rest.size() >= min_secret) {
      shown += "***";
      position = text.size();
    } else if (whole.kind != Match::none) {
      shown += "***" + std::string(whole.breaks, '\n');
      position += whole.length;
    } else {
      shown += text[position++];
    }
  }
  pending_.erase(0, position);
  return shown;
}

std::string without_secrets(std::string_view text, const std::vector<std::string>& secrets) {
  SecretMask mask(secrets);
  auto shown = mask.feed(text);
  return shown + mask.finish();
}

std::string without_cut_secrets(std::string_view text, const std::vector<std::string>& secrets) {
  SecretMask mask(secrets);
  auto shown = mask.feed(text);
  return shown + mask.finish_cut();
}

void hide_secrets(Failure& failure, const std::vector<std::string>& secrets) {
  SecretMask mask(secrets);
  const auto hide = [&mask](std::string& text) {
    text = mask.feed(text);
    text += mask.finish();
  };
  hide(failure.message);
  for (auto* texts : {&failure.hints, &failure.details}) std::ranges::for_each(*texts, hide);
}

}  // namespace pipeline::engine
