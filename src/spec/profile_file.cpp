#include "spec/profile_file.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "blobs/addresses.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "orchestrators/catalog/catalog.hpp"
#include "settings/decode.hpp"
#include "settings/kubernetes_shapes.hpp"
#include "spec/hosts_reader.hpp"
#include "spec/keys.hpp"
#include "spec/limits_reader.hpp"
#include "spec/notify_reader.hpp"
#include "spec/step_reader.hpp"
#include "spec/user_files.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Strings = std::vector<std::string>;

/// Returns the part of a field's key before the dot, which is the key in a profile.
std::string map_key(const orchestrators::ConnectionField& field) {
  return field.key.substr(0, field.key.find('.'));
}

const Strings& profile_keys() {
  static const Strings keys = [] {
    Strings all{"description",    "orchestrator", "registry", "state",
                "artifact_store", "jobs",         "notify",   "keep_storage",
                "settings",       "limits",       "page"};
    for (const auto& entry : orchestrators::catalog())
      for (const auto& field : entry.connection)
        if (const auto key = map_key(field); std::ranges::find(all, key) == all.end())
          all.push_back(key);
    return all;
  }();
  return keys;
}

/// Returns true for `requirements` that are the name of a file, or a list that names one.
bool names_requirements_file(const core::Value& requirements) {
  return requirements.kind == core::Value::Kind::scalar ||
         std::ranges::any_of(requirements.items, [](const core::Value& item) {
           return item.scalar.starts_with("-r ") || item.scalar.starts_with("-c ");
         });
}

/// Reports settings that name files of the pipeline's folder, which a profile does not have.
void refuse_files(const core::Value& settings, settings::Diagnostics& diagnostics) {
  const core::Value* docker = settings.find("docker");
  if (!docker) return;
  for (const auto& [key, value] : docker->members) {
    const bool is_file = key.scalar == "dockerfile" || key.scalar == "build_context_root" ||
                         key.scalar == "pyproject_path" ||
                         (key.scalar == "requirements" && names_requirements_file(value));
    if (is_file)
      settings::report(
          diagnostics, "bad-profile",
          "'" + key.scalar + "' names a file of a pipeline's folder, and a profile has none",
          key.span,
          {"a profile is for settings of the environment: `parent_image`, `platform`, `resources`, "
           "..."},
          "write it under the pipeline's `settings.docker`");
  }
}

fs::path read_path(const char* key, const core::Value& value, const fs::path& file,
                   settings::Diagnostics& diagnostics) {
  const auto path = settings::read_text(key, value, settings::formats::path, diagnostics);
  return path ? user_path(*path, fs::absolute(file).parent_path()) : fs::path();
}

/// Reads the address of a remote store, `s3://team/pipe`.
std::string read_address(const core::Value& value, const fs::path& file,
                         settings::Diagnostics& diagnostics) {
  const auto text = settings::read_text("bucket", value, settings::formats::word, diagnostics);
  if (!text) return {};
  const auto folder = fs::absolute(file).parent_path();
  if (const auto url = blobs::read_address(*text, folder)) return *url;
  const auto meant = "s3://" + *text;
  settings::report(diagnostics, "bad-profile",
                   "'" + text->substr(0, 100) + "' is not the address of a remote store",
                   value.span, {"as in `" + core::joined(blobs::example_addresses(), "`, `") + "`"},
                   blobs::read_address(meant, folder) ? "write `" + meant + "`" : "");
  return {};
}

/// Refuses a path, because the paths of pages are appended to the address.
constexpr settings::Format page_address{
    "the address of `pipe serve`, `http://HOST:PORT`", [](std::string_view text) {
      const auto host = text.starts_with("https://") ? 8U : text.starts_with("http://") ? 7U : 0U;
      return host && text.size() > host && text.find_first_of("/?# @", host) == text.npos;
    }};

std::string read_option(const blobs::Option& option, const core::Value& value, const fs::path& file,
                        settings::Diagnostics& diagnostics) {
  const auto* name = option.name.c_str();
  if (option.type == blobs::Option::Type::boolean) {
    const auto given = settings::read_bool(name, value, diagnostics);
    return !given ? "" : *given ? "true" : "false";
  }
  if (option.type == blobs::Option::Type::file)
    return read_path(name, value, file, diagnostics).string();
  auto text = settings::read_text(name, value, settings::formats::word, diagnostics).value_or("");
  if (option.type == blobs::Option::Type::choice && !text.empty() &&
      std::ranges::find(option.values, text) == option.values.end())
    settings::report(diagnostics, "bad-profile",
                     "'" + option.name + "' is one of: " + core::joined(option.values, ", "),
                     value.span, {}, core::did_you_mean(text, option.values));
  if (option.type == blobs::Option::Type::server && !text.empty() &&
      !text.starts_with("https://") && !text.starts_with("http://"))
    settings::report(diagnostics, "bad-profile",
                     "'" + option.name + "' must be `https://HOST[:PORT]`, not '" + text + "'",
                     value.span);
  return text;
}

