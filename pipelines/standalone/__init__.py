"""Self-contained pages: one HTML file with its data, which loads nothing."""

from pipelines.standalone.page import StandalonePage, inert_json
