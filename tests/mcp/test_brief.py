"""The brief of a session, for clients without hooks and without prompts."""

from __future__ import annotations

import io

from tests.mcp.conftest import call, noted


async def test_the_brief_comes_by_a_tool_and_the_prompt_names_it(agent, word):
    rule = await noted(agent, text=f"{word}: answer briefly.", tags=["core"])
    await noted(agent, text=f"{word} is built of oak.", tags=["decision", f"project:{word}"])
    result = await agent.call_tool("kb_list", {"brief": word})
    lines = result.content[0].text.splitlines()
    assert lines[1].startswith("Always")
    assert f"{word}: answer briefly." in result.content[0].text
    assert result.content[0].text.index("answer briefly") < result.content[0].text.index("built of oak")
    assert result.structured_content["brief"] == result.content[0].text
    await call(agent, "kb_delete", document_id=rule["document_id"])  # each brief of this server would have it
    prompt = await agent.get_prompt("brief", {"topic": word})
    assert f"kb_list(brief='{word}')" in prompt.messages[0].content.text


async def test_what_was_accepted_and_could_not_be_kept_is_told_in_the_next_brief(agent, engine, word):
    accepted = await engine.add_file(f"{word}.pdf", io.BytesIO(b"%PDF-1.7\n\0\1\2"))
    await engine.wait_for_job(accepted["job_id"])
    assert "could not be saved: kb_jobs(status='failed')" in (await call(agent, "kb_list", brief=word))["brief"]
