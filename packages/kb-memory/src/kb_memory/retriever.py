"""A LangChain retriever that searches a kb."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, SecretStr

from kb_memory.engine import Engine

METADATA = ("document_id", "chunk_id", "title", "source_path", "source", "tags", "date", "place", "score")


class KbRetriever(BaseRetriever):
    """Finds passages by words and by meaning.

    Args:
        k: the number of passages.
        url: the address of kb; by default `KB_ENGINE_URL`.
        key: a key of kb; by default `KB_API_KEY`.
        filters: other fields of a search, such as `{"tags": ["work"]}`.
    """

    k: int = Field(default=5, ge=1)
    url: str | None = None
    key: SecretStr | None = None
    filters: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
    ) -> list[Document]:
        engine = Engine(self.url, self.key.get_secret_value() if self.key else None, "kb-memory langchain")
        return [
            Document(
                id=str(passage["chunk_id"]),
                page_content=passage["text"],
                metadata={name: passage.get(name) for name in METADATA},
            )
            for passage in engine.search(query, k or self.k, self.filters)
        ]
