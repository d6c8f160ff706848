// The command line of every program that T10 writes; t10_runtime.cpp includes this.
#pragma once

#include "t10_builder.hpp"
#include "t10_npz.hpp"
#include "t10_slots.hpp"

#include <poplar/CycleCount.hpp>
#include <poplar/Device.hpp>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Target.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

#ifndef T10_FOLDER
#define T10_FOLDER "." // where tables.bin, weights.bin and the codelets lie
#endif

namespace t10 {

struct Options {
  enum Target { any, ipu, model, compile_only };
  Target target = any;
  std::string folder = T10_FOLDER, inputs, outputs, weights, profile;
  bool cycles = false;
};

inline void print_usage(const char *program) {
  std::cout << "usage: " << program << " [--ipu | --model | --compile-only] [--inputs FILE.npz] [--outputs FILE.npz]\n"
            << "       [--weights FILE.npz] [--folder FOLDER] [--profile FOLDER] [--cycles]\n\n"
            << "  --ipu           run on an IPU (default: on one if there is one, else on the model)\n"
            << "  --model         run on poplar::IPUModel\n"
            << "  --compile-only  compile for an IPU and stop; needs no device\n"
            << "  --inputs FILE   .npz archive (numpy.savez) with one array per input\n"
            << "  --outputs FILE  .npz archive to write the outputs to\n"
            << "  --weights FILE  .npz archive whose arrays take the place of weights of the same name\n"
            << "  --folder FOLDER where tables.bin, weights.bin and the codelets lie\n"
            << "  --profile FOLDER  write Poplar's reports there\n"
            << "  --cycles        count the cycles of the run on tile 0 and print them\n";
}

inline Options parse_options(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::map<std::string, std::string *> values = {{"--inputs", &options.inputs},   {"--outputs", &options.outputs},
                                                         {"--weights", &options.weights}, {"--folder", &options.folder},
                                                         {"--profile", &options.profile}};
    if (word == "--ipu")
      options.target = Options::ipu;
    else if (word == "--model")
      options.target = Options::model;
    else if (word == "--compile-only")
      options.target = Options::compile_only;
    else if (word == "--cycles")
      options.cycles = true;
    else if (values.count(word) != 0 && i + 1 < argc)
      *values.at(word) = argv[++i];
    else
      throw std::invalid_argument("unknown option or missing value: " + word + " (see --help)");
  }
  return options;
}

// Holds what the streams of a tensor read and write.
class Transfers {
public:
  void connect(poplar::Engine &engine, const HostTensor &tensor, std::size_t element_bytes, const Array *values) {
    for (std::size_t i = 0; i < tensor.pieces.size(); ++i) {
      const HostPiece &piece = tensor.pieces[i];
      if (!piece.variable.valid())
        continue;
      // Elements of eight bytes are two elements of Poplar's.
      const std::size_t device_bytes = std::min<std::size_t>(element_bytes, 4);
      images.push_back(std::make_unique<std::vector<char>>(device_bytes * piece.variable.numElements()));
      std::vector<char> &image = *images.back();
      if (values != nullptr)
        to_slots(element_bytes, piece.slots, values->bytes, image, piece.fill);
      engine.connectStream(stream_name(tensor, i), image.data(), image.data() + image.size());
      by_name[stream_name(tensor, i)] = &image;
    }
  }

  Array gather(const HostTensor &tensor, std::size_t element_bytes) const {
    Array array{tensor.numpy_type, tensor.shape, std::vector<char>(element_bytes * n_elements(tensor))};
    for (std::size_t i = tensor.pieces.size(); i-- != 0;) { // what the first piece holds is taken
      const HostPiece &piece = tensor.pieces[i];
      if (piece.variable.valid())
        from_slots(element_bytes, piece.slots, *by_name.at(stream_name(tensor, i)), array.bytes);
      else
        fill_elements(element_bytes, piece.slots, piece.fill, array.bytes);
    }
    return array;
  }

  static std::size_t n_elements(const HostTensor &tensor) {
    std::size_t count = 1;
    for (const std::size_t extent : tensor.shape)
      count *= extent;
    return count;
  }

private:
  std::vector<std::unique_ptr<std::vector<char>>> images;
  std::map<std::string, const std::vector<char> *> by_name;
};

// Bytes of an element, from its type in .npy headers: "<f4" has four.
inline std::size_t numpy_bytes(const std::string &type) { return std::stoul(type.substr(2)); }

inline const Array &checked(const Arrays &arrays, const HostTensor &tensor, const char *what) {
  const auto found = arrays.find(tensor.name);
  if (found == arrays.end())
    throw std::runtime_error(std::string(what) + " " + tensor.name + " has no values");
  if (found->second.numpy_type != tensor.numpy_type || found->second.shape != tensor.shape)
    throw std::runtime_error(std::string(what) + " " + tensor.name + " has another type or shape (expected " +
                             tensor.numpy_type + " with " + std::to_string(Transfers::n_elements(tensor)) + " elements)");
  return found->second;
}

inline poplar::Device get_device(const Model &model, Options::Target target) {
  if (target != Options::model) {
    auto manager = poplar::DeviceManager::createDeviceManager();
    for (poplar::Device &device : manager.getDevices(poplar::TargetType::IPU, 1))
      if (device.attach())
        return std::move(device);
    if (target == Options::ipu)
      throw std::runtime_error("no IPU is free");
  }
  poplar::IPUModel simulated("ipu2");
  simulated.tilesPerIPU = model.n_tiles;
  simulated.compileIPUCode = false; // the codelets' C++ bodies are run
  return simulated.createDevice();
}

