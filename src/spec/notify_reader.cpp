#include "spec/notify_reader.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <pipeline/events.hpp>

#include "settings/decode.hpp"
#include "spec/keys.hpp"
#include "spec/step_reader.hpp"
#include "spec/user_files.hpp"

namespace pipeline::spec {
namespace {

using Strings = std::vector<std::string>;

const Strings notify_keys{"url", "on", "format"};
const Strings address_keys{"env", "file"};
constexpr std::array reported_ends{RunStatus::failed, RunStatus::succeeded, RunStatus::interrupted};
constexpr std::array format_words{std::pair{"json", NotifyFormat::json},
                                  std::pair{"slack", NotifyFormat::slack},
                                  std::pair{"teams", NotifyFormat::teams}};

constexpr settings::Format webhook_address{
    "an address, `https://...`", [](std::string_view text) {
      return (text.starts_with("https://") && text.size() > 8) ||
             (text.starts_with("http://") && text.size() > 7);
    }};

Strings words_of_ends() {
  Strings words;
  for (const auto end : reported_ends) words.emplace_back(to_string(end));
  return words;
}

/// Reads an address. An error does not repeat it, because it is a secret.
void read_address(const core::Value& value, const std::filesystem::path& folder, NotifySpec& notify,
                  settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar && webhook_address.accepts(value.scalar) &&
      settings::formats::word.accepts(value.scalar)) {
    notify.url = value.scalar;
    return;
  }
  if (value.kind != core::Value::Kind::map) {
    settings::report(diagnostics, "wrong-type", "'url' is not an address", value.span,
                     {"as in `url: https://hooks.example.com/x`, or from a variable of your "
                      "environment `url: {env: NAME}`, or from a file `url: {file: PATH}`"});
    return;
  }
  settings::report_unknown_keys(value, address_keys, "'url'", diagnostics);
  const auto *variable = value.find("env"), *file = value.find("file");
  if ((variable != nullptr) == (file != nullptr))
    settings::report(diagnostics, "missing-key", "'url' must have either 'env' or 'file'",
                     value.span, {"as in `url: {env: SLACK_WEBHOOK}`"});
  if (variable)
    notify.url_variable =
        settings::read_text("env", *variable, settings::formats::variable, diagnostics)
            .value_or("");
  if (file)
    if (const auto path = settings::read_text("file", *file, settings::formats::path, diagnostics))
      notify.url_file = user_path(*path, folder);
}

NotifySpec read_webhook(const core::Value& value, const std::filesystem::path& folder,
                        settings::Diagnostics& diagnostics) {
  NotifySpec notify;
  if (!settings::expect_map("notify", value, diagnostics)) return notify;
  settings::report_unknown_keys(value, notify_keys, "'notify'", diagnostics);
  if (const auto* url = value.find("url"))
    read_address(*url, folder, notify, diagnostics);
  else if (!has_misspelt(value, "url"))
    settings::report(diagnostics, "missing-key", "'notify' has no 'url'", value.span,
                     {"as in `notify: {url: {env: SLACK_WEBHOOK}, on: [failed], format: slack}`"});
  if (const auto* on = value.find("on")) {
    if (on->kind != core::Value::Kind::list || on->items.empty())
      settings::report_type(diagnostics, "on", "a list of failed, succeeded and interrupted", *on);
    else
      for (const auto& item : on->items)
        if (const auto word = read_word("on", item, words_of_ends(), diagnostics))
          notify.on.push_back(*std::ranges::find(
              reported_ends, *word, [](RunStatus end) { return std::string(to_string(end)); }));
  }
  if (const auto* format = value.find("format"))
    if (const auto word = read_word("format", *format, {"json", "slack", "teams"}, diagnostics))
      for (const auto& [name, each] : format_words)
        if (*word == name) notify.format = each;
  return notify;
}

}  // namespace

std::vector<NotifySpec> read_notify(const core::Value& value, const std::filesystem::path& folder,
                                    settings::Diagnostics& diagnostics) {
  std::vector<NotifySpec> all;
  if (value.kind != core::Value::Kind::list) {
    all.push_back(read_webhook(value, folder, diagnostics));
    return all;
  }
  for (const auto& item : value.items) all.push_back(read_webhook(item, folder, diagnostics));
  return all;
}

nlohmann::json notify_schema() {
  using nlohmann::json;
  const auto with_description = [](json schema, const char* text) {
    schema["description"] = text;
    return schema;
  };
  const json text{{"type", "string"}};
  json from{{"type", "object"},
            {"properties",
             {{"env", with_description(text, "Variable of your environment that has the address.")},
              {"file", with_description(text, "File that has the address.")}}},
            {"additionalProperties", false}};
  json one{{"type", "object"},
           {"properties",
            {{"url", with_description(
                         {{"anyOf", {{{"type", "string"}, {"pattern", "^https?://"}}, from}}},
                         "Address of the webhook: a text, or `{env: NAME}` or `{file: PATH}`, "
                         "since it is a secret.")},
             {"on", with_description({{"type", "array"}, {"items", {{"enum", words_of_ends()}}}},
                                     "Which ends of a run are reported. Default: all.")},
             {"format", with_description(
                            {{"enum", {"json", "slack", "teams"}}},
                            "Body of the request: an object of pipe's own, or a message as Slack "
                            "or Teams takes it. Default: json.")}}},
           {"required", {"url"}},
           {"additionalProperties", false}};
  return {{"anyOf", {one, {{"type", "array"}, {"items", one}}}}};
}

nlohmann::json notify_document(const std::vector<NotifySpec>& notify) {
  using nlohmann::json;
  auto list = json::array();
  for (const auto& each : notify) {
    json entry;
    if (!each.url.empty()) entry["url"] = each.url;
    if (!each.url_variable.empty()) entry["url"]["env"] = each.url_variable;
    if (!each.url_file.empty()) entry["url"]["file"] = each.url_file;
    for (const auto end : each.on) entry["on"].push_back(to_string(end));
    for (const auto& [name, format] : format_words)
      if (format == each.format && format != NotifyFormat::json) entry["format"] = name;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace pipeline::spec
