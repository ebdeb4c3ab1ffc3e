/// @file
/// The catalog of orchestrators, by name: plain data, which rooms below the port of orchestrators
/// may read, too. Each orchestrator has its entry in its own folder; pipeline_orchestrator() in
/// src/CMakeLists.txt adds the entry to the catalog.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::orchestrators {

/// A value that says which service runs the steps and how to reach that service. The user sets the
/// value by an option or a profile; the run records it, and the orchestrator gets it in
/// OrchestratorOptions::connection.
struct ConnectionField {
  std::string name;  ///< For example `context`; unique among the fields of all orchestrators.
  std::string key;   ///< The key in a profile: `context`, or `claim.name` for a key of a map.
  enum class Kind {
    word,
    number,  ///< A whole number, as a text.
    bytes,   ///< An amount such as `200GiB`; the value is the number of bytes.
    volume,  ///< An absolute path on the machines that run steps, or `pvc/CLAIM`.
    path,    ///< A path; a relative path is resolved against the folder of the profile's file.
    job,     ///< A JSON merge patch of a Kubernetes Job, as JSON.
    hosts,   ///< URLs of services, as a JSON list of maps. Each map has `host`, and may have
             ///< `address`, at which other hosts reach that host, and `certificates`, a path.
  } kind = Kind::word;
  std::string option_help = {};     ///< Help of the option `--NAME`; empty: no such option.
  bool identifies_service = false;  ///< The remains of a dead run are searched by this field.
};

/// A map in a profile, all keys of which are required.
struct ConnectionMap {
  std::string key;                  ///< The map's key in a profile, for example `claim`.
  std::string missing_key_message;  ///< The error message if the map lacks a key.
  std::string example;              ///< The complete map as users write it, for error messages.
  /// The error message if the profile also has an `artifact_store` that pods reach by URLs; empty:
  /// a profile may have both.
  std::string message_with_artifact_store = {};
  /// The error message if the profile has no `artifact_store` that pods reach by URLs; empty: the
  /// map does not need one.
  std::string message_without_artifact_store = {};
};

/// The traits of an orchestrator on every machine; Capabilities has those that depend on the
/// machine.
struct Traits {
  bool uses_images = false;     ///< Steps run in images, not among the files of a machine.
  bool needs_engine = false;    ///< A Docker Engine runs the steps or builds their images.
  bool runs_on_engine = false;  ///< Attempts are containers of that engine, which has their images.
  bool makes_image_files = false;      ///< Image files are kept in the user's cache folder.
  bool evaluates_constraints = false;  ///< Matches placement constraints with its own nodes.
  /// `pipe render` prints the objects that would be created for a step.
  bool renders_manifests = false;
  bool can_detach = false;  ///< A run's driver can be started there, beside the run's steps.
  bool runs_nodes = false;  ///< Steps may have nodes (AttemptSpec::process).
};

/// An orchestrator, as plain data.
struct Entry {
  std::string name;      ///< For example `docker`.
  std::string help;      ///< How steps run, as in `in containers`; shown after the name.
  std::string settings;  ///< The group under `settings:` that only it reads; empty: none.
  Traits traits = {};
  std::vector<ConnectionField> connection = {};
  std::vector<ConnectionMap> connection_maps = {};
  /// Returns the setting by which the step reads data that its key does not cover, for example
  /// `docker.volumes`; empty: the step has no such setting. A null pointer: no step can have one.
  std::string (*setting_outside_key)(const StepSpec& step) = nullptr;
};

/// Returns all orchestrators; the first is the default of the command line.
const std::vector<Entry>& catalog();

const std::vector<std::string>& orchestrator_names();

/// Returns null for a name that is not in the catalog, for example that of a C++ executor.
const Entry* find_entry(std::string_view name);

/// Returns the orchestrator's traits; the default traits for names outside the catalog.
Traits traits_of(std::string_view name);

/// Throws InputError, with the known names and a similar one, for an unknown name.
const Entry& entry_of(std::string_view name);

/// Returns names and help of all orchestrators, as in `docker, in containers; local, as processes
/// of this machine`.
std::string describe_orchestrators();

/// Returns the values of this orchestrator's fields among `all`, which may have those of other
/// orchestrators.
StringMap connection_of(const Entry& entry, const StringMap& all);

/// Returns the values of the fields that identify the service of a dead run.
StringMap service_of(const Entry& entry, const StringMap& all);

/// Returns the value of a field; an empty text if it is not set.
std::string connection_field(const StringMap& connection, const std::string& name);

}  // namespace pipeline::orchestrators
