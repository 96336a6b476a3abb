"""Small files whose sizes, places and turns only a run knows, with what ONNX Runtime gives.

    python fx-onnx/tests/cases.py            # writes the files below, and the values of what has none yet
    python fx-onnx/tests/cases.py NAME ..    # writes the values of these again

`cases/NAME.onnx` is the file, `cases/expected.json` has sets of inputs and outputs for each. The test `cases` reads them.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime

HERE = pathlib.Path(__file__).parent / "cases"
EXPECTED = HERE / "expected.json"

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*numbers):
    return np.array(numbers, np.int64)


def n(number):
    return np.array(number, np.int64)


def weights(name, *shape):
    """A constant of a file, as text."""
    own = np.random.default_rng(len(name) + sum(shape))
    numbers = ", ".join(f"{x:.4f}" for x in own.standard_normal(int(np.prod(shape))))
    return f"float[{','.join(map(str, shape))}] {name} = {{{numbers}}}"


def few(name, dtype, *shape):
    """A constant of whole numbers of few bits, as text."""
    own, low = np.random.default_rng(len(name) + sum(shape)), -100 if dtype == "int8" else 0
    numbers = ", ".join(str(x) for x in own.integers(low, low + 200, int(np.prod(shape))))
    return f"{dtype}[{','.join(map(str, shape))}] {name} = {{{numbers}}}"


def recurrent(op, gates, ways, hidden, inputs, attributes, states=""):
    head = f"float[seq, batch, {inputs}] x" + (f", float[{ways}, batch, {hidden}] h0" if states else "")
    constants = [weights("w", ways, gates * hidden, inputs), weights("r", ways, gates * hidden, hidden), weights("b", ways, 2 * gates * hidden)]
    return f"""({head}) => (float[seq, {ways}, batch, {hidden}] y, float[{ways}, batch, {hidden}] h)
        <{', '.join(constants)}> {{
        y, h = {op} <hidden_size: int = {hidden}, {attributes}> (x, w, r, b{states}) }}"""


def floats(*numbers):
    return np.array(numbers, np.float32)


def boxes(images, count):
    """Boxes that overlap, of which some have their corners the other way round."""
    return RNG.uniform(0, 3, (images, count, 2, 2)).astype(np.float32).reshape(images, count, 4)


def scores(*shape):
    """Scores of which some are equal."""
    return np.round(f32(*shape), 1)


def trees(by):
    """Two trees with three ways to compare: 2 in a set, by 4 or less, and above 2."""
    return f"""(float[n, 2] x) => (float[n, 3] y) {{ y = ai.onnx.ml.TreeEnsemble <n_targets: int = 3, aggregate_function: int = {by}, tree_roots: ints = [0, 2],
        nodes_modes: tensor = uint8[3] {{6, 0, 3}}, nodes_featureids: ints = [0, 1, 0], nodes_splits: tensor = float[3] {{0.0, 4.0, 2.0}},
        membership_values: tensor = float[4] {{2.0, 9.0, 1.5, nan}}, nodes_missing_value_tracks_true: ints = [0, 0, 1],
        nodes_truenodeids: ints = [1, 1, 3], nodes_trueleafs: ints = [0, 1, 1], nodes_falsenodeids: ints = [0, 2, 4], nodes_falseleafs: ints = [1, 1, 1],
        leaf_targetids: ints = [0, 1, 2, 1, 0], leaf_weights: tensor = float[5] {{1.0, 2.5, -3.0, 0.5, 7.0}}> (x) }}"""


def ngrams(mode, given, found):
    return f"""(int64[{given}] x) => (float[{found}] y) {{ y = TfIdfVectorizer <mode: string = "{mode}", min_gram_length: int = 1, max_gram_length: int = 2, max_skip_count: int = 2,
        ngram_counts: ints = [0, 4], ngram_indexes: ints = [3, 0, 6, 2, 5, 1, 4], pool_int64s: ints = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
        weights: floats = [0.5, 1.5, 2.0, 1.0, 3.0, 0.25, 4.0]> (x) }}"""


def vectors(classes, kernel, more="", transform="NONE"):
    """A support vector machine of two vectors for each class."""
    own = np.random.default_rng(classes)
    listed = lambda count: "[" + ", ".join(f"{x:.3f}" for x in own.standard_normal(count)) + "]"
    pairs = classes * (classes - 1) // 2
    return f"""(float[n, 3] x) => (int64[n] label, float[n, k] y) {{ label, y = ai.onnx.ml.SVMClassifier <classlabels_ints: ints = [{", ".join(str(4 + 3 * at) for at in range(classes))}],
        kernel_type: string = "{kernel}", kernel_params: floats = [0.5, 0.2, 3.0], post_transform: string = "{transform}", vectors_per_class: ints = [{", ".join(["2"] * classes)}],
        support_vectors: floats = {listed(6 * classes)}, coefficients: floats = {listed(2 * classes * (classes - 1))}, rho: floats = {listed(pairs)}{more}> (x) }}"""


def scored(ids, scores, transform, base=""):
    """A tree of two leaves for classes 5 and 7."""
    leaves = ", ".join(str(1 + at * 2 // len(ids)) for at in range(len(ids)))
    return f"""(float[n, 2] x) => (int64[n] label, float[n, 2] y) {{ label, y = ai.onnx.ml.TreeEnsembleClassifier <classlabels_int64s: ints = [5, 7], {STUMP}, post_transform: string = "{transform}",
        class_treeids: ints = [{", ".join("0" for _ in ids)}], class_nodeids: ints = [{leaves}], class_ids: ints = [{", ".join(map(str, ids))}], class_weights: floats = [{scores}]{base}> (x) }}"""


STUMP = """nodes_treeids: ints = [0, 0, 0], nodes_nodeids: ints = [0, 1, 2], nodes_featureids: ints = [1, 0, 0], nodes_values: floats = [0.1, 0.0, 0.0],
        nodes_modes: strings = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids: ints = [1, 0, 0], nodes_falsenodeids: ints = [2, 0, 0]"""


def classic():
    """Models of ai.onnx.ml and what prepares their inputs."""
    three = lambda: [dict(x=f32(4, 3)), dict(x=f32(1, 3))]
    two = lambda: [dict(x=f32(5, 2)), dict(x=f32(2, 2))]
    shares = ", prob_a: floats = [-1.5, -0.8, -2.0], prob_b: floats = [0.2, 0.1, -0.3]"
    one = "(float[n, 3] x) => (float[n, 1] y) { y = ai.onnx.ml."
    lines = "(float[n, 2] x) => (int64[n] label, float[n, 2] y) { label, y = ai.onnx.ml.LinearClassifier <classlabels_ints: ints = [5, 7]"
    regressor = "coefficients: floats = [1.0, -0.7], kernel_params: floats = [0.5, 0.1, 2.0], rho: floats = [0.1], n_supports: int = 2, support_vectors: floats = [0.1, 0.2, -0.3, 0.4, 0.5, -0.6]"
    return {
        "ml_vectors_shares": (vectors(3, "RBF", shares), three),
        "ml_vectors_pairs": (vectors(4, "POLY"), three),
        "ml_vectors_softmax": (vectors(3, "LINEAR", transform="SOFTMAX"), three),
        "ml_vectors_two": (vectors(2, "SIGMOID"), three),
        "ml_vectors_two_shares": (vectors(2, "RBF", ", prob_a: floats = [-1.5], prob_b: floats = [0.2]"), three),
        "ml_vectors_two_logistic": (vectors(2, "RBF", transform="LOGISTIC"), three),
        "ml_vectors_lines": ("(float[n, 2] x) => (int64[n] label, float[n, 3] y) { label, y = ai.onnx.ml.SVMClassifier <classlabels_ints: ints = [4, 7, 9], kernel_params: floats = [0.5, 0.0, 3.0], coefficients: floats = [1.0, 0.5, 0.3, 0.2, -1.0, 0.1], rho: floats = [-0.1], post_transform: string = \"LOGISTIC\"> (x) }", two),
        "ml_vectors_regress": (f"{one}SVMRegressor <kernel_type: string = \"RBF\", {regressor}> (x) }}", three),
        "ml_vectors_one_class": (f"{one}SVMRegressor <kernel_type: string = \"POLY\", one_class: int = 1, {regressor}> (x) }}", three),
        "ml_trees_shares": (scored([0, 0], "0.3, 0.8", "NONE"), two),
        "ml_trees_margins": (scored([0, 0], "-0.3, 0.8", "LOGISTIC", ", base_values: floats = [0.1]"), two),
        "ml_trees_second": (scored([1, 1], "0.3, 0.8", "NONE"), two),
        "ml_trees_both": (scored([0, 1, 0, 1], "0.3, 0.8, 0.25, 0.7", "SOFTMAX").replace("[5, 7]", "[0, 1]"), two),
        "ml_trees_least": (f"""(float[n, 2] x) => (float[n, 2] y) {{ y = ai.onnx.ml.TreeEnsembleRegressor <n_targets: int = 2, aggregate_function: string = "MIN", {STUMP},
            target_treeids: ints = [0, 0, 0], target_nodeids: ints = [1, 2, 2], target_ids: ints = [0, 0, 1], target_weights: floats = [0.5, -1.5, 2.0], base_values: floats = [0.5, 0.25]> (x) }}""", two),
        "ml_line_of_two": (f"{lines}, coefficients: floats = [1.0, 0.5], intercepts: floats = [0.05], post_transform: string = \"LOGISTIC\"> (x) }}", two),
        "ml_line_of_shares": (f"{lines}, coefficients: floats = [1.0, 0.5], intercepts: floats = [0.05]> (x) }}", two),
        "ml_line_quantile": ("(float[n, 2] x) => (float[n, 2] y) { y = ai.onnx.ml.LinearRegressor <targets: int = 2, coefficients: floats = [0.2, 0.1, 0.3, 0.1], intercepts: floats = [0.2, 0.3], post_transform: string = \"PROBIT\"> (x) }", lambda: [dict(x=np.abs(f32(5, 2)) / 4), dict(x=np.abs(f32(2, 2)) / 4)]),
        "ml_line_softmax_zero": ("(float[n, 2] x) => (float[n, 2] y) { y = ai.onnx.ml.LinearRegressor <targets: int = 2, coefficients: floats = [1.0, 0.0, 0.0, 2.0], intercepts: floats = [0.0, 0.0], post_transform: string = \"SOFTMAX_ZERO\"> (x) }", lambda: [dict(x=floats(0, 1, 2, 0, -1, 3).reshape(3, 2)), dict(x=floats(0.5, 0).reshape(1, 2))]),
        "ml_labels_of_whole": ("(int64[n, m] x) => (float[n, m] y) { y = ai.onnx.ml.LabelEncoder <keys_int64s: ints = [3, 9, 4], values_floats: floats = [0.5, 1.5, -2.0], default_float: float = 7.0> (x) }", lambda: [dict(x=i64(3, 4, 5, 9).reshape(2, 2)), dict(x=i64(9, 1, 3).reshape(1, 3))]),
        "ml_labels_of_floats": ("(float[n] x) => (int64[n] y) { y = ai.onnx.ml.LabelEncoder <keys_floats: floats = [0.5, nan, 2.0], values_int64s: ints = [4, 5, 6]> (x) }", lambda: [dict(x=floats(2, np.nan, 1, 0.5)), dict(x=floats(0.5))]),
        "ml_one_hot": ("(int64[n, m] x) => (float[n, m, 3] y) { y = ai.onnx.ml.OneHotEncoder <cats_int64s: ints = [2, 7, 5]> (x) }", lambda: [dict(x=i64(7, 2, 5, 1).reshape(2, 2)), dict(x=i64(5, 9, 2).reshape(1, 3))]),
        "ml_imputed": ("(float[n, 3] x) => (float[n, 3] y) { y = ai.onnx.ml.Imputer <imputed_value_floats: floats = [1.0, 2.0, 3.0], replaced_value_float: float = nan> (x) }", lambda: [dict(x=floats(np.nan, 1, np.nan, 4, np.nan, 6).reshape(2, 3)), dict(x=floats(1, 2, np.nan).reshape(1, 3))]),
        "ml_imputed_one": ("(int64[n, 3] x) => (int64[n, 3] y) { y = ai.onnx.ml.Imputer <imputed_value_int64s: ints = [8], replaced_value_int64: int = -1> (x) }", lambda: [dict(x=i64(-1, 1, 2, 4, -1, 6).reshape(2, 3)), dict(x=i64(1, 2, -1).reshape(1, 3))]),
    }


def bytes_of(*shape):
    return RNG.integers(0, 255, shape).astype(np.uint8)


# A file's text, and its sets of inputs. `x` of two sizes where a size is open.
CASES = {
    "pad_reflect_run": ("(float[n, m] x, int64[4] p) => (float[a, b] y) { y = Pad <mode: string = \"reflect\"> (x, p) }",
        lambda: [dict(x=f32(5, 4), p=i64(2, 1, 3, 2)), dict(x=f32(3, 6), p=i64(0, 3, 1, -2))]),
    "pad_edge_run": ("(float[n, m] x, int64[4] p) => (float[a, b] y) { y = Pad <mode: string = \"edge\"> (x, p) }",
        lambda: [dict(x=f32(5, 4), p=i64(2, 1, 3, 2)), dict(x=f32(3, 6), p=i64(-1, 4, 1, -2))]),
    "pad_wrap_run": ("(float[n, m] x, int64[4] p) => (float[a, b] y) { y = Pad <mode: string = \"wrap\"> (x, p) }",
        lambda: [dict(x=f32(5, 4), p=i64(2, 1, 3, 2)), dict(x=f32(3, 6), p=i64(0, 4, 1, 2))]),
    "pad_axes_value_run": ("(float[n, m, k] x, int64[2] p, float v) => (float[n, a, k] y) <int64[1] ax = {1}> { y = Pad (x, p, v, ax) }",
        lambda: [dict(x=f32(2, 4, 3), p=i64(2, 1), v=np.float32(2.5)), dict(x=f32(3, 6, 2), p=i64(-1, 2), v=np.float32(-1))]),
    "slice_run": ("(float[n, m] x, int64[1] s, int64[1] e) => (float[n, k] y) <int64[1] ax = {1}> { y = Slice (x, s, e, ax) }",
        lambda: [dict(x=f32(2, 6), s=i64(1), e=i64(4)), dict(x=f32(3, 5), s=i64(-3), e=i64(9)), dict(x=f32(3, 5), s=i64(-9), e=i64(-1))]),
    "slice_steps_open": ("(float[n, m] x) => (float[a, b] y) <int64[2] s = {1, -1}, int64[2] e = {9223372036854775807, -9223372036854775808}, int64[2] ax = {0, 1}, int64[2] st = {2, -2}> { y = Slice (x, s, e, ax, st) }",
        lambda: [dict(x=f32(5, 6)), dict(x=f32(4, 3))]),
    "slice_steps_run": ("(float[n, m] x, int64[2] s, int64[2] e, int64[2] st) => (float[a, b] y) <int64[2] ax = {0, 1}> { y = Slice (x, s, e, ax, st) }",
        lambda: [dict(x=f32(5, 6), s=i64(0, 5), e=i64(5, 0), st=i64(2, -2)), dict(x=f32(4, 7), s=i64(-1, 1), e=i64(-9, 99), st=i64(-1, 3)), dict(x=f32(4, 7), s=i64(3, 1), e=i64(1, 5), st=i64(1, 1))]),
    "resize_nearest_sizes": ("(float[n, 2, h, w] x, float[n, 2, h2, w2] like) => (float[n, 2, h2, w2] y) { s = Shape (like) y = Resize <mode: string = \"nearest\"> (x, , , s) }",
        lambda: [dict(x=f32(1, 2, 3, 4), like=f32(1, 2, 6, 7)), dict(x=f32(2, 2, 5, 6), like=f32(2, 2, 3, 4))]),
    "resize_linear_sizes": ("(float[n, 2, h, w] x, float[n, 2, h2, w2] like) => (float[n, 2, h2, w2] y) { s = Shape (like) y = Resize <mode: string = \"linear\"> (x, , , s) }",
        lambda: [dict(x=f32(1, 2, 3, 4), like=f32(1, 2, 6, 7)), dict(x=f32(2, 2, 5, 6), like=f32(2, 2, 3, 4))]),
    "resize_corners_open": ("(float[1, 1, h, w] x) => (float[1, 1, a, b] y) <float[4] sc = {1.0, 1.0, 1.7, 2.3}> { y = Resize <mode: string = \"linear\", coordinate_transformation_mode: string = \"align_corners\"> (x, , sc) }",
        lambda: [dict(x=f32(1, 1, 4, 5)), dict(x=f32(1, 1, 7, 3))]),
    "resize_cubic_open": ("(float[1, 1, h, w] x) => (float[1, 1, a, b] y) <float[4] sc = {1.0, 1.0, 2.0, 0.6}> { y = Resize <mode: string = \"cubic\", cubic_coeff_a: float = -0.5> (x, , sc) }",
        lambda: [dict(x=f32(1, 1, 4, 5)), dict(x=f32(1, 1, 3, 8))]),
    "range_float_run": ("(float a, float b, float c) => (float[k] y) { y = Range (a, b, c) }",
        lambda: [dict(a=np.float32(0), b=np.float32(2), c=np.float32(0.5)), dict(a=np.float32(3), b=np.float32(-1), c=np.float32(-1.5))]),
    "range_int_run": ("(int64 a, int64 b, int64 c) => (int64[k] y) { y = Range (a, b, c) }",
        lambda: [dict(a=n(2), b=n(9), c=n(3)), dict(a=n(4), b=n(0), c=n(-1)), dict(a=n(4), b=n(0), c=n(1))]),
    "range_of_size": ("(float[n, m] x) => (int64[m] y) <int64 one = {1}, int64 zero = {0}> { s = Shape (x) d = Gather (s, one) y = Range (zero, d, one) }",
        lambda: [dict(x=f32(2, 5)), dict(x=f32(3, 2))]),
    "gathernd_batch_open": ("(float[b, m, 3] x, int64[b, k, 1] i) => (float[b, k, 3] y) { y = GatherND <batch_dims: int = 1> (x, i) }",
        lambda: [dict(x=f32(2, 4, 3), i=i64(0, 3, -1, 1, 2, -4).reshape(2, 3, 1)), dict(x=f32(3, 2, 3), i=i64(0, 1, -2).reshape(3, 1, 1))]),
    "scatternd_open": ("(float[n, m] x, int64[k, 1] i, float[k, m] u) => (float[n, m] y) { y = ScatterND (x, i, u) }",
        lambda: [dict(x=f32(4, 3), i=i64(0, -1).reshape(2, 1), u=f32(2, 3)), dict(x=f32(5, 2), i=i64(1, 3, -5).reshape(3, 1), u=f32(3, 2))]),
    "scatterelements_open": ("(float[n, m] x, int64[k, m] i, float[k, m] u) => (float[n, m] y) { y = ScatterElements <axis: int = 0, reduction: string = \"add\"> (x, i, u) }",
        lambda: [dict(x=f32(4, 3), i=i64(0, -1, 2, 1, -1, 3).reshape(2, 3), u=f32(2, 3)), dict(x=f32(5, 2), i=i64(-5, 4).reshape(1, 2), u=f32(1, 2))]),
    "tile_run": ("(float[n, 3] x, int64[2] t) => (float[a, b] y) { y = Tile (x, t) }",
        lambda: [dict(x=f32(2, 3), t=i64(2, 1)), dict(x=f32(1, 3), t=i64(3, 2))]),
    "expand_run": ("(float[n, 1] x, int64[3] t) => (float[a, n, b] y) { y = Expand (x, t) }",
        lambda: [dict(x=f32(2, 1), t=i64(3, 1, 4)), dict(x=f32(3, 1), t=i64(1, 3, 1))]),
    "reshape_run": ("(float[n, m] x, int64[3] t) => (float[a, b, c] y) { y = Reshape (x, t) }",
        lambda: [dict(x=f32(2, 6), t=i64(0, 3, -1)), dict(x=f32(4, 3), t=i64(2, 2, 3)), dict(x=f32(4, 3), t=i64(0, -1, 1))]),
    "reshape_of_sizes": ("(float[b, s, 6] x) => (float[b, s, 2, 3] y) <int64[2] tail = {2, -1}, int64[1] z = {0}, int64[1] t = {2}> { s0 = Shape (x) h = Slice (s0, z, t) g = Concat <axis: int = 0> (h, tail) y = Reshape (x, g) }",
        lambda: [dict(x=f32(2, 3, 6)), dict(x=f32(1, 5, 6))]),
    "conv_same_open": (f"(float[n, 2, h, w] x) => (float[n, 3, a, b] y) <{weights('k', 3, 2, 3, 2)}> {{ y = Conv <auto_pad: string = \"SAME_UPPER\", strides: ints = [2, 2]> (x, k) }}",
        lambda: [dict(x=f32(1, 2, 5, 6)), dict(x=f32(2, 2, 8, 7))]),
    "maxpool_same_open": ("(float[n, 2, h, w] x) => (float[n, 2, a, b] y) { y = MaxPool <auto_pad: string = \"SAME_LOWER\", kernel_shape: ints = [3, 2], strides: ints = [2, 2]> (x) }",
        lambda: [dict(x=f32(1, 2, 5, 6)), dict(x=f32(2, 2, 8, 7))]),
    "avgpool_ceil_open": ("(float[n, 2, h, w] x) => (float[n, 2, a, b] y) { y = AveragePool <kernel_shape: ints = [3, 3], strides: ints = [2, 2], pads: ints = [0, 0, 1, 1], ceil_mode: int = 1> (x) }",
        lambda: [dict(x=f32(1, 2, 5, 6)), dict(x=f32(2, 2, 8, 7))]),
    "eyelike_open": ("(float[n, m] x) => (float[n, m] y) { y = EyeLike <k: int = 1> (x) }",
        lambda: [dict(x=f32(3, 4)), dict(x=f32(5, 2))]),
    "unique_open": ("(int64[n] x) => (int64[k] y, int64[k] f, int64[n] v, int64[k] c) { y, f, v, c = Unique (x) }",
        lambda: [dict(x=i64(3, 1, 3, 2)), dict(x=i64(5, 5, 4, 5, 9, 4))]),
    "topk_run": ("(float[n, m] x, int64[1] k) => (float[n, a] y, int64[n, a] i) { y, i = TopK (x, k) }",
        lambda: [dict(x=f32(2, 5), k=i64(2)), dict(x=f32(3, 4), k=i64(4))]),
    "onehot_run": ("(int64[n] x, int64 d) => (float[n, d2] y) <float[2] v = {0.5, 2.0}> { y = OneHot (x, d, v) }",
        lambda: [dict(x=i64(0, 2, -1), d=n(3)), dict(x=i64(4, 1, 7, -2), d=n(5))]),
    "split_open": ("(float[n, 3] x) => (float[a, 3] y, float[b, 3] z) { y, z = Split <axis: int = 0, num_outputs: int = 2> (x) }",
        lambda: [dict(x=f32(5, 3)), dict(x=f32(4, 3))]),
    "split_run": ("(float[n, 3] x, int64[2] s) => (float[a, 3] y, float[b, 3] z) { y, z = Split <axis: int = 0> (x, s) }",
        lambda: [dict(x=f32(5, 3), s=i64(2, 3)), dict(x=f32(4, 3), s=i64(4, 0))]),
    "constantofshape_run": ("(int64[2] s) => (float[a, b] y) { y = ConstantOfShape <value: tensor = float[1] {1.5}> (s) }",
        lambda: [dict(s=i64(2, 3)), dict(s=i64(0, 4))]),
    "trilu_run": ("(float[n, m] x, int64 k) => (float[n, m] y) { y = Trilu (x, k) }",
        lambda: [dict(x=f32(3, 4), k=n(1)), dict(x=f32(4, 4), k=n(-1))]),
    "gather_shape_run": ("(float[n, m, k] x, int64 at) => (int64 y) { s = Shape (x) y = Gather (s, at) }",
        lambda: [dict(x=f32(2, 3, 4), at=n(1)), dict(x=f32(5, 3, 1), at=n(-1))]),
    "if_on_length": ("""(float[n, m] x) => (float[a, b] y) <int64 zero = {0}, int64 four = {4}, int64[1] ax = {0}, int64[1] e = {4}, float two = {2.0}> {
        s = Shape (x) d = Gather (s, zero) c = Greater (d, four)
        y = If (c) <then_branch = t () => (float[a, b] p) { p = Slice (x, ax, e, ax) }, else_branch = o () => (float[a, b] q) { q = Mul (x, two) }> }""",
        lambda: [dict(x=f32(5, 3)), dict(x=f32(4, 2))]),
    "if_rank_then_used": ("""(float[n, m, k] x, bool c) => (float[a] y) <int64[1] ax = {1}, int64[1] flat = {-1}> {
        q = If (c) <then_branch = t () => (float[] p) { p = ReduceSum <keepdims: int = 0> (x, ax) }, else_branch = o () => (float[] r) { r = Identity (x) }>
        a = Relu (q) y = Reshape (a, flat) }""",
        lambda: [dict(x=f32(2, 3, 4), c=np.array(True)), dict(x=f32(3, 1, 2), c=np.array(False))]),
    "if_in_if": ("""(float[n, m] x, bool c, bool d) => (float[] y) <int64[1] ax = {0}, float two = {2.0}> {
        y = If (c) <then_branch = t () => (float[] p) {
            p = If (d) <then_branch = tt () => (float[] p1) { p1 = Unsqueeze (x, ax) }, else_branch = te () => (float[] p2) { p2 = Identity (x) }> },
            else_branch = o () => (float[] q) { q = Mul (x, two) }> }""",
        lambda: [dict(x=f32(2, 3), c=np.array(True), d=np.array(True)), dict(x=f32(2, 3), c=np.array(True), d=np.array(False)), dict(x=f32(4, 1), c=np.array(False), d=np.array(True))]),
    "if_rank_asked": ("""(float[n, m, k] x) => (float[] z) <int64 one = {1}, int64 two = {2}, int64[1] ax = {1}, int64[1] last = {2}, int64[1] start = {0}, int64[1] end = {2}> {
        s = Shape (x) d = Gather (s, one) c = Equal (d, one)
        q = If (c) <then_branch = t () => (float[] p) { p = Squeeze (x, ax) }, else_branch = e () => (float[] o) { o = Identity (x) }>
        qs = Shape (q) r = Size (qs) flat = Equal (r, two)
        y = If (flat) <then_branch = t2 () => (float[] p2) { p2 = Unsqueeze (q, ax) }, else_branch = e2 () => (float[] o2) { o2 = Identity (q) }>
        part = Slice (y, start, end, last) turned = Transpose <perm: ints = [1, 0, 2]> (part) z = Concat <axis: int = 1> (turned, turned) }""",
        lambda: [dict(x=f32(2, 3, 4)), dict(x=f32(3, 1, 2))]),
    "if_rank_computed": ("""(float[n, m] x, bool c, float[1] w) => (float[] y, float[] z, bool[] t, int64 r, int64 e) <int64[1] ax = {0}> {
        q = If (c) <then_branch = a () => (float[] p) { p = Unsqueeze (x, ax) }, else_branch = o () => (float[] p2) { p2 = Identity (x) }>
        b = Mul (q, w) d = Sub (b, q) g = Sigmoid (d) y = Pow (g, w) z = Clip (d) t = Greater (q, d)
        s = Shape (q) r = Size (s) e = Size (q) }""",
        lambda: [dict(x=f32(2, 3), c=np.array(True), w=f32(1) ** 2), dict(x=f32(4, 1), c=np.array(False), w=f32(1) ** 2)]),
    "if_rank_parts": ("""(float[n, m] x, bool c) => (float[k] y, float[] z) <int64[1] ax = {0}, int64[1] flat = {-1}, int64 zero = {0}, int64[1] one = {1}> {
        q = If (c) <then_branch = a () => (float[] p) { p = Unsqueeze (x, ax) }, else_branch = o () => (float[] p2) { p2 = Identity (x) }>
        g = Gather (q, zero) s = Slice (q, ax, one, ax) u = Unsqueeze (g, flat) v = Squeeze (s, ax) w = Concat <axis: int = 0> (v, g)
        y = Reshape (u, flat) z = Neg (w) }""",
        lambda: [dict(x=f32(2, 3), c=np.array(True)), dict(x=f32(4, 1), c=np.array(False))]),
    "if_rank_reduced": ("""(float[n, m] x, bool c) => (float[] y, float[] z, float[] w) <int64[1] ax = {0}, int64[1] last = {-1}> {
        q = If (c) <then_branch = a () => (float[] p) { p = Unsqueeze (x, ax) }, else_branch = o () => (float[] p2) { p2 = Identity (x) }>
        y = ReduceMean <keepdims: int = 0> (q, last) z = ReduceSum (q, ax) w = ReduceMax <keepdims: int = 0> (q, ax) }""",
        lambda: [dict(x=f32(2, 3), c=np.array(True)), dict(x=f32(4, 1), c=np.array(False))]),
    "if_rank_known_inside": (f"""(float[n, m] x, bool c) => (float[n, 2, k] y) <{weights("w", 2, 1, 2)}, int64[1] ax = {{0}}, int64[1] mid = {{1}}, int64 one = {{1}}, int64 zero = {{0}}, float two = {{2.0}}> {{
        y = If (c) <then_branch = a () => (float[] p) {{
            u = Unsqueeze (x, mid) v = Unsqueeze (u, ax) s = Shape (v) d = Gather (s, zero) e = Equal (d, one)
            q = If (e) <then_branch = b () => (float[] r) {{ r = Squeeze (v, ax) }}, else_branch = f () => (float[] r2) {{ r2 = Identity (v) }}>
            p = Conv (q, w) }}, else_branch = o () => (float[] p2) {{ t = Mul (x, two) h = Unsqueeze (t, mid) p2 = Conv (h, w) }}> }}""",
        lambda: [dict(x=f32(2, 3), c=np.array(True)), dict(x=f32(3, 4), c=np.array(False))]),
    "gather_table_computed": ("""(float[n, 3] x, int64[n, 2] i) => (float[n, 3, 2] y, float[k] z) <float[5, 2] t = {0.5, 1.5, -2.0, 3.0, 0.25, -1.0, 7.0, 8.0, 9.0, -0.5}, int64 two = {2}, float[4, 1] u = {1.0, 2.0, 3.0, 4.0}> {
        at = Cast <to: int = 6> (x) y = Gather (t, at) less = Sub (i, two) g = Gather (u, less) flat = Constant <value: tensor = int64[1] {-1}> () z = Reshape (g, flat) }""",
        lambda: [dict(x=np.array([[1.7, -1.2, -4.9], [0, 4.2, -5]], np.float32), i=i64(0, 1, 5, 3).reshape(2, 2)), dict(x=np.array([[2.5, -3.1, 0.4]], np.float32), i=i64(2, 0).reshape(1, 2))]),
    "quantize_zeros": ("(float[n, m] x) => (uint8[n, m] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear (x) }",
        lambda: [dict(x=np.zeros((2, 3), np.float32)), dict(x=f32(3, 2))]),
    "lstm_quantized": (f"""(float[seq, batch, 3] x, float[2, batch, 2] h0, float[2, batch, 2] c0) => (float[seq, 2, batch, 2] y, float[2, batch, 2] h, float[2, batch, 2] c)
        <{few("w", "int8", 2, 3, 8)}, {few("r", "int8", 2, 2, 8)}, {weights("b", 2, 16)}, float[2] ws = {{0.02, 0.01}}, int8[2] wz = {{0, 0}}, float[2] rs = {{0.015, 0.02}}, int8[2] rz = {{0, 0}}> {{
        y, h, c = com.microsoft.DynamicQuantizeLSTM <hidden_size: int = 2, direction: string = "bidirectional"> (x, w, r, b, , h0, c0, , ws, wz, rs, rz) }}""",
        lambda: [dict(x=f32(4, 1, 3), h0=f32(2, 1, 2), c0=f32(2, 1, 2)), dict(x=f32(2, 1, 3), h0=f32(2, 1, 2), c0=f32(2, 1, 2))]),
    "lstm_quantized_columns": (f"""(float[seq, batch, 3] x) => (float[seq, 1, batch, 2] y)
        <{few("w", "uint8", 1, 3, 8)}, {few("r", "uint8", 1, 2, 8)}, float[1, 8] ws = {{0.02, 0.01, 0.03, 0.02, 0.02, 0.01, 0.03, 0.02}}, uint8[1, 8] wz = {{120, 120, 120, 120, 120, 120, 120, 120}}, float[1, 8] rs = {{0.02, 0.01, 0.03, 0.02, 0.02, 0.01, 0.03, 0.02}}, uint8[1, 8] rz = {{120, 120, 120, 120, 120, 120, 120, 120}}> {{
        y = com.microsoft.DynamicQuantizeLSTM <hidden_size: int = 2, direction: string = "reverse"> (x, w, r, , , , , , ws, wz, rs, rz) }}""",
        lambda: [dict(x=f32(4, 1, 3)), dict(x=f32(3, 1, 3))]),
    "loop_grows": ("""(float[n, 3] x, int64 m) => (float[k, 3] y) {
        y = Loop (m, , x) <body = b (int64 i, bool c, float[p, 3] s) => (bool c2, float[q, 3] so) { so = Concat <axis: int = 0> (s, x) c2 = Identity (c) }> }""",
        lambda: [dict(x=f32(2, 3), m=n(2)), dict(x=f32(1, 3), m=n(0)), dict(x=f32(1, 3), m=n(4))]),
    "loop_of_size_stacks": ("""(float[n, 3] x) => (float[n, 3] y) <int64 zero = {0}, bool go = {1}> {
        s = Shape (x) m = Gather (s, zero)
        y = Loop (m, go) <body = b (int64 i, bool c) => (bool c2, float[3] row) { g = Gather (x, i) row = Neg (g) c2 = Identity (c) }> }""",
        lambda: [dict(x=f32(2, 3)), dict(x=f32(5, 3))]),
    "loop_until_stacks": ("""(float[2] x, float limit) => (float[2] last, float[k, 2] all) <bool t = {1}> {
        last, all = Loop (, t, x) <body = b (int64 i, bool c, float[2] a) => (bool c2, float[2] ao, float[2] row) { ao = Add (a, x) row = Identity (a) z = ReduceSum <keepdims: int = 0> (ao) c2 = Less (z, limit) }> }""",
        lambda: [dict(x=np.array([1, 2], np.float32), limit=np.float32(10)), dict(x=np.array([0.5, 1], np.float32), limit=np.float32(2))]),
    "sequence_run": ("""(float[n, 3] x, int64 at) => (float[a, 3] y, int64 l) {
        z = Neg (x) s = SequenceConstruct (x, z) y = SequenceAt (s, at) l = SequenceLength (s) }""",
        lambda: [dict(x=f32(2, 3), at=n(0)), dict(x=f32(3, 3), at=n(-1))]),
    "scan_open": ("""(float[3] s0, float[n, 3] x) => (float[3] s, float[n, 3] y) {
        s, y = Scan <num_scan_inputs: int = 1, body = b (float[3] a, float[3] r) => (float[3] ao, float[3] o) { ao = Add (a, r) o = Tanh (ao) }> (s0, x) }""",
        lambda: [dict(s0=f32(3), x=f32(2, 3)), dict(s0=f32(3), x=f32(5, 3))]),
    "lstm_both_open": (recurrent("LSTM", 4, 2, 2, 3, 'direction: string = "bidirectional"', ", , h0"), lambda: [dict(x=f32(4, 2, 3), h0=f32(2, 2, 2)), dict(x=f32(1, 1, 3), h0=f32(2, 1, 2))]),
    "gru_open": (recurrent("GRU", 3, 1, 2, 3, "linear_before_reset: int = 1"), lambda: [dict(x=f32(4, 2, 3)), dict(x=f32(2, 3, 3))]),
    "gru_reset_open": (recurrent("GRU", 3, 1, 2, 3, 'direction: string = "reverse"'), lambda: [dict(x=f32(4, 2, 3)), dict(x=f32(2, 3, 3))]),
    "rnn_open": (recurrent("RNN", 1, 2, 2, 3, 'direction: string = "bidirectional", activations: strings = ["Relu", "Relu"]'), lambda: [dict(x=f32(4, 2, 3)), dict(x=f32(2, 3, 3))]),
    "lstm_lengths": (recurrent("LSTM", 4, 1, 2, 3, 'direction: string = "forward"').replace("float[seq, batch, 3] x)", "float[seq, batch, 3] x, int32[batch] l)").replace("(x, w, r, b)", "(x, w, r, b, l)"),
        lambda: [dict(x=f32(4, 2, 3), l=np.array([4, 2], np.int32)), dict(x=f32(3, 3, 3), l=np.array([1, 3, 2], np.int32))]),
    "qdq_int8": ("(float[n, 3] x) => (float[n, 3] y) <float s = {0.05}, int8 z = {3}> { q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z) }",
        lambda: [dict(x=f32(4, 3)), dict(x=f32(2, 3) * 9)]),
    "qlinear_matmul": ("(uint8[n, 3] x) => (float[n, 2] y) <float s = {0.05}, uint8 z = {120}, float sw = {0.02}, int8 zw = {3}, float sy = {0.1}, uint8 zy = {110}, int8[3, 2] w = {1, -2, 50, 4, -5, 60}> { q = QLinearMatMul (x, s, z, w, sw, zw, sy, zy) y = DequantizeLinear (q, sy, zy) }",
        lambda: [dict(x=RNG.integers(0, 255, (4, 3)).astype(np.uint8)), dict(x=RNG.integers(0, 255, (2, 3)).astype(np.uint8))]),
    "ms_fused_conv": (f"""(float[n, 2, h, w] x, float[n, 3, h, w] z) => (float[n, 3, h, w] y) <{weights("k", 3, 2, 3, 3)}, {weights("b", 3)}> {{
        y = com.microsoft.FusedConv <pads: ints = [1, 1, 1, 1], activation: string = "LeakyRelu", activation_params: floats = [0.2]> (x, k, b, z) }}""",
        lambda: [dict(x=f32(1, 2, 4, 5), z=f32(1, 3, 4, 5)), dict(x=f32(2, 2, 3, 3), z=f32(2, 3, 3, 3))]),
    "ms_fused_gemm": (f"""(float[n, 3] x) => (float[n, 2] y) <{weights("k", 2, 3)}, {weights("b", 2)}> {{
        y = com.microsoft.FusedGemm <transB: int = 1, activation: string = "LeakyRelu", activation_alpha: float = 0.3> (x, k, b) }}""",
        lambda: [dict(x=f32(4, 3)), dict(x=f32(1, 3))]),
    "ms_attention": (f"""(float[b, s, 4] x, int32[b, s] m) => (float[b, s, 4] y) <{weights("w", 4, 12)}, {weights("c", 12)}> {{
        y = com.microsoft.Attention <num_heads: int = 2> (x, w, c, m) }}""",
        lambda: [dict(x=f32(2, 3, 4), m=np.array([[1, 1, 0], [1, 1, 1]], np.int32)), dict(x=f32(1, 5, 4), m=np.array([[1, 1, 1, 0, 0]], np.int32))]),
    "ms_attention_lengths": (f"""(float[b, s, 4] x, int32[b] m) => (float[b, s, 4] y) <{weights("w", 4, 12)}, {weights("c", 12)}> {{
        y = com.microsoft.Attention <num_heads: int = 2, scale: float = 0.3> (x, w, c, m) }}""",
        lambda: [dict(x=f32(2, 3, 4), m=np.array([2, 3], np.int32)), dict(x=f32(1, 5, 4), m=np.array([4], np.int32))]),
    "ms_attention_past": (f"""(float[b, s, 4] x, float[2, b, 2, p, 2] past) => (float[b, s, 4] y, float[2, b, 2, t, 2] present) <{weights("w", 4, 12)}, {weights("c", 12)}> {{
        y, present = com.microsoft.Attention <num_heads: int = 2, unidirectional: int = 1> (x, w, c, , past) }}""",
        lambda: [dict(x=f32(2, 3, 4), past=f32(2, 2, 2, 2, 2)), dict(x=f32(1, 1, 4), past=f32(2, 1, 2, 4, 2))]),
    "ms_multi_head": (f"""(float[b, s, 4] q, float[b, l, 4] k, float[b, l, 4] v, int32[b, l] m, float[1, 2, s, l] a) => (float[b, s, 4] y) <{weights("c", 12)}> {{
        y = com.microsoft.MultiHeadAttention <num_heads: int = 2> (q, k, v, c, m, a) }}""",
        lambda: [dict(q=f32(2, 3, 4), k=f32(2, 4, 4), v=f32(2, 4, 4), m=np.array([[1, 1, 0, 0], [1, 1, 1, 1]], np.int32), a=f32(1, 2, 3, 4)), dict(q=f32(1, 2, 4), k=f32(1, 3, 4), v=f32(1, 3, 4), m=np.array([[1, 0, 1]], np.int32), a=f32(1, 2, 2, 3))]),
    "ms_multi_head_past": ("""(float[b, s, 4] q, float[b, s, 4] k, float[b, s, 4] v, float[b, 2, p, 2] pk, float[b, 2, p, 2] pv) => (float[b, s, 4] y, float[b, 2, t, 2] nk, float[b, 2, t, 2] nv) {
        y, nk, nv = com.microsoft.MultiHeadAttention <num_heads: int = 2, unidirectional: int = 1> (q, k, v, , , , pk, pv) }""",
        lambda: [dict(q=f32(1, 3, 4), k=f32(1, 3, 4), v=f32(1, 3, 4), pk=f32(1, 2, 2, 2), pv=f32(1, 2, 2, 2)), dict(q=f32(2, 1, 4), k=f32(2, 1, 4), v=f32(2, 1, 4), pk=f32(2, 2, 5, 2), pv=f32(2, 2, 5, 2))]),
    "ms_grouped_query": (f"""(float[b, s, 32] q, float[b, s, 16] k, float[b, s, 16] v, float[b, 1, p, 16] pk, float[b, 1, p, 16] pv, int32[b] l, int32 t) => (float[b, s, 32] y, float[b, 1, w, 16] nk, float[b, 1, w, 16] nv) <{weights("cos", 8, 8)}, {weights("sin", 8, 8)}> {{
        y, nk, nv = com.microsoft.GroupQueryAttention <num_heads: int = 2, kv_num_heads: int = 1, do_rotary: int = 1> (q, k, v, pk, pv, l, t, cos, sin) }}""",
        lambda: [dict(q=f32(1, 3, 32), k=f32(1, 3, 16), v=f32(1, 3, 16), pk=f32(1, 1, 2, 16), pv=f32(1, 1, 2, 16), l=np.array([4], np.int32), t=np.array(5, np.int32)),
                 dict(q=f32(2, 1, 32), k=f32(2, 1, 16), v=f32(2, 1, 16), pk=f32(2, 1, 4, 16), pv=f32(2, 1, 4, 16), l=np.array([4, 4], np.int32), t=np.array(5, np.int32))]),
    "ms_grouped_packed": (f"""(float[b, s, 64] q, float[b, 1, p, 16] pk, float[b, 1, p, 16] pv, int32[b] l, int32 t) => (float[b, s, 32] y, float[b, 1, w, 16] nk, float[b, 1, w, 16] nv) <{weights("cos", 8, 8)}, {weights("sin", 8, 8)}> {{
        y, nk, nv = com.microsoft.GroupQueryAttention <num_heads: int = 2, kv_num_heads: int = 1, do_rotary: int = 1, rotary_interleaved: int = 1, local_window_size: int = 2, softcap: float = 3.0> (q, , , pk, pv, l, t, cos, sin) }}""",
        lambda: [dict(q=f32(1, 4, 64), pk=f32(1, 1, 1, 16), pv=f32(1, 1, 1, 16), l=np.array([4], np.int32), t=np.array(5, np.int32)),
                 dict(q=f32(1, 1, 64), pk=f32(1, 1, 4, 16), pv=f32(1, 1, 4, 16), l=np.array([4], np.int32), t=np.array(5, np.int32))]),
    "ms_rotary": (f"""(float[b, s, 8] x, int64[b, s] p) => (float[b, s, 8] y) <{weights("cos", 16, 2)}, {weights("sin", 16, 2)}> {{
        y = com.microsoft.RotaryEmbedding (x, p, cos, sin) }}""",
        lambda: [dict(x=f32(2, 3, 8), p=i64(0, 1, 2, 4, 5, 6).reshape(2, 3)), dict(x=f32(1, 1, 8), p=i64(9).reshape(1, 1))]),
    "ms_rotary_from": (f"""(float[b, 2, s, 6] x, int64[1] p) => (float[b, 2, s, 6] y) <{weights("cos", 16, 2)}, {weights("sin", 16, 2)}> {{
        y = com.microsoft.RotaryEmbedding <interleaved: int = 1, rotary_embedding_dim: int = 4, num_heads: int = 2> (x, p, cos, sin) }}""",
        lambda: [dict(x=f32(2, 2, 3, 6), p=i64(2)), dict(x=f32(1, 2, 1, 6), p=i64(7))]),
    "ms_embed": (f"""(int32[b, s] i, int32[b, s] g, int32[b, s] m) => (float[b, s, 4] y, int32[b] l, float[b, s, 4] e) <{weights("w", 7, 4)}, {weights("p", 9, 4)}, {weights("t", 2, 4)}, {weights("gamma", 4)}, {weights("beta", 4)}> {{
        y, l, e = com.microsoft.EmbedLayerNormalization <epsilon: float = 0.00001> (i, g, w, p, t, gamma, beta, m) }}""",
        lambda: [dict(i=np.array([[1, 6, 3], [0, 2, 2]], np.int32), g=np.array([[0, 1, 1], [0, 0, 1]], np.int32), m=np.array([[1, 1, 0], [1, 1, 1]], np.int32)),
                 dict(i=np.array([[5, 4]], np.int32), g=np.array([[0, 0]], np.int32), m=np.array([[1, 1]], np.int32))]),
    "ms_nbits4": (f"""(float[n, 40] x) => (float[n, 2] y) <{few("w", "uint8", 2, 3, 8)}, {weights("s", 6)}, uint8[4] z = {{120, 9, 135, 3}}, {weights("b", 2)}> {{
        y = com.microsoft.MatMulNBits <K: int = 40, N: int = 2, bits: int = 4, block_size: int = 16> (x, w, s, z, , b) }}""",
        lambda: [dict(x=f32(3, 40)), dict(x=f32(1, 40))]),
    "ms_nbits8": (f"""(float[n, k, 32] x) => (float[n, k, 2] y) <{few("w", "uint8", 2, 1, 32)}, {weights("s", 2)}> {{
        y = com.microsoft.MatMulNBits <K: int = 32, N: int = 2, bits: int = 8, block_size: int = 32> (x, w, s) }}""",
        lambda: [dict(x=f32(1, 3, 32)), dict(x=f32(2, 1, 32))]),
    "ms_qlinear": ("""(uint8[n, 4] x, uint8[n, 4] y) => (uint8[n, 4] a, uint8[n, 4] m, uint8[n, 4] s, uint8[n, 4] r) <float sx = {0.03}, uint8 zx = {120}, float sy = {0.05}, uint8 zy = {130}, float so = {0.07}, uint8 zo = {110}, float ss = {0.00390625}, uint8 zs = {0}> {
        a = com.microsoft.QLinearAdd (x, sx, zx, y, sy, zy, so, zo) m = com.microsoft.QLinearMul (x, sx, zx, y, sy, zy, so, zo)
        s = com.microsoft.QLinearSigmoid (x, sx, zx, ss, zs) r = com.microsoft.QLinearLeakyRelu <alpha: float = 0.1> (x, sx, zx, so, zo) }""",
        lambda: [dict(x=RNG.integers(0, 255, (3, 4)).astype(np.uint8), y=RNG.integers(0, 255, (3, 4)).astype(np.uint8)), dict(x=RNG.integers(0, 255, (2, 4)).astype(np.uint8), y=RNG.integers(0, 255, (2, 4)).astype(np.uint8))]),
    "ms_integer_to_float": (f"""(uint8[n, 3] x) => (float[n, 2] y) <{few("w", "int8", 3, 2)}, float sx = {{0.03}}, float[2] sw = {{0.02, 0.05}}, uint8 zx = {{120}}, int8[2] zw = {{1, -3}}, {weights("b", 2)}> {{
        y = com.microsoft.MatMulIntegerToFloat (x, w, sx, sw, zx, zw, b) }}""",
        lambda: [dict(x=RNG.integers(0, 255, (3, 3)).astype(np.uint8)), dict(x=RNG.integers(0, 255, (1, 3)).astype(np.uint8))]),
    "ms_dynamic_matmul": (f"""(float[n, 3] x) => (float[n, 2] y) <{few("w", "int8", 3, 2)}, float[2] sw = {{0.02, 0.05}}, int8[2] zw = {{1, -3}}, {weights("b", 2)}> {{
        y = com.microsoft.DynamicQuantizeMatMul (x, w, sw, zw, b) }}""",
        lambda: [dict(x=f32(3, 3)), dict(x=f32(1, 3))]),
    "sizes_narrow": ("""(float[n, m] x) => (float[n, m] y) <int64[1] zero = {0}, int64[1] one = {1}, int32[1] narrow = {1}, int64[1] ax = {1}> {
        low = ReduceMin <keepdims: int = 0> (x, ax) s = Shape (x) t = Cast <to: int = 6> (s) b = Slice (t, zero, one, zero)
        u = Concat <axis: int = 0> (b, narrow) v = Cast <to: int = 7> (u) z = Reshape (low, v) y = Sub (x, z) }""",
        lambda: [dict(x=f32(3, 4)), dict(x=f32(2, 5))]),
    "sizes_narrow_given": ("""(float[n, m] x) => (int32[2] y, int64[1] z) <int64[1] zero = {0}, int64[1] one = {1}> {
        s = Shape (x) y = Cast <to: int = 6> (s) t = Cast <to: int = 6> (s) u = Slice (t, zero, one, zero) w = Add (u, u) z = Cast <to: int = 7> (w) }""",
        lambda: [dict(x=f32(3, 4)), dict(x=f32(2, 5))]),
    "cumsum_axis_run": ("(float[n, m] x, int64 a) => (float[n, m] y) { y = CumSum (x, a) }",
        lambda: [dict(x=f32(3, 4), a=n(0)), dict(x=f32(2, 5), a=n(-1))]),
    "reversesequence_run": ("(float[t, b] x, int64[b] l) => (float[t, b] y) { y = ReverseSequence (x, l) }",
        lambda: [dict(x=f32(4, 2), l=i64(4, 2)), dict(x=f32(3, 3), l=i64(1, 3, 2))]),
    "nms_run": ("(float[n, k, 4] b, float[n, c, k] s, int64[1] most, float[1] iou, float[1] least) => (int64[a, 3] y) { y = NonMaxSuppression (b, s, most, iou, least) }",
        lambda: [dict(b=boxes(1, 8), s=scores(1, 2, 8), most=i64(3), iou=floats(0.3), least=floats(-0.5)), dict(b=boxes(2, 5), s=scores(2, 1, 5), most=i64(9), iou=floats(0.1), least=floats(0.0))]),
    "nms_centre_open": ("(float[1, k, 4] b, float[1, 1, k] s) => (int64[a, 3] y) <int64 most = {4}, float iou = {0.2}> { y = NonMaxSuppression <center_point_box: int = 1> (b, s, most, iou) }",
        lambda: [dict(b=np.abs(f32(1, 9, 4)), s=scores(1, 1, 9)), dict(b=np.abs(f32(1, 3, 4)), s=scores(1, 1, 3))]),
    "nms_then_gather": ("(float[1, k, 4] b, float[1, 2, k] s) => (float[a, 4] y) <int64 most = {5}, float iou = {0.2}, float least = {0.0}, int64[1] at = {2}, int64[1] ax = {1}, int64[1] first = {0}> { i = NonMaxSuppression (b, s, most, iou, least) c = Gather <axis: int = 1> (i, at) d = Squeeze (c, ax) f = Squeeze (b, first) y = Gather (f, d) }",
        lambda: [dict(b=boxes(1, 8), s=scores(1, 2, 8)), dict(b=boxes(1, 4), s=scores(1, 2, 4))]),
    "roi_align_max_open": ("(float[n, 2, h, w] x, float[r, 4] b, int64[r] i) => (float[r, 2, 3, 2] y) { y = RoiAlign <mode: string = \"max\", output_height: int = 3, output_width: int = 2, spatial_scale: float = 0.5> (x, b, i) }",
        lambda: [dict(x=f32(1, 2, 6, 8), b=np.array([[0, 0, 8, 6], [2, 1, 10, 9]], np.float32), i=i64(0, 0)), dict(x=f32(2, 2, 5, 5), b=np.array([[1, 1, 9, 30], [-4, 2, 3, 2], [5, 5, 4, 4]], np.float32), i=i64(1, 0, 1))]),
    "roi_align_corners_open": ("(float[n, 2, h, w] x, float[r, 4] b, int64[r] i) => (float[r, 2, 2, 2] y) { y = RoiAlign <coordinate_transformation_mode: string = \"output_half_pixel\", output_height: int = 2, output_width: int = 2, sampling_ratio: int = 3> (x, b, i) }",
        lambda: [dict(x=f32(1, 2, 6, 8), b=np.array([[0, 0, 8, 6], [2, 1, 10, 9]], np.float32), i=i64(0, 0)), dict(x=f32(2, 2, 5, 5), b=np.array([[1, 1, 7, 7], [3, 3, 2, 2]], np.float32), i=i64(1, 0))]),
    "linear_attention_open": ("(float[b, t, 8] q, float[b, t, 4] k, float[b, t, 6] v, float[b, 2, 2, 3] p, float[b, t, 4] d, float[b, t, 2] r) => (float[b, t, 12] y, float[b, 2, 2, 3] s) { y, s = LinearAttention <q_num_heads: int = 4, kv_num_heads: int = 2> (q, k, v, p, d, r) }",
        lambda: [dict(q=f32(b, t, 8), k=f32(b, t, 4), v=f32(b, t, 6), p=f32(b, 2, 2, 3), d=-np.abs(f32(b, t, 4)), r=np.abs(f32(b, t, 2))) for b, t in ((2, 3), (1, 1), (1, 5))]),
    "linear_attention_plain_open": ("(float[b, t, 4] q, float[b, t, 4] k, float[b, t, 6] v) => (float[b, t, 6] y, float[b, 2, 2, 3] s) { y, s = LinearAttention <q_num_heads: int = 2, kv_num_heads: int = 2, update_rule: string = \"linear\", scale: float = 0.5> (q, k, v) }",
        lambda: [dict(q=f32(b, t, 4), k=f32(b, t, 4), v=f32(b, t, 6)) for b, t in ((2, 3), (1, 5))]),
    "linear_attention_step": ("(float[b, 1, 4] q, float[b, 1, 4] k, float[b, 1, 6] v, float[b, 2, 2, 3] p, float[b, 1, 2] d) => (float[b, 1, 6] y, float[b, 2, 2, 3] s) { y, s = LinearAttention <q_num_heads: int = 2, kv_num_heads: int = 2, update_rule: string = \"gated\"> (q, k, v, p, d) }",
        lambda: [dict(q=f32(b, 1, 4), k=f32(b, 1, 4), v=f32(b, 1, 6), p=f32(b, 2, 2, 3), d=-np.abs(f32(b, 1, 2))) for b in (2, 1)]),
    "causal_conv_open": (f"(float[b, 3, t] x, float[b, 3, 2] p) => (float[b, 3, t] y, float[b, 3, 2] s) <{weights('w', 3, 1, 3)}, {weights('c', 3)}> {{ y, s = CausalConvWithState <activation: string = \"silu\"> (x, w, c, p) }}",
        lambda: [dict(x=f32(2, 3, 5), p=f32(2, 3, 2)), dict(x=f32(1, 3, 1), p=f32(1, 3, 2))]),
    "causal_conv_begin_open": (f"(float[b, 3, t] x) => (float[b, 3, t] y, float[b, 3, 2] s) <{weights('w', 3, 1, 3)}> {{ y, s = CausalConvWithState (x, w) }}",
        lambda: [dict(x=f32(2, 3, 5)), dict(x=f32(1, 3, 1))]),
    "bitcast_open": ("(float[n, m] x) => (int32[n, m] y) { y = BitCast <to: int = 6> (x) }", lambda: [dict(x=f32(2, 3)), dict(x=f32(1, 4))]),
    "stft_open": (f"(float[b, n, 1] x) => (float[b, f, 5, 2] y) <int64 step = {{3}}, {weights('w', 8)}> {{ y = STFT (x, step, w) }}",
        lambda: [dict(x=f32(1, 20, 1)), dict(x=f32(2, 9, 1))]),
    "stft_run": ("(float[b, n, 1] x, int64 step, int64 l) => (float[b, f, k, 2] y) { y = STFT <onesided: int = 0> (x, step, , l) }",
        lambda: [dict(x=f32(1, 20, 1), step=n(4), l=n(6)), dict(x=f32(2, 9, 1), step=n(1), l=n(9))]),
    "mel_weights": ("(float[n, 17] x) => (float[n, 6] y) <int64 bands = {6}, int64 length = {32}, int64 rate = {16000}, float low = {100.0}, float high = {7000.0}> { w = MelWeightMatrix (bands, length, rate, low, high) y = MatMul (x, w) }",
        lambda: [dict(x=f32(2, 17)), dict(x=f32(1, 17))]),
    "deform_conv_open": (f"(float[n, 4, h, w] x, float[n, 16, a, b] o, float[n, 8, a, b] m) => (float[n, 6, a, b] y) <{weights('k', 6, 2, 2, 2)}, {weights('c', 6)}> {{ y = DeformConv <group: int = 2, offset_group: int = 2, strides: ints = [2, 1], pads: ints = [1, 0, 1, 1], dilations: ints = [1, 2]> (x, k, o, c, m) }}",
        lambda: [dict(x=f32(n_, 4, h, w), o=f32(n_, 16, (h + 2 - 2) // 2 + 1, w + 1 - 3 + 1), m=f32(n_, 8, (h + 2 - 2) // 2 + 1, w + 1 - 3 + 1)) for n_, h, w in ((1, 5, 6), (2, 4, 3))]),
    "qlinear_conv": ("(uint8[n, 2, h, w] x) => (float[n, 2, a, b] y) <float s = {0.05}, uint8 z = {120}, float[2] sw = {0.02, 0.03}, int8[2] zw = {0, 0}, float sy = {0.1}, uint8 zy = {110}, int8[2, 2, 2, 2] w = {1, -2, 50, 4, -5, 60, 7, -8, 90, 10, -11, 12, -13, 14, 55, 16}, int32[2] c = {40, -70}> { q = QLinearConv <pads: ints = [1, 1, 0, 0]> (x, s, z, w, sw, zw, sy, zy, c) y = DequantizeLinear (q, sy, zy) }",
        lambda: [dict(x=RNG.integers(0, 255, (1, 2, 4, 5)).astype(np.uint8)), dict(x=RNG.integers(0, 255, (2, 2, 3, 3)).astype(np.uint8))]),
    "trees_of_sets": (trees(1), lambda: [dict(x=np.array([[1.5, 3], [2, 4], [9, 1], [np.nan, 7], [3, 0]], np.float32)), dict(x=np.array([[2, 8]], np.float32))]),
    "trees_largest": (trees(3), lambda: [dict(x=np.array([[1.5, 3], [2, 4], [9, 1], [np.nan, 7], [3, 0]], np.float32)), dict(x=np.array([[2, 8]], np.float32))]),
    "ngrams_open": (ngrams("TF", "n, c", "n, 7"), lambda: [dict(x=i64(1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8).reshape(2, 6)), dict(x=i64(5, 6).reshape(1, 2)), dict(x=i64(2).reshape(1, 1))]),
    "ngrams_weighed_open": (ngrams("TFIDF", "c", "7"), lambda: [dict(x=i64(1, 1, 3, 3, 3, 7)), dict(x=i64(5, 6, 7, 8, 6, 7, 8))]),
    "optional_there": ("(float[n] x) => (bool h, float[n] y) { h = OptionalHasElement (x) y = OptionalGetElement (x) }", lambda: [dict(x=f32(3)), dict(x=f32(1))]),
}
CASES |= classic()
CASES |= {
    "ms_qlinear_concat": ("(uint8[n, 2] x, uint8[n, 3] y) => (uint8[n, 5] z) <float sx = {0.03}, uint8 zx = {120}, float sy = {0.05}, uint8 zy = {130}, float so = {0.07}, uint8 zo = {110}> { z = com.microsoft.QLinearConcat <axis: int = 1> (so, zo, x, sx, zx, y, sy, zy) }",
        lambda: [dict(x=bytes_of(3, 2), y=bytes_of(3, 3)), dict(x=bytes_of(1, 2), y=bytes_of(1, 3))]),
    "ms_qlinear_softmax": ("(uint8[n, 5] x) => (uint8[n, 5] y) <float sx = {0.03}, uint8 zx = {120}, float so = {0.00390625}, uint8 zo = {0}> { y = com.microsoft.QLinearSoftmax <axis: int = -1, opset: int = 13> (x, sx, zx, so, zo) }",
        lambda: [dict(x=bytes_of(3, 5)), dict(x=bytes_of(1, 5))]),
    "ms_qlinear_pool": ("(uint8[n, 2, h, w] x) => (uint8[n, 2, a, b] y, uint8[n, 2, 1, 1] z) <float sx = {0.03}, uint8 zx = {120}, float so = {0.0271}, uint8 zo = {110}> { y = com.microsoft.QLinearAveragePool <kernel_shape: ints = [2, 2]> (x, sx, zx, so, zo) z = com.microsoft.QLinearGlobalAveragePool (x, sx, zx, so, zo) }",
        lambda: [dict(x=bytes_of(1, 2, 4, 5)), dict(x=bytes_of(2, 2, 3, 3))]),
    "ms_qgemm": (f"(uint8[n, 3] x) => (uint8[n, 2] y, float[n, 2] z) <{few('w', 'int8', 2, 3)}, float sx = {{0.03}}, float sw = {{0.02}}, uint8 zx = {{120}}, int8 zw = {{1}}, int32[2] c = {{900, -500}}, float so = {{0.05}}, uint8 zo = {{100}}> {{ y = com.microsoft.QGemm <transB: int = 1> (x, sx, zx, w, sw, zw, c, so, zo) z = com.microsoft.QGemm <transB: int = 1> (x, sx, zx, w, sw, zw, c) }}",
        lambda: [dict(x=bytes_of(3, 3)), dict(x=bytes_of(1, 3))]),
    "ms_qdq_uint16": ("(float[n, 3] x) => (float[n, 3] y) <float s = {0.0005}, uint16 z = {3000}> { q = com.microsoft.QuantizeLinear (x, s, z) y = com.microsoft.DequantizeLinear (q, s, z) }",
        lambda: [dict(x=f32(4, 3)), dict(x=f32(2, 3) * 20)]),
    "matrices_of_constants": ("(float[n, 1, 1, 4] x) => (float[n, 7, 7, 4] y) <int64[4] s = {1, 7, 7, 512}, int64[2] t = {512, 4}> { a = ConstantOfShape <value: tensor = float[1] {0.5}> (s) b = ConstantOfShape <value: tensor = float[1] {0.25}> (t) m = MatMul (a, b) y = Mul (m, x) }",
        lambda: [dict(x=f32(2, 1, 1, 4)), dict(x=f32(1, 1, 1, 4))]),
    "ms_turned_batch": ("(float[m, b, k] x, float[b, k, n] y) => (float[b, m, n] z) { z = com.microsoft.FusedMatMul <transBatchA: int = 1, alpha: float = 0.5> (x, y) }",
        lambda: [dict(x=f32(2, 3, 4), y=f32(3, 4, 5)), dict(x=f32(3, 1, 2), y=f32(1, 2, 2))]),
    "simplified_norm": (f"(float[n, m, 4] x) => (float[n, m, 4] y) <{weights('w', 4)}> {{ y = SimplifiedLayerNormalization <axis: int = -1, epsilon: float = 0.001> (x, w) }}",
        lambda: [dict(x=f32(2, 3, 4)), dict(x=f32(1, 2, 4))]),
}
ML = '18, "ai.onnx.ml" : 5'
OPSETS = {
    **dict.fromkeys(classic(), '18, "ai.onnx.ml" : 3'),
    "gathernd_batch_open": 18, "qdq_int8": 19, "bitcast_open": 26, "deform_conv_open": 19, "trees_of_sets": ML, "trees_largest": ML,
    **dict.fromkeys(("linear_attention_open", "linear_attention_plain_open", "linear_attention_step", "causal_conv_open", "causal_conv_begin_open"), 27),
}

# Inputs of files that are given: each makes the sets.
INPUTS = {
    "k08_resize_linear_open_hw": lambda: [dict(x=f32(1, 2, 3, 4)), dict(x=f32(2, 2, 5, 3))],
    "k21_squeeze_input_open": lambda: [dict(x=f32(1, 3)), dict(x=f32(1, 3))],
    "o_DFT": lambda: [dict(x=f32(1, 8, 1)), dict(x=f32(2, 5, 1))],
    "o_RoiAlign": lambda: [
        dict(x=f32(1, 2, 6, 8), b=np.array([[0, 0, 8, 6], [2, 1, 10, 9]], np.float32), i=i64(0, 0)),
        dict(x=f32(2, 1, 5, 5), b=np.array([[1, 1, 7, 7]], np.float32), i=i64(1)),
    ],
    "o_ScatterElements_max": lambda: [dict(x=f32(3, 2), u=f32(1, 2)), dict(x=f32(2, 4), u=f32(1, 2))],
    "o_ScatterND_add": lambda: [dict(x=f32(3, 2), u=f32(3, 2)), dict(x=f32(2, 4), u=f32(3, 4))],
    "k09_loop_stacks": lambda: [dict(x=f32(2), m=n(3)), dict(x=f32(2), m=n(1)), dict(x=f32(2), m=n(0))],
    "b12_seq_loop": lambda: [dict(x=f32(5, 3), m=n(2)), dict(x=f32(2, 3), m=n(3))],
    "b16_if_squeeze_shape": lambda: [dict(x=f32(5, 6, 3)), dict(x=f32(4, 1, 3))],
    "k15_if_squeeze_unknown_rank": lambda: [dict(x=f32(5, 6, 2)), dict(x=f32(4, 1, 3))],
    "k16_gather_scalar_cond_if": lambda: [dict(x=f32(5, 6), sr=n(8000)), dict(x=f32(2, 3), sr=n(16000))],
    "k07_gather_negative_runtime": lambda: [dict(x=f32(4, 3), i=i64(-1, 0)), dict(x=f32(4, 3), i=i64(2, -4))],
    "b07b_gather_runtime_negative": lambda: [dict(x=f32(5, 3), i=i64(-1, 0, 4)), dict(x=f32(2, 3), i=i64(1, -2))],
    "k01_gathernd_open": lambda: [
        dict(x=RNG.integers(0, 2, (5, 6)).astype(bool), i=i64(0, 5, -1, -6, 4, 3).reshape(3, 2)),
        dict(x=RNG.integers(0, 2, (2, 3)).astype(bool), i=i64(1, -1).reshape(1, 2)),
    ],
}


def plain(x):
    x = np.asarray(x)
    values = [repr(v) if isinstance(v, float) and not np.isfinite(v) else v for v in x.ravel().tolist()]
    return {"dtype": str(x.dtype), "shape": list(x.shape), "values": values}


def main():
    asked = set(sys.argv[1:])
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for name, (text, inputs) in CASES.items():
        opset = OPSETS.get(name, 18)
        own = ', "com.microsoft" : 1' if "com.microsoft." in text else ""
        text = f'<ir_version: 9, opset_import: ["" : {opset}{own}]> {name} {text}'
        model = onnx.parser.parse_model(text)
        bytes_of = model.SerializeToString()
        path = HERE / f"{name}.onnx"
        if not path.exists() or path.read_bytes() != bytes_of:
            path.write_bytes(bytes_of)
            expected.pop(name, None)
    makers = {name: inputs for name, (_, inputs) in CASES.items()} | INPUTS
    for path in sorted(HERE.glob("*.onnx")):
        name = path.stem
        if name not in makers or (name in expected and name not in asked):
            continue
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        sets = []
        for inputs in makers[name]():
            outputs = session.run(None, {k: np.asarray(v) for k, v in inputs.items()})
            sets.append({"inputs": {k: plain(v) for k, v in inputs.items()}, "outputs": dict(zip(names, map(plain, outputs)))})
        expected[name] = sets
    lines = [f"{json.dumps(name)}: {json.dumps(expected[name], separators=(',', ':'))}" for name in sorted(expected)]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(expected)} cases, {EXPECTED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
