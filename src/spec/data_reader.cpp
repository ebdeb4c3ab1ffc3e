#include "spec/data_reader.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/diagnostic.hpp"
#include "settings/decode.hpp"
#include "spec/user_files.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> data_keys{"path", "url", "sha256"};

bool is_url(std::string_view text) { return text.find("://") != std::string_view::npos; }

constexpr settings::Format digest_text{
    "a SHA-256 in 64 hexadecimal digits", [](std::string_view text) {
      return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
    }};
constexpr settings::Format url_text{
    "a URL that begins with https:// or http://, without a login", [](std::string_view text) {
      if (!text.starts_with("https://") && !text.starts_with("http://")) return false;
      const auto host = text.substr(text.find("//") + 2);
      const auto authority = host.substr(0, host.find_first_of("/?#"));
      return !authority.empty() && authority.find('@') == authority.npos &&
             text.find_first_of(" \t\"<>\\^`{|}") == text.npos &&
             std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
    }};

std::optional<DataSpec> read_data_path(const std::string& input, const core::Value& value,
                                       const fs::path& root, settings::Diagnostics& diagnostics) {
  const auto text =
      settings::read_text("inputs." + input, value, settings::formats::path, diagnostics);
  if (!text) return std::nullopt;
  DataSpec data;
  data.path = user_path(*text, root);
  std::error_code error;
  const auto type = fs::status(data.path, error).type();
  if (type == fs::file_type::regular || type == fs::file_type::directory) return data;
  settings::report(diagnostics, "missing-file",
                   type == fs::file_type::not_found
                       ? "the data '" + *text + "' does not exist"
                       : "the data '" + *text + "' is neither a file nor a folder",
                   value.span, {"looked for " + data.path.string()});
  return std::nullopt;
}

std::optional<DataSpec> read_data_url(const std::string& input, const core::Value& map,
                                      settings::Diagnostics& diagnostics) {
  DataSpec data;
  const auto url = settings::read_text("url", *map.find("url"), url_text, diagnostics);
  const auto* digest = map.find("sha256");
  if (!digest) {
    settings::report(diagnostics, "missing-key",
                     "the input '" + input + "' has a 'url' and no 'sha256'", map.span,
                     {"what a URL gives may change; its SHA-256 is a part of the step's key"},
                     url ? "`curl -L URL | sha256sum` prints it" : "");
    return std::nullopt;
  }
  const auto sha256 = settings::read_text("sha256", *digest, digest_text, diagnostics);
  if (!url || !sha256) return std::nullopt;
  data.url = *url;
  data.sha256 = *sha256;
  return data;
}

}  // namespace

bool is_data(const core::Value& value) {
  if (value.kind == core::Value::Kind::map) return true;
  if (value.kind != core::Value::Kind::scalar) return false;
  const std::string_view text = value.scalar;
  return text.starts_with("./") || text.starts_with("../") || text.starts_with("~/") ||
         text.starts_with("/") || text == "." || text == ".." || is_url(text);
}

std::optional<DataSpec> read_data(const std::string& input, const core::Value& value,
                                  const fs::path& root, settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar) {
    if (!is_url(value.scalar)) return read_data_path(input, value, root, diagnostics);
    settings::report(
        diagnostics, "missing-key", "the input '" + input + "' is a URL without its SHA-256",
        value.span, {},
        "write `" + input + ": {url: " + core::printable(value.scalar) + ", sha256: ...}`");
    return std::nullopt;
  }
  const auto before = diagnostics.size();
  settings::report_unknown_keys(value, data_keys, "an input", diagnostics);
  if (diagnostics.size() > before) return std::nullopt;
  const auto *path = value.find("path"), *url = value.find("url");
  if (path && url)
    settings::report(diagnostics, "contradiction",
                     "the input '" + input + "' has both 'path' and 'url'", value.span);
  else if (path && value.find("sha256"))
    settings::report(diagnostics, "contradiction",
                     "the input '" + input +
                         "' is a path, whose content is read: 'sha256' is for "
                         "what has a 'url'",
                     value.find("sha256")->span);
  else if (url)
    return read_data_url(input, value, diagnostics);
  else if (path)
    return read_data_path(input, *path, root, diagnostics);
  else
    settings::report(diagnostics, "missing-key",
                     "the input '" + input + "' has neither 'path' nor 'url'", value.span);
  return std::nullopt;
}

}  // namespace pipeline::spec
