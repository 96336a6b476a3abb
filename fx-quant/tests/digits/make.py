"""Writes `digits.bin`: the 1,797 images of scikit-learn's digits, a byte for each of 64 pixels (0 to 16) and one for the
class, in an order that a formula draws.

    python fx-quant/tests/digits/make.py
"""

import pathlib

from sklearn.datasets import load_digits

data = load_digits()
order, state = list(range(len(data.target))), 1
for at in range(len(order) - 1, 0, -1):
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    other = (state >> 33) % (at + 1)
    order[at], order[other] = order[other], order[at]
rows = [bytes([*map(int, data.data[i]), int(data.target[i])]) for i in order]
pathlib.Path(__file__).with_name("digits.bin").write_bytes(b"".join(rows))
print(f"images {len(rows)}")
