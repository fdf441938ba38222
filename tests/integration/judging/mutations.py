"""Strategies that break a repository, or only change it: any field of any configuration, any file, any character."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from typing import Any, Final, NamedTuple, cast

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

from cdk_triton.triton import ModelConfig
from cdk_triton.triton.releases import is_at_least
from judging.drafts import OUR_RELEASE, Draft
from judging.ensembles import valid_repositories
from judging.models import chance, merge
from judging.settings import NEWER_SETTINGS, SETTINGS

__all__ = ["NEWER_FIELDS", "changed_repositories"]

NEWER_FIELDS: Final[Mapping[str, str]] = {
    "inference.ModelEnsembling.max_inflight_requests": "25.11",
    "inference.ModelConfig.model_metrics": "24.11",
}
"""What the schema has and our own server, 24.10, does not know, with the first release that knows it."""

DIMS: Final = (-2, -1, 0, 1, 2, 3, 4, 8, 2**31, 2**63 - 1)
COUNTS: Final = (0, 1, 2, 3, 4, 5, 8, 9)
SMALL: Final = (-2, -1, *COUNTS)
TEXTS: Final = (
    "",
    "0",
    "1",
    "-1",
    "x",
    "a/b",
    "ensemble",
    "python",
    "onnxruntime",
    "tensorrt",
    "tensorrt_plan",
    "onnxruntime_onnx",
    "pytorch_libtorch",
    "tensorflow_savedmodel",
    "identity",
    "unheard_of",
    "model.py",
    "model.onnx",
    "model.plan",
)
HUGE_IS_FINE: Final = frozenset(
    {
        "inference.ModelInput.dims",
        "inference.ModelOutput.dims",
        "inference.ModelTensorReshape.shape",
        "inference.ModelVersionPolicy.Specific.versions",
        "inference.ModelEnsembling.Step.model_version",
    }
)
"""Fields whose value costs no memory, no time and no threads, whatever it is."""


@st.composite
def changed_repositories(draw: st.DrawFn, release: str = OUR_RELEASE) -> Draft:
    """A valid repository for a server of that release after one to three changes; not every change breaks it."""
    draft = draw(valid_repositories(release))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        draw(st.sampled_from(CHANGES))(draw, draft)
    return draft


def _change_field(draw: st.DrawFn, draft: Draft) -> None:
    directory = draw(st.sampled_from(sorted(draft.configs)))
    config = draft.configs[directory]
    where, message = draw(st.sampled_from([("", config), ("", config), *_messages(config)]))
    unknown = frozenset(name for name, since in NEWER_FIELDS.items() if not is_at_least(draft.release, since))
    change = _change_message(draw, message, _Material(_words(draft), unknown))
    draft.texts.pop(directory, None)
    draft.changes.append(f"{directory}: {where}{change}")


class _Material(NamedTuple):
    """What changes are made of.

    Attributes:
        words: the strings for any field.
        unknown: the full names of the fields that stay as they are, because the judge does not know them.
    """

    words: Sequence[str]
    unknown: frozenset[str]


def _messages(message: Message, path: str = "") -> Iterator[tuple[str, Message]]:
    """Every message in a message, with where it is; the deep ones are as likely to change as the others."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if _is_map(field):
            below = [(f"{field.name}[{key!r}].", value[key]) for key in value if not isinstance(value[key], str)]
        elif field.is_repeated:
            below = [(f"{field.name}[{index}].", each) for index, each in enumerate(value)]
        else:
            below = [(f"{field.name}.", value)]
        for name, each in below:
            yield path + name, each
            yield from _messages(each, path + name)


def _words(draft: Draft) -> list[str]:
    """Every string of every configuration, and some others: a field may get the value of any other field."""
    words: dict[str, None] = dict.fromkeys(draft.configs)
    for config in draft.configs.values():
        for _, message in [("", config), *_messages(config)]:
            for field, value in message.ListFields():
                if _is_map(field):
                    words.update(dict.fromkeys(each for each in (*value, *value.values()) if isinstance(each, str)))
                elif field.type == FieldDescriptor.TYPE_STRING:
                    words.update(dict.fromkeys(value if field.is_repeated else [value]))
    return [*words, *TEXTS]


