"""Masks through our seam equal those of the core's own Python package, on the same text."""

import pytest

from support.core_package import core_package, package_compiler
from support.grammars import EBNF, EOS, VOCABULARY, WORD, matcher
from support.masks import mask_buffer


@pytest.mark.parametrize(
    ("name", "drafts"),
    [
        ("nested", [ord("["), WORD[b"1,"], WORD[b"[["], WORD[b"1]"], WORD[b"]]"], EOS[0]]),
        ("text", [WORD[b'"a'], WORD[b"\xc3"], WORD[b"\xa9x"], ord('"'), EOS[1]]),
        ("letters", [*b"abc", WORD[b"abc"], ord("d"), EOS[0]]),
        ("anything", [*"é上".encode(), ord(" ")]),
    ],
)
def test_masks_along_a_path_are_the_packages_masks(name, drafts):
    package = core_package()
    grammar = package_compiler(VOCABULARY, dynamic=False).compile_grammar(EBNF[name])
    reference = package.GrammarMatcher(grammar)
    expected = package.allocate_token_bitmask(len(drafts) + 1, VOCABULARY.token_domain)
    for position, token in enumerate(drafts):
        reference.fill_next_token_bitmask(expected, position)
        assert reference.accept_token(token)
    at = matcher(name)
    masks = mask_buffer(len(drafts) + 1, at.mask_words)
    found = at.lookahead(drafts, masks)
    reached = len(drafts) if drafts[-1] in EOS else len(drafts) + 1
    assert found.reachable == reached
    filled = min(reached, len(drafts))
    # The package's rows may have bits set at and above V, which ours never have.
    expected[:, -1] &= (1 << VOCABULARY.token_domain % 32) - 1
    assert expected.numpy()[:filled].tobytes() == masks.tobytes()[: 36 * filled]
