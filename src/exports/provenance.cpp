#include "exports/provenance.hpp"

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/notebook.hpp"
#include "net/url.hpp"

namespace pipeline::exports {
namespace {

using nlohmann::json;

/// Returns the digest with the name of its algorithm. A folder has the digest of its tree, by an
/// algorithm of pipe's own.
json digest_of(const core::Digest& digest, bool is_folder) {
  return {{is_folder ? "pipeTreeSha256" : "sha256", digest.hex()}};
}

/// Returns the digest of code. In the parts of a key, a notebook is digested by its code cells, and
/// many files by their first folder, with a slash at the end of its name, or `.`.
json digest_of_code(const std::string& file, const core::Digest& digest) {
  if (core::is_notebook(file)) return {{"pipeCellsSha256", digest.hex()}};
  return digest_of(digest, file.ends_with('/') || file == ".");
}

std::string uri_of(const std::string& run, const std::string& output) {
  return "pkg:generic/pipe#" + net::url_encode(run) + "/" + net::url_encode(output);
}

std::string uri_of(const TakenArtifact& artifact) {
  if (!artifact.maker.empty()) return uri_of(artifact.run, artifact.maker);
  if (artifact.source.empty()) return "urn:sha256:" + artifact.digest.hex();
  if (artifact.source.find("://") != artifact.source.npos) return artifact.source;
  return "file:" + net::url_encode(artifact.source, "/");
}

/// Returns what the artifact was made from: code, inputs, image and repository.
json materials_of(const RunFacts& made, const StepFacts& step) {
  auto materials = json::array();
  for (const auto& [file, digest] : step.code)
    materials.push_back({{"uri", "file:" + net::url_encode(file, "/")},
                         {"digest", digest_of_code(file, digest)},
                         {"name", "code"}});
  for (const auto& input : step.inputs)
    for (const auto& artifact : input.artifacts)
      materials.push_back({{"uri", uri_of(artifact)},
                           {"digest", digest_of(artifact.digest, artifact.is_folder)},
                           {"name", "input " + input.name}});
  const auto& image = step.record.image;
  constexpr std::string_view algorithm = "sha256:";
  if (image.starts_with(algorithm))
    materials.push_back({{"uri", "pkg:docker/" + image},
                         {"digest", {{"sha256", image.substr(algorithm.size())}}},
                         {"name", "image"}});
  if (!made.run.git_commit.empty())
    materials.push_back({{"uri", "git+file:" + net::url_encode(made.run.file, "/")},
                         {"digest", {{"gitCommit", made.run.git_commit}}},
                         {"name", "repository"}});
  return materials;
}

}  // namespace

json artifact_provenance(const RunFacts& made, const core::Digest& artifact) {
  const auto& step = made.steps.at(0);
  auto subjects = json::array();
  for (const auto& output : step.record.outputs)
    if (output.digest == artifact)
      subjects.push_back({{"name", output.file_name},
                          {"uri", uri_of(made.run.id, step.record.name + "." + output.name)},
                          {"digest", digest_of(output.digest, output.is_directory)}});
  json internal{{"orchestrator", made.run.orchestrator}, {"environment", step.record.image}};
  if (made.run.git_dirty) internal["uncommittedChanges"] = true;
  return {{"_type", "https://in-toto.io/Statement/v1"},
          {"subject", subjects},
          {"predicateType", "https://slsa.dev/provenance/v1"},
          {"predicate",
           {{"buildDefinition",
             {{"buildType", "pkg:generic/pipe#step"},
              {"externalParameters",
               {{"pipeline", made.run.pipeline},
                {"step", step.record.name},
                {"command", step.command},
                {"parameters", core::parse_json(step.record.parameters)}}},
              {"internalParameters", internal},
              {"resolvedDependencies", materials_of(made, step)}}},
            {"runDetails",
             {{"builder",
               {{"id", "pkg:generic/pipe@" + net::url_encode(made.version)},
                {"version", {{"pipe", made.version}}}}},
              {"metadata",
               {{"invocationId",
                 made.run.id + "/" + step.record.name + "/" + std::to_string(step.record.attempts)},
                {"startedOn", rfc3339(step.record.started)},
                {"finishedOn", rfc3339(step.record.ended)}}}}}}}};
}

}  // namespace pipeline::exports
