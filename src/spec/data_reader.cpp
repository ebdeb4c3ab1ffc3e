#include "spec/data_reader.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "core/text.hpp"
#include "settings/decode.hpp"
#include "spec/user_files.hpp"
#include "vcs/repository.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> data_keys{"path",    "url",      "sha256",
                                         "version", "artifact", "optional"};
/// The keys of all kinds of inputs: data, gathered outputs, and outputs by round.
const std::vector<std::string> input_keys{"path",     "url",      "sha256", "version",
                                          "artifact", "optional", "from",   "missing",
                                          "at_least", "first",    "then"};
constexpr std::string_view artifact_prefix = "artifact:";

constexpr settings::Format published_name{
    "a name with letters, digits, `.`, `_` and `-` that begins with a letter or digit",
    [](std::string_view text) { return core::is_name(text); }};
/// Accepts `NAME` and `NAME@3`.
constexpr settings::Format artifact_version{
    "an artifact's name, such as `production`, or one version of it, such as `production@3`",
    [](std::string_view text) {
      const auto at = text.find('@');
      if (!core::is_name(text.substr(0, at))) return false;
      if (at == text.npos) return true;
      const auto version = text.substr(at + 1);  // At most nine digits fit into 32 bits.
      return !version.empty() && version.size() < 10 && version.front() != '0' &&
             version.find_first_not_of("0123456789") == version.npos;
    }};

bool is_url(std::string_view text) { return text.find("://") != std::string_view::npos; }

constexpr settings::Format digest_text{
    "a SHA-256 in 64 hexadecimal digits",
    [](std::string_view text) { return text.size() == 64 && core::all(text, core::is_hex_digit); }};
constexpr std::string_view s3_prefix = "s3://";

