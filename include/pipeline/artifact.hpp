/// @file
/// Handles of the results of steps, returned by Pipeline::add() and map() and taken by further
/// steps.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <pipeline/codec.hpp>
#include <pipeline/detail/handle.hpp>

namespace pipeline {

/// Names an output of a step. Holds no data and is cheap to copy.
struct AnyArtifact {
  std::string step;
  std::string output;
  std::optional<unsigned> least = {};  ///< See Artifacts::at_least().
};

/// The handle of an output that is a T.
template <class T>
struct Artifact : AnyArtifact {
  using type = T;
};

/// The handle of the outputs of all instances of a mapped step, in order. Where a function takes a
/// T, map() passes one of the outputs to each of its instances; where a function takes a
/// std::vector<T>, add() passes all outputs.
template <class T>
struct Artifacts : AnyArtifact {
  using type = T;
  /// Returns a handle for a step that takes the outputs of the instances that succeeded, if there
  /// are at least `count` of them: the other instances may have failed.
  Artifacts at_least(unsigned count) const {
    Artifacts same = *this;
    same.least = count;
    return same;
  }
};

/// The handle of a step that returns nothing. Converts to the step's name, for StepOptions::after.
struct StepHandle {
  std::string name;
  operator std::string() const { return name; }
};

/// The handle of a command; gives the handles of its outputs.
struct CommandHandle : StepHandle {
  /// The output as a file. Throws std::out_of_range if the command has no output of this name.
  Artifact<File> operator[](std::string_view output) const { return {output_named(output)}; }
  /// The output as a type that Codec<T> reads, such as a `std::vector<double>` of a .npy file.
  /// Throws std::out_of_range as operator[] does.
  template <Storable T>
  Artifact<T> as(std::string_view output) const {
    return {output_named(output)};
  }
  /// The outputs of all instances that the command's `matrix` makes. Throws std::out_of_range as
  /// operator[] does.
  template <Storable T = File>
  Artifacts<T> all(std::string_view output) const {
    return {output_named(output)};
  }
  std::vector<std::string> outputs;

 private:
  AnyArtifact output_named(std::string_view output) const;
};

template <detail::Handle T>
inline constexpr bool detail::names_file<T> = true;

/// Data at an address, as an input of a command: `https://...`, `s3://BUCKET/KEY`, or
/// `s3://BUCKET/FOLDER/`.
struct Url {
  std::string url;
  std::string sha256 = {};   ///< Digest of the content; if empty, the digest in the lock file.
  std::string version = {};  ///< Version in a versioned bucket; if empty, the current one.
};

/// A published artifact, as an input of a command: `production`, or `production@3`.
struct Published {
  std::string name;
  bool optional = false;  ///< The input is an empty file while no artifact has this name.
};

/// An input of a command: the NAME of `${inputs.NAME}`, and an artifact. The artifacts of a mapped
/// step become a folder with an index.json.
struct NamedInput {
  std::string name;
  std::string reference;                  ///< As in YAML: `train.model`, `train[*].model`.
  std::string sha256 = {}, version = {};  ///< As in Url.
  bool optional = false;                  ///< As in Published; `reference` is then its name alone.
  std::optional<unsigned> least = {};     ///< As in Artifacts::at_least().
  NamedInput(std::string input, std::string yaml)
      : name(std::move(input)), reference(std::move(yaml)) {}
  NamedInput(std::string input, const char* yaml) : name(std::move(input)), reference(yaml) {}
  NamedInput(std::string input, Url url)
      : name(std::move(input)),
        reference(std::move(url.url)),
        sha256(std::move(url.sha256)),
        version(std::move(url.version)) {}
  NamedInput(std::string input, Published artifact)
      : name(std::move(input)),
        reference((artifact.optional ? "" : "artifact:") + std::move(artifact.name)),
        optional(artifact.optional) {}
  template <class T>
  NamedInput(std::string input, const Artifact<T>& artifact)
      : NamedInput(std::move(input), artifact, "") {}
  template <class T>
  NamedInput(std::string input, const Artifacts<T>& artifacts)
      : NamedInput(std::move(input), artifacts, "[*]") {}

 private:
  NamedInput(std::string input, const AnyArtifact& artifact, std::string_view selector);
};

}  // namespace pipeline

/// A handle cannot be taken apart: `auto [model, data] = pipeline.add(...)` would otherwise bind
/// the members of a single handle.
template <pipeline::detail::Handle T>
requires std::same_as<T, std::remove_cv_t<T>>
struct std::tuple_size<T> {
  static_assert(!std::is_same_v<T, T>,
                "pipeline: this step has one result, whose handle cannot be taken apart: return a "
                "std::tuple, or specialise pl::is_outputs for the struct, to get several");
  static constexpr std::size_t value = 0;
};