/// Reads `artifact_store`: an address, or a map with the address as its `bucket`.
settings::RemoteStoreSettings read_store(const core::Value& key, const core::Value& value,
                                         const fs::path& file, settings::Diagnostics& diagnostics) {
  settings::RemoteStoreSettings store;
  if (value.kind == core::Value::Kind::scalar) {
    store.url = read_address(value, file, diagnostics);
    return store;
  }
  if (!settings::expect_map("artifact_store", value, diagnostics)) return store;
  if (const auto* address = value.find("bucket"))
    store.url = read_address(*address, file, diagnostics);
  else if (!has_misspelt(value, "bucket"))
    settings::report(diagnostics, "missing-key", "the remote store has no `bucket`", key.span,
                     {"as in `artifact_store: {bucket: s3://team/pipe}`"});
  Strings known{"bucket"};
  for (const auto& option : blobs::options_of(store.url)) {
    known.push_back(option.name);
    const auto* given = value.find(option.name);
    if (!given) continue;
    if (auto text = read_option(option, *given, file, diagnostics); !text.empty())
      store.options[option.name] = std::move(text);
  }
  settings::report_unknown_keys(value, known, "a remote store", diagnostics);
  return store;
}

constexpr settings::Format volume_format{
    "an absolute path on the nodes, or `pvc/CLAIM`", [](std::string_view text) {
      constexpr std::string_view claim = "pvc/";
      return text.starts_with(claim)
                 ? settings::formats::kubernetes_name.accepts(text.substr(claim.size()))
                 : text.starts_with("/") && settings::formats::path.accepts(text);
    }};

/// Reads a field of an orchestrator, and reports a wrong value.
void read_field(const orchestrators::ConnectionField& field, const core::Value& value,
                Profile& profile, settings::Diagnostics& diagnostics) {
  using Kind = orchestrators::ConnectionField::Kind;
  const auto key = field.key.substr(field.key.find('.') + 1);
  if (field.kind == Kind::job) {
    const auto patch = settings::decode_shape(key, value, settings::shapes::job, diagnostics);
    if (patch) profile.connection[field.name] = patch->dump();
    return;
  }
  if (field.kind == Kind::hosts) {
    const auto hosts =
        read_hosts(key, value, fs::absolute(profile.file).parent_path(), diagnostics);
    if (!hosts.empty()) profile.connection[field.name] = hosts.dump();
    return;
  }
  if (field.kind == Kind::bytes) {
    const auto bytes = settings::read_bytes(key, value, diagnostics);
    if (bytes) profile.connection[field.name] = std::to_string(*bytes);
    return;
  }
  const auto& format = field.kind == Kind::number   ? settings::formats::whole_number
                       : field.kind == Kind::volume ? volume_format
                                                    : settings::formats::word;
  const auto text = field.kind == Kind::path
                        ? read_path(key.c_str(), value, profile.file, diagnostics).string()
                        : settings::read_text(key, value, format, diagnostics).value_or("");
  if (!text.empty()) profile.connection[field.name] = text;
}

/// Reads the fields of an orchestrator that are in one map.
/// @param member the map with its key
void read_connection_map(const orchestrators::Entry& entry,
                         const orchestrators::ConnectionMap& declared,
                         const core::Value::Member& member, Profile& profile,
                         settings::Diagnostics& diagnostics) {
  const auto& [key, map] = member;
  if (!settings::expect_map(declared.key, map, diagnostics)) return;
  const auto prefix = declared.key + ".";
  Strings keys;
  for (const auto& field : entry.connection)
    if (field.key.starts_with(prefix)) keys.push_back(field.key.substr(prefix.size()));
  settings::report_unknown_keys(map, keys, "a " + declared.key, diagnostics);
  bool is_complete = true;
  for (const auto& field : entry.connection) {
    if (!field.key.starts_with(prefix)) continue;
    const auto* value = map.find(field.key.substr(prefix.size()));
    if (value) read_field(field, *value, profile, diagnostics);
    is_complete &= value != nullptr;
  }
  if (!is_complete)
    settings::report(diagnostics, "missing-key", declared.missing_key_message, key.span,
                     {"as in `" + declared.example + "`"});
}

