"""Web: the tools that search the web and read its pages."""
