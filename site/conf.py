# Sphinx's settings; site/build.py copies this file beside the pages.
project = "Acorn"
author = "The authors of Acorn"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Acorn"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
suppress_warnings = ["misc.highlighting_failure"]
