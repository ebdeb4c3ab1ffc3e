#include "gpu/compatibility.hpp"

#include <algorithm>

#include "gpu/cuda_tables.hpp"

namespace pipeline::gpu {
namespace {

Version version(const char* text) { return *Version::parse(text); }

/// Returns the table's row for a CUDA version, or the newest earlier row of the same major version.
/// A major version alone gives its first row.
const tables::Toolkit* toolkit_of(const Version& cuda) {
  const tables::Toolkit* best = nullptr;
  for (const auto& row : tables::toolkit_table)
    if (version(row.cuda).major() == cuda.major() && (!best || version(row.cuda) <= cuda))
      best = &row;
  return best;
}

/// Returns the newest CUDA version that a driver was made for.
std::optional<Version> cuda_of_driver(const Version& driver) {
  std::optional<Version> cuda;
  for (const auto& row : tables::toolkit_table)
    if (version(row.own_driver) <= driver) cuda = version(row.cuda);
  return cuda;
}

/// Returns the table's row for a compute capability, or for the nearest lower one of the same major
/// version; null if there is none.
const tables::Architecture* architecture_of(const settings::ComputeCapability& capability) {
  const tables::Architecture* best = nullptr;
  for (const auto& row : tables::architecture_table)
    if (row.major == capability.major && row.minor <= capability.minor) best = &row;
  return best;
}

class CompatibilityCheck {
 public:
  CompatibilityCheck(const CudaFacts& facts, const GpuHost& host) : facts_(facts), host_(host) {}

  std::vector<Finding> run() {
    check_missing();
    check_image();
    for (const Wheel& wheel : facts_.wheels)
      if (wheel.kind != Wheel::Kind::cpu) check_wheel(wheel);
    return std::move(findings_);
  }

 private:
  void report(core::Severity severity, std::string code, std::string message, std::string advice) {
    findings_.push_back({severity, std::move(code), std::move(message), std::move(advice)});
  }

  bool image_has_cuda() const { return facts_.cuda && facts_.cuda->has == ImageCuda::Has::yes; }

  /// Reports a step that requests a GPU but has nothing that could use one.
  void check_missing() {
    const auto of_kind = [&](Wheel::Kind kind) {
      const auto found = std::find_if(facts_.wheels.begin(), facts_.wheels.end(),
                                      [&](const Wheel& each) { return each.kind == kind; });
      return found == facts_.wheels.end() ? nullptr : &*found;
    };
    const Wheel *carries = of_kind(Wheel::Kind::carries), *needs = of_kind(Wheel::Kind::needs);
    for (const Wheel& cpu : facts_.wheels) {
      if (cpu.kind != Wheel::Kind::cpu || carries || (needs && image_has_cuda())) continue;
      // If the image has CUDA, a package without GPU code is not a mistake, unless it is the CPU
      // build of a package that usually has GPU code.
      const bool is_cpu_build =
          cpu.package == "torch" || cpu.package == "jax" || cpu.package == "tensorflow-cpu";
      if (image_has_cuda() && !is_cpu_build) continue;
      const bool is_of_index = cpu.because.starts_with("the index");
      report(core::Severity::warning, "cuda-missing",
             "`" + cpu.requirement + "` is without CUDA (" + cpu.because +
                 "): the step has a GPU and will not see any boost from it",
             cpu.instead.empty() ? "install a build with CUDA"
             : is_of_index       ? "remove that index, or take one with CUDA builds such as "
                                   "https://download.pytorch.org/whl/cu121"
                                 : "require `" + cpu.instead + "`");
      return;
    }
    const bool lacks_cuda = facts_.cuda && facts_.cuda->has == ImageCuda::Has::no;
    if (carries || !lacks_cuda || facts_.may_bring_cuda) return;
    if (needs)
      return report(
          core::Severity::warning, "cuda-missing",
          "`" + needs->requirement + "` needs CUDA's libraries, but the image " + facts_.image +
              " has none: the step has a GPU and will not see any boost from it",
          (needs->instead.empty() ? std::string() : "require `" + needs->instead + "`, or ") +
              "set `parent_image` to " + suggested_image(needs->cuda));
    report(core::Severity::warning, "cuda-missing",
           "the image " + facts_.image +
               " has no CUDA, and no requirement installs it: the step has a GPU and will "
               "not see any boost from it",
           "set `parent_image` to one with CUDA, such as "
           "pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime or " +
               suggested_image({}) + ", or require `torch`");
  }

