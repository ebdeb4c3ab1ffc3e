#include "blobs/error_document.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace pipeline::blobs {
namespace {

/// Appends the ASCII character of the character reference that begins the text, such as `&#39;` or
/// `&#x27;`: servers in Go write quotes so. Returns the reference's length; 0 if the text does not
/// begin with a reference to an ASCII character.
std::size_t append_character_reference(std::string_view text, std::string& result) {
  if (!text.starts_with("&#")) return 0;
  const bool is_hex = text.substr(2).starts_with('x');
  const auto* const last = text.data() + text.size();
  unsigned code = 0;
  const auto [end, error] =
      std::from_chars(text.data() + (is_hex ? 3 : 2), last, code, is_hex ? 16 : 10);
  if (error != std::errc() || end == last || *end != ';' || code == 0 || code >= 0x80) return 0;
  result += static_cast<char>(code);
  return static_cast<std::size_t>(end - text.data()) + 1;
}

std::string unescaped(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> entities{
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string result;
  while (!text.empty()) {
    const auto entity = std::ranges::find_if(
        entities, [&](const auto& each) { return text.starts_with(each.first); });
    if (const auto length = append_character_reference(text, result)) {
      text.remove_prefix(length);
    } else if (entity != entities.end()) {
      result += entity->second;
      text.remove_prefix(entity->first.size());
    } else {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

}  // namespace

std::string xml_text(std::string_view xml, std::string_view element) {
  auto found = xml_texts(xml, element);
  return found.empty() ? std::string() : std::move(found.front());
}

std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view element) {
  const auto open = "<" + std::string(element) + ">", close = "</" + std::string(element) + ">";
  std::vector<std::string_view> texts;
  for (auto begin = xml.find(open); begin != xml.npos; begin = xml.find(open, begin)) {
    begin += open.size();
    const auto end = xml.find(close, begin);
    if (end == xml.npos) break;
    texts.push_back(xml.substr(begin, end - begin));
    begin = end;  // Otherwise many opening tags and one closing tag would need unbounded memory.
  }
  return texts;
}

std::vector<std::string> xml_texts(std::string_view xml, std::string_view element) {
  std::vector<std::string> texts;
  for (const auto text : xml_elements(xml, element)) texts.push_back(unescaped(text));
  return texts;
}

bool is_retryable(long status, std::string_view code) {
  // The status 501 (Not Implemented) is permanent: the server does not know the header or request.
  return (status >= 500 && status != 501) || status == 429 || status == 408 || code == "SlowDown" ||
         code == "RequestTimeout" || code == "OperationAborted";
}

}  // namespace pipeline::blobs
