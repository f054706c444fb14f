"""The same, quicker: the tricks that make the model fast, each held to the plain way by a test.

Nothing here has to be read to understand the model. What each buys, on a CPU:

    formulas.py  RMSNorm, squared ReLU and rotation with their backward written out
    grouped.py   all experts' visitors in few matrix products
    attend.py    torch's fused attention, in fp32 where a CPU's bfloat16 backward would be slow
    layers.py    torch's layers, undrawn and without detours
    bare.py      decoding without nn.Module's bookkeeping
    adamw.py     AdamW without the import of torch's compiler
    process.py   memory, threads and imports of the whole process, set only by programs that ask for it
    quicker.py   how a hand-written function stands beside a plain formula
"""
