// Images pushed to a real registry with TLS and a login: each is pushed once and run by its digest,
// and a failed push has a message with advice.
#include <gmock/gmock.h>

#include "core/file.hpp"
#include "docker/published_images.hpp"
#include "docker/reference.hpp"
#include "engine/image_support.hpp"
#include "model/running_program.hpp"
#include "orchestrators/containers/step_images.hpp"
#include "support/golden.hpp"
#include "support/registry.hpp"

namespace pipeline::docker {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

class RegistryPush : public ImageTest {
 protected:
  void SetUp() override {
    if (test::registry().empty())
      GTEST_SKIP() << "there is no registry: scripts/testbed/registry start starts one";
    host = test::registry().at("HOST");
    repository = host + "/" + repository;
    log_in(test::registry().at("CONFIG"));
  }
  void TearDown() override {
    if (!host.empty()) ImageTest::TearDown();
    if (before)
      setenv("DOCKER_CONFIG", before->c_str(), 1);
    else
      unsetenv("DOCKER_CONFIG");
  }
  static void log_in(const std::filesystem::path& config) {
    setenv("DOCKER_CONFIG", config.c_str(), 1);
  }

  /// Builds an image of an existing parent and a small layer that no other image has; images with
  /// different values share their layers.
  LocalImage build(const std::string& value = "1") {
    core::write_file_atomically(folder.path() / "layer", repository);
    core::write_file_atomically(
        folder.path() / "Dockerfile",
        "FROM debian:bookworm-slim\nCOPY layer /layer\nENV VALUE=" + value + "\n");
    const auto made = ensure(step("train", {.dockerfile = "Dockerfile"}));
    return {made.reference, made.image_id};
  }
  /// Publishes the image as a separate run does, and returns its reference with the digest.
  std::string publish(const LocalImage& image) {
    PublishedImages published(loop, *engine);
    events.events.clear();
    return wait(published.publish(image, "train", events, cancel));
  }
  /// Returns the error of publishing the image with its hints; `pushed` if it succeeds.
  std::string failure(const LocalImage& image) {
    try {
      publish(image);
    } catch (const core::EnvironmentError& error) {
      std::string text = std::string(error.what()) + "\n";
      for (const auto& hint : error.advice()) text += "  hint: " + hint + "\n";
      return text;
    }
    return "pushed";
  }
  /// Returns the reasons of the pushes since the last publish().
  std::vector<std::string> pushes() const {
    std::vector<std::string> reasons;
    for (const auto& each : events.events)
      if (const auto* started = std::get_if<event::BuildStarted>(&each);
          started && started->reason.starts_with("push: "))
        reasons.push_back(started->reason.substr(6));
    return reasons;
  }
  /// Sends a request for a manifest to the registry.
  net::Response ask(const std::string& method, const std::string& name_and_tag) {
    const auto [name, tag] = split_reference(name_and_tag);
    net::HttpClient http(loop);
    return wait(test::ask_registry(http, method,
                                   "/v2" + name.substr(name.find('/')) + "/manifests/" + tag));
  }
  /// Returns the digest of the reference in the registry, or the status of its error.
  std::string digest_in_registry(const std::string& reference) {
    const auto answer = ask("HEAD", reference);
    return answer.status == 200 ? answer.header("docker-content-digest")
                                : std::to_string(answer.status);
  }
  /// Gives the image another name, and returns it with that name.
  LocalImage named(const LocalImage& image, const std::string& name) {
    wait(engine->tag_image(image.reference, name, "x"));
    others.push_back(name + ":x");
    return {name + ":x", image.id};
  }
  ~RegistryPush() override {
    for (const auto& name : others) wait(engine->remove_image(name));
  }

