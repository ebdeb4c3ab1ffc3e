#include "spec/profile_file.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "settings/decode.hpp"
#include "spec/keys.hpp"
#include "spec/notify_reader.hpp"
#include "spec/step_reader.hpp"
#include "spec/user_files.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Strings = std::vector<std::string>;

const Strings profile_keys{
    "description",    "orchestrator",    "context", "namespace", "registry",     "state",   "claim",
    "artifact_store", "service_account", "jobs",    "notify",    "keep_storage", "settings"};
const Strings claim_keys{"name", "path"};
const Strings store_keys{"bucket",     "endpoint",   "pod_endpoint",
                         "region",     "path_style", "certificate_authority",
                         "aws_profile"};

/// Reports settings that name files of the pipeline's folder, which a profile does not know.
void refuse_files(const core::Value& settings, settings::Diagnostics& diagnostics) {
  const core::Value* docker = settings.find("docker");
  if (!docker) return;
  for (const auto& [key, value] : docker->members) {
    const bool is_file = key.scalar == "dockerfile" || key.scalar == "build_context_root" ||
                         key.scalar == "pyproject_path" ||
                         (key.scalar == "requirements" && value.kind == core::Value::Kind::scalar);
    if (is_file)
      settings::report(
          diagnostics, "bad-profile",
          "'" + key.scalar + "' names a file, and a profile knows no pipeline's folder", key.span,
          {"a profile is for what goes with the place: `parent_image`, `platform`, `resources`, "
           "..."},
          "write it under the pipeline's `settings.docker`");
  }
}

fs::path read_path(const char* key, const core::Value& value, const fs::path& file,
                   settings::Diagnostics& diagnostics) {
  const auto path = settings::read_text(key, value, settings::formats::path, diagnostics);
  return path ? user_path(*path, fs::absolute(file).parent_path()) : fs::path();
}

/// Reads `s3://team/pipe`, or a map with such a `bucket`.
settings::ArtifactStoreSettings read_store(const core::Value& key, const core::Value& value,
                                           const fs::path& file,
                                           settings::Diagnostics& diagnostics) {
  settings::ArtifactStoreSettings store;
  const auto read_text_of = [&](const char* name, std::string& into) {
    if (const auto* given = value.find(name))
      into = settings::read_text(name, *given, settings::formats::word, diagnostics).value_or("");
  };
  const core::Value* bucket = &value;
  if (value.kind != core::Value::Kind::scalar) {
    if (!settings::expect_map("artifact_store", value, diagnostics)) return store;
    settings::report_unknown_keys(value, store_keys, "an artifact store", diagnostics);
    read_text_of("endpoint", store.endpoint);
    read_text_of("pod_endpoint", store.pod_endpoint);
    read_text_of("region", store.region);
    read_text_of("aws_profile", store.aws_profile);
    if (const auto* given = value.find("path_style"))
      store.path_style = settings::read_bool("path_style", *given, diagnostics);
    if (const auto* given = value.find("certificate_authority"))
      store.certificate_authority = read_path("certificate_authority", *given, file, diagnostics);
    for (const auto& [name, url] :
         {std::pair("endpoint", &store.endpoint), std::pair("pod_endpoint", &store.pod_endpoint)})
      if (!url->empty() && !url->starts_with("https://") && !url->starts_with("http://"))
        settings::report(
            diagnostics, "bad-profile",
            std::string("'") + name + "' must be `https://HOST[:PORT]`, not '" + *url + "'",
            value.find(name)->span);
    bucket = value.find("bucket");
  }
  if (!bucket) {
    if (!has_misspelt(value, "bucket"))
      settings::report(diagnostics, "missing-key", "an artifact store has a `bucket`", key.span,
                       {"as in `artifact_store: {bucket: s3://team/pipe}`"});
  } else if (const auto text =
                 settings::read_text("bucket", *bucket, settings::formats::word, diagnostics);
             text && !settings::read_bucket(*text, store)) {
    const auto meant = "s3://" + *text;
    settings::ArtifactStoreSettings valid;
    settings::report(diagnostics, "bad-profile", "'" + text->substr(0, 100) + "' is not a bucket",
                     bucket->span, {"as in `s3://team`, or `s3://team/pipe` for a part of it"},
                     settings::read_bucket(meant, valid) ? "write `" + meant + "`" : "");
  }
  return store;
}

