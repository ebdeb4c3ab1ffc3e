#include "engine/data/data_input.hpp"

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/log.hpp"
#include "fetch/address.hpp"

namespace pipeline::engine {
namespace {

std::map<std::string, unsigned> read_versions(const std::string& text) {
  std::map<std::string, unsigned> versions;
  try {
    const auto document = core::parse_json(text);
    for (const auto& [name, number] : document.items())
      versions[name] = core::integer_of<unsigned>(number);
  } catch (const std::exception& error) {
    core::log::info(std::string("the versions that the run began with: ") + error.what());
  }
  return versions;
}

}  // namespace

async::Task<> DataInputs::look_up(const PipelineSpec& pipeline, RemoteCache* cache,
                                  std::string_view continued) {
  if (const auto text = key_values_.find(store::versions_kind, std::string(continued)))
    current_ = read_versions(*text);
  cache_ = cache;
  if (!cache_) co_return;
  for (const auto& step : pipeline.steps)
    for (const auto& input : step.inputs) {
      if (!input.data || input.data->artifact.empty()) continue;
      const auto reference = store::PublishedReference::parse(input.data->artifact).value();
      if (names_.contains(reference.name)) continue;
      auto found = co_await cache->find_name(reference.name);
      names_.emplace(reference.name, std::move(found));
    }
}

const store::UserData& DataInputs::of(const std::filesystem::path& path) {
  const auto found = read_.find(path);
  if (found != read_.end()) return found->second;
  return read_.emplace(path, store::read_user_data(path, stats_)).first->second;
}

std::string DataInputs::current_versions(const std::vector<const StepSpec*>& steps) {
  auto current = nlohmann::json::object();
  for (const auto* step : steps)
    for (const auto& input : step->inputs) {
      if (!input.data || input.data->artifact.empty()) continue;
      const auto [name, version] = store::PublishedReference::parse(input.data->artifact).value();
      if (version != 0) continue;
      const auto* found = name_record(name).find();
      current[name] = found ? found->version : 0U;
    }
  return current.empty() ? "" : current.dump();
}

const store::PublishedName& DataInputs::name_record(const std::string& name) {
  const auto known = names_.find(name);
  return known == names_.end() ? names_.emplace(name, published_.find(name)).first->second
                               : known->second;
}

/// Returns the version that the data names; null if it does not exist.
const store::PublishedVersion* DataInputs::find(const DataSpec& data) {
  const auto [name, version] = store::PublishedReference::parse(data.artifact).value();
  const auto& record = name_record(name);
  const auto began_with = current_.find(name);
  if (version != 0 || began_with == current_.end()) return record.find(version);
  if (began_with->second == 0 && data.optional) return nullptr;
  return record.find(began_with->second);
}

const store::PublishedVersion* DataInputs::artifact(const DataSpec& data) {
  const auto* found = find(data);
  if (found || data.optional) return found;
  const auto [name, version] = store::PublishedReference::parse(data.artifact).value();
  if (!name_record(name).versions.empty())
    throw core::EnvironmentError(
        "the artifact '" + name + "' has no version " + std::to_string(version),
        {"`pipe artifacts --name " + name + "` lists its versions"});
  throw core::EnvironmentError(
      "nothing is published as '" + name + "' in " +
          (cache_ ? cache_->name() : "this state folder"),
      {"`publish: {OUTPUT: " + name +
           "}` of a step publishes it, or `pipe artifacts RUN "
           "STEP.OUTPUT --publish " +
           name + "`",
       "`{artifact: " + name + ", optional: true}` is an empty file until then"});
}

std::vector<store::KeyPart> DataInputs::parts(const InputSpec& input) {
  const auto name = "data " + input.name;
  if (!input.data->artifact.empty()) {
    const auto* version = artifact(*input.data);
    if (!version) return {{name, "none"}};
    const auto number = std::to_string(version->version);
    const auto published = store::PublishedReference::parse(input.data->artifact).value().name;
    const auto& digest = version->output.digest;
    return {{name, digest.hex() + " " + version->output.file_name + " version " + number,
             store::write_data_origin({"artifact", published + "@" + number, digest})}};
  }
  if (!input.data->url.empty()) {
    const auto pin = pins_.of(*input.data);
    if (!pin) return {{name, "not fetched yet " + file_name_of(*input.data)}};
    return {{name, pin->sha256 + " " + file_name_of(*input.data),
             store::write_data_origin(
                 {"address", name_of(*input.data), store::artifact_of({{}, pin->sha256})})}};
  }
  const auto& content = of(input.data->path);
  const auto origin = store::write_data_origin(
      {content.is_directory ? "folder" : "file", name_of(*input.data), content.digest});
  // Steps on this machine see the file itself, with its permissions.
  if (!content.is_directory)
    return {
        {name,
         content.digest.hex() + (content.is_executable ? "x " : " ") + file_name_of(*input.data),
         origin}};
  std::vector<store::KeyPart> parts{{name + "/", file_name_of(*input.data), origin}};
  for (const auto& [path, value] : content.parts) parts.push_back({name + "/" + path, value});
  return parts;
}

std::string file_name_of(const DataSpec& data) {
  std::string name;
  if (data.url.empty()) {
    name = (data.path / "").parent_path().filename().string();
  } else {
    auto path = fetch::without_query(data.url);
    while (path.ends_with('/')) path.pop_back();
    name = path.substr(path.rfind('/') + 1);
  }
  return core::is_name(name) ? name : "data";
}

std::string name_of(const DataSpec& data) {
  if (!data.artifact.empty()) return "artifact:" + data.artifact;
  return data.url.empty() ? data.path.string() : fetch::without_query(data.url);
}

}  // namespace pipeline::engine
