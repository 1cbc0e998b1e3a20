"""The syntax of Markdown, as Obsidian and GitHub write it: front matter, headings, links, tags, signs of an excerpt.

Links and signs need their places in the text. The tokens of markdown-it-py lack them, and the parser takes at least
four times as long as `prose` and patterns, so it parses only the blocks of files, and whole pages.
"""