/// Reads the claim through which pods and this machine see the same files.
void read_claim(const core::Value& key, const core::Value& claim, Profile& profile,
                settings::Diagnostics& diagnostics) {
  if (!settings::expect_map("claim", claim, diagnostics)) return;
  settings::report_unknown_keys(claim, claim_keys, "a claim", diagnostics);
  const auto* name = claim.find("name");
  const auto* path = claim.find("path");
  if (name)
    profile.claim =
        settings::read_text("name", *name, settings::formats::word, diagnostics).value_or("");
  if (path) profile.claim_path = read_path("path", *path, profile.file, diagnostics);
  if (!name || !path)
    settings::report(diagnostics, "missing-key",
                     "a claim has a `name`, in the cluster, and a `path`, where this machine "
                     "sees what is in it",
                     key.span, {"as in `claim: {name: pipe-artifacts, path: /mnt/lab}`"});
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

struct ProfileWord {
  std::string_view key;
  std::string Profile::*member;
};
constexpr ProfileWord profile_words[] = {{"context", &Profile::context},
                                         {"namespace", &Profile::name_space},
                                         {"service_account", &Profile::service_account}};

Profile read_profile(const core::Value& map, const fs::path& file,
                     settings::Diagnostics& diagnostics) {
  Profile profile;
  profile.file = file;
  settings::report_unknown_keys(map, profile_keys, "a profile", diagnostics);
  for (const auto& [key, value] : map.members) {
    if (key.scalar == "description")
      profile.description =
          settings::read_text("description", value, settings::formats::text, diagnostics)
              .value_or("");
    else if (key.scalar == "orchestrator")
      profile.orchestrator =
          read_word("orchestrator", value, settings::orchestrator_names(), diagnostics)
              .value_or("");
    else if (key.scalar == "jobs")
      profile.jobs = settings::read_count("jobs", value, diagnostics).value_or(0);
    else if (key.scalar == "keep_storage")
      profile.keep_storage = settings::read_bytes("keep_storage", value, diagnostics).value_or(0);
    else if (key.scalar == "state")
      profile.state = read_path("state", value, file, diagnostics);
    else if (key.scalar == "claim")
      read_claim(key, value, profile, diagnostics);
    else if (key.scalar == "artifact_store")
      profile.artifact_store = read_store(key, value, file, diagnostics);
    else if (key.scalar == "notify")
      profile.notify = read_notify(value, fs::absolute(file).parent_path(), diagnostics);
    else if (key.scalar == "settings") {
      profile.settings = settings::decode_settings(value, diagnostics);
      refuse_files(value, diagnostics);
    }
    for (const auto& word : profile_words)
      if (key.scalar == word.key)
        profile.*word.member =
            settings::read_text(key.scalar, value, settings::formats::word, diagnostics)
                .value_or("");
  }
  if (const auto* store = map.find("artifact_store"); store && map.find("claim"))
    settings::report(diagnostics, "contradiction",
                     "pods get their files either through a claim or through an artifact store",
                     store->span, {"leave out `claim` or `artifact_store`"});
  if (const auto* registry = map.find("registry")) read_registry(*registry, profile, diagnostics);
  return profile;
}

/// Collects the values of `after` that differ from `before`, as `docker.platform is linux/arm64`.
void differences(const json& before, const json& after, const std::string& path, Strings& found) {
  for (const auto& [key, value] : after.items()) {
    const auto old = before.find(key);
    const auto name = path.empty() ? key : path + "." + key;
    if (value.is_object()) {
      differences(old == before.end() ? json::object() : *old, value, name, found);
    } else if (old == before.end() || *old != value) {
      found.push_back(name + " is " +
                      (value.is_string() ? value.get<std::string>() : value.dump()));
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
  for (const auto& file : profile_files(pipeline_folder)) {
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
    const auto& name = step.instance ? step.instance->of : step.name;
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
