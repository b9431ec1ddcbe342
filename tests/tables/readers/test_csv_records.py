import pytest

from onepass.tables.readers.csv_records import records

LONG = "x" * 200_000


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        (f"1,{LONG},2", ["1", LONG, "2"]),
        (f'"1","{LONG}",2\r', ["1", LONG, "2"]),
        (f'1,"a""b\n{LONG}",', ["1", f'a"b\n{LONG}', ""]),
        (f'a"b,{LONG},', ['a"b', LONG, ""]),
        (f'1,"{LONG}"x,2', "has a quote that is never closed, or one inside a field"),
        (f'1,"{LONG}', "has a quote that is never closed, or one inside a field"),
        (f"1,{LONG}\rx,2", "has a quote that is never closed, or one inside a field"),
    ],
    ids=range(7),
)
@pytest.mark.parametrize("end", ["", "\n", "\n3,4,5\n"], ids=["nothing", "break", "row"])
def test_long_records_are_read_as_short_ones_are(record: str, fields: list[str] | str, end: str) -> None:
    long, *after = records((record + end).encode(), 1, ",", None)
    short, *also = records((record.replace(LONG, "x") + end).encode(), 1, ",", None)
    assert long[:2] == (1, fields)
    assert short[1] == (fields if isinstance(fields, str) else [field.replace(LONG, "x") for field in fields])
    assert [(found[0], found[1]) for found in after] == [(found[0], found[1]) for found in also]
