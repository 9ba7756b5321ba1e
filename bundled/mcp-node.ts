/** What is used of the MCP SDK's adapter for Node's HTTP server; it brings a web framework, of which little is used. */
export { toNodeHandler } from '@modelcontextprotocol/node';
