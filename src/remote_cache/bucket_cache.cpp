#include "remote_cache/bucket_cache.hpp"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/identifier.hpp"

namespace pipeline::remote_cache {
namespace {

using engine::DamagedCacheEntry;
using engine::RemoteOutput;
using engine::RemoteResult;
using nlohmann::json;

constexpr int entry_format = 1;

std::string key_of(const std::string& key) { return "results/" + key + ".json"; }

RemoteOutput output_of(const json& document) {
  RemoteOutput output;
  output.record.name = document.at("name").get<std::string>();
  output.record.file_name = document.at("file_name").get<std::string>();
  output.record.digest = core::Digest::from_hex(document.at("digest").get<std::string>());
  output.record.is_directory = document.at("kind").get<std::string>() == "tree";
  output.record.bytes = document.at("bytes").get<std::uint64_t>();
  output.is_executable = document.value("executable", false);
  for (const auto& name :
       {output.record.name, output.record.file_name})  // Both become parts of paths.
    if (!core::is_name(name)) throw std::invalid_argument("no name");
  return output;
}

class BucketCache final : public engine::RemoteCache {
 public:
  BucketCache(s3::Artifacts& bucket, const store::ArtifactStore& artifacts)
      : bucket_(bucket), artifacts_(artifacts), name_(settings::url_of(bucket.settings())) {}

  std::string name() const override { return name_; }

  async::Task<> check() override { co_await bucket_.probe(); }

  async::Task<std::optional<RemoteResult>> find(std::string key,
                                                core::CancelSource* cancel) override {
    std::optional<RemoteResult> result;
    const auto text = co_await bucket_.bucket().find_text(key_of(key), cancel);
    if (!text) co_return result;
    const auto record = core::parse_json(*text);
    try {
      // A later version of pipe wrote the record; this version treats it as missing.
      if (record.at("format").get<int>() != entry_format) co_return result;
      RemoteResult found;
      found.run = core::printable(record.at("run").get<std::string>());
      for (const auto& output : record.at("outputs")) found.outputs.push_back(output_of(output));
      result = std::move(found);
    } catch (const json::exception&) {
      throw damaged(key);
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
    record["format"] = entry_format;
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
    auto body = s3::body_of(record.dump() + "\n");
    co_await bucket_.bucket().put(key_of(entry.key), std::move(body), &cancel);
  }

 private:
  static std::string object_of(const RemoteOutput& output) {
    return s3::Artifacts::key_of(output.record.digest.hex(), output.record.is_directory);
  }
  DamagedCacheEntry damaged(const std::string& key) const {
    return DamagedCacheEntry("the record " + key_of(key) + " in " + name_ +
                             " is not one that pipe wrote");
  }

  s3::Artifacts& bucket_;
  const store::ArtifactStore& artifacts_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<engine::RemoteCache> make_bucket_cache(s3::Artifacts& bucket,
                                                       const store::ArtifactStore& artifacts) {
  return std::make_unique<BucketCache>(bucket, artifacts);
}

}  // namespace pipeline::remote_cache
