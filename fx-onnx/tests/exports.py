"""ONNX files as exporters make them, beside ONNX Runtime: as loaded, compiled, saved and loaded, and written back.

    python fx-onnx/tests/exports.py DIR [--only PART] [--again] [--list]

exports models of torchvision and transformers (by both exporters of PyTorch), quantizes, optimises and halves some of them, and
converts estimators of scikit-learn, LightGBM and XGBoost. Files stay in DIR/files and what came of each in DIR/results.jsonl: a
second run goes on where the first one ended, `--again` judges anew. Needs torch, torchvision, transformers, onnxscript,
onnxruntime, onnxconverter-common, skl2onnx, onnxmltools, lightgbm and xgboost.
"""

import contextlib
import io
import logging
import pathlib
import signal
import sys
import traceback
import warnings

import numpy as np
import onnx
import real_files

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
# What each exporter makes, by the file's name: a function of the path that it writes and of the folder of files.
EXPORTS = {}


def model(name):
    import torch
    from export_models import MODELS

    torch.manual_seed(0)
    torch.set_num_threads(2)
    module, inputs, open_dims = MODELS[name]()
    return module.eval(), inputs, open_dims


def by_graph(name, path):
    """`torch.onnx.export` by torch.export."""
    import torch
    from export_models import Kept

    module, inputs, open_dims = model(name)
    shapes = tuple({dim: torch.export.Dim.DYNAMIC for dim in open_dims.get(given, {})} for given in inputs)
    # Its `forward` takes any number of inputs, which are one argument.
    shapes = (shapes,) if isinstance(module, Kept) else shapes
    torch.onnx.export(module, tuple(inputs.values()), str(path), input_names=list(inputs), dynamic_shapes=shapes,
                      dynamo=True, external_data=False, verbose=False)


def by_script(name, path):
    """`torch.onnx.export` by TorchScript."""
    import torch

    module, inputs, open_dims = model(name)
    torch.onnx.export(module, tuple(inputs.values()), str(path), input_names=list(inputs), dynamic_axes=open_dims,
                      opset_version=17, dynamo=False)


class Calibration:
    """Three sets of inputs that ONNX Runtime takes."""

    def __init__(self, path):
        of = real_files.session(path)
        sets = real_files.bindings(path, of, 20.0)
        self.sets = iter([data for _, data in sets] * 2)

    def get_next(self):
        return next(self.sets, None)


def quantized(kind, source, path):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    plain = path.with_suffix(".plain")
    if kind.startswith("dynamic"):
        options = dict(per_channel=True, reduce_range=True) if kind.endswith("channel") else {}
        quantize_dynamic(str(source), str(path), weight_type=QuantType.QInt8 if "8s" in kind else QuantType.QUInt8, **options)
        return
    quant_pre_process(str(source), str(plain), skip_symbolic_shape=True)

    class Reader(Calibration, CalibrationDataReader):
        pass

    options = {
        "static": {},
        "channel": dict(per_channel=True),
        "operators": dict(quant_format=QuantFormat.QOperator),
        "uint16": dict(activation_type=QuantType.QUInt16, extra_options={"UseQDQContribOps": True}),
    }[kind]
    quantize_static(str(plain), str(path), Reader(str(plain)), **options)
    plain.unlink()


def optimised(level, source, path):
    import onnxruntime

    if level == "transformers":
        from onnxruntime.transformers import optimizer

        optimizer.optimize_model(str(source), "bert", num_heads=4, hidden_size=32, opt_level=0).save_model_to_file(str(path))
        return
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = {
        "basic": levels.ORT_ENABLE_BASIC, "extended": levels.ORT_ENABLE_EXTENDED, "all": levels.ORT_ENABLE_ALL}[level]
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def halved(kind, source, path):
    from onnxconverter_common import float16

    of = onnx.load(source)
    onnx.save(float16.convert_float_to_float16(of, keep_io_types=kind == "f16_inside"), path)


def derived(make, kind, name):
    """A file made of the one that `torch.onnx.export` wrote."""

    def write(path, folder):
        source = file_of(f"graph_{name}", folder)
        if source is None:
            raise ValueError(f"graph_{name} was not exported")
        make(kind, source, path)

    EXPORTS[f"{kind}_{name}"] = write


def estimator(name, made, converted="skl2onnx", positive=False):
    """A fitted estimator of scikit-learn's kind."""

    def write(path, folder):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((200, 6)).astype(np.float32)
        x = np.abs(x) if positive else x
        y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(np.int64) + (x[:, 3] > 0.7)
        of = made()
        of.fit(x, x[:, 0] * 2 + x[:, 4] if getattr(of, "_estimator_type", "") == "regressor" or "regress" in name else y)
        if converted == "skl2onnx":
            from skl2onnx import to_onnx

            is_classifier = hasattr(of, "predict_proba") or hasattr(of, "decision_function")
            options = {id(of): {"zipmap": False}} if is_classifier and hasattr(of, "classes_") else None
            proto = to_onnx(of, x[:1], options=options, target_opset={"": 17, "ai.onnx.ml": 3})
        else:
            import onnxmltools
            from onnxmltools.convert.common.data_types import FloatTensorType

            convert = {"lightgbm": onnxmltools.convert_lightgbm, "xgboost": onnxmltools.convert_xgboost}[converted]
            proto = convert(of, initial_types=[("x", FloatTensorType([None, 6]))], target_opset=15,
                            **({"zipmap": False} if converted == "lightgbm" else {}))
        path.write_bytes(proto.SerializeToString())

    EXPORTS[f"ml_{name}"] = write


