"""The standard tests of LangChain for the retriever (`make packages`)."""

from __future__ import annotations

import pytest

from tests.conftest import KEY

langchain_tests = pytest.importorskip("langchain_tests.integration_tests", reason="make packages installs it")
pytestmark = pytest.mark.filterwarnings("default")


class TestKbRetriever(langchain_tests.RetrieversIntegrationTests):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def served(cls, start_server, tmp_path_factory):
        from kb_memory.engine import Engine

        with start_server(tmp_path_factory.mktemp("retriever"), KB_API_KEY=KEY) as server:
            for number in range(5):
                Engine(server.url, KEY).add(f"/notes/{number}.md", f"The kiln number {number} is fired on Fridays.")
            cls.url = server.url
            yield

    @property
    def retriever_constructor(self):
        from kb_memory.retriever import KbRetriever

        return KbRetriever

    @property
    def retriever_constructor_params(self):
        return {"url": self.url, "key": KEY}

    @property
    def retriever_query_example(self):
        return "when is the kiln fired?"

    def test_a_passage_says_where_it_is_from(self, retriever):
        [found] = retriever.invoke("kiln number 3", k=1)
        assert found.metadata["source_path"] == "/notes/3.md"
        assert KEY not in repr(retriever)
