// Images, wheels, drivers and GPUs: what goes together, and what is said when it does not.
#include "gpu/compatibility.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gpu/cuda_tables.hpp"

namespace pipeline::gpu {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Wheel> wheels(std::vector<std::string> requirements,
                          std::map<std::string, Json> args = {}) {
  return wheels_of(requirements, args, true);
}

/// Returns `carries torch 12.1`, `needs tensorflow 11.8`, `cpu torch`; joined by `; `.
std::string summary(const std::vector<Wheel>& found) {
  std::string text;
  for (const Wheel& wheel : found) {
    const char* kind = wheel.kind == Wheel::Kind::carries ? "carries "
                       : wheel.kind == Wheel::Kind::needs ? "needs "
                                                          : "cpu ";
    text += (text.empty() ? "" : "; ") + std::string(kind) + wheel.package +
            (wheel.cuda ? " " + wheel.cuda->text() : "");
  }
  return text;
}

TEST(Wheels, are_found_in_requirements) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"torch", "carries torch"},
      {"torch==1.12.1", "carries torch 10.2"},
      {"torch==1.13.0", "carries torch 11.7"},
      {"torch==2.0.1", "carries torch 11.7"},
      {"Torch == 2.1.0", "carries torch 12.1"},
      {"torch==2.4.*", "carries torch 12.1"},
      {"torch==2.5.1", "carries torch 12.4"},
      {"torch==2.7.0", "carries torch 12.6"},
      {"torch==2.9.0", "carries torch 12.8"},
      {"torch==2.11.0", "carries torch"},
      {"torch>=2.1", "carries torch"},
      {"torch==2.0.1+cu118", "carries torch 11.8"},
      {"torch==2.1.0+cpu", "cpu torch"},
      {"torch @ "
       "https://download.pytorch.org/whl/cu118/torch-2.0.1%2Bcu118-cp311-cp311-linux_x86_64.whl",
       "carries torch 11.8"},
      {"torch @ "
       "https://download.pytorch.org/whl/cpu/torch-2.0.1%2Bcpu-cp311-cp311-linux_x86_64.whl",
       "cpu torch"},
      {"torchvision==0.15", "carries torchvision"},
      {"pytorch_lightning", "carries pytorch-lightning"},
      {"torch==2.1.0 ; sys_platform == 'darwin'", ""},
      {"torch==2.1.0; sys_platform != 'win32'", "carries torch 12.1"},
      {"tensorflow==2.13.0", "needs tensorflow 11.8"},
      {"tensorflow[and-cuda]==2.15.0", "carries tensorflow 12.2"},
      {"tensorflow-cpu", "cpu tensorflow-cpu"},
      {"jax", "cpu jax"},
      {"jax[cuda12]==0.4.30", "carries jax 12"},
      {"jax[cuda12_pip]", "carries jax 12"},
      {"jax[cuda12-local]", "needs jax 12"},
      {"jaxlib==0.4.13+cuda11.cudnn86", "carries jaxlib 11"},
      {"cupy-cuda12x", "needs cupy-cuda12x"},
      {"nvidia-cublas-cu12", "carries nvidia-cublas-cu12 12"},
      {"onnxruntime-gpu", "needs onnxruntime-gpu"},
      {"numpy", ""},
      {"torch===", "carries torch"},
      {"requests[security]", ""},
      {"git+https://example.org/x@cu118", ""},
  };
  for (const auto& [requirement, expected] : rows)
    EXPECT_EQ(summary(wheels({requirement})), expected) << requirement;
}

TEST(Wheels, have_the_build_of_their_index) {
  EXPECT_EQ(summary(wheels({"--index-url https://download.pytorch.org/whl/cu118", "torch==2.1.0"})),
            "carries torch 11.8");
  EXPECT_EQ(summary(wheels({"--extra-index-url=https://download.pytorch.org/whl/cpu", "torch"})),
            "cpu torch");
  EXPECT_EQ(summary(wheels({"torch"}, {{"index-url", "https://download.pytorch.org/whl/cu121"}})),
            "carries torch 12.1");
  EXPECT_EQ(
      summary(wheels({"torch"},
                     {{"extra-index-url",
                       {"https://example.org/simple", "https://download.pytorch.org/whl/cpu"}}})),
      "cpu torch");
  EXPECT_EQ(summary(wheels({"torch"}, {{"torch-backend", "cu126"}})), "carries torch 12.6");
  EXPECT_EQ(summary(wheels({"torch==2.1.0"}, {{"torch-backend", "auto"}})), "carries torch 12.1");
}

