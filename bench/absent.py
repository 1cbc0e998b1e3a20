"""Measure whether `weak` distinguishes questions that no document answers.

    python -m bench.absent

The database has three of the five LoCoMo conversations. 100 of their questions are asked as they are, and 100 others
after the turns with their evidence were deleted; 100 more are about the other two conversations. Questions with even
numbers chose the rule in `kb.search.weak_results`, and the others, which are asked here, only judge it.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from bench.collection import collection
from bench.serving import add_all, serving
from kb.client.client import EngineClient

if TYPE_CHECKING:
    from kb_cli.evaluation import Question

STORED: Final = {"conv-26", "conv-41", "conv-43"}
EACH: Final = 100


async def count_weak(
    client: EngineClient, questions: list[Question], ids: dict[str, int], *, has_evidence: bool = True
) -> int:
    """Return the number of questions whose subject is probably not in kb, according to the search."""
    count = 0
    for question in questions:
        evidence = [] if has_evidence else [ids[str(document)] for document in question.wanted]
        for document_id in evidence:
            await client.delete_document(document_id)
        count += (await client.search(query=question.text))["weak"]
        for document_id in evidence:
            await client.restore(document_id)
    return count


async def measure(url: str) -> None:
    turns = collection("locomo_turns")
    scope = {key: query["scope"] for key, query in turns.queries.items()}
    judging = [each for each in turns.questions if int(each.id.rpartition("q")[2]) % 2]
    random.Random(1).shuffle(judging)
    known = [each for each in judging if scope[each.id] in STORED]
    foreign = [each for each in judging if scope[each.id] not in STORED]
    async with EngineClient(url) as client:
        documents = turns.documents.items()
        await add_all(client, [(key, document) for key, document in documents if document["scope"] in STORED])
        ids = {each["source_path"]: each["id"] async for each in client.iter_documents()}
        with_answer = await count_weak(client, known[:EACH], ids)
        without_evidence = await count_weak(client, known[EACH : 2 * EACH], ids, has_evidence=False)
        without_subject = await count_weak(client, foreign[:EACH], ids)
    print(f"flagged: {with_answer} of {EACH} questions with an answer, {without_evidence} without their evidence,")
    print(f"{without_subject} about conversations that are not in the database")


def main() -> None:
    with serving() as url:
        asyncio.run(measure(url))


if __name__ == "__main__":
    main()