bool is_web_address(std::string_view text) {
  if (!text.starts_with("https://") && !text.starts_with("http://")) return false;
  const auto host = text.substr(text.find("//") + 2);
  const auto authority = host.substr(0, host.find_first_of("/?#"));
  return !authority.empty() && authority.find('@') == authority.npos &&
         text.find_first_of(" \t\"<>\\^`{|}") == text.npos &&
         std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

/// Accepts `s3://BUCKET/KEY` and `s3://BUCKET/FOLDER/`; a key may have blanks and any letters. S3
/// allows 63 bytes for a bucket's name and 1024 for a key.
bool is_bucket_address(std::string_view text) {
  if (!text.starts_with(s3_prefix)) return false;
  const auto rest = text.substr(s3_prefix.size());
  const auto bucket = rest.substr(0, rest.find('/'));
  return bucket.size() < rest.size() && core::is_name(bucket) && text.size() <= 1100 &&
         rest.find_first_of("?#") == rest.npos && std::ranges::none_of(rest, [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

constexpr settings::Format url_text{
    "a URL that begins with https:// or http://, without a login, or s3://BUCKET/KEY",
    [](std::string_view text) { return is_web_address(text) || is_bucket_address(text); }};
constexpr settings::Format version_text{
    "the version id of an object, as the server of its bucket gives it", [](std::string_view text) {
      return !text.empty() && text.size() <= 1024 &&
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
                   value.span, {"looked for " + data.path.string()},
                   vcs::sparse_advice(root, fs::path(*text).lexically_normal().generic_string()));
  return std::nullopt;
}

std::optional<DataSpec> read_data_url(const core::Value& map, settings::Diagnostics& diagnostics) {
  DataSpec data;
  const auto before = diagnostics.size();
  const auto url = settings::read_text("url", *map.find("url"), url_text, diagnostics);
  if (const auto* digest = map.find("sha256"))
    data.sha256 =
        settings::read_text("sha256", *digest, digest_text, diagnostics).value_or(std::string());
  if (const auto* version = map.find("version")) {
    data.version =
        settings::read_text("version", *version, version_text, diagnostics).value_or(std::string());
    if (url && (!url->starts_with(s3_prefix) || url->ends_with('/')))
      settings::report(diagnostics, "contradiction",
                       "'version' is for an object in a bucket, 's3://BUCKET/KEY'", version->span);
  }
  if (!url || diagnostics.size() > before) return std::nullopt;
  data.url = *url;
  return data;
}

std::optional<DataSpec> read_data_artifact(const core::Value& map,
                                           settings::Diagnostics& diagnostics) {
  DataSpec data;
  const auto name =
      settings::read_text("artifact", *map.find("artifact"), artifact_version, diagnostics);
  if (const auto* optional = map.find("optional"))
    data.optional = settings::read_bool("optional", *optional, diagnostics).value_or(false);
  if (!name) return std::nullopt;
  data.artifact = *name;
  return data;
}

}  // namespace

bool is_data(const core::Value& value) {
  if (value.kind == core::Value::Kind::map) return true;
  if (value.kind != core::Value::Kind::scalar) return false;
  const std::string_view text = value.scalar;
  // No step has a `/` in its name; a selector, `work[file=a/b].made`, may have.
  const bool is_path = text.substr(0, text.find('[')).find('/') != text.npos;
  return is_path || text == "." || text == ".." || text.starts_with(artifact_prefix);
}

std::optional<DataSpec> read_data(const std::string& input, const core::Value& value,
                                  const fs::path& root, settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar && value.scalar.starts_with(artifact_prefix)) {
    DataSpec data;
    data.artifact = value.scalar.substr(artifact_prefix.size());
    if (artifact_version.accepts(data.artifact)) return data;
    settings::report_type(diagnostics, "inputs." + input,
                          std::string("`artifact:` and ") + artifact_version.expected, value);
    return std::nullopt;
  }
  if (value.kind == core::Value::Kind::scalar) {
    if (!is_url(value.scalar)) return read_data_path(input, value, root, diagnostics);
    const auto url = settings::read_text("inputs." + input, value, url_text, diagnostics);
    if (!url) return std::nullopt;
    return DataSpec{.url = *url};
  }
  const auto before = diagnostics.size();
  const bool is_known_data = value.find("path") || value.find("url") || value.find("artifact");
  settings::report_unknown_keys(value, is_known_data ? data_keys : input_keys, "an input",
                                diagnostics);
  if (diagnostics.size() > before) return std::nullopt;
  const auto *path = value.find("path"), *url = value.find("url"),
             *artifact = value.find("artifact"), *optional = value.find("optional");
  const auto* only_of_url = value.find("sha256") ? value.find("sha256") : value.find("version");
  if ((path != nullptr) + (url != nullptr) + (artifact != nullptr) > 1)
    settings::report(diagnostics, "contradiction",
                     "the input '" + input + "' has more than one of 'path', 'url' and 'artifact'",
                     value.span);
  else if (optional && !artifact)
    settings::report(diagnostics, "contradiction",
                     "'optional' is for an input that has an 'artifact'", optional->span);
  else if (only_of_url && (path || artifact))
    settings::report(diagnostics, "contradiction",
                     "the input '" + input + "' is " +
                         (path ? "a path, whose content is read" : "an artifact") +
                         ": 'sha256' and 'version' are for an input with a 'url'",
                     only_of_url->span, {},
                     artifact ? "a version of an artifact is `{artifact: production@3}`" : "");
  else if (artifact)
    return read_data_artifact(value, diagnostics);
  else if (url)
    return read_data_url(value, diagnostics);
  else if (path)
    return read_data_path(input, *path, root, diagnostics);
  else
    settings::report(diagnostics, "missing-key",
                     "the input '" + input + "' has none of 'path', 'url' and 'artifact'",
                     value.span);
  return std::nullopt;
}

StringMap read_publish(const core::Value& value, const StepSpec& step,
                       settings::Diagnostics& diagnostics) {
  StringMap names;
  if (!settings::expect_map("publish", value, diagnostics)) return names;
  std::vector<std::string> outputs;
  for (const auto& output : step.outputs) outputs.push_back(output.name);
  for (const auto& [output, name] : value.members) {
    const auto text =
        settings::read_text("publish." + output.scalar, name, published_name, diagnostics);
    if (std::ranges::find(outputs, output.scalar) == outputs.end())
      settings::report(diagnostics, "unknown-reference",
                       "step '" + step.name + "' has no output '" +
                           core::printable(output.scalar.substr(0, 60)) + "' to publish",
                       output.span, {}, core::did_you_mean(output.scalar, outputs));
    else if (text)
      names.emplace(output.scalar, *text);
  }
  return names;
}

}  // namespace pipeline::spec
