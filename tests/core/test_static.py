"""Static files over ASGI, as the panel serves them; warnings are errors here."""

from django.test import AsyncClient

PATH = "/static/js/app.js"


async def test_a_file_is_answered_whole_on_the_event_loop():
    answer = await AsyncClient().get(PATH)
    assert answer.status_code == 200
    assert not answer.streaming
    assert answer["Content-Type"].startswith("text/javascript")
    assert b"mountAll" in answer.content
    assert int(answer["Content-Length"]) == len(answer.content)


async def test_a_browser_that_has_it_is_told_so():
    first = await AsyncClient().get(PATH)
    again = await AsyncClient().get(PATH, headers={"If-Modified-Since": first["Last-Modified"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_its_head_and_a_part_of_it():
    whole = (await AsyncClient().get(PATH)).content
    head = await AsyncClient().head(PATH)
    assert (head.status_code, head.content, int(head["Content-Length"])) == (200, b"", len(whole))
    part = await AsyncClient().get(PATH, headers={"Range": "bytes=3-12"})
    assert (part.status_code, part.content) == (206, whole[3:13])