TEST(Wheels, with_a_build_of_their_own_take_precedence_over_those_that_need_them) {
  EXPECT_EQ(summary(wheels({"torchvision", "torch==2.1.0+cpu"})), "cpu torch");
  EXPECT_EQ(summary(wheels({"jax", "jaxlib==0.4.13+cuda11.cudnn86"})), "carries jaxlib 11");
  EXPECT_EQ(summary(wheels({"jax==0.5", "jax-cuda12-plugin"})), "");
  EXPECT_EQ(summary(wheels({"torch==2.1.0+cpu --hash=sha256:01"})), "cpu torch");
  EXPECT_EQ(summary(wheels({"torch==2.1.0 --hash=sha256:01 --hash=sha256:02"})),
            "carries torch 12.1");
  EXPECT_EQ(wheels({"torch==2.1.0+cpu --hash=sha256:01"})[0].requirement, "torch==2.1.0+cpu");
  EXPECT_EQ(summary(wheels_of(std::vector<std::string>{"torch==2.1.0"}, {}, false)),
            "carries torch")
      << "the index's default for ARM is not known";
}

std::string summary(const ImageCuda& image) {
  const char* has = image.has == ImageCuda::Has::yes  ? "yes"
                    : image.has == ImageCuda::Has::no ? "no"
                                                      : "unknown";
  return has + (image.version ? " " + image.version->text() + " of " + image.source : "");
}

TEST(Images, are_recognised_by_their_names) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"nvidia/cuda:12.2.2-base-ubuntu22.04", "yes 12.2.2 of its tag"},
      {"nvidia/cuda:9.0-base", "yes 9.0 of its tag"},
      {"docker.io/nvidia/cuda:11.8.0-cudnn8-devel-ubuntu22.04", "yes 11.8.0 of its tag"},
      {"pytorch/pytorch:1.12.1-cuda11.3-cudnn8-runtime", "yes 11.3 of its tag"},
      {"pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime", "yes 12.1 of its tag"},
      {"ghcr.io/me/trainer:py311-cu118", "yes 11.8 of its tag"},
      {"ghcr.io/me/trainer:cuda-12.4", "yes 12.4 of its tag"},
      {"tensorflow/tensorflow:2.15.0-gpu", "yes"},
      {"tensorflow/tensorflow:2.15.0", "no"},
      {"nvcr.io/nvidia/pytorch:23.10-py3", "yes"},
      {"python:3.11-slim-bookworm", "no"},
      {"docker.io/library/debian:12", "no"},
      {"ghcr.io/me/cucumber:1.2", "unknown"},
      {"ghcr.io/me/trainer:circus12", "unknown"},
      {"me/trainer@sha256:0123456789012345678901234567890101234567890123456789012345678901",
       "unknown"},
  };
  for (const auto& [name, expected] : rows)
    EXPECT_EQ(summary(image_cuda(name, {})), expected) << name;
}

TEST(Images, are_recognised_by_their_configuration_first) {
  const ImageConfig cuda{{{"CUDA_VERSION", "12.2.2"}, {"NVIDIA_REQUIRE_CUDA", "cuda>=12.2"}}, {}};
  EXPECT_EQ(summary(image_cuda("me/trainer:1", cuda)), "yes 12.2.2 of CUDA_VERSION");
  EXPECT_EQ(image_cuda("me/trainer:1", cuda).require, "cuda>=12.2");
  EXPECT_EQ(
      summary(image_cuda("me/trainer:1", ImageConfig{{}, {{"com.nvidia.cuda.version", "11.4"}}})),
      "yes 11.4 of com.nvidia.cuda.version");
  EXPECT_EQ(
      summary(image_cuda("me/trainer:1", ImageConfig{{{"PATH", "/usr/local/cuda/bin:/bin"}}, {}})),
      "yes");
  EXPECT_EQ(summary(image_cuda("me/trainer:1", ImageConfig{})), "no");
  const ImageConfig off{{{"NVIDIA_REQUIRE_CUDA", "cuda>=99"}, {"NVIDIA_DISABLE_REQUIRE", "1"}}, {}};
  EXPECT_TRUE(image_cuda("me/trainer:1", off).disable_require);
  EXPECT_FALSE(image_cuda("me/trainer:1", cuda).disable_require);
}

