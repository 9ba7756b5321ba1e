/** Bytes of a request body that the lab's MCP server takes. */
export const LAB_MAX_BODY_BYTES = 65_536;
