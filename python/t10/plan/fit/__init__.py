"""Does a model fit, and if not, why and what would help.

`capacity` (what no search can make fit), `model_bound` (the least memory a model takes), `remedies` (what would help)
and `explain_fit` (the message).
"""