  std::string host;
  std::vector<std::string> others;
  std::optional<std::string> before = std::getenv("DOCKER_CONFIG")
                                          ? std::optional<std::string>(std::getenv("DOCKER_CONFIG"))
                                          : std::nullopt;
};

TEST_F(RegistryPush, image_is_pushed_once_and_known_by_the_digest_that_the_registry_gives_it) {
  const auto image = build();
  EXPECT_EQ(digest_in_registry(image.reference), "404");
  const auto published = publish(image);
  EXPECT_EQ(pushes(), std::vector{host + " does not have it"});
  EXPECT_THAT(events.text(), AnyOf(HasSubstr("1 layer pushed ("), HasSubstr("2 layers pushed (")));
  EXPECT_EQ(published, repository + "@" + digest_in_registry(image.reference));
  EXPECT_EQ(publish(image), published);
  EXPECT_TRUE(events.events.empty()) << events.text();
}

TEST_F(RegistryPush, layers_that_are_there_are_not_sent_again) {
  publish(build("1"));
  publish(build("2"));
  EXPECT_THAT(events.text(), HasSubstr("only the manifest pushed, 2 layers were there"));
}

TEST_F(RegistryPush, image_that_the_registry_has_lost_is_pushed_again) {
  const auto image = build();
  const auto published = publish(image);
  EXPECT_EQ(ask("DELETE", published).status, 202);
  EXPECT_EQ(digest_in_registry(image.reference), "404");
  EXPECT_EQ(publish(image), published);
  EXPECT_EQ(pushes(), std::vector{host + " does not have it"});
  EXPECT_EQ(published, repository + "@" + digest_in_registry(image.reference));
}

TEST_F(RegistryPush, cancelled_push_leaves_nothing_and_can_be_made_again) {
  core::write_file_atomically(
      folder.path() / "Dockerfile",
      "FROM debian:bookworm-slim\nRUN head -c 50000000 /dev/urandom > /large\n");
  const auto made = ensure(step("train", {.dockerfile = "Dockerfile"}));
  struct StopAtOnce : BuildRecorder {
    core::CancelSource& source;
    explicit StopAtOnce(core::CancelSource& s) : source(s) {}
    void emit(const Event& event) override {
      BuildRecorder::emit(event);
      if (std::holds_alternative<event::BuildProgress>(event))
        source.stop(core::StopLevel::graceful);
    }
  } stopping(cancel);
  PublishedImages published(loop, *engine);
  const LocalImage image{made.reference, made.image_id};
  EXPECT_THROW(wait(published.publish(image, "train", stopping, cancel)), core::EnvironmentError);
  EXPECT_EQ(digest_in_registry(image.reference), "404");
  core::CancelSource fresh;
  const auto by_digest = wait(published.publish(image, "train", events, fresh));
  EXPECT_EQ(by_digest, repository + "@" + digest_in_registry(image.reference));
}

// The name does not have the word `golden`: tests with the word run without a registry.
TEST_F(RegistryPush, users_are_told_why_a_push_fails_and_what_to_do) {
  const auto image = build(), other = build("2");
  EXPECT_EQ(failure(image), "pushed");
  log_in(folder.path());
  std::string text = "# not logged in\n" + failure(other);
  core::write_file_atomically(folder.path() / "config.json",
                              R"({"auths": {")" + host + R"(": {"auth": ")" +
                                  core::encode_base64("tester:wrong") + R"("}}})");
  text += "# the wrong password\n" + failure(other);
  log_in(test::registry().at("CONFIG"));
  const auto stranger = test::registry().at("STRANGER"),
             nobody = host.substr(0, host.find(':')) + ":1";
  text += "# a certificate that the engine does not trust\n" +
          failure(named(image, stranger + "/name"));
  text += "# nobody there\n" + failure(named(image, nobody + "/name"));
  const auto replace = [&](const std::string& what, const std::string& with) {
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
      text.replace(at, what.size(), with);
  };
  replace(split_reference(other.reference).second, "env-DIGEST");
  replace(repository, "registry.example:5000/team/name");
  replace(host, "registry.example:5000");
  replace(stranger, "stranger.example");
  replace(nobody, "nobody.example");
  replace(folder.path().string(), "FOLDER");
  test::expect_golden(text, std::filesystem::path(PIPELINE_SOURCE_DIR) / "tests/golden/registry",
                      "refused");
}