def estimators():
    from importlib import import_module

    def of(module, name, **options):
        return lambda: getattr(import_module(f"sklearn.{module}"), name)(**options)

    for name, module, options in [
        ("LinearRegression", "linear_model", {}), ("Ridge", "linear_model", {}), ("Lasso", "linear_model", {}),
        ("ElasticNet", "linear_model", {}), ("BayesianRidge", "linear_model", {}), ("HuberRegressor", "linear_model", {}),
        ("SVR", "svm", {}), ("NuSVR", "svm", {}), ("LinearSVR", "svm", {}), ("KNeighborsRegressor", "neighbors", {}),
        ("DecisionTreeRegressor", "tree", {}), ("RandomForestRegressor", "ensemble", dict(n_estimators=10)),
        ("ExtraTreesRegressor", "ensemble", dict(n_estimators=10)), ("GradientBoostingRegressor", "ensemble", {}),
        ("HistGradientBoostingRegressor", "ensemble", {}), ("MLPRegressor", "neural_network", dict(max_iter=20)),
        ("GaussianProcessRegressor", "gaussian_process", {}), ("AdaBoostRegressor", "ensemble", {}),
    ]:
        estimator(f"regress_{name}", of(module, name, **options))
    for name, module, options in [
        ("LogisticRegression", "linear_model", {}), ("SGDClassifier", "linear_model", {}),
        ("RidgeClassifier", "linear_model", {}), ("Perceptron", "linear_model", {}), ("LinearSVC", "svm", {}),
        ("SVC", "svm", dict(probability=True)), ("NuSVC", "svm", dict(probability=True, nu=0.1)),
        ("KNeighborsClassifier", "neighbors", {}), ("DecisionTreeClassifier", "tree", {}),
        ("RandomForestClassifier", "ensemble", dict(n_estimators=10)), ("ExtraTreesClassifier", "ensemble", dict(n_estimators=10)),
        ("GradientBoostingClassifier", "ensemble", {}), ("HistGradientBoostingClassifier", "ensemble", {}),
        ("AdaBoostClassifier", "ensemble", {}), ("MLPClassifier", "neural_network", dict(max_iter=20)),
        ("GaussianNB", "naive_bayes", {}), ("BernoulliNB", "naive_bayes", {}),
        ("LinearDiscriminantAnalysis", "discriminant_analysis", {}), ("QuadraticDiscriminantAnalysis", "discriminant_analysis", {}),
    ]:
        estimator(f"classify_{name}", of(module, name, **options))
    for name, module, options in [
        ("StandardScaler", "preprocessing", {}), ("MinMaxScaler", "preprocessing", {}), ("RobustScaler", "preprocessing", {}),
        ("Normalizer", "preprocessing", {}), ("Binarizer", "preprocessing", {}), ("PolynomialFeatures", "preprocessing", {}),
        ("KBinsDiscretizer", "preprocessing", {}), ("PCA", "decomposition", dict(n_components=3)),
        ("TruncatedSVD", "decomposition", dict(n_components=3)), ("SimpleImputer", "impute", {}),
        ("KMeans", "cluster", dict(n_clusters=4, n_init=2)), ("SelectKBest", "feature_selection", dict(k=3)),
        ("GaussianMixture", "mixture", dict(n_components=3)), ("IsolationForest", "ensemble", dict(n_estimators=10)),
    ]:
        estimator(name, of(module, name, **options))

    def piped(*steps):
        return lambda: import_module("sklearn.pipeline").make_pipeline(*(step() for step in steps))

    scaled = of("preprocessing", "StandardScaler")
    estimator("classify_scaled", piped(scaled, of("linear_model", "LogisticRegression")))
    estimator("classify_reduced", piped(scaled, of("decomposition", "PCA", n_components=3), of("svm", "SVC")))
    for library, module, kinds in [
        ("lightgbm", "lightgbm", ["LGBMClassifier", "LGBMRegressor"]),
        ("xgboost", "xgboost", ["XGBClassifier", "XGBRegressor"]),
    ]:
        for kind in kinds:
            name = ("regress_" if "Regressor" in kind else "classify_") + kind
            quiet = dict(verbose=-1) if library == "lightgbm" else {}
            made = lambda module=module, kind=kind, quiet=quiet: getattr(import_module(module), kind)(n_estimators=10, **quiet)
            estimator(name, made, library)


