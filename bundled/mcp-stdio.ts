/** What is used of the MCP SDK over standard input and output; apart from the rest, which `agent-broker serve` loads. */
export { serveStdio } from '@modelcontextprotocol/server/stdio';
