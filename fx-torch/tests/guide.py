"""The files of the guide `docs/from-pytorch.md`: `python fx-torch/tests/guide.py` writes them to tests/data/guide.

`models.py` is the user's model, and `export.py` what `fx torch-script` prints for it; both stay as they are.
"""

import pathlib
import runpy
import sys

import numpy as np
import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent / "data" / "guide"


def main():
    sys.path.insert(0, str(FOLDER))
    sys.argv = ["export.py", str(FOLDER / "model.pt2")]
    runpy.run_path(str(FOLDER / "export.py"))

    import models

    ids = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
    scale = torch.tensor([1.0, 0.5, 2.0])
    model = models.make().eval()
    np.savez(FOLDER / "inputs.npz", ids=ids.numpy(), scale=scale.numpy())
    with torch.no_grad():
        result = model(ids, scale)
        np.savez(FOLDER / "result.npz", result=result.numpy())
        print(result[0])
        torch.manual_seed(5)
        tuned = models.Classifier().eval()
        save_file(tuned.state_dict(), FOLDER / "tuned.safetensors")
        print(tuned(ids, scale)[0])


if __name__ == "__main__":
    main()
