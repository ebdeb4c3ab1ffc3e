#include "oci/image_archive.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "docker/image_identity.hpp"
#include "support/tar.hpp"

namespace pipeline::oci {
namespace {

using nlohmann::json;
using test::tar::entry;
using testing::HasSubstr;

std::string digest_in_archive(const std::string& text) {
  return "sha256:" + core::sha256(text).hex();
}
std::string hex_in_archive(const std::string& text) { return core::sha256(text).hex(); }

json descriptor_of(const std::string& text, const std::string& type) {
  json blob = json::object();
  blob["mediaType"] = type;
  blob["digest"] = digest_in_archive(text);
  blob["size"] = text.size();
  return blob;
}

/// Archives of an image with one layer.
class Archives : public testing::Test {
 protected:
  static std::string config_for(const std::string& architecture) {
    json config = json::object();
    config["os"] = "linux";
    config["architecture"] = architecture;
    config["config"]["Env"] = json::array({"A=b"});
    config["rootfs"]["diff_ids"] = json::array({digest_in_archive(unpacked())});
    return config.dump();
  }
  static std::string unpacked() { return entry('0', "x", "text") + test::tar::end; }

  /// Adds an image to the layout; returns its descriptor, for the index.
  json add_image(const std::string& architecture, const std::string& name = {}) {
    const auto config = config_for(architecture);
    json manifest = json::object();
    manifest["config"] = descriptor_of(config, "application/vnd.oci.image.config.v1+json");
    manifest["layers"] =
        json::array({descriptor_of(unpacked(), "application/vnd.oci.image.layer.v1.tar")});
    for (const auto& text : {config, unpacked(), manifest.dump()})
      blobs_[hex_in_archive(text)] = text;
    auto descriptor = descriptor_of(manifest.dump(), "application/vnd.oci.image.manifest.v1+json");
    descriptor["platform"]["os"] = "linux";
    descriptor["platform"]["architecture"] = architecture;
    if (!name.empty()) descriptor["annotations"]["org.opencontainers.image.ref.name"] = name;
    return descriptor;
  }
  std::string layout(const std::vector<json>& images) const {
    json index = json::object();
    index["manifests"] = images;
    std::string tar;
    for (const auto& [hex, text] : blobs_) tar += entry('0', "./blobs/sha256/" + hex, text);
    return tar + entry('0', "./index.json", index.dump());
  }
  /// Returns what `docker save` writes before version 25, a layer of which may be a link.
  static std::string saved(const std::string& architecture, const json& tags) {
    const auto config = config_for(architecture);
    json image = json::object(), list = json::array();
    image["Config"] = hex_in_archive(config) + ".json";
    image["RepoTags"] = tags;
    image["Layers"] = json::array({"b/layer.tar"});
    list.push_back(image);
    return entry('5', "a/") + entry('0', "a/layer.tar", unpacked()) +
           entry('2', "b/layer.tar", {}, "../a/layer.tar") +
           entry('0', hex_in_archive(config) + ".json", config) +
           entry('0', "manifest.json", list.dump());
  }

  void write(const std::string& tar) {
    core::write_file_atomically(folder_.path() / "image.tar", tar + test::tar::end);
  }
  ArchivedImage read(const std::string& text, const std::string& platform = {}) const {
    return read_archive(*settings::image_archive(text), folder_.path(), platform);
  }
  /// Returns the error and its advice.
  std::string failure(const std::string& text, const std::string& platform = {}) const {
    try {
      read(text, platform);
    } catch (const core::EnvironmentError& error) {
      std::string said = error.what();
      for (const auto& advice : error.advice()) said += "\n" + advice;
      return said;
    }
    return "it was read";
  }

