"""Keywords that describe and never constrain, and what to say about the ones nobody knows.

The table is closed on purpose: a word outside it is refused, so that a misspelt assertion is never
ignored. ``docs/json-schema.md`` repeats it.
"""

from __future__ import annotations

from ninfer.text.schema.dialect import ASSERTIONS

STANDARD = frozenset(
    "title description default examples $comment deprecated readOnly writeOnly contentEncoding "
    "contentMediaType contentSchema".split()
)
IDENTITY = frozenset({"id"})
"""Old spelling of ``$id``; an identity outside draft-04 too, where nothing refers to it."""

EDITOR = frozenset(
    "markdownDescription markdownEnumDescriptions enumDescriptions enumNames enumItemLabels "
    "defaultSnippets deprecationMessage markdownDeprecationMessage doNotSuggest errorMessage "
    "patternErrorMessage suggestSortText allowComments allowTrailingCommas propertyOrder "
    "propertiesOrder preferredOrder options links self example comment readonly placeholder "
    "ui:title ui:description ui:widget ui:options ui:order ui:help ui:placeholder".split()
)
CODE_GENERATION = frozenset(
    "javaType javaName javaInterfaces javaEnumNames javaJsonView existingJavaType "
    "extendsJavaClass customTimezone customPattern customDatePattern tsType tsEnumNames "
    "externalDocs discriminator xml".split()
)

ANNOTATIONS = STANDARD | IDENTITY | EDITOR | CODE_GENERATION


def is_annotation(keyword: str) -> bool:
    """Return whether a keyword only describes."""
    return keyword in ANNOTATIONS or keyword.startswith("x-")


def suggestion(keyword: str) -> str | None:
    """Return the known keyword one edit away, letter case aside, if there is one."""
    known = sorted((ASSERTIONS | STANDARD) - {keyword})
    folded = keyword.lower()
    same = [word for word in known if word.lower() == folded]
    near = same or [word for word in known if _is_one_edit(folded, word.lower())]
    return near[0] if near else None


def _is_one_edit(a: str, b: str) -> bool:
    if abs(len(a) - len(b)) > 1:
        return False
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if head is None:
        return len(a) != len(b)
    if len(a) == len(b):
        swapped = a[head : head + 2] == b[head : head + 2][::-1]
        return a[head + 1 :] == b[head + 1 :] or (swapped and a[head + 2 :] == b[head + 2 :])
    return a[head + 1 :] == b[head:] if len(a) > len(b) else a[head:] == b[head + 1 :]
