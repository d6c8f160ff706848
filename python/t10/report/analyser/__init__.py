"""report.html: one self-contained page with the data of a run and the code that draws it.

In data-flow order: `tiles` (what each tile computes, holds, sends and receives), `memory` (bytes of a core by purpose),
`rotation` (the plan of an operator), `data` (all of it as JSON values), `page` (the file). `assets/` is the code of the
page and uPlot, which draws its axes.
"""
