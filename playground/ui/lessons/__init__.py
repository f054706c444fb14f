"""Lessons on the page: the strip above the tabs that leads through one, and the list of them under the masthead.

The browser's half is assets/lessons.js: it shows what `Strip` sends, outlines the place that a step points at, and
tells when it was pressed, shown or changed. Nothing is worked out before a lesson is opened.

strip.py    the strip and what is pressed in it
scenes.py   what a visitor has on the page, for a lesson's facts
words.py    both as HTML
welcome.py  what a first visit opens with
"""
