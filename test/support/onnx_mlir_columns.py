"""Text of onnx-mlir 0.4.2 as its main branch of 2026 writes it: convolutions of one image as Im2Col and a product."""

from __future__ import annotations

import re
from math import prod

_CONV = re.compile(
    r'(?P<indent> *)(?P<out>%\w+) = "onnx\.Conv"\((?P<x>%\w+), (?P<w>%\w+), (?P<b>%\w+)\) <\{(?P<properties>[^}]*)\}> '
    r'\{onnx_node_name = "(?P<name>[^"]*)"\} : \(tensor<1x(?P<image>[\dx]+)xf32>, tensor<(?P<weight>[\dx]+)xf32>, '
    r"tensor<\d+xf32>\) -> tensor<1x(?P<made>[\dx]+)xf32>"
)


def as_columns(text: str) -> tuple[str, int]:
    """Return the text with its convolutions of group 1 and kernels beyond 1x1 taken apart, and how many these were."""
    n_found = 0

    def apart(match: re.Match[str]) -> str:
        nonlocal n_found
        kernel = [int(n) for n in match["weight"].split("x")]
        if "group = 1 " not in match["properties"] or prod(kernel[2:]) == 1:
            return match.group()
        n_found += 1
        return _written(match, n_found, kernel)

    return _CONV.sub(apart, text), n_found


def _written(match: re.Match[str], number: int, kernel: list[int]) -> str:
    window = re.sub(r"(, )?group = 1 : si64", "", match["properties"]).removeprefix(", ")
    image, made, n_out = match["image"], [int(n) for n in match["made"].split("x")], kernel[0]
    rows, columns = prod(kernel[1:]), prod(made[1:])
    i, name = number, match["name"]
    cols, flat, product = f"1x{rows}x{columns}", f"{rows}x{columns}", f"{n_out}x{columns}"
    lines = (
        f'%c{i} = "onnx.Im2Col"({match["x"]}) <{{{window}}}> {{onnx_node_name = "{name}_0"}} : (tensor<1x{image}xf32>)'
        f" -> tensor<{cols}xf32>",
        f"%s{i} = onnx.Constant dense<[{rows}, {columns}]> : tensor<2xi64>",
        f'%f{i} = "onnx.Reshape"(%c{i}, %s{i}) <{{allowzero = 0 : si64}}> {{onnx_node_name = "{name}_1"}} : '
        f"(tensor<{cols}xf32>, tensor<2xi64>) -> tensor<{flat}xf32>",
        f"%t{i} = onnx.Constant dense<[{n_out}, {rows}]> : tensor<2xi64>",
        f'%w{i} = "onnx.Reshape"({match["w"]}, %t{i}) <{{allowzero = 0 : si64}}> : '
        f"(tensor<{match['weight']}xf32>, tensor<2xi64>) -> tensor<{n_out}x{rows}xf32>",
        f"%a{i} = onnx.Constant dense<-1> : tensor<1xi64>",
        f'%b{i} = "onnx.Unsqueeze"({match["b"]}, %a{i}) : (tensor<{n_out}xf32>, tensor<1xi64>) '
        f"-> tensor<{n_out}x1xf32>",
        f'%g{i} = "onnx.Gemm"(%w{i}, %f{i}, %b{i}) <{{alpha = 1.0 : f32, beta = 1.0 : f32, transA = 0 : si64, '
        f'transB = 0 : si64}}> {{onnx_node_name = "{name}"}} : (tensor<{n_out}x{rows}xf32>, tensor<{flat}xf32>, '
        f"tensor<{n_out}x1xf32>) -> tensor<{product}xf32>",
        f"%r{i} = onnx.Constant dense<[1, {', '.join(map(str, made))}]> : tensor<{1 + len(made)}xi64>",
        f'{match["out"]} = "onnx.Reshape"(%g{i}, %r{i}) <{{allowzero = 0 : si64}}> {{onnx_node_name = "{name}_2"}} : '
        f"(tensor<{product}xf32>, tensor<{1 + len(made)}xi64>) -> tensor<1x{match['made']}xf32>",
    )
    return "\n".join(match["indent"] + line for line in lines)
