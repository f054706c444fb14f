"""The same, quicker: the tricks that make the model fast, each held to the plain way by a test.

Nothing here has to be read to understand the model. Without each, on one core, with "Small" and a batch of 12 × 64:

    formulas.py  RMSNorm, squared ReLU and rotation, the backward written out: a training step takes 15 to 25 % longer
    grouped.py   all experts' visitors in few matrix products: with 8 experts, a step takes 40 to 60 % longer
    halves.py    mixed precision on a CPU: each weight cast once, attention in bfloat16 both ways, a layer in one piece
    attend.py    torch's fused attention, in fp32 where a CPU's bfloat16 backward takes five times as long
    layers.py    torch's layers, undrawn and without detours: seconds of start, twice the time of a decoded LayerNorm
    bare.py      decoding without nn.Module's bookkeeping: a token takes 25 to 65 % longer
    packed.py    weights in the order and precision in which they are read fastest: with its weights as they are,
                 a token of GPT-2 small's shape takes 1.5 times as long
    reading.py   one token's pass, written out: a small model's token takes twice as long
    adamw.py     AdamW without the import of torch's compiler: with process.py, 2.5 s before the first step
    process.py   memory, threads and imports of the whole process, set only by programs that ask for it: elementwise
                 parts of a step take a third longer
    quicker.py   how a hand-written function stands beside a plain formula
"""
