// Builds of images use this machine's configuration for package indexes: certificates, passwords,
// proxies. None of it may be in the image, its layers or its history, with either builder.
#include <array>
#include <cstdio>
#include <fstream>

#include "engine/image_support.hpp"

namespace pipeline::docker {
namespace {

/// Sets an environment variable of this process; the destructor restores it.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (auto* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class ImageSecretsTest : public ImageTest {
 protected:
  ImageSecretsTest() {
    // The machine's certificates, if it has any, after a mark that the tests search for.
    std::string bundle;
    for (auto* name : {"PIP_CERT", "SSL_CERT_FILE"})
      if (auto* path = std::getenv(name); path && bundle.empty()) bundle = core::read_file(path);
    if (bundle.empty() && std::filesystem::exists("/etc/ssl/certs/ca-certificates.crt"))
      bundle = core::read_file("/etc/ssl/certs/ca-certificates.crt");
    certificates = folder.path() / "bundle.pem";
    core::write_file_atomically(certificates, "# canary-certificate-4711\n" + bundle);
  }

  /// Returns all that the image holds as one text: its configuration, its layers and its history.
  /// `gzip -dcf` reads the layers of a saved image whether they are compressed or not.
  std::string content_of(const std::string& reference) {
    auto command = "cd " + folder.path().string() + " && docker save " + reference +
                   " -o saved.tar 2>/dev/null && mkdir -p layers && tar xf saved.tar -C layers && "
                   "find layers -type f -exec gzip -dcf {} + >all";
    if (std::system(command.c_str()) != 0) return {};
    return core::read_file(folder.path() / "all", std::size_t{1} << 30) +
           wait(engine->call("GET", "/images/" + reference + "/history")).dump();
  }

  /// Builds an image of the step, and checks that it works and has none of this machine's secrets.
  void check_that_no_secret_is_kept(const StepSpec& spec) {
    ScopedVariable cert("PIP_CERT", certificates.string()),
        ssl("SSL_CERT_FILE", certificates.string());
    // pip continues if one of several indexes does not answer; uv stops, so it gets only indexes
    // that answer.
    bool pip = spec.settings->docker.python_package_installer == PackageInstaller::pip;
    ScopedVariable index(
        pip ? "PIP_EXTRA_INDEX_URL" : "UV_INDEX_TEST_PASSWORD",
        pip ? "https://reader:canary-password-4711@127.0.0.1:9/simple" : "canary-password-4711");
    ScopedVariable retries("PIP_RETRIES", "0");
    ScopedVariable proxy("no_proxy", "canary-host-4711.example");
    auto made = ensure(spec);
    EXPECT_EQ(
        run(made.image_id, "python -c 'import six; print(six.__version__)'; env | grep -c canary"),
        "1.16.0\n0\n")
        << events.text();
    auto all = content_of(made.reference);
    ASSERT_GT(all.size(), 1'000'000u) << "the docker command is needed to save images";
    EXPECT_EQ(all.find("canary-"), std::string::npos)
        << all.substr(all.find("canary-") > 200 ? all.find("canary-") - 200 : 0, 400);
    EXPECT_NE(all.find("dist-packages/six.py"), std::string::npos)
        << "the search does not see the files of the layers";
  }

  std::filesystem::path certificates;
};

TEST_F(ImageSecretsTest, buildkit_keeps_nothing_of_the_hosts_configuration) {
  check_that_no_secret_is_kept(step("train", {.python_package_installer = PackageInstaller::pip,
                                              .requirements = {"six==1.16.0"}}));
}

TEST_F(ImageSecretsTest, uv_keeps_nothing_of_the_hosts_configuration) {
  check_that_no_secret_is_kept(step("train", {.requirements = {"six==1.16.0"}}));
}

TEST_F(ImageSecretsTest, the_classic_builder_keeps_nothing_of_the_hosts_configuration) {
  ScopedVariable classic("DOCKER_BUILDKIT", "0");
  check_that_no_secret_is_kept(step("train", {.python_package_installer = PackageInstaller::pip,
                                              .requirements = {"six==1.16.0"}}));
}

}  // namespace
}  // namespace pipeline::docker
