"""Why a model does not fit, and what would help.

`capacity` (what no search can make fit), `model_bound` (the least memory a model takes), `remedies` (what would help)
and `explain_fit` (the message).
"""
