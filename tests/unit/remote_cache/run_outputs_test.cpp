#include "remote_cache/run_outputs.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "settings/remote_store.hpp"
#include "support/run_task.hpp"

namespace pipeline::remote_cache {
namespace {

namespace fs = std::filesystem;

/// A published version whose content only a remote store has, as the artifact store's note says.
TEST(OutputsOfARun, a_published_version_is_fetched_from_the_store_that_its_note_names) {
  const core::TemporaryFolder folder;
  const auto shared = folder.path() / "shared";
  fs::create_directory(shared);
  const settings::RemoteStoreSettings remote{"file://" + shared.string(), {}};
  const auto file = folder.path() / "model";
  core::write_file_atomically(file, "weights");
  asio::io_context loop;
  store::ArtifactStore artifacts(folder.path() / "artifacts");
  auto stored = artifacts.take(file);
  blobs::RemoteArtifacts store(loop, remote);
  test::run_task(loop, store.send(stored.digest.hex(), artifacts.path(stored.digest), nullptr));
  stored.hold.reset();
  const auto removed = artifacts.remove(std::span(&stored.digest, 1));
  artifacts.note_elsewhere(stored.digest,
                           {.bytes = stored.bytes, .store = settings::to_json(remote).dump()});

  RunOutputs outputs(loop, artifacts, folder.path(), {});
  const store::PublishedVersion version{
      .output = {"model", "model.bin", stored.digest, stored.is_directory, stored.bytes}};
  EXPECT_FALSE(outputs.is_here(version.output));
  outputs.fetch(version);
  EXPECT_EQ(core::read_file(artifacts.path(stored.digest)), "weights");
}

}  // namespace
}  // namespace pipeline::remote_cache
