"""Replaces the matrix products of an exported model with int8 products.

A weight gets one scale for each output. A token's activations are rounded to 255 steps between their minimum and
maximum ("per-token dynamic quantization": Yao et al., ZeroQuant, 2022). So a text's vector does not depend on the other
texts of its batch, as it would with one scale per batch, and no calibration texts are needed.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The zero point; the middle of a token's range is rounded to it.
ZERO = np.uint8(128)
STEPS = 254
CONSTANTS = {
    "int8_one": np.float32(1),
    "int8_half": np.float32(0.5),
    "int8_step": np.float32(1 / STEPS),
    "int8_least": np.float32(1e-9),  # the step for a token whose activations are all equal
    "int8_zero": ZERO,
}
ROW: dict[str, Any] = {"axes": [-1], "keepdims": 1}


class _Graph:
    """The new nodes and weights of a model."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.weights = {weight.name: weight for weight in model.graph.initializer}
        self.nodes: list[Any] = []
        self._rounded: set[str] = set()
        for name, value in CONSTANTS.items():
            self.hold(name, value)

    def hold(self, name: str, value: Any) -> None:
        from onnx import numpy_helper

        self.weights[name] = numpy_helper.from_array(np.asarray(value), name)

    def add(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))

    def matrix_of(self, node: Any) -> NDArray[np.float32] | None:
        """Return the weights of a product with a weight matrix, None for any other node."""
        from onnx import numpy_helper

        weight = self.weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if weight is None or len(weight.dims) != 2:
            return None
        return np.asarray(numpy_helper.to_array(weight), np.float32)

    def round_tokens(self, x: str) -> None:
        """Add x/int8, with its step and middle for each token: x = step · (x/int8 - ZERO) + middle."""
        if x in self._rounded:
            return
        self._rounded.add(x)
        self.add("ReduceMax", [x], f"{x}/high", **ROW)
        self.add("ReduceMin", [x], f"{x}/low", **ROW)
        self.add("Sub", [f"{x}/high", f"{x}/low"], f"{x}/range")
        self.add("Mul", [f"{x}/range", "int8_step"], f"{x}/own_step")
        self.add("Max", [f"{x}/own_step", "int8_least"], f"{x}/step")
        self.add("Add", [f"{x}/high", f"{x}/low"], f"{x}/ends")
        self.add("Mul", [f"{x}/ends", "int8_half"], f"{x}/middle")
        self.add("Sub", [x, f"{x}/middle"], f"{x}/centred")
        self.add("Div", [f"{x}/centred", f"{x}/step"], f"{x}/steps")
        self.add("QuantizeLinear", [f"{x}/steps", "int8_one", "int8_zero"], f"{x}/int8")

    def multiply(self, x: str, matrix: NDArray[np.float32], y: str) -> None:
        """Add y = x · matrix: step · (x/int8 - ZERO) · matrix + middle · the sums of its columns."""
        scales = np.maximum(np.abs(matrix).max(axis=0) / 127, np.finfo(np.float32).tiny).astype(np.float32)
        rounded = np.round(matrix / scales).astype(np.int8)
        self.hold(f"{y}/weight", rounded)
        self.hold(f"{y}/scales", scales)
        self.hold(f"{y}/sums", (rounded * scales).sum(axis=0, keepdims=True, dtype=np.float32))
        inputs = [f"{x}/int8", f"{y}/weight", "int8_one", f"{y}/scales", "int8_zero"]
        self.add("MatMulIntegerToFloat", inputs, f"{y}/steps", domain="com.microsoft")
        self.add("Mul", [f"{y}/steps", f"{x}/step"], f"{y}/centred")
        self.add("Mul", [f"{x}/middle", f"{y}/sums"], f"{y}/shift")
        self.add("Add", [f"{y}/centred", f"{y}/shift"], y)


def quantise(source: Path, target: Path) -> None:
    """Write the exported model `source` with int8 products to `target`."""
    import onnx

    graph = _Graph(onnx.load(source))
    for node in graph.model.graph.node:
        matrix = graph.matrix_of(node)
        if matrix is None:
            graph.nodes.append(node)
        else:
            graph.round_tokens(node.input[0])
            graph.multiply(node.input[0], matrix, node.output[0])
    onnx.save(_rebuilt(graph), target)


def _rebuilt(graph: _Graph) -> Any:
    """Return the model with the new nodes, and only the weights that they use."""
    from onnx import helper

    model, own = graph.model, graph.model.graph
    used = {name for node in graph.nodes for name in node.input} | {output.name for output in own.output}
    for field, values in (("node", graph.nodes), ("initializer", [w for n, w in graph.weights.items() if n in used])):
        own.ClearField(field)
        getattr(own, field).extend(values)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model
