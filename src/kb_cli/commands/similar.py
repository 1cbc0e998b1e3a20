"""kb similar."""

from typing import Annotated

from kb_cli.commands.search import print_results
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import Id, IdsOnly, Json, option


def similar(
    document_id: Id,
    top: Annotated[int, option("-n --top N", "The maximum number of documents.", min=1)] = 10,
    ids: IdsOnly = False,
    json: Json = False,
) -> int:
    """List the documents closest in meaning to a document.

    The closest comes first. 'kb duplicates' lists duplicates.
    """
    answer = call(lambda client: client.similar(document_id, top=top))
    results = answer["results"]
    if json:
        output.print_json(answer)
    elif ids:
        output.write("".join(f"{result['document_id']}\n" for result in results))
    elif results:
        print_results(results)
    else:
        output.print_error("no other document has a similar meaning")
    return exit_codes.OK if results else exit_codes.FAILURE
