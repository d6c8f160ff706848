"""Reports of a compiled model: report.json, tables, plots, the analyser page, a timeline.

Every cycle figure here is modelled: none was measured on hardware, and every form of the report says so.
"""

from t10.report.build import build_report
from t10.report.file import read_report, write_report
from t10.report.records import Report, report_schema

__all__ = ["Report", "build_report", "read_report", "report_schema", "write_report"]