std::string verdict(std::string_view text, const DriverFacts& facts) {
  const auto [kind, condition] = check_require_cuda(text, facts);
  switch (kind) {
    case RequireVerdict::Kind::satisfied: return "satisfied";
    case RequireVerdict::Kind::unknown: return "unknown";
    case RequireVerdict::Kind::malformed: return "malformed " + condition;
    case RequireVerdict::Kind::unsatisfied: break;
  }
  return "unsatisfied " + condition;
}

TEST(RequireCuda, holds_if_an_alternative_has_all_its_conditions_met) {
  const DriverFacts tesla{Version::parse("470.57.02"), Version::parse("11.4"), "tesla",
                          settings::ComputeCapability{7, 0}};
  const DriverFacts nothing;
  const std::string real =
      "cuda>=12.2 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471";
  EXPECT_EQ(verdict(real, tesla), "satisfied");
  EXPECT_EQ(verdict("cuda>=12.2 brand=tesla,driver>=525,driver<526", tesla),
            "unsatisfied cuda>=12.2");
  EXPECT_EQ(verdict(real, {tesla.driver, tesla.cuda, "geforce", {}}), "unsatisfied cuda>=12.2");
  EXPECT_EQ(verdict(real, {tesla.driver, tesla.cuda, "", {}}), "unknown")
      << "a brand that is not known may be the one that is meant";
  EXPECT_EQ(verdict(real, nothing), "unknown");
  EXPECT_EQ(verdict("cuda>=11.0", tesla), "satisfied");
  EXPECT_EQ(verdict("cuda=11.4,arch>=7.0", tesla), "satisfied");
  EXPECT_EQ(verdict("arch>7.0", tesla), "unsatisfied arch>7.0");
  EXPECT_EQ(verdict("driver=470", tesla), "satisfied");
  EXPECT_EQ(verdict("driver!=470", tesla), "unsatisfied driver!=470");
  EXPECT_EQ(verdict("brand!=geforce", tesla), "satisfied");
  EXPECT_EQ(verdict("weather=fine", tesla), "unknown");
  EXPECT_EQ(verdict("", tesla), "satisfied");
  EXPECT_EQ(verdict("   ", tesla), "satisfied");
  for (const char* bad : {"cuda", "cuda>", ">=12", "cuda>=x", "brand>tesla", "cuda>=1=2"})
    EXPECT_THAT(verdict(bad, tesla), HasSubstr("malformed")) << bad;
}

CudaFacts facts(const std::string& image, std::vector<std::string> requirements = {},
                const std::optional<ImageConfig>& config = {}) {
  return {image, image.empty() ? std::nullopt : std::optional(image_cuda(image, config)),
          wheels(std::move(requirements)), false};
}
GpuHost host(const char* driver, std::vector<settings::ComputeCapability> capabilities = {{8, 0}}) {
  return {Version::parse(driver), {}, "", std::move(capabilities)};
}

/// Returns a line such as `error cuda-driver: ...` for each finding.
std::string summary(const CudaFacts& facts, const GpuHost& host) {
  std::string text;
  for (const Finding& finding : check_compatibility(facts, host))
    text += (text.empty() ? "" : "\n") +
            std::string(finding.severity == core::Severity::error ? "error " : "warning ") +
            finding.code + ": " + finding.message + " -> " + finding.advice;
  return text;
}

TEST(Compatibility, a_driver_below_the_minimum_is_an_error_and_below_the_toolkits_own_a_warning) {
  for (const auto& row : tables::toolkit_table) {
    const std::string image = std::string("nvidia/cuda:") + row.cuda + "-base";
    const bool old = Version::parse(row.cuda)->major() < 11;
    EXPECT_THAT(summary(facts(image), host("350.10", {})), HasSubstr("error cuda-driver")) << image;
    EXPECT_THAT(summary(facts(image), host("600.10", {})), IsEmpty()) << image;
    if (!old && *Version::parse(row.minimum_driver) < *Version::parse(row.own_driver)) {
      EXPECT_THAT(summary(facts(image), host(row.minimum_driver, {})),
                  HasSubstr("warning cuda-driver"))
          << image;
    }
  }
  EXPECT_EQ(summary(facts("nvidia/cuda:12.2.2-base"), host("470.57.02")),
            "error cuda-driver: the image nvidia/cuda:12.2.2-base has CUDA 12.2.2, which needs "
            "driver 525.60.13 or newer; this machine's is "
            "470.57.02 -> update the "
            "driver to 535.54 or newer, or take an image of CUDA 11.4 or older");
  EXPECT_THAT(summary(facts("nvidia/cuda:12.2.2-base"), host("525.60.13")),
              HasSubstr("warning cuda-driver: the image nvidia/cuda:12.2.2-base has CUDA 12.2.2, "
                        "which came with driver 535.54"));
  EXPECT_THAT(
      summary(facts("python:3.11", {"torch==2.0.1+cu118"}), host("440.33")),
      HasSubstr(
          "error cuda-driver: `torch==2.0.1+cu118` has CUDA 11.8, which needs driver 450.80.02"));
  EXPECT_THAT(summary(facts("nvidia/cuda:12.2.2-base"), {}), IsEmpty())
      << "the GPUs and the driver are unknown";
}