def _change_message(draw: st.DrawFn, message: Message, material: _Material) -> str:
    """Change one field somewhere in a message, and say which and how."""
    fields = [field for field in _fields(message) if field.full_name not in material.unknown]
    set_now = {field.name for field, _ in message.ListFields()}
    present = [field for field in fields if field.name in set_now]
    if not fields:
        message.SetInParent()
        return "set"
    field = draw(st.sampled_from(present if present and chance(draw, 60) else fields))
    if _is_map(field):
        return f"{field.name} {_change_map(draw, message, field, material)}"
    if field.is_repeated:
        return f"{field.name} {_change_list(draw, message, field, material)}"
    if chance(draw, 15):
        message.ClearField(field.name)
        return f"{field.name} cleared"
    if field.message_type is not None:
        below: Message = getattr(message, field.name)
        below.SetInParent()
        return f"{field.name}." + _change_message(draw, below, material)
    value = draw(_values(field, material.words))
    setattr(message, field.name, value)
    return f"{field.name} = {value!r}"


def _fields(message: Message) -> list[FieldDescriptor]:
    return [cast(FieldDescriptor, field) for field in message.DESCRIPTOR.fields]  # the stubs know another class as well


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _values(field: FieldDescriptor, words: Sequence[str]) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_STRING:
        return st.sampled_from(words)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.5])
    if field.type in (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64):
        return st.sampled_from(COUNTS)
    return st.sampled_from(DIMS if field.full_name in HUGE_IS_FINE else SMALL)


def _change_list(draw: st.DrawFn, message: Message, field: FieldDescriptor, material: _Material) -> str:
    values: MutableSequence[Any] = getattr(message, field.name)
    ways = ["add"] if not values else ["change", "change", "change", "remove", "repeat", "add", "swap", "clear"]
    way = draw(st.sampled_from(ways))
    at = draw(st.integers(0, len(values) - 1)) if values else 0
    if way == "remove":
        del values[at]
    elif way == "clear":
        message.ClearField(field.name)
    elif field.message_type is not None:
        return f"{way} [{at}]" + _change_messages(draw, values, way, at, material)
    elif way == "add":
        values.append(draw(_values(field, material.words)))
    elif way == "repeat":
        values.append(values[at])
    elif way == "swap":
        values[at], values[0] = values[0], values[at]
    else:
        values[at] = draw(_values(field, material.words))
    return f"{way} [{at}]"


def _change_messages(draw: st.DrawFn, values: Any, way: str, at: int, material: _Material) -> str:
    if way == "repeat":
        values.add().CopyFrom(values[at])
    elif way == "swap":
        copies = [type(value).FromString(value.SerializeToString()) for value in values]
        values[at].CopyFrom(copies[0])
        values[0].CopyFrom(copies[at])
    else:
        below = values.add() if way == "add" else values[at]
        return "." + _change_message(draw, below, material)
    return ""


def _change_map(draw: st.DrawFn, message: Message, field: FieldDescriptor, material: _Material) -> str:
    values: Any = getattr(message, field.name)
    assert field.message_type is not None
    entry = field.message_type
    key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
    way = draw(st.sampled_from(["change", "change", "rename", "remove", "add"] if values else ["add"]))
    key = draw(_values(key_field, material.words) if way == "add" else st.sampled_from(sorted(values)))
    if way == "remove":
        del values[key]
    elif way == "rename":
        new = draw(_values(key_field, material.words))
        if value_field.message_type is not None:
            values[new].CopyFrom(values[key])
        else:
            values[new] = values[key]
        if new != key:
            del values[key]
        return f"[{key!r}] renamed to {new!r}"
    elif value_field.message_type is not None:
        return f"{way} [{key!r}]." + _change_message(draw, values[key], material)
    else:
        values[key] = draw(_values(value_field, material.words))
    return f"{way} [{key!r}]"


def _add_setting(draw: st.DrawFn, draft: Draft) -> None:
    directory = draw(st.sampled_from(sorted(draft.configs)))
    newer = [text for since, text in NEWER_SETTINGS if is_at_least(draft.release, since)]
    setting = draw(st.sampled_from([*SETTINGS, *newer]))
    merge(draft.configs[directory], setting)
    draft.texts.pop(directory, None)
    draft.changes.append(f"{directory}: {setting}")


