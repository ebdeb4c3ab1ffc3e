#include "engine/attempt/untrusted_files.hpp"

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "engine/attempt/secret_mask.hpp"

namespace pipeline::engine {
namespace {

namespace fs = std::filesystem;

/// Returns the JSON in a file that the step can write; a discarded value if there is none.
nlohmann::json untrusted_json(const fs::path& file) {
  constexpr std::size_t max_size = 64 * 1024;
  return core::parse_json(core::read_untrusted_file(file, max_size).value_or(""));
}

}  // namespace

void read_failure(const fs::path& file, const std::vector<std::string>& secrets, Failure& failure) {
  const auto written = untrusted_json(file);
  if (!written.is_object()) return;
  const auto text = [&](const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return std::string();
    return without_secrets(found->get<std::string>(), secrets);
  };
  const auto with_type = [&](const nlohmann::json& object) {
    const auto type = text(object, "type"), message = text(object, "message");
    return type + (type.empty() || message.empty() ? "" : ": ") + message;
  };
  const auto what = with_type(written), how = text(written, "how"), where = text(written, "where");
  if (what.empty()) return;
  failure.kind = FailureKind::exception;
  failure.message = (how.empty() ? "threw" : how) + " " + what;
  if (const auto causes = written.find("causes"); causes != written.end() && causes->is_array())
    for (const auto& cause : *causes)
      if (cause.is_object()) failure.message += "; caused by " + with_type(cause);
  if (!where.empty()) failure.message += " (" + where + ")";
}

void TakenOutputs::note(const std::string& output, const store::StoredArtifact& artifact) const {
  const nlohmann::json text{{"digest", artifact.digest.hex()},
                            {"is_directory", artifact.is_directory},
                            {"bytes", artifact.bytes}};
  core::write_file_atomically(record(output), text.dump());
  core::write_file_atomically(mark(output), "");
}

std::optional<store::StoredArtifact> TakenOutputs::find(const std::string& output) const {
  std::error_code hidden;
  if (fs::symlink_status(mark(output), hidden).type() == fs::file_type::not_found)
    return std::nullopt;
  const auto text = untrusted_json(record(output));
  if (!text.is_object()) return std::nullopt;
  try {
    const store::StoredArtifact artifact{
        core::Digest::from_hex(text.at("digest").get<std::string>()),
        text.at("is_directory").get<bool>(), core::integer_of<std::uint64_t>(text.at("bytes"))};
    if (artifacts_.looks_whole(artifact.digest)) return artifact;
  } catch (const std::exception& error) {
    core::log::info(record(output).string() + ": " + error.what());
  }
  return std::nullopt;
}

}  // namespace pipeline::engine