def of_text(name, made, kinds=("text", "text"), numbers=0, zipmap=True):
    """A fitted pipeline over columns of text, with labels that are texts; `made` of the names of its columns."""

    def write(path, folder):
        import pandas
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import FloatTensorType, StringTensorType

        rng = np.random.default_rng(0)
        words = {"text": ["red", "green", "blue", "été"], "document": None}
        vocabulary = np.array("the sun shines rain and wind today again no more bright sky heavy all day".split())
        columns = {}
        for at, kind in enumerate(kinds):
            one = lambda kind=kind: " ".join(rng.choice(vocabulary, 6)) if kind == "document" else str(rng.choice(words[kind]))
            columns[f"t{at}"] = [one() for _ in range(120)]
        for at in range(numbers):
            columns[f"n{at}"] = rng.standard_normal(120).astype(np.float32)
        table = pandas.DataFrame(columns)
        labels = np.array(["bad", "good", "so so"])
        of = made(list(columns))
        is_one = list(kinds) == ["document"]
        of.fit(table["t0"] if is_one else table, labels[rng.integers(0, 3, 120)])
        types = [(name, (StringTensorType if name[0] == "t" else FloatTensorType)([None, 1])) for name in columns]
        options = {} if zipmap else {"options": {id(of): {"zipmap": False}}}
        proto = to_onnx(of, initial_types=types, target_opset={"": 17, "ai.onnx.ml": 3}, **options)
        for node in proto.graph.node:
            # A locale that every machine has.
            if node.op_type == "StringNormalizer":
                node.attribute.append(onnx.helper.make_attribute("locale", "C.UTF-8"))
        path.write_bytes(proto.SerializeToString())

    EXPORTS[f"text_{name}"] = write


def texts():
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
    from sklearn.svm import SVC

    def beside(encoder):
        def of(columns):
            kinds = [("texts", encoder, [name for name in columns if name[0] == "t"]),
                     ("numbers", StandardScaler(), [name for name in columns if name[0] == "n"])]
            return ColumnTransformer([kind for kind in kinds if kind[2]])

        return of

    hot = beside(OneHotEncoder(handle_unknown="ignore"))
    ordered = beside(OrdinalEncoder())
    of_text("hot_logistic", lambda columns: make_pipeline(hot(columns), LogisticRegression()), numbers=2)
    of_text("ordered_forest", lambda columns: make_pipeline(ordered(columns), RandomForestClassifier(10)), numbers=1, zipmap=False)
    of_text("hot_svc", lambda columns: make_pipeline(hot(columns), SVC(probability=True)), numbers=1)
    of_text("hot_neighbors", lambda columns: make_pipeline(hot(columns), KNeighborsClassifier()), numbers=1)
    of_text("tfidf_logistic", lambda _: make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression()), ["document"])
    of_text("count_bayes", lambda _: make_pipeline(CountVectorizer(), MultinomialNB()), ["document"], zipmap=False)


def exports():
    from export_models import MODELS

    for name in MODELS:
        EXPORTS[f"graph_{name}"] = lambda path, _, name=name: by_graph(name, path)
        if not name.startswith("hf_") or name[3:] in SCRIPTED:
            EXPORTS[f"script_{name}"] = lambda path, _, name=name: by_script(name, path)
    for name in QUANTIZED:
        for kind in ["static", "channel", "operators", "uint16", "dynamic8u", "dynamic8s_channel"]:
            derived(quantized, kind, name)
    for name in OPTIMISED:
        for level in ["basic", "extended", "all"] + ["transformers"] * name.startswith("hf_"):
            derived(optimised, level, name)
        for kind in ["f16", "f16_inside"]:
            derived(halved, kind, name)
    estimators()
    texts()


SCRIPTED = ["bert", "distilbert", "gpt2", "llama", "opt", "t5", "vit", "swin", "wav2vec2", "deberta_v2"]
QUANTIZED = ["tv_resnet18", "tv_mobilenet_v2", "tv_mobilenet_v3_small", "tv_shufflenet_v2_x1_0", "tv_efficientnet_b0",
             "hf_bert", "hf_gpt2", "hf_vit"]
OPTIMISED = QUANTIZED + ["tv_densenet121", "hf_llama"]


def file_of(name, folder):
    """The exported file, made now if it is not there; `None` where the exporter fails, with its reason beside."""
    path, failed = folder / f"{name}.onnx", folder / f"{name}.failed"
    if path.exists() or failed.exists():
        return path if path.exists() else None
    made = folder / f"{name}.part"

    def over(*_):
        raise TimeoutError("over 240 s of processor time")

    signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, 240)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            EXPORTS[name](made, folder)
        made.rename(path)
        return path
    except Exception:
        failed.write_text(traceback.format_exc()[-2000:])
        made.unlink(missing_ok=True)
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    folder = pathlib.Path(arguments[0])
    (folder / "files").mkdir(parents=True, exist_ok=True)
    exports()
    names = [name for name in EXPORTS if only in name]
    if "--list" in sys.argv:
        print(*names, sep="\n")
        return
    files, failed = [], []
    for name in names:
        path = file_of(name, folder / "files")
        files += [(name, path)] if path else []
        failed += [] if path else [name]
    for name in failed:
        print(f"not exported {name}: {(folder / 'files' / f'{name}.failed').read_text().strip().splitlines()[-1][:160]}")
    real_files.compare(files, folder / "work", folder / "results.jsonl", "--again" in sys.argv)


if __name__ == "__main__":
    main()