  static std::string suggested_image(const std::optional<Version>& cuda) {
    if (!cuda || cuda->major() >= 12) return "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04";
    return "nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04";
  }

  void check_image() {
    if (!image_has_cuda()) return;
    const ImageCuda& image = *facts_.cuda;
    const std::string name = "the image " + facts_.image;
    if (image.disable_require) {
      if (image.version) check_gpu(name, *image.version, core::Severity::warning);
      return;
    }
    // The image's own requirement takes precedence over the general rule, because its alternatives
    // allow older drivers on data centre GPUs.
    if (!image.require.empty()) {
      const auto verdict = check_require_cuda(image.require, driver_facts());
      if (verdict.kind == RequireVerdict::Kind::unsatisfied)
        report(core::Severity::error, "cuda-driver",
               name + " would not start here: its NVIDIA_REQUIRE_CUDA demands `" +
                   verdict.condition + "`" +
                   (host_.driver ? ", and the driver is " + host_.driver->text() : ""),
               "update the driver, take an image of an older CUDA, or set NVIDIA_DISABLE_REQUIRE=1 "
               "in `runtime_environment` if you know that it works");
      if (verdict.kind == RequireVerdict::Kind::satisfied && image.version)
        check_gpu(name, *image.version, core::Severity::warning);
      if (verdict.kind == RequireVerdict::Kind::satisfied ||
          verdict.kind == RequireVerdict::Kind::unsatisfied)
        return;
    }
    if (image.version)
      check_cuda(name, *image.version, "take an image of CUDA", core::Severity::warning);
  }

  void check_wheel(const Wheel& wheel) {
    const std::string name = "`" + wheel.requirement + "`";
    if (wheel.kind == Wheel::Kind::carries) {
      if (wheel.package == "torch") check_torch(wheel);
      if (wheel.cuda)
        check_cuda(
            name, *wheel.cuda, "take a build for CUDA",
            wheel.package == "torch" ? std::optional<core::Severity>() : core::Severity::warning);
    }
    const bool are_known = wheel.cuda && image_has_cuda() && facts_.cuda->version;
    if (!are_known || wheel.cuda->major() == facts_.cuda->version->major()) return;
    const std::string mismatch = name + " is built for CUDA " + wheel.cuda->text() +
                                 ", and the image " + facts_.image + " has " +
                                 facts_.cuda->version->text();
    if (wheel.kind == Wheel::Kind::needs)
      report(core::Severity::warning, "cuda-mismatch",
             mismatch + ": its libraries will not be found",
             "set `parent_image` to an image of CUDA " + wheel.cuda->first(2).text());
    else if (facts_.cuda->is_development)
      report(core::Severity::warning, "cuda-mismatch",
             mismatch + ": extensions that the image's compiler builds will not fit",
             "set `parent_image` to an image of CUDA " + wheel.cuda->first(2).text() +
                 ", or take a build for CUDA " + facts_.cuda->version->first(2).text());
  }

  DriverFacts driver_facts() const {
    DriverFacts facts{host_.driver, host_.cuda, host_.brand, {}};
    if (!facts.cuda && facts.driver) facts.cuda = cuda_of_driver(*facts.driver);
    if (host_.capabilities.size() == 1) facts.capability = host_.capabilities.front();
    return facts;
  }

  /// Checks a CUDA runtime against the driver and the GPUs. @param gpu_severity unset if the GPUs
  /// are checked elsewhere
  void check_cuda(const std::string& what, const Version& cuda, const std::string& alternative,
                  std::optional<core::Severity> gpu_severity) {
    const tables::Toolkit* toolkit = toolkit_of(cuda);
    if (host_.driver && toolkit) {
      const std::string need = what + " has CUDA " + cuda.text() + ", which needs driver ",
                        driver = host_.driver->text();
      const auto supported = cuda_of_driver(*host_.driver);
      std::string advice = "update the driver to " + std::string(toolkit->own_driver) + " or newer";
      if (supported) advice += ", or " + alternative + " " + supported->text() + " or older";
      if (*host_.driver < version(toolkit->minimum_driver))
        return report(core::Severity::error, "cuda-driver",
                      need + toolkit->minimum_driver + " or newer; this machine's is " + driver,
                      std::move(advice));
      if (*host_.driver < version(toolkit->own_driver) && cuda.parts.size() > 1)
        report(core::Severity::warning, "cuda-driver",
               what + " has CUDA " + cuda.text() + ", which came with driver " +
                   toolkit->own_driver + "; this machine's is " + driver +
                   ": code that is compiled at its start (PTX), and newer functions, will fail",
               std::move(advice));
    } else if (host_.driver && cuda.major() > version(tables::toolkit_table.back().cuda).major()) {
      return;  // Newer than this table.
    }
    if (gpu_severity) check_gpu(what, cuda, *gpu_severity);
  }

