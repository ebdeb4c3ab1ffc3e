#include "driver/output_links.hpp"

#include <nlohmann/json.hpp>

#include "blobs/remote_artifacts.hpp"
#include "core/bounded_json.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"

namespace pipeline::driver {
namespace {

namespace fs = std::filesystem;

constexpr const char* links_folder = "outputs";
/// Hexadecimal digits, 48 bits. Should two digests begin with the same digits, the second artifact
/// gets no link.
constexpr std::size_t digest_length = 12;

}  // namespace

fs::path link_to_output(const store::ArtifactStore& artifacts, const std::string& step,
                        const store::OutputRecord& output) {
  if (const auto place = artifacts.elsewhere(output.digest))
    return settings::remote_store_of(core::parse_json(place->store)).url + "/" +
           blobs::RemoteArtifacts::key_of(output.digest.hex(), output.is_directory);
  const auto artifact = artifacts.path(output.digest);
  // Records may come from a remote store.
  if (!core::is_name(step) || !core::is_name(output.file_name)) return artifact;
  const auto state = artifact.parent_path().parent_path().parent_path();
  const auto folder = state / links_folder / step / output.digest.hex().substr(0, digest_length);
  const auto link = folder / output.file_name;
  const auto target = artifact.lexically_relative(folder);
  std::error_code error;
  // A state folder of somebody else may have links in it: no link is made where they lead.
  for (const auto& above : {folder, folder.parent_path(), folder.parent_path().parent_path()})
    if (fs::is_symlink(above, error)) return artifact;
  if (fs::read_symlink(link, error) == target) return link;
  if (!error || !artifacts.has(output.digest)) return artifact;
  fs::create_directories(folder, error);
  if (!error) fs::create_symlink(target, link, error);
  // Another command may have made the link at this moment.
  return !error || fs::read_symlink(link, error) == target ? link : artifact;
}

void remove_dead_links(const fs::path& state) {
  std::error_code error;
  for (const auto& step : core::entries_of(state / links_folder)) {
    for (const auto& digest : core::entries_of(step)) {
      for (const auto& link : core::entries_of(digest))
        if (fs::is_symlink(link, error) && !fs::exists(link, error)) fs::remove(link, error);
      fs::remove(digest, error);  // Removes empty folders only.
    }
    fs::remove(step, error);
  }
  fs::remove(state / links_folder, error);
}

}  // namespace pipeline::driver