def _exchange_names(draw: st.DrawFn, draft: Draft) -> None:
    """Two names that a configuration speaks of stand in each other's place everywhere in it."""
    directory = draw(st.sampled_from(sorted(draft.configs)))
    text = text_format.MessageToString(draft.configs[directory])
    words = [word for word in _words(Draft(configs={directory: draft.configs[directory]})) if word not in TEXTS]
    if len(words) < 2:
        return
    first, second = draw(st.lists(st.sampled_from(words), min_size=2, max_size=2, unique=True))
    text = text.replace(f'"{first}"', '"\0"').replace(f'"{second}"', f'"{first}"').replace('"\0"', f'"{second}"')
    draft.configs[directory] = text_format.Parse(text, ModelConfig())
    draft.changes.append(f"{directory}: {first} and {second} exchanged")


def _change_file(draw: st.DrawFn, draft: Draft) -> None:
    if not draft.files:
        return
    path = draw(st.sampled_from(sorted(draft.files)))
    model, _, rest = path.partition("/")
    way = draw(st.sampled_from(["remove file", "rename file", "remove version", "rename version", "add version"]))
    version = rest.partition("/")[0]
    new = draw(st.sampled_from(["0", "2", "3", "01", "x", "1a", "9223372036854775808", "18446744073709551617"]))
    if way == "remove file":
        del draft.files[path]
    elif way == "rename file":
        draft.files[f"{path}.bak"] = draft.files.pop(path)
    else:
        for name in [name for name in draft.files if name.startswith(f"{model}/{version}/")]:
            content = draft.files[name] if way == "add version" else draft.files.pop(name)
            if way != "remove version":
                draft.files[f"{model}/{new}/" + name.split("/", 2)[2]] = content
    draft.changes.append(f"{path}: {way} ({new})")


def _change_directory(draw: st.DrawFn, draft: Draft) -> None:
    """A model that is missing, or called otherwise."""
    model = draw(st.sampled_from(sorted(draft.configs)))
    new = draw(st.sampled_from(["", "", "other", "ensemble"]))
    if model == draft.entry or new in draft.configs:
        return
    for name in [name for name in draft.files if name.startswith(f"{model}/")]:
        content = draft.files.pop(name)
        if new:
            draft.files[f"{new}/" + name.split("/", 1)[1]] = content
    config = draft.configs.pop(model)
    text = draft.texts.pop(model, None)
    if new:
        draft.configs[new] = config
        if text is not None:
            draft.texts[new] = text
    draft.changes.append(f"{model}: renamed to {new!r}" if new else f"{model}: removed")


def _without_configuration(draw: st.DrawFn, draft: Draft) -> None:
    """A model whose configuration is empty: the server completes what it can."""
    model = draw(st.sampled_from(sorted(draft.configs)))
    if draft.configs[model].platform != "ensemble":
        draft.configs[model].Clear()
        draft.texts.pop(model, None)
        draft.changes.append(f"{model}: empty configuration")


def _change_text(draw: st.DrawFn, draft: Draft) -> None:
    directory = draw(st.sampled_from(sorted(draft.configs)))
    config = draft.configs[directory]
    text = text_format.MessageToString(config, as_utf8=True, as_one_line=chance(draw, 10))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 3))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + length :]
    if "KIND_GPU" in text or "gpus" in text:
        return  # `Draft.for_the_judge` cannot take it out of a text
    draft.texts[directory] = text.encode(errors="surrogateescape")
    draft.changes.append(f"{directory}: text")


PIECES: Final = (
    *("", " ", "\n", "\t", "\f", "\v", "\r", "#", '"', "'", "\\", "\\n", "\\x41", "\\u00e9", "\\U0001F600", "\\8"),
    *("{", "}", "<", ">", "[", "]", ":", ";", ",", ".", "-", "+", "_", "(", "/", "@", "~", "\0", "\x01", "\x7f"),
    *("0", "1", "9", "0x1f", "0b1", "0o7", "07", "08", "1e3", "1.5", "1f", "inf", "nan", "true", "True", "t", "f"),
    *("\u00a0", "\ufeff", "é", "\u2028", "\U0001f600", "name", "dims: 4", "max_batch_size: 8", "# x\n", "[a.b/c.D] {}"),
    *("\\377", "\\xff", "# \udcff\n", "\udcff"),  # the last: a byte that is no UTF-8
)
"""Texts for any place of a configuration. (`\\400` is left out, which C++ takes for `\\000`.)"""

Change = Callable[[st.DrawFn, Draft], None]

CHANGES: Sequence[Change] = (
    *(_change_field for _ in range(10)),
    *(_add_setting for _ in range(5)),
    _exchange_names,
    _change_file,
    _change_file,
    _change_directory,
    _without_configuration,
    _change_text,
    _change_text,
)
