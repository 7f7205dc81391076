"""The internals of PyTorch that the library uses, with a public way beside them.

`derivatives` registers the derivatives of operators by internals of `torch.autograd` and functorch, which costs less per
call and knows forward mode. A self-test decides at import whether they work in this version of PyTorch; where they do
not, `torch.library.register_autograd` takes their place: slower, and forward mode is an error that says so.
`PULLBACK_PUBLIC_TORCH=1` forces the public way.
"""
