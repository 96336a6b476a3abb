"""Random layers that are functions of elements: their options and inputs, beside the same layer of torch.nn."""

from torch import nn

from layers import layer, plain_layer

for name in ["Hardsigmoid", "Hardswish", "LogSigmoid", "Mish", "SELU", "Softsign", "Tanhshrink"]:
    plain_layer(name, lambda name=name: getattr(nn, name)())


def optional(name, ulps=2, least=0, **options):
    """A layer of options, each one of a few."""

    def generator(s):
        o = {key: s.pick(*values) for key, values in options.items()}
        return o, lambda: getattr(nn, name)(**o), [s.tensor(s.shape(least), s.dtype(12, 1, 0))]

    layer(name, ulps)(generator)


optional("CELU", alpha=(1.0, 0.5, 2.0))
optional("ELU", alpha=(1.0, 0.5, 2.0))
optional("GLU", least=1, dim=(-1, 0))
optional("Hardshrink", lambd=(0.5, 0.0, 1.5))
optional("Hardtanh", min_val=(-1.0, -2.0), max_val=(1.0, 2.5))
optional("LogSoftmax", 16, least=1, dim=(-1, 0))
optional("Softmax", 16, least=1, dim=(-1, 0))
optional("Softmin", 16, least=1, dim=(-1, 0))
optional("Softplus", beta=(1.0, 0.5, 2.0), threshold=(20.0, 1.0))
optional("Softshrink", lambd=(0.5, 0.0, 1.5))
optional("Threshold", threshold=(0.0, 0.5, -1.0), value=(0.0, 2.5))
optional("RReLU", lower=(0.125, 0.25), upper=(0.25, 0.5))


@layer("PReLU")
def _(s):
    shape = s.shape(2)
    o = {"num_parameters": s.pick(1, max(shape[1], 1))}
    return o, lambda: nn.PReLU(**o), [s.float(shape)]
