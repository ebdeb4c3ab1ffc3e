/// @file
/// The steps: plain functions, which know nothing of containers.
#pragma once

#include "eigen_codec.hpp"

/// Images, one in each row with 64 shades from 0 to 1, and the digits that they show. Stored as a
/// folder with images.npy and digits.npy.
struct Dataset {
  Eigen::MatrixXf images;
  Eigen::VectorXi digits;
};

/// Images for training, for choosing a model, and for judging the chosen model.
struct Parts {
  Dataset training, validation, test;
};
template <>
inline constexpr bool pipeline::is_outputs<Parts> = true;  // three artifacts, not one

/// A layer of rectified neurons, and a layer with a neuron for each digit. The last row of each
/// matrix holds the biases.
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
/// Trains a model by stochastic gradient descent.
Model train(const Dataset& data, int neurons, double rate, int epochs,
            pipeline::StepContext& context);
/// Returns the share of images that the model gets right.
double score(const Model& model, const Dataset& data);
Model choose(const std::vector<Model>& models, const std::vector<double>& scores);
Evaluation evaluate(const Model& model, const Dataset& data);
/// Returns a folder with a page that shows the picture.
pipeline::Folder report(const pipeline::File& picture, const Evaluation& evaluation,
                        pipeline::StepContext& context);
