#include "remote_cache/bucket_cache.hpp"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "remote_cache/bucket_names.hpp"
#include "remote_cache/record.hpp"

namespace pipeline::remote_cache {
namespace {

using engine::DamagedCacheEntry;
using engine::RemoteOutput;
using engine::RemoteResult;
using nlohmann::json;

std::string key_of(const std::string& key) { return "results/" + key + ".json"; }

class BucketCache final : public engine::RemoteCache {
 public:
  BucketCache(s3::BucketArtifacts& bucket, const store::ArtifactStore& artifacts)
      : bucket_(bucket),
        artifacts_(artifacts),
        name_(settings::url_of(bucket.settings())),
        names_(bucket, artifacts) {}

  std::string name() const override { return name_; }

  async::Task<> check() override { co_await bucket_.probe(); }

  async::Task<std::optional<RemoteResult>> find(std::string key,
                                                core::CancelSource* cancel) override {
    std::optional<RemoteResult> result;
    const auto text = co_await bucket_.bucket().find_text(key_of(key), cancel);
    if (!text) co_return result;
    try {
      result = read_record(*text);
    } catch (const std::invalid_argument&) {
      throw damaged(key);
    }
    co_return result;
  }

  async::Task<> fetch(const RemoteOutput& output, std::filesystem::path to,
                      core::CancelSource& cancel) override {
    std::string trouble;
    try {
      co_await bucket_.receive(object_of(output), std::move(to), output.record.is_directory,
                               output.is_executable, output.record.bytes, &cancel);
    } catch (const s3::S3Error& error) {
      if (error.status() != 404 || error.code() == "NoSuchBucket") throw;
      trouble = error.what();
    } catch (const s3::UnusableObject& error) {
      invalidate(output);
      trouble = error.what();
    }
    if (!trouble.empty())
      throw DamagedCacheEntry("the output '" + output.record.name + "' in " + name_ +
                              " is of no use: " + trouble);
  }

  void invalidate(const RemoteOutput& output) override { bucket_.invalidate(object_of(output)); }

  async::Task<> publish(store::CacheEntry entry, core::CancelSource& cancel) override {
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
      if (!output.is_directory && s3::is_executable_file(path)) document["executable"] = true;
      record["outputs"].push_back(std::move(document));
      co_await bucket_.send(output.digest.hex(), path, &cancel);
    }
    // The last writer wins: each record is whole and a result of the key, and a step that runs
    // again on request replaces what it made before.
    auto body = s3::body_of(record.dump() + "\n");
    co_await bucket_.bucket().put(key_of(entry.key), std::move(body), &cancel);
  }

  async::Task<store::PublishedName> find_name(std::string name) override {
    co_return co_await names_.find(std::move(name));
  }

  async::Task<> publish_as(std::string name, store::PublishedVersion made) override {
    co_await names_.publish(std::move(name), std::move(made));
  }

 private:
  static std::string object_of(const RemoteOutput& output) {
    return s3::BucketArtifacts::key_of(output.record.digest.hex(), output.record.is_directory);
  }
  DamagedCacheEntry damaged(const std::string& key) const {
    return DamagedCacheEntry("the record " + key_of(key) + " in " + name_ +
                             " is not one that pipe wrote");
  }

  s3::BucketArtifacts& bucket_;
  const store::ArtifactStore& artifacts_;
  const std::string name_;
  BucketNames names_;
};

}  // namespace

std::unique_ptr<engine::RemoteCache> make_bucket_cache(s3::BucketArtifacts& bucket,
                                                       const store::ArtifactStore& artifacts) {
  return std::make_unique<BucketCache>(bucket, artifacts);
}

}  // namespace pipeline::remote_cache
