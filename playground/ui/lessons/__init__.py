"""Lessons on the page: the strip above the tabs that leads through a lesson, and the list of all under the masthead.

The browser's half is assets/lessons.js: it shows what `Strip` sends, outlines the place that a step points at, and
reports when that was pressed, shown or changed. Nothing is computed before a lesson is opened.

strip.py    the strip and its buttons
scenes.py   what a visitor has on the page, for a lesson's facts
words.py    both as HTML
welcome.py  the greeting on a first visit
"""
