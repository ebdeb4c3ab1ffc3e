#include "remote_cache/blob_cache.hpp"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "remote_cache/record.hpp"
#include "remote_cache/remote_names.hpp"

namespace pipeline::remote_cache {
namespace {

using engine::DamagedCacheEntry;
using engine::RemoteOutput;
using engine::RemoteResult;
using nlohmann::json;

/// Returns the key of the blob with the record. @param key the step's
std::string result_key_of(const std::string& key) { return results_folder + key + ".json"; }

class BlobCache final : public engine::RemoteCache {
 public:
  BlobCache(blobs::RemoteArtifacts& remote, const store::ArtifactStore& artifacts)
      : remote_(remote), artifacts_(artifacts), names_(remote, artifacts) {}

  std::string name() const override { return remote_.url(); }

  async::Task<> check() override { co_await remote_.probe(); }

  async::Task<std::optional<RemoteResult>> find(std::string key,
                                                core::CancelSource* cancel) override {
    for (;;) {
      std::optional<RemoteResult> result;
      try {
        const auto text =
            co_await remote_.store().find_text(result_key_of(key), cancel, blobs::Lookup::optional);
        if (!text) co_return result;
        result = read_record(*text);
      } catch (const std::invalid_argument&) {
        throw damaged(key);
      } catch (const blobs::BlobError& error) {
        if (error.kind() != blobs::BlobError::Kind::damaged_blob) throw;
        throw DamagedCacheEntry(error.what());
      }
      bool is_kept = true;
      if (result)
        for (const auto& output : result->outputs) {
          const bool stays = co_await remote_.use(blob_of(output));
          is_kept &= stays;
        }
      if (is_kept) co_return result;
      // A cleaning has removed one of the artifacts, and may have removed the record, too.
    }
  }

  async::Task<> fetch(const RemoteOutput& output, std::filesystem::path to,
                      core::CancelSource& cancel) override {
    std::string trouble;
    try {
      co_await remote_.receive(
          blob_of(output), std::move(to),
          blobs::RemoteArtifacts::form_of(output.record.is_directory, output.is_executable),
          output.record.bytes, &cancel);
    } catch (const blobs::BlobError& error) {
      using enum blobs::BlobError::Kind;
      if (error.kind() != missing_blob && error.kind() != damaged_blob) throw;
      if (error.kind() == damaged_blob) invalidate(output);
      trouble = error.what();
    } catch (const blobs::UnusableBlob& error) {
      invalidate(output);
      trouble = error.what();
    }
    if (!trouble.empty())
      throw DamagedCacheEntry("the output '" + output.record.name + "' in " + name() +
                              " cannot be used: " + trouble);
  }

  std::string place(bool runs_elsewhere) const override {
    return remote_.leaves_results_in_store(runs_elsewhere) ? remote_.settings_json()
                                                           : std::string();
  }

  void invalidate(const RemoteOutput& output) override { remote_.invalidate(blob_of(output)); }

  async::Task<> publish(store::CacheEntry entry, core::CancelSource& cancel) override {
    try {
      co_await write(std::move(entry), cancel);
    } catch (const blobs::BlobError& error) {
      if (error.kind() != blobs::BlobError::Kind::damaged_blob) throw;
      throw DamagedCacheEntry(error.what(), error.advice());
    }
  }

  async::Task<store::PublishedName> find_name(std::string name) override {
    co_return co_await names_.find(std::move(name));
  }

  async::Task<> publish_as(std::string name, store::PublishedVersion made) override {
    co_await names_.publish(std::move(name), std::move(made));
  }

 private:
  async::Task<> write(store::CacheEntry entry, core::CancelSource& cancel) {
    json record;
    record["format"] = record_format;
    record["pipe"] = PIPELINE_VERSION;
    record["run"] = entry.run;
    record["step"] = entry.step;
    record["outputs"] = json::array();
    for (const auto& output : entry.outputs) {
      const auto path = artifacts_.path(output.digest);
      json document;
      document["name"] = output.name;
      document["file_name"] = output.file_name;
      document["digest"] = output.digest.hex();
      document["kind"] = output.is_directory ? "tree" : "file";
      document["bytes"] = output.bytes;
      const auto elsewhere = artifacts_.elsewhere(output.digest);
      if (elsewhere ? elsewhere->is_executable
                    : !output.is_directory && blobs::is_executable_file(path))
        document["executable"] = true;
      record["outputs"].push_back(std::move(document));
      if (elsewhere)
        co_await require(output);
      else
        co_await remote_.send(output.digest.hex(), path, &cancel);
    }
    // The last writer wins, because each record is a complete result of the key. A step that runs
    // again on request replaces its earlier result.
    auto body = blobs::body_of(record.dump() + "\n");
    co_await remote_.store().put(result_key_of(entry.key), std::move(body), &cancel);
  }
  static std::string blob_of(const store::OutputRecord& output) {
    return blobs::RemoteArtifacts::key_of(output.digest.hex(), output.is_directory);
  }
  static std::string blob_of(const RemoteOutput& output) { return blob_of(output.record); }
  async::Task<> require(const store::OutputRecord& output) {
    const bool is_there = co_await remote_.has(blob_of(output));
    if (!is_there)
      throw DamagedCacheEntry(name() + " no longer has the output '" + output.name + "'");
  }
  DamagedCacheEntry damaged(const std::string& key) const {
    return DamagedCacheEntry("the record " + result_key_of(key) + " in " + name() +
                             " is not one that pipe wrote");
  }

  blobs::RemoteArtifacts& remote_;
  const store::ArtifactStore& artifacts_;
  RemoteNames names_;
};

}  // namespace

std::unique_ptr<engine::RemoteCache> make_blob_cache(blobs::RemoteArtifacts& remote,
                                                     const store::ArtifactStore& artifacts) {
  return std::make_unique<BlobCache>(remote, artifacts);
}

}  // namespace pipeline::remote_cache
