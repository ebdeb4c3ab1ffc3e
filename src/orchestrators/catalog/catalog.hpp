/// @file
/// The orchestrators by name: plain data that also rooms below the port read. Each orchestrator's
/// entry is in its own folder; CMake lists them (pipeline_orchestrator() in src/CMakeLists.txt).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::orchestrators {

/// A value that says which service is used and how it is reached: set by an option or a profile,
/// recorded with the run, passed on in OrchestratorOptions::connection.
struct ConnectionField {
  std::string name;  ///< `context`; unique among the fields of all orchestrators.
  std::string key;   ///< The key in a profile: `context`, or `claim.name` for a key of a map.
  enum class Kind {
    word,
    number,  ///< A whole one, as a text.
    bytes,   ///< An amount such as `200GiB`; the value is the number of bytes.
    volume,  ///< An absolute path on the machines that run steps, or `pvc/CLAIM`.
    path,    ///< Relative ones are resolved against the folder of the profile's file.
    job,     ///< A JSON merge patch of a Kubernetes Job, as JSON.
    hosts,   ///< URLs of services, as a JSON list of maps: `host`, and perhaps `address`, at which
             ///< other hosts reach this one, and `certificates`, a path.
  } kind = Kind::word;
  std::string option_help = {};     ///< Help of the option `--NAME`; empty: there is none.
  bool identifies_service = false;  ///< The field helps to find the remains of a dead run.
};

/// A map in a profile, all keys of which are required.
struct ConnectionMap {
  std::string key;      ///< `claim`.
  std::string missing;  ///< The error message where a key is missing.
  std::string example;
  /// The error message beside `artifact_store`; empty: the two do not exclude each other.
  std::string excludes_artifact_store = {};
  /// The error message without an `artifact_store` whose pods have URLs; empty: it is not needed.
  std::string needs_artifact_store = {};
};

/// The traits of an orchestrator on every machine; Capabilities has those that depend on the
/// machine.
struct Traits {
  bool uses_images = false;     ///< Steps run in images, not among the files of a machine.
  bool needs_engine = false;    ///< A Docker Engine runs the steps or builds their images.
  bool runs_on_engine = false;  ///< Attempts are containers of that engine, which has their images.
  bool makes_image_files = false;      ///< Files of images are left in the user's cache folder.
  bool evaluates_constraints = false;  ///< Placement constraints are matched with its own nodes.
  bool renders_manifests =
      false;                ///< `render` prints the objects that would be created for a step.
  bool can_detach = false;  ///< A run's driver can be started there, beside the run's steps.
  bool runs_nodes = false;  ///< Steps may have nodes (AttemptSpec::process).
};

struct Entry {
  std::string name;      ///< `docker`.
  std::string help;      ///< How steps run, behind the name: `in containers`.
  std::string settings;  ///< The group under `settings:` that only this orchestrator reads, if any.
  Traits traits = {};
  std::vector<ConnectionField> connection = {};
  std::vector<ConnectionMap> connection_maps = {};
  /// Returns the setting by which a step reads data that its key does not cover, as
  /// `docker.volumes`; empty: none does. Null: no step can.
  std::string (*setting_outside_key)(const StepSpec& step) = nullptr;
};

/// Returns all orchestrators; the first is the default of the command line.
const std::vector<Entry>& catalog();

const std::vector<std::string>& orchestrator_names();

/// Returns null for a name that is not in the catalog, as that of a C++ executor.
const Entry* find_entry(std::string_view name);

/// Returns the orchestrator's traits; the default traits for names outside the catalog.
Traits traits_of(std::string_view name);

/// Throws InputError, with the known names and a similar one, for an unknown name.
const Entry& entry_of(std::string_view name);

/// Returns `docker, in containers; local, as processes of this machine`.
std::string describe_orchestrators();

/// Returns the values of this orchestrator's fields.
StringMap connection_of(const Entry& entry, const StringMap& all);

/// Returns the values of the fields that identify the service of a dead run.
StringMap service_of(const Entry& entry, const StringMap& all);

/// Returns the value of a field; an empty text if it is not set.
std::string connection_field(const StringMap& connection, const std::string& name);

}  // namespace pipeline::orchestrators