inline bool exists(const std::string &path) { return static_cast<bool>(std::ifstream(path)); }

// Codelets compiled before (see CMakeLists.txt), else their sources: assembly for an IPU, C++ for the model.
inline void add_codelets(Graph &graph, const std::string &folder) {
  const std::string compiled = folder + "/codelets.gp", source = folder + "/codelets.cpp";
  if (exists(compiled))
    graph.addCodelets(compiled);
  else if (graph.getTarget().getTargetType() == poplar::TargetType::IPU)
    graph.addCodelets(std::vector<std::string>{source, folder + "/codelets.S"}, "-O3");
  else
    graph.addCodelets(std::vector<std::string>{source}, "-O3 -DT10_NO_ASSEMBLY");
}

struct Programs {
  std::vector<Program> all; // 0 sends the weights, 1 is a run
  Tensor cycles;
};

inline Programs make_programs(Builder &builder, const Model &model, bool count_cycles) {
  Sequence body = model.build(builder);
  Programs programs;
  if (count_cycles) {
    programs.cycles = poplar::cycleCount(builder.graph, body, 0, poplar::SyncType::INTERNAL, "cycles");
    builder.graph.createHostRead("cycles", programs.cycles);
  }
  Sequence run;
  poplar::setFloatingPointBehaviour(builder.graph, run, model.floating_point, "floating point");
  run.add(builder.transfers(HostTensor::input));
  run.add(body);
  run.add(builder.transfers(HostTensor::output));
  programs.all = {builder.transfers(HostTensor::weight), run};
  return programs;
}

inline void run(poplar::Engine &engine, const Builder &builder, const Options &options) {
  const Arrays inputs = options.inputs.empty() ? Arrays{} : read_npz(options.inputs);
  const Arrays replaced = options.weights.empty() ? Arrays{} : read_npz(options.weights);
  std::ifstream weights(options.folder + "/weights.bin", std::ios::binary);
  Transfers transfers;
  for (const HostTensor &tensor : builder.host_tensors) {
    const std::size_t element_bytes = numpy_bytes(tensor.numpy_type);
    if (tensor.role == HostTensor::output) {
      transfers.connect(engine, tensor, element_bytes, nullptr);
    } else if (tensor.role == HostTensor::input) {
      transfers.connect(engine, tensor, element_bytes, &checked(inputs, tensor, "input"));
    } else if (tensor.weights_offset == absent || replaced.count(tensor.name) != 0) {
      transfers.connect(engine, tensor, element_bytes, &checked(replaced, tensor, "weight"));
    } else {
      Array values{tensor.numpy_type, tensor.shape, std::vector<char>(element_bytes * Transfers::n_elements(tensor))};
      weights.seekg(static_cast<std::streamoff>(tensor.weights_offset));
      if (!weights.read(values.bytes.data(), static_cast<std::streamsize>(values.bytes.size())))
        throw FileError("weights.bin ends before " + tensor.name);
      transfers.connect(engine, tensor, element_bytes, &values);
    }
  }
  engine.run(0);
  engine.run(1);
  Arrays outputs;
  for (const HostTensor &tensor : builder.host_tensors)
    if (tensor.role == HostTensor::output)
      outputs[tensor.name] = transfers.gather(tensor, numpy_bytes(tensor.numpy_type));
  if (!options.outputs.empty())
    write_npz(options.outputs, outputs);
  for (const auto &[name, array] : outputs)
    std::cout << "output " << name << ": " << array.bytes.size() << " bytes of " << array.numpy_type << "\n";
}

inline void run_model(const Model &model, const Options &options) {
  const Tables tables(options.folder + "/tables.bin");
  const bool has_device = options.target != Options::compile_only;
  std::unique_ptr<poplar::Device> device;
  if (has_device)
    device = std::make_unique<poplar::Device>(get_device(model, options.target));
  Graph graph(has_device ? device->getTarget() : poplar::Target::createIPUTarget(1, "ipu2"));
  add_codelets(graph, options.folder);
  Builder builder(graph, tables, model.n_tiles);
  const Programs programs = make_programs(builder, model, options.cycles);
  poplar::OptionFlags flags;
  if (!options.profile.empty()) {
    flags.set("autoReport.all", "true");
    flags.set("autoReport.directory", options.profile);
  }
  if (!has_device) {
    poplar::compileGraph(graph, programs.all, flags);
    std::cout << "compiled " << model.name << "\n";
    return;
  }
  poplar::Engine engine(graph, programs.all, flags);
  engine.load(*device);
  run(engine, builder, options);
  if (options.cycles) {
    std::uint64_t cycles = 0;
    engine.readTensor("cycles", &cycles, &cycles + 1);
    std::cout << "cycles: " << cycles << "\n";
  }
  if (!options.profile.empty())
    engine.printProfileSummary(std::cout);
}

int main(int argc, char **argv, const Model &model) {
  try {
    if (argc == 2 && (std::string(argv[1]) == "--help" || std::string(argv[1]) == "-h")) {
      print_usage(argv[0]);
      return 0;
    }
    run_model(model, parse_options(argc, argv));
    return 0;
  } catch (const FileError &error) {
    std::cerr << model.name << ": " << error.what() << "\n";
    return 2;
  } catch (const std::exception &error) {
    std::cerr << model.name << ": " << error.what() << "\n";
    return 1;
  }
}

} // namespace t10