/// Reads a member of a profile that belongs to the connection of an orchestrator; ignores others.
void read_connection(const core::Value::Member& member, Profile& profile,
                     settings::Diagnostics& diagnostics) {
  const auto& [key, value] = member;
  for (const auto& entry : orchestrators::catalog()) {
    for (const auto& field : entry.connection)
      if (field.key == key.scalar) read_field(field, value, profile, diagnostics);
    for (const auto& map : entry.connection_maps)
      if (map.key == key.scalar) read_connection_map(entry, map, member, profile, diagnostics);
  }
}

/// Reads the short form of `settings.docker.target_repository`, after the settings.
void read_registry(const core::Value& registry, Profile& profile,
                   settings::Diagnostics& diagnostics) {
  auto repository =
      settings::read_text("registry", registry, settings::formats::repository, diagnostics);
  if (!repository) return;
  auto& target = profile.settings.docker.target_repository;
  if (target)
    settings::report(diagnostics, "contradiction",
                     "'registry' is another word for 'settings.docker.target_repository', "
                     "which this profile has too",
                     registry.span);
  target = std::move(*repository);
}

/// Reports maps of orchestrators that exclude an `artifact_store`, or need one.
void check_store(const core::Value& map, const Profile& profile,
                 settings::Diagnostics& diagnostics) {
  const auto* store = map.find("artifact_store");
  // Pods need no credentials for a store that has presigned addresses.
  const bool presigns = store && blobs::can_presign(profile.remote_store.url);
  const bool is_wrong = store && !profile.remote_store.is_given();  // This is reported already.
  for (const auto& entry : orchestrators::catalog())
    for (const auto& other : entry.connection_maps) {
      const auto* given = map.find(other.key);
      if (given && presigns && !other.message_with_artifact_store.empty())
        settings::report(diagnostics, "contradiction", other.message_with_artifact_store,
                         store->span, {"leave out `" + other.key + "` or `artifact_store`"});
      if (given && !presigns && !is_wrong && !other.message_without_artifact_store.empty())
        settings::report(diagnostics, "missing-key", other.message_without_artifact_store,
                         given->span, {"as in `artifact_store: s3://team/pipe`"});
    }
}

Profile read_profile(const core::Value& map, const fs::path& file,
                     settings::Diagnostics& diagnostics) {
  Profile profile;
  profile.file = file;
  settings::report_unknown_keys(map, profile_keys(), "a profile", diagnostics);
  constexpr unsigned max_jobs = 100'000;
  for (const auto& member : map.members) {
    const auto& [key, value] = member;
    if (key.scalar == "description")
      profile.description =
          settings::read_text("description", value, settings::formats::text, diagnostics)
              .value_or("");
    else if (key.scalar == "orchestrator")
      profile.orchestrator =
          read_word("orchestrator", value, orchestrators::orchestrator_names(), diagnostics)
              .value_or("");
    else if (key.scalar == "jobs")
      profile.jobs = settings::read_count("jobs", value, diagnostics, {1, max_jobs}).value_or(0);
    else if (key.scalar == "limits")
      profile.limits = read_limits("limits", value, diagnostics);
    else if (key.scalar == "keep_storage")
      profile.keep_storage = settings::read_bytes("keep_storage", value, diagnostics).value_or(0);
    else if (key.scalar == "state")
      profile.state = read_path("state", value, file, diagnostics);
    else if (key.scalar == "artifact_store")
      profile.remote_store = read_store(key, value, file, diagnostics);
    else if (key.scalar == "notify")
      profile.notify = read_notify(value, fs::absolute(file).parent_path(), diagnostics);
    else if (key.scalar == "page")
      profile.page = settings::read_text("page", value, page_address, diagnostics).value_or("");
    else if (key.scalar == "settings") {
      profile.settings = settings::decode_settings(value, diagnostics);
      refuse_files(value, diagnostics);
    }
    read_connection(member, profile, diagnostics);
  }
  check_store(map, profile, diagnostics);
  if (const auto* registry = map.find("registry")) read_registry(*registry, profile, diagnostics);
  return profile;
}

