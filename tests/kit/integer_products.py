"""Builds an int8 model with exact products on any processor, to test on CPUs without VNNI.

It computes the results of a CPU with VNNI. On other CPUs, ONNX Runtime's own byte products saturate. Here they are
products of whole numbers in floats, which are exact as long as every sum fits into the mantissa. `jitter` multiplies
the values before rounding by at most 1 ± jitter: two processors sum floats in different orders, so their activations
differ in the last digits.
"""

from pathlib import Path
from typing import Any

import numpy as np

FLOAT, DOUBLE = 1, 11
EXACT_IN_FLOAT = 2**24 // (127 * 128)  # that many products of a byte and a signed byte cannot sum to more


def write_exact(int8: Path, target: Path, jitter: float = 0.0) -> Path:
    """Rewrite the model `int8`, written by `quantise`, with exact products. Save it as `target`, and return that."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(int8)
    weights = {weight.name: weight for weight in model.graph.initializer}
    nodes: list[Any] = []

    def add(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def hold(name: str, value: Any) -> str:
        weights[name] = numpy_helper.from_array(value, name)
        return name

    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and jitter:
            x = node.input[0]
            factor = add("RandomUniformLike", [x], f"{x}/factor", low=1 - jitter, high=1 + jitter)
            node.input[0] = add("Mul", [x, factor], f"{x}/jittered")
        if node.op_type != "MatMulIntegerToFloat":
            nodes.append(node)
            continue
        x, weight, _, scales, zero = node.input
        y = node.output[0]
        matrix = numpy_helper.to_array(weights.pop(weight))
        kind, number = (FLOAT, np.float32) if len(matrix) <= EXACT_IN_FLOAT else (DOUBLE, np.float64)
        middle = hold(f"{y}/zero", number(numpy_helper.to_array(weights[zero])))
        centred = add("Sub", [add("Cast", [x], f"{y}/whole", to=kind), middle], f"{y}/from_zero")
        product = add("MatMul", [centred, hold(f"{y}/whole_weight", matrix.astype(number))], f"{y}/product")
        add("Mul", [add("Cast", [product], f"{y}/float", to=FLOAT), scales], y)
    for field, values in (("node", nodes), ("initializer", list(weights.values()))):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(values)
    onnx.save(model, target)
    return target
