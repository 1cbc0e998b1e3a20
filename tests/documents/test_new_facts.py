"""A note that differs from a similar one in a number, a date or a word of the same sentence says more."""

from __future__ import annotations

import re

import pytest
from snowballstemmer.porter_stemmer import PorterStemmer

from kb.documents.new_facts import MOST_CHARACTERS, is_part, says_more

STEMMER = PorterStemmer()


def words(text):
    return [STEMMER.stemWord(word) for word in re.findall(r"\w+", text.lower())]


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Rent 2025: 900", "Rent 2026: 950"),
        ("Rent 2025: 900", "For 2025 the landlord raised the rent to 950 euros."),
        ("The call is on 3 March.", "The call is on 3 April."),
        ("The call is on 4 June.", "The call is on 4 May."),
        ("The call with Ada is on Tuesday.", "With Ada: call on Thursday."),
        ("Camera cam-03 failed.", "Camera cam-04 failed."),
        ("Night in the shed: -2 degrees.", "Night in the shed: 2 degrees."),
        ("The lid weighs 1.5 kg.", "The lid weighs 15 kg."),
        ("Moved from 30 to 90 days.", "Moved from 90 to 30 days."),
        ("The ferry leaves at six every day.", "The ferry leaves at seven every day."),
        ("La clase de yoga es los martes.", "La clase de yoga es los jueves."),
        ("電気の検針は六月三日です。", "電気の検針は七月三日です。"),
        ("वाचनालय ३ मार्च को बंद है।", "वाचनालय ४ मार्च को बंद है।"),
        ("The importer is safe to use.", "The importer is not safe to use."),
        ("The importer is not safe to use.", "The importer is safe to use."),
        ("The cellar key hangs in the hall.", "The cellar key hangs in the kitchen."),
        ("Mia is allergic to nuts.", "Mia is allergic to nuts and wasps."),
        ("The 7c84a9b2 ferry leaves at six.", "The 7c84a9b2 ferry leaves at nine."),
        ("Build 7c84a9b2 is on the server.", "Build 7c84a9b3 is on the server."),
        ("Tove trusts Arne.", "Arne trusts Tove."),
        ("Tove sends Arne her notes.", "Arne sends Tove her notes."),
        ("The bus goes from Voss to Flåm.", "The bus goes from Flåm to Voss."),
        ("The old key fits the new lock.", "The new key fits the old lock."),
        ("Stir the flour into the milk.", "Stir the milk into the flour."),
        ("Tell Tove about the leak.", "Tove tells about the leak."),
        ("Goats like salt.", "Goats never like salt."),
        ("Arne stopped playing chess.", "Arne plays chess."),
        ("Tove is the captain.", "Tove was the captain."),
        ("The ramp bears 300 kg.", "The ramp bears 300 lb."),
        ("The link carries 40 Mb.", "The link carries 40 MB."),
        ("A stall costs €40.", "A stall costs £40."),
        ("Feed them before noon.", "Feed them after noon."),
        ("The siren is on.", "The siren is off."),
        ("His bike is red.", "Her bike is red."),
        ("The lease of 12 rooms ends in 2028.", "The lease ends in 2028."),
        ("Goats. Hens. Bees.", "Bees. Wasps. Goats."),
        ("Tove is a member. Arne is not a member.", "Tove is not a member. Arne is a member."),
        ("The saw is in the shed. The axe is under the bench.", "The saw is under the shed. The axe is in the bench."),
        ("Andrea has the key.", "Andreas has the key."),
        ("The gate answers over http.", "The gate answers over https."),
        ("Router a backs up router b.", "Router b backs up router a."),
        ("The red wire goes to pin a, the blue wire to pin b.", "The red wire goes to pin b, the blue wire to pin a."),
        ("Der Schlüssel hängt in der Tür.", "Der Schlüssel hängt an der Tür."),
        ("Le dossier est chez Anne.", "Le dossier est avec Anne."),
        ("Der Hund gehört der Nachbarin, die Katze uns.", "Die Katze gehört der Nachbarin, der Hund uns."),
        ("Tove needs ibuprofen.", "Tove takes ibuprofen."),
        ("Arne calls Tove every Sunday.", "Arne reaches Tove every Sunday."),
        ("Tove likes Arne.", "Tove loves Arne."),
        ("The call is with Tove.", "The call is about Tove."),
        ("Ask Mary about the lease.", "Ask Marie about the lease."),
        ("Ask Ann about the lease.", "Ask Anne about the lease."),
        ("The list is at /api/user.", "The list is at /api/users."),
        ("The file is imported.", "The file is important."),
        ("Clara works at Helvar.", "Clara worked at Helvar."),
        ("Clara works at Helvar. The hall is blue.", "Clara worked at Helvar. The hall is blue."),
        ("Clara arbeitet bei Helvar.", "Clara arbeitete bei Helvar."),
        ("The lease will be signed.", "The lease was signed."),
        ("Tove is trusted by Arne.", "Tove trusts Arne."),
        ("Mia takes .5 mg of salt.", "Mia takes 5 mg of salt."),
        ("Night in the shed: 2 degrees.", "Night in the shed: \u20132 degrees."),
        ("The link carries 40 Mb/s.", "The link carries 40 MB/s."),
        ("A stall costs \u20bd40.", "A stall costs \u20a940."),
        ("The plank is 5' wide.", 'The plank is 5" wide.'),
        ("The fair is on 3 or 4 May.", "The fair is on 4 May."),
        ("The limit moved from 30 to 90 days.", "The limit moved to 30 days."),
        ("The shop is open Monday to Friday.", "The shop is open Monday and Friday."),
        ("Pay by Tuesday.", "Pay after Tuesday."),
        ("The shop is shut on Monday.", "The shop is shut from Monday."),
        ("The spare key is in the fridge.", "The spare key is on the fridge."),
        ("Tove voted for the plan.", "Tove voted against the plan."),
        ("Tove and Arne have keys.", "Tove or Arne has keys."),
        ("I owe Tove money.", "Tove owes me money."),
        ("Mia takes 0.5 mg of salt.", "Mia takes 0.05 mg of salt."),
        ("The code is 0417.", "The code is 417."),
        ("Most goats like it.", "Few goats like it."),
        ("My blood group is A+.", "My blood group is A-."),
        ("The importer is in C.", "The importer is in C++."),
        ("Start a worker if load > 5.", "Start a worker if load < 5."),
        ("Copies: prod \u2192 staging.", "Copies: staging \u2192 prod."),
        ("The train Oslo\u2013Voss is late.", "The train Voss\u2013Oslo is late."),
    ],
)
def test_other_numbers_dates_and_words_in_their_place_say_more(known, new):
    assert says_more(new, known, words)


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("The tyre is under the floor.", "the tyre  is under the floor"),
        ("Budget: 12,500 euros.", "Budget: 12500 euros"),
        ("The choir meets at 19:30.", "The choir meets at 19.30."),
        ("It is oiled on the first of each month.", "It is oiled on the 1st of each month."),
        ("On 04.05.2026 at Tom's.", "On 4.5.2026 at Tom\u2019s."),
        ("Room ٤ is free.", "Room 4 is free."),
        ("Every 15 minutes the sensor reports.", "The sensor reports every 15 minutes."),
        ("The gate opens at nine. It is green.", "It is green.\nThe gate opens at nine."),
        ("The archive room is locked by Tove.", "Tove locks the archive room."),
        ("The permit expires on 3 May.", "The permit ends on 3 May."),
        ("The ladder is kept behind the shed.", "You'll find the ladder behind the shed."),
        ("Tove and Arne's boat is in Bodø.", "The boat of Tove and Arne is in Bodø."),
        ("The goats aren't washed on Sundays.", "Never wash the goats on Sundays."),
        ("In May the goats go from Voss to Flåm.", "The goats go to Flåm from Voss in May."),
        ("Mia is allergic to peanuts.", "A peanut allergy is what Mia has."),
        ("Anna was born on 3 May 1990.", "Anna's birthday: 3 May"),
        ("The lid is opened with a coin.", "Open the lid with a coin."),
        ("Snapshots are deleted after 14 days.", "We delete snapshots after 14 days."),
        ("", ""),
    ],
)
def test_another_form_of_the_same_says_no_more(known, new):
    assert not says_more(new, known, words)


