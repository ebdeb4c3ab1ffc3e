// `pipe sbom`: the contents of a step's image.
#include <map>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "docker/engine_api.hpp"
#include "docker/image_identity.hpp"
#include "docker/image_storage.hpp"
#include "docker/json_text.hpp"
#include "docker/short_container.hpp"
#include "driver/origin.hpp"
#include "driver/recorded_steps.hpp"
#include "lockfile/locked_environment.hpp"
#include "sbom/image_record.hpp"
#include "settings/image_archive.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Returns the texts of a list in an image's label. Another program may have written the label, so
/// anything but texts is left out.
std::vector<std::string> texts_in(const json& list) {
  std::vector<std::string> texts;
  if (list.is_array())
    for (const auto& item : list)
      if (item.is_string()) texts.push_back(item.get<std::string>());
  return texts;
}

std::string hex_of(const std::string& id) { return id.substr(id.find(':') + 1); }

/// Returns the record of the step in the run that made its result, which may be an earlier run.
store::StepRecord made_step(store::RunStore& store, const store::RunRecord& run,
                            const std::string& name) {
  auto step = driver::recorded_step(store, run, name);
  if (step.status != StepStatus::cached) return step;
  if (driver::is_from_remote_cache(step.reused_from))
    throw core::InputError("'" + step.name + "' was reused from " + step.reused_from +
                           ": its image is on the machine that ran it");
  const auto origin = store.runs().find(step.reused_from);
  if (!origin)
    throw core::InputError("'" + step.name + "' was reused from run " + step.reused_from +
                           ", which has been removed");
  return driver::recorded_step(store, *origin, step.name);
}

/// Reads an engine's data about an image.
class ImageReader {
 public:
  ImageReader(Context& context, store::StepRecord step)
      : context_(context),
        engine_(context.loop(), docker::find_endpoint()),
        step_(std::move(step)) {
    const auto found = context_.await(engine_.inspect_image(step_.image));
    if (!found)
      throw core::EnvironmentError(
          "the engine does not have the image " + step_.image + " of '" + step_.name + "' any more",
          {"run the step again: `pipe run --step " + step_.name +
           " --no-cache`, and name that run"});
    image_ = *found;
    const auto given = image_.value(json::json_pointer("/Config/Labels"), json());
    labels_ = given.is_object() ? given : json::object();
    parts_ = core::parse_json(docker::text_at(labels_, "pipe.parts"));
  }

  sbom::ImageRecord record() {
    sbom::ImageRecord record;
    const auto names = docker::names_of(image_);
    record.reference = names.empty() ? step_.image : names.front();
    record.id = hex_of(image_.at("Id").get<std::string>());
    record.created = docker::text_at(image_, "Created");
    record.architecture = docker::text_at(image_, "Architecture");
    record.layers = texts_in(image_.value(json::json_pointer("/RootFS/Layers"), json()));
    record.run = step_.run;
    record.step = step_.name;
    record.version = PIPELINE_VERSION;
    add_base(record);
    sbom::add_contents(record, contents());
    add_hashes(record);
    return record;
  }
  /// Returns the parts of the image's plan; empty for an image that pipe has not built.
  const json& parts() const { return parts_; }

 private:
  static std::string first_of(const json& parts, const char* name) {
    const auto values = texts_in(parts.is_object() ? parts.value(name, json()) : json());
    return values.empty() ? "" : values.front();
  }

  /// Adds the base image. Its digest is left out if the name stands for another image by now.
  void add_base(sbom::ImageRecord& record) {
    record.base = first_of(parts_, "parent_image");
    if (record.base.empty() || settings::image_archive(record.base)) return;
    const auto base = context_.await(engine_.inspect_image(record.base));
    const auto identity = first_of(parts_, "parent_id");
    if (base && !identity.empty() && docker::image_identity(*base).starts_with(identity))
      record.base_id = hex_of(base->at("Id").get<std::string>());
  }

  std::string contents() {
    json body;
    body["Image"] = image_.at("Id");
    body["Entrypoint"] = {"/bin/sh", "-c", sbom::contents_script};
    body["User"] = "0";
    body["Labels"] = {{"pipe.run", step_.run}};
    body["HostConfig"]["NetworkMode"] = "none";
    const auto name = "pipe-" + step_.run + "-sbom-" + std::to_string(getpid());
    const auto [lines, code] = context_.await(docker::run_to_end(engine_, name, std::move(body)));
    if (code != 0)
      throw core::EnvironmentError("the packages of " + step_.image +
                                   " cannot be listed: " + lines.substr(0, 500));
    return lines;
  }

  /// Adds the hashes in the label, `six==1.16.0 8abb...` for each locked package.
  void add_hashes(sbom::ImageRecord& record) const {
    std::map<std::string, std::string> hashes;
    for (const auto& layer : core::parse_json(docker::text_at(labels_, "pipe.packages")))
      for (const auto& text : texts_in(layer)) {
        const auto space = text.find(' ');
        hashes[text.substr(0, space)] = text.substr(space + 1);
      }
    for (auto& package : record.packages)
      if (package.type == "pypi")
        package.sha256 = hashes[lockfile::normalised_name(package.name) + "==" + package.version];
  }

  Context& context_;
  docker::EngineApi engine_;
  store::StepRecord step_;
  json image_, labels_, parts_;
};

}  // namespace

core::ExitCode sbom_command(Context& context) {
  const auto& options = context.options();
  auto& store = context.existing_store();
  auto step = made_step(store, context.find_run(store), options.step);
  if (!step.image.starts_with("sha256:"))
    throw core::InputError("'" + step.name + "' did not run in an image",
                           "steps of the orchestrators docker and kubernetes have images");
  ImageReader reader(context, step);
  const auto record = reader.record();
  const auto& format = options.document.format;
  context.print_json(format == "spdx"         ? sbom::spdx(record)
                     : format == "provenance" ? sbom::provenance(record, reader.parts())
                                              : sbom::cyclonedx(record));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