/// Returns a setting's value as people write it.
std::string shown_value(const std::string& key, const json& value) {
  const bool is_size = key == "memory" || key == "gpu_memory" || key == "shm_size";
  if (is_size && value.is_number_unsigned()) return core::format_bytes(value.get<Bytes>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Collects the values of `after` that differ from `before`, as `docker.platform is linux/arm64`.
void differences(const json& before, const json& after, const std::string& path, Strings& found) {
  for (const auto& [key, value] : after.items()) {
    const auto old = before.find(key);
    const auto name = path.empty() ? key : path + "." + key;
    if (value.is_object()) {
      differences(old == before.end() ? json::object() : *old, value, name, found);
    } else if (old == before.end() || *old != value) {
      found.push_back(name + " is " + shown_value(key, value));
    }
  }
}

}  // namespace

Profiles parse_profiles(std::string_view text, const fs::path& file) {
  settings::Diagnostics diagnostics;
  Profiles profiles;
  const auto root = yaml::parse_yaml(text, diagnostics);
  if (root && root->kind != core::Value::Kind::map)
    settings::report(diagnostics, "wrong-type",
                     "a file of profiles must be a map, not " + settings::describe(*root),
                     root->span, {"as in `lab: {orchestrator: kubernetes, namespace: ml}`"});
  if (root && root->kind == core::Value::Kind::map)
    for (const auto& [name, value] : root->members) {
      if (!core::is_name(name.scalar))
        settings::report(
            diagnostics, "bad-name",
            "'" + name.scalar.substr(0, 60) + "' cannot be a profile's name", name.span,
            {"a name has letters, digits, `_`, `-` and `.`, and begins with a letter or digit"});
      else if (settings::expect_map(name.scalar, value, diagnostics))
        profiles.emplace(name.scalar, read_profile(value, file, diagnostics));
    }
  std::ranges::stable_sort(diagnostics, {}, [](const core::Diagnostic& each) {
    return std::pair(each.span.line, each.span.column);
  });
  if (!diagnostics.empty())
    throw core::InputError(std::move(diagnostics), file.string(), std::string(text));
  return profiles;
}

std::vector<fs::path> profile_files(const fs::path& pipeline_folder) {
  std::vector<fs::path> files{pipeline_folder / "profiles.yaml"};
  if (auto own = configuration_file("PIPE_PROFILES", "profiles.yaml"); !own.empty())
    files.push_back(std::move(own));
  return files;
}

Profiles find_profiles(const fs::path& pipeline_folder) {
  Profiles all;
  auto files = profile_files(pipeline_folder);
  std::ranges::reverse(files);  // A name that both have is the user's own profile.
  for (const auto& file : files) {
    std::error_code error;
    if (fs::exists(file, error)) all.merge(parse_profiles(core::read_file(file), file));
  }
  return all;
}

Profile find_profile(const std::string& name, const fs::path& pipeline_folder) {
  const auto profiles = find_profiles(pipeline_folder);
  if (const auto found = profiles.find(name); found != profiles.end()) return found->second;
  Strings names;
  for (const auto& [each, profile] : profiles) names.push_back(each);
  const auto files = core::joined(profile_files(pipeline_folder), " and ", &fs::path::native);
  auto hint = core::did_you_mean(name, names);
  throw core::InputError("there is no profile '" + name + "'",
                         hint.empty() ? "profiles are looked for in " + files : hint);
}

std::vector<std::string> apply(const Profile& profile, PipelineSpec& pipeline) {
  pipeline.notify.insert(pipeline.notify.end(), profile.notify.begin(), profile.notify.end());
  pipeline.limits = profile.limits;
  std::vector<std::pair<std::string, Strings>> changes;
  struct Merged {
    CopyOnWrite<Settings> before, after;
    Strings changes;
  };
  std::unordered_map<const Settings*, Merged> known;  // Many steps share their settings.
  for (auto& step : pipeline.steps) {
    const auto [place_of, is_new] = known.try_emplace(&*std::as_const(step.settings));
    auto& merged = place_of->second;
    if (is_new) {
      merged.before = step.settings;
      merged.after = settings::merge(profile.settings, step.settings);
      differences(settings::to_json(merged.before), settings::to_json(merged.after), {},
                  merged.changes);
    }
    step.settings = merged.after;
    const auto& name = step.instance ? *step.instance->of : step.name;
    for (const auto& change : merged.changes) {
      auto place = std::ranges::find(changes, change, &std::pair<std::string, Strings>::first);
      if (place == changes.end()) place = changes.insert(changes.end(), {change, {}});
      if (place->second.empty() || place->second.back() != name) place->second.push_back(name);
    }
  }
  Strings lines;
  for (const auto& [change, steps] : changes) {
    std::string names;
    for (const auto& step : steps) names += (names.empty() ? " for " : ", ") + step;
    lines.push_back(change + names);
  }
  return lines;
}

}  // namespace pipeline::spec