  /// Checks whether a toolkit supports the GPUs' compute capabilities.
  void check_gpu(const std::string& what, const Version& cuda, core::Severity severity) {
    for (const auto& capability : host_.capabilities) {
      const tables::Architecture* architecture = architecture_of(capability);
      if (!architecture) continue;
      const std::string gpu =
          "GPUs of compute capability " + capability.text() + " (" + architecture->name + ")";
      if (cuda.parts.size() > 1 &&
          cuda < version(architecture->first_cuda).first(cuda.parts.size()))
        return report(
            severity, "cuda-gpu",
            what + " has CUDA " + cuda.text() + ", which has no code for the machine's " + gpu,
            "take one of CUDA " + std::string(architecture->first_cuda) + " or newer");
      if (architecture->dropped_in && cuda.major() >= architecture->dropped_in)
        return report(
            severity, "cuda-gpu",
            what + " has CUDA " + cuda.text() + ", which no longer supports the machine's " + gpu,
            "take one of CUDA " + std::to_string(architecture->dropped_in - 1) + " or older");
    }
  }

  void check_torch(const Wheel& wheel) {
    for (const auto& capability : host_.capabilities) {
      const tables::TorchFloor* floor = nullptr;
      for (const auto& row : tables::torch_floors)
        if (row.major <= capability.major) floor = &row;
      const bool is_too_old = floor && wheel.version && *wheel.version < version(floor->torch);
      const bool has_old_cuda =
          floor && wheel.cuda && wheel.cuda->parts.size() > 1 && *wheel.cuda < version(floor->cuda);
      if (is_too_old || has_old_cuda) {
        const std::string cuda = version(floor->cuda).text();
        std::string tag = cuda;
        std::erase(tag, '.');
        return report(core::Severity::error, "cuda-gpu",
                      "`" + wheel.requirement + "`" +
                          (wheel.cuda ? " (CUDA " + wheel.cuda->text() + ")" : "") +
                          " has no code for the machine's GPUs of compute capability " +
                          capability.text(),
                      "take torch " + std::string(floor->torch) + " or newer with CUDA " + cuda +
                          " or newer, as from https://download.pytorch.org/whl/cu" + tag);
      }
      if (wheel.cuda) {
        const std::size_t before = findings_.size();
        check_gpu("`" + wheel.requirement + "`", *wheel.cuda, core::Severity::error);
        if (findings_.size() > before) return;
      }
    }
  }

  const CudaFacts& facts_;
  const GpuHost& host_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string runnable_cuda(const GpuHost& host) {
  if (!host.driver) return {};
  auto own = host.cuda ? host.cuda : cuda_of_driver(*host.driver);
  const char* newest = nullptr;
  for (const auto& row : tables::toolkit_table)
    if (version(row.minimum_driver) <= *host.driver) newest = row.cuda;
  if (!newest) return "none that is known here: driver " + host.driver->text() + " is too old";
  std::string text = "images and wheels up to CUDA " + version(newest).text();
  if (own && *own >= version(newest)) text = "images and wheels up to CUDA " + own->text();
  if (own && *own < version(newest))
    text += "; from above " + own->text() +
            ", which the driver was made for, without PTX and newer functions";
  for (const auto& capability : host.capabilities)
    if (const tables::Architecture* architecture = architecture_of(capability))
      text += "; code for " + capability.text() + " (" + architecture->name + ") is in CUDA " +
              architecture->first_cuda +
              (architecture->dropped_in ? " to " + std::to_string(architecture->dropped_in - 1)
                                        : " and newer");
  return text;
}

std::vector<Finding> check_compatibility(const CudaFacts& facts, const GpuHost& host) {
  return CompatibilityCheck(facts, host).run();
}

}  // namespace pipeline::gpu
