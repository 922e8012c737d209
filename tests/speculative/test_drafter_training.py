"""What the training tool rests on: text by the target's law, drafters as serving runs them."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from ninfer.contract import SpeculativeBackend
from ninfer.runtime.loading import load_drafter
from ninfer.runtime.models.drafters import ContextRow, ProposalRow
from ninfer.runtime.models.forward_batch import RowInput, forward_batch
from ninfer.runtime.models.kv_pool import SlotMap
from support.program_runs import GREEDY, tiny_model
from support.statistics import assert_follows
from support.tiny_models import write_checkpoint

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from drafters.block import BlockDrafter, BlockPlan  # noqa: E402
from drafters.block_objective import BlockObjective  # noqa: E402
from drafters.compact_json import (  # noqa: E402
    FORM_START,
    FREE_START,
    OVER,
    State,
    all_states,
    walk,
)
from drafters.corpus import COLUMN_STEP, Batch, Batches, Dialogues  # noqa: E402
from drafters.evaluation import walk as walk_answer  # noqa: E402
from drafters.folder import restore, save_folder  # noqa: E402
from drafters.json_tables import KEY, json_tables  # noqa: E402
from drafters.law import LAW_TEMPERATURE, told_law  # noqa: E402
from drafters.lesson import Lesson  # noqa: E402
from drafters.mtp import MtpDrafter  # noqa: E402
from drafters.mtp_objective import MtpObjective  # noqa: E402
from drafters.prompts import Form, forced_texts, json_task  # noqa: E402
from drafters.shortlist import Shortlist  # noqa: E402
from drafters.target import Target  # noqa: E402
from drafters.writing import MOST_KEYS, Task, Turns, Writer, Written  # noqa: E402
from train_drafters import main  # noqa: E402

PROMPT = [40, 41, 42, 43]
NO_END = Turns(ends=(), user_end=-1, opening=())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="module")
def target(folder: Path) -> Target:
    torch.set_num_threads(1)
    return Target(folder, torch.device("cpu"), torch.float32)


def written(writer: Writer, tasks: Sequence[Task]) -> list[Written]:
    waiting = iter(tasks)
    return list(writer.write(lambda: next(waiting, None)))


def greedy_answer(target: Target, prompt: Sequence[int], columns: int) -> list[int]:
    tokens = list(prompt)
    while len(tokens) < columns:
        tokens.append(int((target.hidden(torch.tensor([tokens]))[0, -1] @ target.head.T).argmax()))
    return tokens


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_written_tokens_follow_the_law_of_the_target(target: Target, temperature: float) -> None:
    torch.manual_seed(3)
    writer = Writer(target, 500, len(PROMPT) + 1, NO_END)
    texts = written(writer, [Task(PROMPT, len(PROMPT), temperature)] * 4000)
    logits = target.hidden(torch.tensor([PROMPT]))[0, -1] @ target.head.T
    law = (logits / temperature).softmax(-1).tolist()
    assert_follows(Counter(int(text.tokens[-1]) for text in texts), dict(enumerate(law)))


def test_rows_go_at_their_own_pace_and_share_what_they_begin_with(target: Target) -> None:
    writer = Writer(target, 2, 24, NO_END, prefix=PROMPT[:3])
    prompts = [[*PROMPT, *range(50, 50 + n)] for n in (1, 9, 3, 14, 2)] + [[1, 2], PROMPT]
    texts = written(writer, [Task(prompt, len(prompt), 0.0) for prompt in prompts])
    assert sorted(t.task.tokens for t in texts) == sorted(prompts)
    for text in texts:
        assert text.tokens.tolist() == greedy_answer(target, text.task.tokens, 24)
        assert not text.has_ended
    end = greedy_answer(target, PROMPT, 8)[7]
    (ended,) = written(
        Writer(target, 3, 24, Turns([end], -1, ())), [Task(PROMPT, len(PROMPT), 0.0)]
    )
    assert ended.has_ended
    whole = greedy_answer(target, PROMPT, 24)
    assert ended.tokens.tolist() == whole[: whole.index(end, len(PROMPT)) + 1]


def test_a_turn_that_the_target_makes_up_is_answered(target: Target) -> None:
    torch.manual_seed(0)
    end, opening = 7, [90, 91, 92]
    turns = Turns([258], end, opening, user_tokens=200)
    texts = written(Writer(target, 8, 260, turns), [Task(PROMPT, 0, 0.0)] * 24)
    answered = [text for text in texts if text.answer]
    assert answered
    for text in answered:
        tokens = text.tokens.tolist()
        place = tokens.index(end, len(PROMPT))
        assert text.answer == place + 1 + len(opening)
        assert tokens[place + 1 : text.answer] == opening
        best = (target.hidden(text.tokens[None])[0] @ target.head.T).argmax(-1)
        assert torch.equal(best[text.answer - 1 : -1], text.tokens[text.answer :])
    assert all(end not in text.tokens[len(PROMPT) :] for text in texts if not text.answer)


def test_json_rows_nest_close_and_end(target: Target) -> None:
    torch.manual_seed(1)
    vocabulary = [bytes([byte]) for byte in range(256)] + [None] * 64
    tables = json_tables(vocabulary, [257], target.device)
    writer = Writer(target, 16, 200, Turns([257], -1, (), json_tokens=120), tables)
    task = Task([*PROMPT, *b'{"'], len(PROMPT), 0.9, True)
    texts = written(writer, [task] * 64 + [Task(PROMPT, len(PROMPT), 0.9)] * 8)
    held = [text for text in texts if text.task.is_json]
    assert len(held) == 64
    assert sum(text.has_ended for text in held) > 4
    for text in held:
        assert len(text.tokens) <= text.answer + 121
        kept = text.tokens[text.answer : -1 if text.has_ended else None].tolist()
        inside, depth = False, 0
        for place, byte in enumerate(kept):
            assert byte < 256
            assert byte >= 0x20 if inside else byte > 0x20
            inside ^= byte == ord('"')
            if not inside:
                depth += (byte in b"{[") - (byte in b"}]")
            assert depth > 0 or (text.has_ended and place == len(kept) - 1)
    assert any(int(token) >= 258 for t in texts if not t.task.is_json for token in t.tokens)


def reached(text: str) -> State | None:
    return walk(FREE_START, text.encode())


def test_json_is_walked_byte_by_byte() -> None:
    whole = '{"a":[1,{"b c":-2.5e3},true,"x,}"],"d":{},"e":null,"f":[]}'
    assert reached(whole) == OVER
    for place in range(1, len(whole)):
        state = reached(whole[:place])
        assert (state is None) == any(
            whole[begin:place] == word[: place - begin]
            for word in ("true", "null")
            for begin in range(place - 3, place)
            if begin >= 0
        )
        assert state in (None, *all_states())
    for bad in ('{"a"}', '{"a":}', '{"a":1,}', "[1,]", '["a""b"]', "[,1]", '{"a"::1}', "{a:1}"):
        assert reached(bad) is None
    for bad in (
        "[1 ,2]",
        "[01]",
        "[1.]",
        "[-]",
        "[1.2.3]",
        "[2e]",
        '["a\\n"]',
        '"text"',
        "12",
        "[[[[1]]]]",
        "[}",
        '{"a":1]',
        "[1]]",
    ):
        assert reached(bad) is None


def test_json_tables_know_words_nesting_and_strings() -> None:
    words = [b"true", b'","', b" ", b"}}", b'":{"', b"x", b'"}', None, b"\\", b",", b'"']
    tables = json_tables(words, [7], torch.device("cpu"))

    def allowed(text: str | None, start: State = FREE_START) -> list[bytes | None]:
        state = None if text is None else walk(start, text.encode())
        json = torch.tensor([0 if state is None else tables.number[state]])
        masks = tables.masks(json, torch.zeros_like(json), torch.tensor([text is not None]))
        return [word for word, fits in zip(words, masks[0], strict=True) if fits]

    assert allowed('{"a":') == [b"true", b'","', b'":{"', b'"}', b'"']
    in_text = [b"true", b'","', b" ", b"}}", b"x", b'"}', b",", b'"']
    assert allowed('{"a":"') == in_text
    assert allowed('{"a') == [b"true", b" ", b"}}", b'":{"', b"x", b",", b'"']
    assert allowed('{"a":{"b":1') == [b"}}", b","]
    assert allowed('{"a":"', FORM_START) == [word for word in in_text if word != b'"}']
    assert allowed('{"a":1}') == [None]
    assert allowed(None) == words


def test_objects_have_the_keys_of_their_form_in_its_order(target: Target) -> None:
    torch.manual_seed(2)
    used = b'{}[]:,"0123qz'
    vocabulary = [bytes([byte]) if byte in used else None for byte in range(256)] + [None] * 64
    form = Form('{"q":"', ('zz":', 'q3":"'))
    tables = json_tables(vocabulary, [257], target.device, [form.opening, *form.keys])
    keys = tuple(tables.starts[key] for key in form.keys)
    task = Task(PROMPT, len(PROMPT), 1.0, True, tables.starts[form.opening], keys)
    writer = Writer(target, 16, 200, Turns([257], -1, (), json_tokens=180), tables)
    found = Counter()
    for text in written(writer, [task] * 48):
        kept = text.tokens[text.answer : -1 if text.has_ended else None].tolist()
        names = keys_of(bytes(kept))
        whole = [b"q", b"zz", b"q3"]
        assert names[:-1] == whole[: len(names) - 1]
        assert whole[len(names) - 1].startswith(names[-1])
        found[len(names), text.has_ended] += 1
    assert {names for names, ended in found if ended} == {3}
    assert found[3, True] > 24


def keys_of(text: bytes) -> list[bytes]:
    """Return the strings of an outermost object that stand where keys do; the last may be cut."""
    inside, depth, awaits = False, 0, False
    names: list[bytes] = []
    for place, byte in enumerate(text):
        if byte == ord('"'):
            inside = not inside
            if inside and awaits and depth == 1:
                names.append(text[place + 1 :].split(b'"')[0])
        elif not inside:
            depth += (byte in b"{[") - (byte in b"}]")
            awaits = byte in b"{," or (awaits and byte not in b":[")
    return names


def test_a_forced_text_is_spelled_in_any_way_and_may_be_gone_beyond() -> None:
    words = [b"n", b"na", b"name", b'name":', b'":', b'"', b':"', b'":"', b"x", b'":[', b'":}']
    tables = json_tables(words, [7], torch.device("cpu"), ['name":', 'name":"'])

    def after(text: str, written: int, token: bytes) -> int:
        """Return how many bytes of the text are written then, 0 once nothing is forced."""
        start = torch.tensor([tables.starts[text] + written])
        json = torch.tensor([tables.number[walk(KEY, text[:written].encode())]])
        no_key = torch.zeros(1, dtype=torch.int64)
        moved = tables.moved(json, start, no_key, no_key > 0, torch.tensor([words.index(token)]))
        return max(0, int(moved[1]) - tables.starts[text])

    def allowed(text: str, written: int) -> list[bytes | None]:
        state = torch.tensor([tables.starts[text] + written])
        masks = tables.masks(torch.zeros_like(state), state, state > 0)
        return [word for word, fits in zip(words, masks[0], strict=True) if fits]

    assert allowed('name":', 0) == [b"n", b"na", b"name", b'name":']
    assert allowed('name":', 4) == [b'":', b'"', b'":"', b'":[']
    assert allowed('name":"', 4) == [b'":', b'"', b'":"']
    assert allowed('name":"', 5) == [b':"']
    assert [after('name":', *step) for step in ((0, b"na"), (0, b'name":'), (4, b'":['))] == [
        2,
        0,
        0,
    ]
    assert [after('name":"', *step) for step in ((4, b'"'), (4, b'":'), (5, b':"'))] == [5, 6, 0]


def test_tasks_are_texts_with_the_form_of_an_answer() -> None:
    source = random.Random(0)
    tasks = {json_task(source, ["A long text."]) for _ in range(400)}
    assert len(tasks) > 300
    texts = set(forced_texts())
    for user, form in tasks:
        assert user.strip()
        assert {form.opening, *form.keys} <= texts
        assert len(form.keys) <= MOST_KEYS


def test_a_law_is_the_targets_or_what_was_written(target: Target) -> None:
    shortlist = Shortlist(torch.arange(10, 60), target)
    hidden = torch.randn(3, target.shape.hidden)
    law = told_law(hidden, torch.tensor([4, 7, -1]), torch.tensor([False, True, False]), shortlist)
    exact = ((hidden @ target.head[10:60].T) / LAW_TEMPERATURE).softmax(-1)
    torch.testing.assert_close(law[[0, 2]], exact[[0, 2]])
    assert law[1].tolist() == [float(place == 7) for place in range(50)]


def test_dialogues_survive_a_file_and_are_cut_by_their_prompts(tmp_path: Path) -> None:
    source = random.Random(5)
    texts = [torch.randint(0, 50, (source.randint(6, 30),)) for _ in range(300)]
    answers = [source.randint(2, len(text) - 2) for text in texts]
    one = Dialogues.of(texts[:200], answers[:200], [1] * 200)
    two = Dialogues.of(texts[200:], answers[200:], [2] * 100)
    for name, part in (("a", one), ("b", two)):
        part.save(tmp_path / name)
    read = Dialogues.load([tmp_path / "a", tmp_path / "b"])
    assert [read.at(i) for i in (0, 250)] == [(texts[i].tolist(), answers[i]) for i in (0, 250)]
    held = read.held_out(4)
    assert 30 < int(held.sum()) < 150
    assert len(read.where(held)) + len(read.where(~held)) == 300
    ids, covered = read.frequent(10)
    counts = Counter(t for x, a in zip(texts, answers, strict=True) for t in x[a:].tolist())
    assert covered == pytest.approx(sum(n for _, n in counts.most_common(10)) / counts.total())
    assert ids.tolist() == sorted(ids.tolist())
    found = Counter()
    for batch in Batches(read, 100, torch.device("cpu")).once(source):
        assert batch.tokens.shape[1] % COLUMN_STEP == 0
        assert batch.tokens.shape[0] <= max(1, 100 // 6)
        found += Counter(batch.tokens[batch.answered].tolist())
    assert found == counts


def test_an_answer_is_walked_from_anchor_to_anchor() -> None:
    nothing = [-1, -1]
    assert walk_answer([*nothing, 0, 2, 9, 9, 1, 0, 0], 7) == [2, 1, 0]
    assert walk_answer([*nothing, 0, 2, 9, 9, 1, 0, 0], 1) == [1, 1, 0, 0]
    assert walk_answer(nothing, 3) == []


def test_a_later_step_sees_first_steps_before_it_and_its_own_guesses_only(target: Target) -> None:
    torch.manual_seed(0)
    drafter = MtpDrafter(target.shape)
    drafter.start_from(target)
    hidden = torch.randn(1, 9, target.shape.hidden)
    followers = torch.randn(1, 9, 3, target.shape.hidden)
    whole = drafter(hidden, followers, 3)
    for length in (1, 4, 8):
        shorter = drafter(hidden[:, :length], followers[:, :length], 3)
        for ours, theirs in zip(shorter, whole, strict=True):
            torch.testing.assert_close(ours, theirs[:, :length], atol=1e-4, rtol=1e-4)
    changed = followers.clone()
    changed[:, 3, 1:] += 1.0
    again = drafter(hidden, changed, 3)
    torch.testing.assert_close(again[0], whole[0])
    others = [t for t in range(9) if t != 3]
    torch.testing.assert_close(again[1][:, others], whole[1][:, others])
    assert not torch.allclose(again[1][:, 3], whole[1][:, 3])


def trained(kind: str, target: Target) -> MtpDrafter | BlockDrafter:
    """Return a drafter whose every tensor has moved away from where it starts."""
    torch.manual_seed(11)
    if kind == "mtp":
        drafter: MtpDrafter | BlockDrafter = MtpDrafter(target.shape)
    else:
        extra = (16, 8) if kind == "dflash2" else ()
        drafter = BlockDrafter(target.shape, BlockPlan(kind, 2, (0, 2), 256, 4, *extra))
    drafter.start_from(target)
    with torch.no_grad():
        for parameter in drafter.parameters():
            parameter += torch.randn_like(parameter) * 0.15
    return drafter


@pytest.mark.parametrize("kind", ["mtp", "dflash", "dflash2"])
def test_serving_drafts_what_training_judged(kind: str, target: Target, tmp_path: Path) -> None:
    model = tiny_model(tmp_path / "served")
    drafter = trained(kind, target)
    ids = torch.arange(3, 240)
    save_folder(tmp_path / "drafter", drafter, target.shape, ids)
    restore(tmp_path / "drafter", drafter)
    served = load_drafter(model, SpeculativeBackend(kind), tmp_path / "drafter")
    length, drafts = 30, 4
    generator = torch.Generator().manual_seed(2)
    text = torch.randint(3, 240, (length,), generator=generator).tolist()
    pool = model.decoder.new_pool(4)
    batch = forward_batch([RowInput(text, 0, SlotMap(range(4)))], pool)
    features = model.decoder.states(batch, pool, served.taps).features
    shortlist = Shortlist(ids, target)
    matched = 0
    for anchor in range(8, length - 1):
        context = ContextRow(0, features[:anchor], text[1 : anchor + 1], SlotMap([0, 1, 2]))
        row = ProposalRow(context, text[anchor], drafts, drafts, GREEDY)
        proposed = served.propose([row], served.new_pool(4)).tokens[0].tolist()
        # What serving proposes is put where the next tokens stand: judged, all of it is accepted.
        told = torch.tensor([text[: anchor + 1] + proposed])
        is_answer = torch.arange(told.shape[1])[None] > anchor
        batch = Batch(told, is_answer, torch.tensor([False]))
        judged = Lesson.of(batch, target, (0, 2))
        if isinstance(drafter, MtpDrafter):
            counts = MtpObjective(drafter, target, shortlist, drafts).accepted(judged, drafts)
        else:
            counts = BlockObjective(drafter, target, shortlist).accepted(judged, drafts)
        assert counts[0, anchor] == drafts
        matched += len(set(proposed))
    assert matched > length


def test_a_run_writes_folders_that_say_how_they_were_made(folder: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> None:
        assert main([*arguments, "--model", str(folder), "--minutes", "0.001"]) == 0

    dialogues = tmp_path / "dialogues.safetensors"
    run("write", "--out", str(dialogues), "--rows", "16", "--columns", "500", "--least", "1500")
    assert Dialogues.load([dialogues]).answer_tokens >= 1500
    sizes = ["--mask-token", "256", "--batch-tokens", "1000", "--shortlist", "100"]
    kinds = ["mtp", "dflash", "dflash2"]
    run("train", "--dialogues", str(dialogues), "--out", str(tmp_path), *sizes, "--kind", *kinds)
    for kind in kinds:
        report = json.loads((tmp_path / kind / "report.json").read_text())
        assert report["optimizer_steps"] > 0
        assert report["held_out"]["prose"]["mean_accepted"].keys() == {"1", "2", "3", "5", "7"}
        assert json.loads((tmp_path / kind / "config.json").read_text())["drafter"] == kind
        with safe_open(str(tmp_path / kind / "model.safetensors"), "pt") as tensors:
            assert len(tensors.get_tensor("shortlist")) == 100
    again = ["--out", str(tmp_path / "again"), "--start", str(tmp_path), "--kind", "dflash"]
    run("train", "--dialogues", str(dialogues), *sizes, *again)
    second = json.loads((tmp_path / "again" / "dflash" / "report.json").read_text())
    assert second["went_on_from"] == json.loads((tmp_path / "dflash" / "report.json").read_text())
