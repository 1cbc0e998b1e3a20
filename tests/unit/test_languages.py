"""Words are found by their stems in the language of their document, which is guessed from its text."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import apsw
import pytest

from kb.ingest.draft import draft_note, embed_draft
from kb.ingest.models import ActiveModel
from kb.lexical.language import guessed
from kb.lexical.segment import aligned
from kb.lexical.stems import stems_in
from kb.lexical.variants import variants_in
from kb.search.query import Query
from kb.search.recall import RecallMonitor
from kb.search.service import SearchService
from kb.store.analyzer import Fts5Analyzer, Tokenizer
from kb.store.rows import Filter
from kb.telemetry.instruments import Instruments

# ruff: noqa: RUF001 - letters of other alphabets are meant
SENTENCES = {
    "de": "Die {} stehen seit vielen Jahren dort, und niemand weiß mehr, wem sie gehören.",
    "fr": "Nous avons vu les {} hier soir, et personne ne savait ce qu'il fallait en faire.",
    "es": "Ayer vimos las {} otra vez, y nadie sabía qué hacer con ellas hasta el lunes.",
    "it": "Ieri abbiamo visto i {} e nessuno sapeva che cosa farne prima di lunedì.",
    "pt": "Ontem vimos os {} outra vez, e ninguém sabia o que fazer com eles até segunda-feira.",
    "nl": "Gisteren hebben wij de {} weer gezien, en niemand wist wat ermee moest gebeuren.",
    "sv": "I går såg vi {} igen, och ingen visste vad man skulle göra med dem före måndag.",
    "no": "I går så vi {} igjen, og ingen visste hva de skulle gjøre med dem før mandag kveld.",
    "da": "I går så vi {} igen, og ingen vidste, hvad man skulle gøre med dem inden mandag.",
    "fi": "Eilen näimme {} taas, eikä kukaan tiennyt, mitä niille pitäisi tehdä ennen maanantaita.",
    "ru": "Вчера мы снова видели {}, и никто не знал, что с ними делать до понедельника.",
    "pl": "Wczoraj znowu widzieliśmy {} i nikt nie wiedział, co z nimi zrobić do poniedziałku.",
    "tr": "Dün yine {} gördük ve pazartesi gününe kadar onlarla ne yapacağımızı kimse bilmiyordu.",
    "hu": "Tegnap újra láttuk a {}, és senki sem tudta, mit kellene velük csinálni hétfőig.",
    "cs": "Včera jsme znovu viděli {} a nikdo nevěděl, co s nimi máme do pondělí udělat.",
}
"""A sentence of each language, with room for a word."""

FORMS = [
    ("de", "Häuser", "Haus"),
    ("de", "Verträge", "Vertrag"),
    ("fr", "chevaux", "cheval"),
    ("fr", "journaux", "journal"),
    ("es", "ciudades", "ciudad"),
    ("es", "luces", "luz"),
    ("it", "gatti", "gatto"),
    ("it", "laghi", "lago"),
    ("pt", "animais", "animal"),
    ("pt", "corações", "coração"),
    ("nl", "huizen", "huis"),
    ("sv", "fakturorna", "faktura"),
    ("no", "fakturaene", "faktura"),
    ("da", "aftalerne", "aftale"),
    ("fi", "taloissa", "talo"),
    ("ru", "книги", "книга"),
    ("ru", "городах", "город"),
    ("pl", "książki", "książka"),
    ("tr", "kitaplar", "kitap"),
    ("hu", "házakat", "ház"),
    ("cs", "města", "město"),
]


@pytest.fixture
def notes(make_store, embedder):
    """A store, a service over it, and a function that adds notes by their paths."""

    def add(**texts):
        for path, text in texts.items():
            content = embed_draft(draft_note(text, None, ActiveModel(embedder)), embedder)
            with store.write() as tx:
                tx.documents.add(content, path, ())

    instruments = Instruments()
    with make_store() as store, ThreadPoolExecutor(1) as pool, closing(RecallMonitor(store, instruments)) as recall:
        yield store, SearchService(store, ActiveModel(embedder), pool, instruments, recall), add


def search(service, query, where=None, **modes):
    return service.search(Query.parse(query, where or Filter(), **({"vectors": False} | modes)), 10)


def found(service, query, where=None):
    return [passage.source_path for passage in search(service, query, where).results]


@pytest.mark.parametrize("language", SENTENCES)
def test_the_language_of_a_text_is_guessed(language):
    assert guessed([SENTENCES[language].format("")]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Haus",
        "Rechnung 4711",
        "3.14159 2.71828 1.41421 1.73205 0.57721",
        "https://example.org/die/alten/haeuser/stehen/am/hafen.html",
        " ".join(f"{SENTENCES['de'].format('Boote')} {SENTENCES['fr'].format('bateaux')}" for _ in range(4)),
        " ".join([SENTENCES["ru"].format("лодки")] * 3 + ["The boats are in the harbour, and nobody is on deck."] * 5),
    ],
)
def test_of_a_short_text_or_one_in_several_languages_none_is_guessed(text):
    assert guessed([text]) is None


def test_code_and_addresses_in_a_text_do_not_hide_its_language():
    code = "`for name in names: print(name)` https://example.org/a/list/of/the/names "
    assert guessed([code + SENTENCES["de"].format("Boote") + code]) == "de"
    assert guessed(["```\nthe = {'and': 'of the'}\nreturn the\n```\n" + SENTENCES["it"].format("laghi")]) == "it"


@pytest.mark.parametrize(("language", "many", "one"), FORMS)
def test_a_word_finds_its_other_forms_in_both_directions(notes, language, many, one):
    _, service, add = notes
    add(
        many=SENTENCES[language].format(many),
        one=SENTENCES[language].format(one),
        english="The boats are in the harbour, and nobody is on deck before Monday.",
    )
    for query, first, second in ((one, "one", "many"), (many, "many", "one")):
        answer = search(service, query)
        assert [passage.source_path for passage in answer.results] == [first, second]
        marked = [passage.text[start:end] for passage in answer.results for start, end in passage.highlights]
        assert marked == ([one, many] if query == one else [many, one])
        assert not answer.unknown
        assert not answer.weak


def test_a_german_note_is_found_among_english_ones_and_english_words_have_no_german_stems(notes):
    _, service, add = notes
    add(
        picture="We hung the picture above the door, and the old man rested there until the evening came.",
        hunger=SENTENCES["de"].format("Hunger und Durst, die alten Gärten"),
        garden="The garden behind the house is where the children rest after school.",
    )
    assert found(service, "Garten") == ["hunger"]
    assert found(service, "hunger") == ["hunger"]
    assert found(service, "pictures") == ["picture"]


def test_a_note_without_a_known_language_is_found_by_its_words_as_they_are(notes):
    _, service, add = notes
    add(short="Häuser", long=SENTENCES["de"].format("Häuser"))
    assert found(service, "Häuser") == ["short", "long"]
    assert found(service, "Haus") == ["long"]


def test_quotes_and_stars_mean_the_word_as_it_is(notes):
    _, service, add = notes
    add(many=SENTENCES["fr"].format("chevaux"), one=SENTENCES["fr"].format("cheval"))
    assert found(service, '"chevaux"') == ["many"]
    assert found(service, "cheval*") == ["one"]
    [passage] = search(service, '"chevaux"').results
    assert [passage.text[start:end] for start, end in passage.highlights] == ["chevaux"]


def test_the_language_is_a_filter_and_follows_the_text(notes, embedder):
    store, service, add = notes
    add(german=SENTENCES["de"].format("Boote"), french=SENTENCES["fr"].format("bateaux"), short="Boote")
    assert found(service, "Boot", Filter(language="de")) == ["german"]
    assert found(service, "Boot", Filter(language="fr")) == []
    with store.read() as tx:
        listed = {each.source_path: each for each in tx.documents.page(Filter(), sort="id", limit=9, cursor=None)}
        assert {path: each.language for path, each in listed.items()} == {
            "german": "de",
            "french": "fr",
            "short": None,
        }
        assert tx.documents.count(Filter(language="fr")) == 1
        assert tx.counts().languages == {"de": 1, "fr": 1}
        assert tx.index.languages == ["de", "fr"]
    changed = embed_draft(draft_note(SENTENCES["nl"].format("boten"), None, ActiveModel(embedder)), embedder)
    with store.write() as tx:
        tx.documents.replace(listed["german"].id, changed)
        assert tx.documents.get(listed["german"].id).language == "nl"
    assert found(service, "boot", Filter(language="nl")) == ["german"]
    assert found(service, "boot", Filter(language="de")) == []
    assert found(service, "Boote") == ["short"]


def test_an_emoji_is_a_word_and_marked_where_it_stands(notes):
    _, service, add = notes
    add(
        whale="Container 🐳 started in the harbour",
        flag="A ferry to 🇳🇴 and back, in any weather",
        thumb="Done 👍🏽 for today",
        none="Nothing of that kind",
    )
    for query, path, sign in (
        ("🐳", "whale", "🐳"),
        ("🇳🇴", "flag", "🇳🇴"),
        ("👍", "thumb", "👍"),
        ("ferry 🇳🇴", "flag", "🇳🇴"),
    ):
        [passage] = search(service, query).results
        assert passage.source_path == path
        assert sign in [passage.text[start:end] for start, end in passage.highlights]
    assert found(service, "🐙") == []


def test_a_word_in_chinese_characters_is_there_before_one_that_only_has_its_letters(notes):
    _, service, add = notes
    add(tokyo="東京都の展望室は四十五階にあります。", kyoto="京都の展望室は駅の上にあります。")
    for query in ("京都", "展望室 京都", "京都 展望室"):
        assert found(service, query)[0] == "kyoto"
        assert search(service, query, vectors=True).results[0].source_path == "kyoto"
    assert found(service, "東京都")[0] == "tokyo"


class Counted(Tokenizer):
    """Counts the calls."""

    def __init__(self):
        super().__init__(apsw.Connection(":memory:"))
        inner, self.calls = self._tokenize, 0

        def tokenize(*arguments, **options):
            self.calls += 1
            return inner(*arguments, **options)

        self._tokenize = tokenize


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Die Häuser im Łódźer Hafen, ﬁnden getUserById und die Größe von 1,872.00 m²"),
        ("ru", "Книги лежат в гавани"),
        ("fr", "Les chevaux 🐳 d'œuvre"),
        (None, "plain words of the harbour"),
        ("de", ""),
    ],
)
def test_the_words_of_a_text_are_cut_in_one_call(language, text):
    counted = Counted()
    found = list(Fts5Analyzer(counted).variants(text, language))
    assert counted.calls <= 1
    written, _ = aligned(text)
    each = [*variants_in(written), *stems_in(written, language)]
    assert [stem for _, _, stem in found] == [stem for variant in each for stem in counted.tokens(variant.text)]
