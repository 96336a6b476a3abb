"""The programs that `make.py` exports, by family."""
