/// @file
/// Data about CUDA versions, drivers, GPUs and Python wheels, each table with its source. No other
/// file has such data.
#pragma once

#include <array>

namespace pipeline::gpu::tables {

/// A CUDA toolkit, the driver that it shipped with, and the minimum driver version. Source: NVIDIA,
/// "CUDA Toolkit Release Notes", tables "CUDA Toolkit and Corresponding Driver Versions" and "...
/// Minimum Required Driver Version for CUDA Minor Version Compatibility" (Linux). Before CUDA 11
/// there was no minor-version compatibility, so both are the same.
struct Toolkit {
  const char *cuda, *own_driver, *minimum_driver;
};
inline constexpr std::array toolkit_table{
    Toolkit{"8.0", "375.26", "375.26"},     Toolkit{"9.0", "384.81", "384.81"},
    Toolkit{"9.1", "390.46", "390.46"},     Toolkit{"9.2", "396.26", "396.26"},
    Toolkit{"10.0", "410.48", "410.48"},    Toolkit{"10.1", "418.39", "418.39"},
    Toolkit{"10.2", "440.33", "440.33"},    Toolkit{"11.0", "450.51", "450.80.02"},
    Toolkit{"11.1", "455.23", "450.80.02"}, Toolkit{"11.2", "460.27", "450.80.02"},
    Toolkit{"11.3", "465.19", "450.80.02"}, Toolkit{"11.4", "470.42", "450.80.02"},
    Toolkit{"11.5", "495.29", "450.80.02"}, Toolkit{"11.6", "510.39", "450.80.02"},
    Toolkit{"11.7", "515.43", "450.80.02"}, Toolkit{"11.8", "520.61", "450.80.02"},
    Toolkit{"12.0", "525.60", "525.60.13"}, Toolkit{"12.1", "530.30", "525.60.13"},
    Toolkit{"12.2", "535.54", "525.60.13"}, Toolkit{"12.3", "545.23", "525.60.13"},
    Toolkit{"12.4", "550.54", "525.60.13"}, Toolkit{"12.5", "555.42", "525.60.13"},
    Toolkit{"12.6", "560.28", "525.60.13"}, Toolkit{"12.8", "570.26", "525.60.13"},
    Toolkit{"12.9", "575.51", "525.60.13"}, Toolkit{"13.0", "580.65", "580.65.06"}};

/// The first toolkit that compiles for a compute capability, and the major version that dropped it
/// (0: none yet). Sources: "CUDA C++ Programming Guide" and the toolkits' release notes (11.0,
/// 11.1, 11.4, 11.8, 12.0, 12.8, 12.9, 13.0).
struct Architecture {
  unsigned major, minor;
  const char* first_cuda;
  unsigned dropped_in;
  const char* name;
};
inline constexpr std::array architecture_table{
    Architecture{3, 5, "5.0", 12, "Kepler"},     Architecture{3, 7, "6.5", 12, "Kepler"},
    Architecture{5, 0, "6.0", 13, "Maxwell"},    Architecture{5, 2, "6.5", 13, "Maxwell"},
    Architecture{6, 0, "8.0", 13, "Pascal"},     Architecture{6, 1, "8.0", 13, "Pascal"},
    Architecture{7, 0, "9.0", 13, "Volta"},      Architecture{7, 5, "10.0", 0, "Turing"},
    Architecture{8, 0, "11.0", 0, "Ampere"},     Architecture{8, 6, "11.1", 0, "Ampere"},
    Architecture{8, 7, "11.4", 0, "Ampere"},     Architecture{8, 9, "11.8", 0, "Ada"},
    Architecture{9, 0, "11.8", 0, "Hopper"},     Architecture{10, 0, "12.8", 0, "Blackwell"},
    Architecture{10, 3, "12.9", 0, "Blackwell"}, Architecture{12, 0, "12.8", 0, "Blackwell"},
    Architecture{12, 1, "12.9", 0, "Blackwell"}};

/// The first torch version, and the CUDA version of its wheel, that support a compute capability; a
/// wheel has machine code for a fixed list of them. Sources: PyTorch's release notes (1.7, 2.0.1,
/// 2.7) and its TORCH_CUDA_ARCH_LIST (.ci/manywheel/build_cuda.sh).
struct TorchFloor {
  unsigned major, minor;
  const char *torch, *cuda;
};
inline constexpr std::array torch_floors{
    TorchFloor{8, 0, "1.7", "11.0"}, TorchFloor{9, 0, "2.0.1", "11.8"},
    TorchFloor{10, 0, "2.7", "12.8"}, TorchFloor{12, 0, "2.7", "12.8"}};

/// CUDA version of a framework's wheel on the Python package index for Linux on x86_64, by the
/// first version that has it. Sources: the wheels' own nvidia-cuda-runtime requirement and
/// PyTorch's release notes; tensorflow.org/install/source ("Tested build configurations").
struct WheelDefault {
  const char *package, *since, *cuda;
};
inline constexpr std::array wheel_defaults{
    WheelDefault{"torch", "1.0", "9.0"},        WheelDefault{"torch", "1.2", "10.0"},
    WheelDefault{"torch", "1.3", "10.1"},       WheelDefault{"torch", "1.5", "10.2"},
    WheelDefault{"torch", "1.13", "11.7"},      WheelDefault{"torch", "2.1", "12.1"},
    WheelDefault{"torch", "2.5", "12.4"},       WheelDefault{"torch", "2.7", "12.6"},
    WheelDefault{"torch", "2.8", "12.8"},       WheelDefault{"torch", "2.10", ""},  // Unknown.
    WheelDefault{"tensorflow", "1.13", "10.0"}, WheelDefault{"tensorflow", "2.1", "10.1"},
    WheelDefault{"tensorflow", "2.4", "11.0"},  WheelDefault{"tensorflow", "2.5", "11.2"},
    WheelDefault{"tensorflow", "2.12", "11.8"}, WheelDefault{"tensorflow", "2.15", "12.2"},
    WheelDefault{"tensorflow", "2.16", "12.3"}, WheelDefault{"tensorflow", "2.18", "12.5"},
    WheelDefault{"tensorflow", "2.21", ""}};

/// Packages that depend on torch, so that each of them alone installs a CUDA runtime too.
inline constexpr std::array need_torch{"torchvision",
                                       "torchaudio",
                                       "torchtext",
                                       "pytorch-lightning",
                                       "lightning",
                                       "ultralytics",
                                       "accelerate",
                                       "timm",
                                       "fastai",
                                       "sentence-transformers",
                                       "vllm",
                                       "bitsandbytes",
                                       "deepspeed",
                                       "torchmetrics",
                                       "openai-whisper",
                                       "peft",
                                       "kornia",
                                       "trl",
                                       "facenet-pytorch",
                                       "segmentation-models-pytorch"};

/// Packages whose wheels use a GPU but need the image's CUDA libraries, and a replacement that
/// installs them.
struct NeedsSystemCuda {
  const char *package, *instead;
};
inline constexpr std::array need_system_cuda{
    NeedsSystemCuda{"tensorflow", "tensorflow[and-cuda]"},
    NeedsSystemCuda{"onnxruntime-gpu", "onnxruntime-gpu[cuda,cudnn]"},
    NeedsSystemCuda{"tensorflow-gpu", "tensorflow[and-cuda]"},
    NeedsSystemCuda{"pycuda", ""},
    NeedsSystemCuda{"cupy-cuda11x", ""},
    NeedsSystemCuda{"cupy-cuda12x", "cupy-cuda12x[ctk]"},
    NeedsSystemCuda{"cupy-cuda13x", "cupy-cuda13x[ctk]"}};

/// Packages without any GPU code, and a replacement that has it.
struct CpuOnly {
  const char *package, *instead;
};
inline constexpr std::array cpu_only{
    CpuOnly{"tensorflow-cpu", "tensorflow[and-cuda]"}, CpuOnly{"faiss-cpu", "faiss-gpu-cu12"},
    CpuOnly{"jax", "jax[cuda12]"}, CpuOnly{"onnxruntime", "onnxruntime-gpu[cuda,cudnn]"}};

/// Packages that contain GPU code and its runtime.
inline constexpr std::array carry_cuda{"xgboost", "catboost", "llama-cpp-python"};

/// Official images that have no CUDA, whatever their tag.
inline constexpr std::array plain_images{"python",
                                         "debian",
                                         "ubuntu",
                                         "alpine",
                                         "fedora",
                                         "almalinux",
                                         "rockylinux",
                                         "amazonlinux",
                                         "busybox",
                                         "node",
                                         "golang",
                                         "rust",
                                         "openjdk",
                                         "eclipse-temurin",
                                         "r-base",
                                         "julia",
                                         "mambaorg/micromamba",
                                         "continuumio/miniconda3",
                                         "condaforge/miniforge3",
                                         "ghcr.io/astral-sh/uv"};

}  // namespace pipeline::gpu::tables
