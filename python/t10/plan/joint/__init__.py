"""Plans, idle levels and layouts of all operators chosen together, with a bound of how good the choice is."""
