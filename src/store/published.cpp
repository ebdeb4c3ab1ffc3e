#include "store/published.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "store/database.hpp"
#include "store/key_values.hpp"
#include "store/record_texts.hpp"

namespace pipeline::store {
namespace {

constexpr const char* published_kind = "published";

/// Returns true if the versions ascend and every promoted version exists: a record from a bucket
/// may be anything.
bool is_consistent(const PublishedName& name) {
  const auto is_known = [&](unsigned version) { return version != 0 && name.find(version); };
  const auto is_wrong = [](const PublishedVersion& one, const PublishedVersion& next) {
    return one.version >= next.version;
  };
  return name.versions.empty() == name.promoted.empty() &&
         std::ranges::all_of(name.promoted, is_known) &&
         std::ranges::adjacent_find(name.versions, is_wrong) == name.versions.end();
}

void require_versions(const PublishedName& name) {
  if (name.versions.empty()) throw core::InputError("nothing is published as '" + name.name + "'");
}

}  // namespace

std::string text_of(const PublishedName& name) {
  nlohmann::json versions = nlohmann::json::array();
  for (const auto& version : name.versions) {
    versions.push_back({{"version", version.version},
                        {"run", version.run},
                        {"step", version.step},
                        {"outputs", write_outputs({version.output})},
                        {"time", version.time.time_since_epoch().count()}});
    if (version.is_executable) versions.back()["executable"] = true;
  }
  return nlohmann::json{{"versions", versions}, {"promoted", name.promoted}}.dump();
}

PublishedName read_published(const std::string& name, const std::string& text) {
  PublishedName read{name, {}, {}};
  try {
    const auto json = core::parse_json(text);
    for (const auto& each : json.at("versions")) {
      auto outputs = read_outputs(each.at("outputs").get<std::string>());
      read.versions.push_back(
          {core::integer_of<unsigned>(each.at("version")), each.at("run").get<std::string>(),
           each.at("step").get<std::string>(), std::move(outputs.at(0)),
           WallTime(std::chrono::milliseconds(core::integer_of<std::int64_t>(each.at("time")))),
           each.value("executable", false)});
    }
    for (const auto& each : json.at("promoted"))
      read.promoted.push_back(core::integer_of<unsigned>(each));
    if (!is_consistent(read)) throw std::invalid_argument("its versions are not in order");
  } catch (const std::exception& error) {
    throw core::EnvironmentError("the record of the artifact '" + name +
                                 "' is damaged: " + error.what());
  }
  return read;
}

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

const PublishedVersion* PublishedName::find_content(const core::Digest& content) const {
  const auto same = std::ranges::find_if(
      versions, [&](const PublishedVersion& each) { return each.output.digest == content; });
  return same == versions.end() ? nullptr : &*same;
}

unsigned PublishedName::publish(PublishedVersion made) {
  if (const auto* same = find_content(made.output.digest)) return same->version;
  made.version = versions.empty() ? 1 : versions.back().version + 1;
  promoted.push_back(made.version);
  versions.push_back(std::move(made));
  return versions.back().version;
}

void PublishedName::promote(unsigned version) {
  require_versions(*this);
  if (version == 0 || !find(version))
    throw core::InputError("'" + name + "' has no version " + std::to_string(version) +
                           ", its newest is " + std::to_string(versions.back().version));
  if (promoted.back() != version) promoted.push_back(version);
}

unsigned PublishedName::demote() {
  require_versions(*this);
  if (promoted.size() < 2)
    throw core::InputError("no version of '" + name + "' was current before version " +
                           std::to_string(promoted.back()));
  promoted.pop_back();
  return promoted.back();
}

PublishedName Published::find(const std::string& name) {
  const auto text = key_values_.find(published_kind, name);
  return text ? read_published(name, *text) : PublishedName{name, {}, {}};
}

std::vector<std::string> Published::names() { return key_values_.keys(published_kind); }

unsigned Published::change(const std::string& name,
                           const std::function<unsigned(PublishedName&)>& edit) {
  unsigned version = 0;
  database_.transaction([&] {
    auto record = find(name);
    version = edit(record);
    key_values_.put(published_kind, name, text_of(record));
  });
  return version;
}

}  // namespace pipeline::store
