/** Maximum size of a request body of the lab's MCP server. */
export const LAB_MAX_BODY_BYTES = 65_536;
