#include "store/published.hpp"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "store/record_texts.hpp"

namespace pipeline::store {
namespace {

constexpr const char* published_kind = "published";

std::string text_of(const PublishedName& name) {
  nlohmann::json versions = nlohmann::json::array();
  for (const auto& version : name.versions)
    versions.push_back({{"version", version.version},
                        {"run", version.run},
                        {"step", version.step},
                        {"outputs", write_outputs({version.output})},
                        {"time", version.time.time_since_epoch().count()}});
  return nlohmann::json{{"versions", versions}, {"promoted", name.promoted}}.dump();
}

PublishedName read_published(const std::string& name, const std::string& text) {
  PublishedName read{name, {}, {}};
  try {
    const auto json = core::parse_json(text);
    for (const auto& each : json.at("versions")) {
      auto outputs = read_outputs(each.at("outputs").get<std::string>());
      read.versions.push_back({each.at("version").get<unsigned>(),
                               each.at("run").get<std::string>(),
                               each.at("step").get<std::string>(), std::move(outputs.at(0)),
                               WallTime(std::chrono::milliseconds(each.at("time").get<long>()))});
    }
    read.promoted = json.at("promoted").get<std::vector<unsigned>>();
  } catch (const std::exception& error) {
    throw core::EnvironmentError("the record of the artifact '" + name +
                                 "' is damaged: " + error.what());
  }
  return read;
}

}  // namespace

std::optional<PublishedReference> PublishedReference::parse(std::string_view text) {
  const auto at = text.find('@');
  PublishedReference named{.name = std::string(text.substr(0, at))};
  if (at == std::string_view::npos) return named;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + at + 1, end, named.version);
  if (read.ec != std::errc() || read.ptr != end || named.version == 0) return std::nullopt;
  return named;
}

const PublishedVersion* PublishedName::find(unsigned version) const {
  if (version == 0 && promoted.empty()) return nullptr;
  const auto wanted = version ? version : promoted.back();
  const auto found = std::ranges::find(versions, wanted, &PublishedVersion::version);
  return found == versions.end() ? nullptr : &*found;
}

PublishedName Published::of(const std::string& name) {
  const auto text = runs_.get_blob(published_kind, name);
  return text ? read_published(name, *text) : PublishedName{name, {}, {}};
}

std::vector<std::string> Published::names() { return runs_.blob_keys(published_kind); }

PublishedName Published::required(const std::string& name) {
  auto found = of(name);
  if (found.versions.empty())
    throw core::InputError("nothing is published as '" + name + "'",
                           core::did_you_mean(name, names()));
  return found;
}

void Published::put(const PublishedName& name) {
  runs_.put_blob(published_kind, name.name, text_of(name));
}

unsigned Published::publish(const std::string& name, const std::string& run,
                            const std::string& step, const OutputRecord& output, WallTime time) {
  unsigned version = 0;
  runs_.transaction([&] {
    auto all = of(name);
    const auto same = std::ranges::find_if(all.versions, [&](const PublishedVersion& each) {
      return each.output.digest == output.digest;
    });
    version = same != all.versions.end() ? same->version
              : all.versions.empty()     ? 1
                                         : all.versions.back().version + 1;
    if (same != all.versions.end()) return;
    all.versions.push_back({version, run, step, output, time});
    all.promoted.push_back(version);
    put(all);
  });
  return version;
}

void Published::promote(const std::string& name, unsigned version) {
  runs_.transaction([&] {
    auto all = required(name);
    if (version == 0 || !all.find(version))
      throw core::InputError("'" + name + "' has no version " + std::to_string(version) +
                             ", its newest is " + std::to_string(all.versions.back().version));
    if (all.promoted.back() == version) return;
    all.promoted.push_back(version);
    put(all);
  });
}

unsigned Published::demote(const std::string& name) {
  unsigned current = 0;
  runs_.transaction([&] {
    auto all = required(name);
    if (all.promoted.size() < 2)
      throw core::InputError("no version of '" + name + "' was current before version " +
                             std::to_string(all.promoted.back()));
    all.promoted.pop_back();
    current = all.promoted.back();
    put(all);
  });
  return current;
}

}  // namespace pipeline::store
