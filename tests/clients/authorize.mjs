// node authorize.mjs URL CALLBACK DOCUMENT: sign in as the TypeScript client does, without a browser.
// It prints the address for the browser, reads the address that the browser was sent to, and prints the names of the tools.
import { createInterface } from "node:readline/promises";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

const [url, callback, document] = process.argv.slice(2);
const kept = {};
const provider = {
  redirectUrl: callback,
  clientMetadataUrl: document || undefined,
  clientMetadata: {
    client_name: "typescript",
    redirect_uris: [callback],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (state) => void (kept.discovery = state),
  state: () => "a state",
  redirectToAuthorization: (address) => console.log(String(address)),
};
const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
const named = () => new Client({ name: "typescript", version: "1" });
const first = transport();
try {
  await named().connect(first);
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const answer = new URL((await lines.next()).value);
await first.finishAuth(answer.searchParams);
const client = named();
await client.connect(transport());
const { tools } = await client.listTools();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), scope: kept.tokens.scope, client: kept.client.client_id }));
await client.close();
process.exit(0);
