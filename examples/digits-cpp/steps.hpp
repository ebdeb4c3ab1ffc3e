/// @file
/// The steps: plain functions, which know nothing of containers.
#pragma once

#include "eigen_codec.hpp"

/// One image a row, 64 shades from 0 to 1; and the digit that each shows. Stored as a folder with
/// images.npy and digits.npy.
struct Dataset {
  Eigen::MatrixXf images;
  Eigen::VectorXi digits;
};

/// To learn from, to choose a model by, and to judge the chosen one by.
struct Parts {
  Dataset training, validation, test;
};
template <>
inline constexpr bool pipeline::is_outputs<Parts> = true;  // three artifacts, not one

/// A layer of rectified neurons, and on top of it one for each digit. The last row of each matrix
/// is what does not depend on the input.
struct Model {
  Eigen::MatrixXf hidden, output;
};

/// Stored as JSON.
struct Evaluation {
  double accuracy;
  std::vector<std::vector<int>>
      confusion;  ///< Rows: the digit that it is; columns: what the model takes it for.
};

Dataset load(const std::string& file);
/// @param share of all images that are in each of `validation` and `test`
Parts split(const Dataset& all, double share, int seed);
/// Stochastic gradient descent.
Model train(const Dataset& data, int neurons, double rate, int epochs,
            pipeline::StepContext& context);
/// The share of images that the model gets right.
double score(const Model& model, const Dataset& data);
Model choose(const std::vector<Model>& models, const std::vector<double>& scores);
Evaluation evaluate(const Model& model, const Dataset& data);
/// A page with the picture on it.
pipeline::Folder report(const pipeline::File& picture, const Evaluation& evaluation,
                        pipeline::StepContext& context);
