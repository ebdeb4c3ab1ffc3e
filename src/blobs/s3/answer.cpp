#include "s3/answer.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/diagnostic.hpp"

namespace pipeline::s3 {
namespace {

/// Decodes a character that is written as its number, as servers in Go write quotes: `&#39;`,
/// `&#x27;`. Returns the length of that; 0 if the text does not begin with one.
std::size_t decode_number(std::string_view text, std::string& result) {
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
    if (const auto length = decode_number(text, result)) {
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

std::vector<std::string> advice_for(const std::string& code, long status, const Answered& answer,
                                    const Where& where) {
  auto region = answer.region;
  if (region.empty()) region = xml_text(answer.body, "Region");
  if (!region.empty() && region != where.region)
    return {"the bucket is in the region " + region + ", not " + where.region +
            ": write `region: " + region + "`"};
  if (code == "NoSuchBucket" || (status == 404 && code.empty()))
    return {"make it (`aws s3 mb s3://" + where.bucket +
            "`), or correct `artifact_store.bucket`; with other servers than Amazon's `path_style` "
            "may be wrong"};
  if (code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch")
    return {"the keys are from " + where.origin_of_keys +
            ": they are not this server's, or the secret is not the one of the key"};
  if (code == "ExpiredToken" || code == "InvalidToken")
    return {"the session token, from " + where.origin_of_keys + ", has run out: log in again"};
  if (code == "RequestTimeTooSkewed")
    return {
        "this machine's clock and the server's differ by more than 15 minutes: set the clock "
        "(`timedatectl`)"};
  if (code == "AccessDenied" || status == 403)
    return {"the keys, from " + where.origin_of_keys +
            ", need s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload on the "
            "bucket's prefix, "
            "and s3:ListBucket on the bucket"};
  if (status == 301 || status == 307 || code == "PermanentRedirect")
    return {"the bucket has another endpoint: write its `region`, or its `endpoint`"};
  if (code == "QuotaExceeded" || code == "XMinioStorageFull" || status == 507)
    return {"the store is full"};
  return {};
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
    begin = end;  // Else a text of many beginnings and one end has more to copy than any memory.
  }
  return texts;
}

std::vector<std::string> xml_texts(std::string_view xml, std::string_view element) {
  std::vector<std::string> texts;
  for (const auto text : xml_elements(xml, element)) texts.push_back(unescaped(text));
  return texts;
}

S3Error refusal(const std::string& what, const Answered& answer, const Where& where) {
  const auto code = xml_text(answer.body, "Code");
  auto words = xml_text(answer.body, "Message");
  if (words.empty()) words = "status " + std::to_string(answer.status);
  const auto place = "s3://" + where.bucket + " at " + where.endpoint;
  return {answer.status, code,
          "cannot " + what + " " + place + ": " +
              (code.empty() ? "" : core::printable(code.substr(0, 100)) + ": ") +
              core::printable(words.substr(0, 300)),
          advice_for(code, answer.status, answer, where)};
}

bool is_retryable(long status, std::string_view code) {
  // 501: a header or request that the server does not know.
  return (status >= 500 && status != 501) || status == 429 || status == 408 || code == "SlowDown" ||
         code == "RequestTimeout" || code == "OperationAborted";
}

}  // namespace pipeline::s3
