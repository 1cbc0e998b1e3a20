// node typescript.mjs URL KEY legacy|auto: the names of the tools, and what kb_search finds, as the TypeScript client sees them.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, key, mode] = process.argv.slice(2);
const client = new Client({ name: "typescript", version: "1" }, { versionNegotiation: { mode } });
await client.connect(
  new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }),
);
const { tools } = await client.listTools();
const found = await client.callTool({ name: "kb_search", arguments: { query: "walrus", fts_only: true } });
console.log(
  JSON.stringify({
    era: client.getProtocolEra(),
    tools: tools.map((tool) => tool.name),
    found: found.structuredContent,
  }),
);
await client.close();
