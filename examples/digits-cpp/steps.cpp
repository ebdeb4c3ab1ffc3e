#include "steps.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>

using Eigen::Index;
using Eigen::MatrixXf;

namespace {

constexpr Index pixels = 64, classes = 10;

std::vector<Index> shuffled(Index count, std::mt19937& random) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

Dataset some_of(const Dataset& all, std::span<const Index> rows) {
  return {all.images(rows, Eigen::all), all.digits(rows)};
}

MatrixXf with_ones(const MatrixXf& values) {
  MatrixXf result(values.rows(), values.cols() + 1);
  result << values, MatrixXf::Ones(values.rows(), 1);
  return result;
}

MatrixXf hidden_layer(const Model& model, const MatrixXf& images) {
  return (with_ones(images) * model.hidden).cwiseMax(0);
}

/// Returns how likely each image shows each digit.
MatrixXf output_layer(const Model& model, const MatrixXf& hidden) {
  MatrixXf scores = with_ones(hidden) * model.output;
  scores.colwise() -= scores.rowwise().maxCoeff().eval();
  scores = scores.array().exp();
  return scores.array().colwise() / scores.rowwise().sum().array();
}

std::vector<int> predict(const Model& model, const MatrixXf& images) {
  const MatrixXf likely = output_layer(model, hidden_layer(model, images));
  std::vector<int> digits;
  for (const auto& row : likely.rowwise()) row.maxCoeff(&digits.emplace_back());
  return digits;
}

/// Takes a step down the gradient. Returns the loss, summed over the images.
double descend(Model& model, const Dataset& batch, float rate) {
  const MatrixXf hidden = hidden_layer(model, batch.images);
  MatrixXf error = output_layer(model, hidden);
  double loss = 0;
  for (Index i = 0; i < error.rows(); ++i) {
    float& likely = error(i, batch.digits[i]);
    loss -= std::log(std::max(likely, 1e-9f));
    likely -= 1;
  }
  error *= rate / static_cast<float>(error.rows());
  const MatrixXf back =
      (hidden.array() > 0).select(error * model.output.topRows(hidden.cols()).transpose(), 0);
  model.output -= with_ones(hidden).transpose() * error;
  model.hidden -= with_ones(batch.images).transpose() * back;
  return loss;
}

}  // namespace

Dataset load(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot open " + file);
  std::vector<std::string> lines;  // "7 0078dgf1...": the digit, then 64 shades from 0 to g
  for (std::string line; std::getline(stream, line);)
    if (line.size() == pixels + 2 && line[0] != '#') lines.push_back(line);
  Dataset data{MatrixXf(lines.size(), pixels), Eigen::VectorXi(lines.size())};
  for (Index i = 0; i < data.digits.size(); ++i) {
    const auto& line = lines[static_cast<std::size_t>(i)];
    data.digits[i] = line[0] - '0';
    for (Index p = 0; p < pixels; ++p) {
      const char shade = line[static_cast<std::size_t>(p) + 2];
      data.images(i, p) = static_cast<float>(shade <= '9' ? shade - '0' : shade - 'a' + 10) / 16;
    }
  }
  std::cout << data.digits.size() << " digits\n";
  return data;
}

Parts split(const Dataset& all, double share, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto order = shuffled(all.digits.size(), random);
  const std::span<const Index> rows(order);
  const auto some = static_cast<std::size_t>(share * static_cast<double>(rows.size()));
  return {some_of(all, rows.subspan(2 * some)), some_of(all, rows.first(some)),
          some_of(all, rows.subspan(some, some))};
}

Model train(const Dataset& data, int neurons, double rate, int epochs,
            pipeline::StepContext& context) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.1f);
  const auto draw = [&](Index rows, Index columns) -> MatrixXf {
    return MatrixXf::NullaryExpr(rows, columns, [&] { return normal(random); });
  };
  Model model{draw(pixels + 1, neurons), draw(neurons + 1, classes)};
  constexpr std::size_t batch = 32;
  for (int epoch = 1; epoch <= epochs && !context.stopping(); ++epoch) {
    const auto order = shuffled(data.digits.size(), random);
    double loss = 0;
    for (std::size_t i = 0; i < order.size(); i += batch)
      loss += descend(model,
                      some_of(data, std::span(order).subspan(i, std::min(batch, order.size() - i))),
                      static_cast<float>(rate));
    context.log("epoch", {{"epoch", epoch}, {"loss", loss / static_cast<double>(order.size())}});
    context.progress(static_cast<double>(epoch) / epochs);
  }
  return model;
}

double score(const Model& model, const Dataset& data) { return evaluate(model, data).accuracy; }

Model choose(const std::vector<Model>& models, const std::vector<double>& scores) {
  const auto best = std::ranges::max_element(scores);
  std::cout << "the best of " << scores.size() << " gets " << *best << " right\n";
  return models.at(static_cast<std::size_t>(best - scores.begin()));
}

Evaluation evaluate(const Model& model, const Dataset& data) {
  const auto predicted = predict(model, data.images);
  Evaluation result{0, std::vector(classes, std::vector<int>(classes))};
  int right = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const int digit = data.digits[static_cast<Index>(i)];
    ++result.confusion.at(static_cast<std::size_t>(digit))
          .at(static_cast<std::size_t>(predicted[i]));
    right += predicted[i] == digit;
  }
  result.accuracy = right / static_cast<double>(predicted.size());
  std::cout << right << " of " << predicted.size() << " are right\n";
  return result;
}

pipeline::Folder report(const pipeline::File& picture, const Evaluation& evaluation,
                        pipeline::StepContext& context) {
  const auto folder = std::filesystem::path(context.scratch()) / "report";
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(picture.path, folder / "digits.png");
  std::ofstream(folder / "index.html")
      << "<!doctype html><title>Digits</title><h1>" << evaluation.accuracy * 100
      << " % of unseen digits are right</h1><img src=digits.png>\n";
  return {folder};
}
