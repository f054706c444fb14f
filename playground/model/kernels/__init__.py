"""Fast paths, each beside the plain formula that it equals. Nothing here has to be read to understand the model.

elementwise.py         RMSNorm, squared ReLU, rotation: the backward pass written out
experts.py             all experts' tokens in few matrix products
layers.py              torch's layers, without drawing weights and without detours
next_token.py          the pass for one more token, written out: a small model's takes half the time
packed.py              weight matrices in the order and precision that decoding reads fastest
strip_module_calls.py  the forward pass without nn.Module's bookkeeping: a decoded token takes 20 to 40 % less time
with_backward.py       joins a written-out backward pass to its plain formula
"""