TEST(Compatibility, demands_of_the_image_itself_take_precedence) {
  const ImageConfig config{
      {{"CUDA_VERSION", "12.2.2"},
       {"NVIDIA_REQUIRE_CUDA", "cuda>=12.2 brand=tesla,driver>=470,driver<471"}},
      {}};
  GpuHost tesla = host("470.57.02");
  tesla.brand = "tesla";
  EXPECT_THAT(summary(facts("me/x:1", {}, config), tesla), IsEmpty());
  tesla.brand = "geforce";
  EXPECT_THAT(summary(facts("me/x:1", {}, config), tesla),
              HasSubstr("error cuda-driver: the image me/x:1 would not start here: its "
                        "NVIDIA_REQUIRE_CUDA demands `cuda>=12.2`"));
}

TEST(Compatibility, demands_of_an_image_can_be_switched_off) {
  const ImageConfig config{{{"CUDA_VERSION", "12.2.2"},
                            {"NVIDIA_REQUIRE_CUDA", "cuda>=12.2"},
                            {"NVIDIA_DISABLE_REQUIRE", "1"}},
                           {}};
  EXPECT_THAT(summary(facts("me/x:1", {}, config), host("470.57.02")), IsEmpty());
}

TEST(Compatibility, gpus_need_code_for_them) {
  EXPECT_THAT(summary(facts("python:3.11", {"torch==2.0.0"}), host("600.1", {{9, 0}})),
              HasSubstr("error cuda-gpu: `torch==2.0.0` (CUDA 11.7) has no code for the machine's "
                        "GPUs of compute capability 9.0"));
  EXPECT_THAT(summary(facts("python:3.11", {"torch==2.0.1"}), host("600.1", {{9, 0}})),
              HasSubstr("error cuda-gpu"))
      << "the default build of torch 2.0.1 has CUDA 11.7";
  EXPECT_THAT(summary(facts("python:3.11", {"torch==2.0.1+cu118"}), host("600.1", {{9, 0}})),
              IsEmpty());
  EXPECT_THAT(summary(facts("python:3.11", {"torch==2.7.0"}), host("600.1", {{10, 0}})),
              HasSubstr("take torch 2.7 or newer with CUDA 12.8 or newer, as from "
                        "https://download.pytorch.org/whl/cu128"));
  EXPECT_THAT(summary(facts("python:3.11", {"torch==2.7.0+cu128"}), host("600.1", {{12, 0}})),
              IsEmpty());
  EXPECT_THAT(summary(facts("nvidia/cuda:11.0-base"), host("600.1", {{9, 0}})),
              HasSubstr("warning cuda-gpu: the image nvidia/cuda:11.0-base has CUDA 11.0, which "
                        "has no code for the machine's GPUs of compute "
                        "capability 9.0 (Hopper)"));
  EXPECT_THAT(
      summary(facts("nvidia/cuda:13.0.0-base"), host("600.1", {{7, 0}})),
      HasSubstr("which no longer supports the machine's GPUs of compute capability 7.0 (Volta)"));
  EXPECT_THAT(summary(facts("nvidia/cuda:12.2.2-base"), host("600.1", {{8, 0}, {9, 0}})),
              IsEmpty());
}