@pytest.mark.parametrize(
    "text",
    [
        "9" * 10_000,
        "It is so. " * 2000,
        "\n".join(f"Line {line}: 5 km" for line in range(500)),
        "1,234" * 3000,
        "word " * 5000,
        "-" * 5000,
        "1." * 5000,
        "a" * 100_000,
        "1a" * 50_000,
        "\u2460\u00bd²",
    ],
)
def test_long_and_odd_texts_are_compared(text):
    assert not says_more(text, text, words)
    assert says_more(f"{text} 7", text, words) or "7" in text


@pytest.mark.parametrize(
    ("new", "is_known"),
    [
        ("jonas lives in bruck, trains are late", True),
        ("Jonas lives in Bruck -- trains are late!", True),
        ("Jonas lives in Bruck, trains are early", False),
        ("late", False),
        ("", False),
        ("ate before nine o'clock and so on", False),
    ],
)
def test_a_text_is_a_part_of_another_if_all_its_words_follow_each_other_there(new, is_known):
    known = "Lunch. Jonas lives in Bruck; trains are late before nine o'clock and so on."
    assert is_part(new, known) is is_known


def test_texts_of_any_length_are_told_apart_soon_and_a_very_long_one_is_stored():
    line = "The pump at the lock runs.\n"
    long = line * (MOST_CHARACTERS // len(line))
    assert says_more(long, line, words)
    assert not says_more(long, long, words)
    assert not says_more(line * 40, line, words)