  const core::TemporaryFolder folder_;
  std::map<std::string, std::string> blobs_;  ///< Keyed by their digests.
};

TEST_F(Archives, incomplete_ones_are_refused) {
  EXPECT_THAT(failure("oci-archive:none.tar"), HasSubstr("oci-archive:none.tar: there is no such"));
  EXPECT_THAT(failure("oci:."), HasSubstr("it has no index.json"));
  const auto file = folder_.path() / "image.tar";
  core::write_file_atomically(file, "\x1f\x8b\x08");
  EXPECT_THAT(failure("docker-archive:image.tar"), HasSubstr("gunzip"));
  core::write_file_atomically(file, std::string(2000, 'x'));
  EXPECT_THAT(failure("oci-archive:image.tar"), HasSubstr("not a whole tar"));
  write(entry('0', "x", "text"));
  EXPECT_THAT(failure("oci-archive:image.tar"), HasSubstr("not an image's archive"));
  const auto tar = layout({add_image("amd64")});
  core::write_file_atomically(file, tar);
  EXPECT_THAT(failure("oci-archive:image.tar"), HasSubstr("not a whole tar"));
  core::write_file_atomically(file, tar.substr(0, 700));
  EXPECT_THAT(failure("oci-archive:image.tar"), HasSubstr("cut short"));
  write(saved("amd64", json::array()));
  EXPECT_THAT(failure("oci-archive:image.tar"), HasSubstr("write `docker-archive:image.tar`"));
}

TEST_F(Archives, content_that_differs_from_its_digest_is_refused) {
  const auto image = add_image("amd64");
  const auto config = hex_in_archive(config_for("amd64"));
  const auto tampered = [&](const std::string& hex, const std::string& text) {
    const auto before = std::exchange(blobs_[hex], text);
    write(layout({image}));
    blobs_[hex] = before;
    return failure("oci-archive:image.tar");
  };
  EXPECT_THAT(tampered(config, config_for("amd65")), HasSubstr("another content than that of"));
  EXPECT_THAT(tampered(hex_in_archive(unpacked()), "short"), HasSubstr("another size"));
  auto other = unpacked();
  other[520] = 'X';
  EXPECT_EQ(tampered(hex_in_archive(unpacked()), other), "it was read");
  EXPECT_THROW(copy_layer(read("oci-archive:image.tar"), 0, folder_.path() / "layer"),
               core::EnvironmentError);
  blobs_.erase(hex_in_archive(unpacked()));
  write(layout({image}));
  EXPECT_THAT(failure("oci-archive:image.tar"), HasSubstr("it has no layer sha256:"));
}

TEST_F(Archives, an_image_has_to_be_named_if_there_are_several) {
  auto one = add_image("amd64", "docker.io/library/debian:12"), other = add_image("arm64", "two");
  write(layout({one, other}));
  EXPECT_THAT(failure("oci-archive:image.tar"),
              HasSubstr("it has 2 images: docker.io/library/debian:12, two"));
  EXPECT_THAT(failure("oci-archive:image.tar:three"), HasSubstr("it has no image 'three', only"));
  EXPECT_THAT(failure("oci-archive:image.tar:@2"), HasSubstr("no image @2"));
  EXPECT_THAT(failure("oci-archive:image.tar:two", "linux/amd64"),
              HasSubstr("it is made for linux/arm64, not for linux/amd64"));
  EXPECT_EQ(read("oci-archive:image.tar:two").description.at("Architecture"), "arm64");
  EXPECT_EQ(read("oci-archive:image.tar:@1").description.at("Architecture"), "arm64");
  EXPECT_EQ(read("oci-archive:image.tar:debian:12").description.at("Architecture"), "amd64");
}

TEST_F(Archives, an_image_is_chosen_by_the_platform) {
  write(layout({add_image("amd64", "x"), add_image("arm64", "x")}));
  EXPECT_THAT(failure("oci-archive:image.tar", "linux/s390x"),
              HasSubstr("not made for linux/s390x, only for linux/amd64, linux/arm64"));
  EXPECT_EQ(read("oci-archive:image.tar", "linux/arm64").description.at("Architecture"), "arm64");
}

TEST_F(Archives, of_all_kinds_have_the_image_that_an_engine_describes) {
  write(layout({add_image("amd64")}));
  const auto image = read("oci-archive:image.tar", "linux/amd64");
  EXPECT_EQ(image.description.at("Id"), digest_in_archive(config_for("amd64")));
  EXPECT_EQ(image.description.at("Config").at("Env").at(0), "A=b");
  copy_layer(image, 0, folder_.path() / "layer");
  EXPECT_EQ(core::read_file(folder_.path() / "layer"), unpacked());
  for (const auto& [hex, text] : blobs_) {
    std::filesystem::create_directories(folder_.path() / "layout/blobs/sha256");
    core::write_file_atomically(folder_.path() / "layout/blobs/sha256" / hex, text);
  }
  json index = json::object();
  index["manifests"] = json::array({add_image("amd64")});
  core::write_file_atomically(folder_.path() / "layout/index.json", index.dump());
  const auto identity = docker::image_identity(image.description);
  EXPECT_EQ(docker::image_identity(read("oci:layout").description), identity);
  write(saved("amd64", json::array({"debian:12", "debian:bookworm"})));
  const auto from_engine = read("docker-archive:image.tar:docker.io/library/debian:12");
  EXPECT_EQ(docker::image_identity(from_engine.description), identity);
  EXPECT_THAT(failure("docker-archive:image.tar:alpine"), HasSubstr("only debian:12, debian:book"));
}

TEST_F(Archives, the_form_for_an_engine_has_one_name_and_the_same_image) {
  write(layout({add_image("amd64", "debian:12")}));
  const auto image = read("oci-archive:image.tar");
  const auto source = loadable_tar(image, "pipe:parent-1");
  std::string tar(300, '\0'), all;
  while (const auto count = source(tar)) all += tar.substr(0, count);
  core::write_file_atomically(folder_.path() / "image.tar", all);
  const auto loaded = read("docker-archive:image.tar:pipe:parent-1");
  EXPECT_EQ(loaded.description, image.description);
  copy_layer(loaded, 0, folder_.path() / "layer");
  EXPECT_EQ(core::read_file(folder_.path() / "layer"), unpacked());
  EXPECT_THAT(failure("docker-archive:image.tar:debian:12"), HasSubstr("only pipe:parent-1"));
}

}  // namespace
}  // namespace pipeline::oci