TEST(Compatibility, a_gpu_step_without_cuda_will_not_see_any_boost) {
  const GpuHost any = host("600.1");
  EXPECT_EQ(
      summary(facts("python:3.11-slim", {"numpy"}), any),
      "warning cuda-missing: the image python:3.11-slim has no CUDA, and no requirement installs "
      "it: "
      "the step has a GPU and will not see any boost from it -> set "
      "`parent_image` to one with CUDA, such as pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime or "
      "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04, or require `torch`");
  EXPECT_THAT(summary(facts("python:3.11-slim", {"torch==2.1.0+cpu"}), any),
              HasSubstr("`torch==2.1.0+cpu` is without CUDA (+cpu)"));
  EXPECT_THAT(summary(facts("python:3.11-slim", {"torch==2.1.0+cpu"}), any),
              HasSubstr("-> require `torch==2.1.0`"));
  EXPECT_THAT(summary(facts("nvidia/cuda:12.2.2-base", {"torch==2.1.0+cpu"}), any),
              HasSubstr("warning cuda-missing"));
  EXPECT_THAT(summary(facts("python:3.11-slim",
                            {"--index-url https://download.pytorch.org/whl/cpu", "torch"}),
                      any),
              HasSubstr("remove that index"));
  EXPECT_THAT(summary(facts("python:3.11-slim", {"tensorflow==2.15.0"}), any),
              HasSubstr("needs CUDA's libraries, but the image python:3.11-slim has none"));
  EXPECT_THAT(summary(facts("python:3.11-slim", {"jax"}), any), HasSubstr("require `jax[cuda12]`"));
}

TEST(Compatibility, no_warning_where_cuda_comes_from_somewhere) {
  const GpuHost any = host("600.1");
  for (const char* requirement :
       {"torch", "torchvision", "tensorflow[and-cuda]", "jax[cuda12]", "nvidia-cuda-runtime-cu12"})
    EXPECT_THAT(summary(facts("python:3.11-slim", {requirement}), any), IsEmpty()) << requirement;
  EXPECT_THAT(summary(facts("nvidia/cuda:12.2.2-runtime-ubuntu22.04", {"tensorflow==2.15.0"}), any),
              IsEmpty());
  EXPECT_THAT(summary(facts("nvidia/cuda:12.2.2-runtime-ubuntu22.04", {"numpy"}), any), IsEmpty());
  EXPECT_THAT(summary(facts("me/own:1", {"numpy"}), any), IsEmpty())
      << "the contents of such an image are unknown";
  EXPECT_THAT(summary(facts("", {"numpy"}), any), IsEmpty())
      << "without an image, the machine's own CUDA may serve";
  CudaFacts built = facts("python:3.11-slim", {});
  built.may_bring_cuda = true;
  EXPECT_THAT(summary(built, any), IsEmpty());
}

TEST(Compatibility, versions_that_do_not_fit_are_a_warning) {
  const GpuHost any = host("600.1");
  EXPECT_THAT(summary(facts("nvidia/cuda:12.2.2-runtime-ubuntu22.04", {"tensorflow==2.13.0"}), any),
              HasSubstr("warning cuda-mismatch: `tensorflow==2.13.0` is built for CUDA 11.8, and "
                        "the image nvidia/cuda:12.2.2-runtime-ubuntu22.04 has 12.2.2"));
  EXPECT_THAT(summary(facts("nvidia/cuda:11.8.0-devel-ubuntu22.04", {"torch==2.1.0"}), any),
              HasSubstr("extensions that the image's compiler builds will not fit"));
  EXPECT_THAT(summary(facts("nvidia/cuda:11.8.0-runtime-ubuntu22.04", {"torch==2.1.0"}), any),
              IsEmpty())
      << "torch brings its own";
}

TEST(Compatibility, versions_of_cuda_that_run_are_described) {
  EXPECT_EQ(runnable_cuda({}), "");
  GpuHost machine = host("535.183.01");
  machine.cuda = Version::parse("12.2");
  machine.capabilities = {{7, 0}};
  EXPECT_EQ(runnable_cuda(machine),
            "images and wheels up to CUDA 12.9; from above 12.2, which the driver was made for, "
            "without PTX and newer functions; code for 7.0 "
            "(Volta) is in "
            "CUDA 9.0 to 12");
  machine = host("580.65.06");
  machine.cuda = Version::parse("13.0");
  machine.capabilities = {{9, 0}};
  EXPECT_EQ(runnable_cuda(machine),
            "images and wheels up to CUDA 13.0; code for 9.0 (Hopper) is in CUDA 11.8 and newer");
  machine = host("700.1");
  machine.cuda = Version::parse("15.1");
  machine.capabilities = {};
  EXPECT_EQ(runnable_cuda(machine), "images and wheels up to CUDA 15.1") << "newer than the table";
  EXPECT_EQ(runnable_cuda(host("340.1")), "none that is known here: driver 340.1 is too old");
}

}  // namespace
}  // namespace pipeline::gpu