class StepsInARegistry : public RegistryPush {
 protected:
  orchestrators::containers::StepImage prepared(orchestrators::containers::StepImages& images,
                                                const StepSpec& spec) {
    wait(images.prepare(spec, events, cancel));
    return wait(images.image_of(spec));
  }
  PublishedImages published{loop, *engine};
  orchestrators::OrchestratorOptions place;
};

TEST_F(StepsInARegistry, steps_of_a_place_that_does_not_share_the_engine_run_by_digest) {
  orchestrators::containers::StepImages images(loop, *engine, place, &published);
  const auto spec =
      step("train", {.parent_image = "debian:bookworm-slim", .environment = {{"A", "1"}}});
  EXPECT_FALSE(wait(images.environment(spec)).ready);
  const auto image = prepared(images, spec);
  EXPECT_FALSE(image.only_here);
  EXPECT_EQ(split_reference(image.reference).first, repository);
  EXPECT_EQ(split_reference(image.reference).second, digest_in_registry(image.reference));
  EXPECT_TRUE(wait(images.environment(spec)).ready);

  // A pushed image is used like any other registry's image, and is not pushed again.
  const auto reference = wait(images.builder().status(spec)).reference;
  const auto as_it_is =
      prepared(images, step("again", {.parent_image = reference, .skip_build = true}));
  EXPECT_FALSE(as_it_is.only_here);
  EXPECT_EQ(as_it_is.reference, image.reference);
  EXPECT_EQ(pushes().size(), 1u);
}

TEST_F(StepsInARegistry, image_of_a_program_is_pushed_and_its_parent_is_not) {
  orchestrators::containers::StepImages images(loop, *engine, place, &published);
  auto spec = step("train", {.parent_image = "debian:bookworm-slim"});
  spec.program =
      ProgramStep{std::make_shared<const Program>(model::running_program()), "train", ""};
  EXPECT_FALSE(wait(images.environment(spec)).ready);
  const auto image = prepared(images, spec);
  EXPECT_EQ(image.reference, repository + "@" + digest_in_registry(image.reference));
  EXPECT_FALSE(image.program.empty());
  EXPECT_EQ(pushes().size(), 1u) << "the parent is in a registry of its own";
  EXPECT_TRUE(wait(images.environment(spec)).ready);
}

TEST_F(StepsInARegistry, image_tag_is_a_second_name_in_the_registry_and_follows_the_image) {
  const auto spec = [&](const char* value) {
    return step("train", {.parent_image = "debian:bookworm-slim",
                          .image_tag = "latest",
                          .environment = {{"A", value}}});
  };
  for (const char* value : {"1", "2"}) {
    orchestrators::containers::StepImages images(loop, *engine, place, &published);
    const auto image = prepared(images, spec(value));
    EXPECT_EQ(digest_in_registry(repository + ":latest"), split_reference(image.reference).second);
  }
  EXPECT_EQ(pushes().size(), 4u);
  EXPECT_EQ(pushes().back(), host + " has another image of that name");
}

TEST_F(StepsInARegistry, engine_of_this_machine_pushes_nothing) {
  orchestrators::containers::StepImages images(loop, *engine, place);
  const auto image = prepared(
      images, step("train", {.parent_image = "debian:bookworm-slim", .environment = {{"A", "1"}}}));
  EXPECT_TRUE(image.reference.starts_with(repository + ":env-")) << image.reference;
  EXPECT_EQ(digest_in_registry(image.reference), "404");
}

TEST_F(StepsInARegistry, name_without_a_registry_stays_on_the_engine) {
  orchestrators::containers::StepImages images(loop, *engine, place, &published);
  const auto spec = step("train", {.parent_image = "debian:bookworm-slim",
                                   .target_repository = "pipe-test-without-registry",
                                   .environment = {{"A", "1"}}});
  const auto image = prepared(images, spec);
  others.push_back(image.reference);
  EXPECT_TRUE(image.only_here);
  EXPECT_EQ(pushes().size(), 0u);
}

}  // namespace
}  // namespace pipeline::docker
