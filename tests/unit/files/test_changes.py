from elmokit.files.changes import changes, flattened


def test_changes_are_listed_by_dotted_name():
    recorded = {"train": {"batch_size": 16, "seed": 1}, "model": "a", "gone": 3}
    present = {"train": {"batch_size": 32, "seed": 1}, "model": "a", "new": [1]}
    assert list(map(str, changes(recorded, present))) == [
        "train.batch_size was 16 and is now 32",
        "gone was 3 and is now None",
        "new was None and is now [1]",
    ]


def test_values_that_json_does_not_tell_apart_are_equal():
    assert changes({"filters": [[1, 2]], "a": None}, {"filters": ((1, 2),)}) == []


def test_nested_values_are_flattened_to_dotted_names():
    nested = {"train": {"batch_size": 16, "schedule": {"kind": "cosine"}}, "model": ["a"]}
    flat = {"train.batch_size": 16, "train.schedule.kind": "cosine", "model": ["a"]}
    assert flattened(nested) == flat
