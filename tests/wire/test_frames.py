"""Frames without a socket: however the bytes come, the same frames come out."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from client.protocol.frames import MAX_REQUEST, PREFIX, Frames, frame

PAYLOADS = st.lists(st.binary(max_size=40), max_size=8)


def feed(frames: Frames, chunks: list[bytes]) -> list[bytes]:
    return [payload for chunk in chunks for payload in frames.feed(chunk)]


@given(PAYLOADS, st.lists(st.integers(0, 400), max_size=30))
def test_any_chunking_gives_the_same_frames(payloads: list[bytes], cuts: list[int]) -> None:
    data = b"".join(map(frame, payloads))
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    frames = Frames(MAX_REQUEST)
    assert feed(frames, [data[a:b] for a, b in itertools.pairwise(edges)]) == payloads
    assert not frames.partial
    assert not frames.too_large


@given(PAYLOADS)
def test_byte_by_byte_a_frame_comes_with_its_last_byte(payloads: list[bytes]) -> None:
    frames = Frames(MAX_REQUEST)
    data = b"".join(map(frame, payloads))
    ends = {sum(PREFIX + len(payload) for payload in payloads[: n + 1]): payload for n, payload in enumerate(payloads)}
    for at, byte in enumerate(data, start=1):
        assert frames.feed(bytes([byte])) == ([ends[at]] if at in ends else [])
        assert frames.partial == (at not in ends)


@given(st.binary(max_size=200), st.integers(0, 200))
def test_what_is_not_whole_is_kept_and_said(payload: bytes, cut: int) -> None:
    data = frame(payload)
    cut = min(cut, len(data) - 1)
    frames = Frames(MAX_REQUEST)
    assert frames.feed(data[:cut]) == []
    assert frames.partial == (cut > 0)
    assert frames.feed(data[cut:]) == [payload]


def test_a_frame_of_the_largest_size_is_whole_and_one_byte_more_is_too_large() -> None:
    frames = Frames(MAX_REQUEST)
    assert frames.feed(frame(bytes(MAX_REQUEST))) == [bytes(MAX_REQUEST)]
    assert frames.too_large == 0
    assert frames.feed((MAX_REQUEST + 1).to_bytes(PREFIX, "big")) == []
    assert frames.too_large == MAX_REQUEST + 1


@given(PAYLOADS, st.integers(MAX_REQUEST + 1, 2**32 - 1), st.binary(max_size=20))
def test_what_came_whole_before_an_announcement_that_is_too_large_is_not_lost(
    payloads: list[bytes], size: int, behind: bytes
) -> None:
    frames = Frames(MAX_REQUEST)
    data = b"".join(map(frame, payloads)) + size.to_bytes(PREFIX, "big") + behind
    assert frames.feed(data) == payloads
    assert frames.too_large == size


def test_an_empty_frame_is_a_frame() -> None:
    assert Frames(MAX_REQUEST).feed(frame(b"") + frame(b"x")) == [b"", b"x"]
