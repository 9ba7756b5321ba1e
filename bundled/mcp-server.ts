/** What is used of the MCP SDK's server. */
export type {
  ClientCapabilities,
  JSONRPCMessage,
  Result,
  ServerContext,
  Tool,
  Transport,
} from '@modelcontextprotocol/server';
export {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  inputRequired,
  inputResponse,
  isJsonContentType,
  McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  parseJSONRPCMessage,
  Server,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/server';
