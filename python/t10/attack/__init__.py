"""`t10 verify`: difficult inputs, all engines, and the search for the wrong operator.

`ranges` draws inputs as wild as the comparison bears, which `shaking` finds out; `engines` executes them; `judging`
says which results are right; `cutting` makes models of some of a model's nodes; `search` looks for what is wrong among
them.
"""
