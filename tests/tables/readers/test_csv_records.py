import pytest

from onepass.tables.readers.csv_records import records
from onepass.tables.reasons import Reason

LONG = "x" * 200_000
STRAY = "stray_quote"


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        (f"1,{LONG},2", ["1", LONG, "2"]),
        (f'"1","{LONG}",2\r', ["1", LONG, "2"]),
        (f'1,"a""b\n{LONG}",', ["1", f'a"b\n{LONG}', ""]),
        (f'a"b,{LONG},', ['a"b', LONG, ""]),
        (f'1,"{LONG}"x,2', STRAY),
        (f'1,"{LONG}', STRAY),
        (f"1,{LONG}\rx,2", STRAY),
    ],
    ids=range(7),
)
@pytest.mark.parametrize("end", ["", "\n", "\n3,4,5\n"], ids=["nothing", "break", "row"])
def test_long_records_are_read_as_short_ones_are(record: str, fields: list[str] | str, end: str) -> None:
    long, *after = records((record + end).encode(), 1, ",", None)
    short, *also = records((record.replace(LONG, "x") + end).encode(), 1, ",", None)
    if isinstance(fields, str):
        assert isinstance(long[1], Reason)
        assert isinstance(short[1], Reason)
        assert (long[0], long[1].code, short[1].code) == (1, fields, fields)
    else:
        assert (long[:2], short[1]) == ((1, fields), [field.replace(LONG, "x") for field in fields])
    assert [(found[0], found[1]) for found in after] == [(found[0], found[1]) for found in also]
