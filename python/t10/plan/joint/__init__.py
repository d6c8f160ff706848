"""The choice for a whole model: plans, idle levels and layouts together, with a lower bound."""
