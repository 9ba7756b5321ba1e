/** Failures of outgoing requests, as values with fixed texts: no library's message leaves this module (CX-06). */

const TEXTS = {
  address_refused:
    'The address of the server is not one that this broker may connect to: it is not public, and the operator has not allowed it (AGENT_BROKER_ALLOW_PRIVATE).',
  bad_request: 'The request to the server is not valid HTTP.',
  dns_failed: 'The host name of the server could not be resolved.',
  connect_failed: 'Could not connect to the server.',
  proxy_unreachable: 'The outbound proxy of the broker (OUTBOUND_PROXY) does not answer.',
  proxy_refused: 'The outbound proxy of the broker (OUTBOUND_PROXY) made no connection to the server.',
  tls_failed: 'TLS handshake with the server failed, or its certificate is not valid.',
  connection_lost: 'The connection to the server closed before the response was complete.',
  timeout: 'The server did not answer in time.',
  too_large: 'The response of the server is larger than allowed.',
  broken_answer: 'The response of the server is not valid HTTP, or cannot be decoded.',
  not_mcp: 'The MCP server did not send a valid JSON-RPC response to the request.',
  not_utf8: 'The MCP server sent a message that is not in UTF-8, so its content cannot be passed on unchanged.',
  asked_back:
    'The MCP server sent a request of its own (such as sampling or elicitation) instead of a response; that is not supported.',
  task_ended: 'The MCP server made the call as a task, and cancelled the task or no longer knows it.',
  too_many_tools: 'The MCP server lists more tools than are allowed, or its pagination does not end.',
  credential_echoed:
    'The MCP server echoes the credential of the connection in its tool definitions. They were not stored, and no tool was called.',
  tools_unlisted: 'The MCP server answered with an error to the request for its tools, so no tool was called.',
  tools_unknown: 'The tools of the MCP server could not be compared with the accepted ones, so no tool was called.',
  redirect_refused:
    'The platform redirected this read to an address that is not followed. Followed is https, on port 443 or 8443, at a public address, without a user name or the credential in it.',
  redirected_again:
    'The platform redirected this read, and that address redirects again. Only one redirect is followed.',
  busy: 'Too many calls to this server are waiting.',
  closed: 'The broker is shutting down.',
  client_closed: 'The client closed its connection before the server answered.',
  access_ended:
    'The agent lost its access while the call was under way: it was suspended or revoked, or its grant, platform or connection was.',
  form_names_method:
    'The body names a method in one of its fields, and was not sent completely; the method of a call is that of its request.',
  form_names_refused:
    'One of the fields of the body is a parameter that this platform accepts from no agent (refused_parameters); the body was not sent completely.',
  body_holds_token:
    'The body contains the token of the agent, and was not forwarded beyond that point: send the token in a header only.',
} as const;

export type UnreachableCode = keyof typeof TEXTS;

/** Codes that are not failures of the platform: the client disconnected, the broker stopped, or the agent lost its access. */
export const ENDED_HERE = ['client_closed', 'closed', 'access_ended'] as const satisfies readonly UnreachableCode[];

/** Codes for forbidden content found in the body while it was sent; not failures of the platform. */
export const BODY_CUT = [
  'form_names_method',
  'form_names_refused',
  'body_holds_token',
] as const satisfies readonly UnreachableCode[];

export type Unreachable = {
  kind: 'unreachable';
  code: UnreachableCode;
  /** Whether any byte of the request may have reached the upstream. When true, the outcome is unknown. */
  sent: boolean;
  /** A fixed sentence. Contains nothing of the request, the response or the upstream's address. */
  detail: string;
  /** A code for the log: the system's or library's error code (`ECONNREFUSED`), or the class of a refused address. */
  cause?: string;
};

/** An error that carries only two fixed codes; the only own error class that passes through undici. */
export class OutboundFault extends Error {
  readonly code: UnreachableCode;
  readonly reason: string | undefined;

  constructor(code: UnreachableCode, reason?: string) {
    super(TEXTS[code]);
    this.code = code;
    this.reason = reason;
  }
}

/** Creates the result of a failure. `cause` is kept only when it looks like an error code. */
export function unreachable(code: UnreachableCode, sent: boolean, cause?: unknown): Unreachable {
  const word = typeof cause === 'string' && /^\w{1,64}$/.test(cause) ? cause : undefined;
  return { kind: 'unreachable', code, sent, detail: TEXTS[code], ...(word === undefined ? {} : { cause: word }) };
}

/** Whether a code of Node or OpenSSL means that a certificate is untrusted, or is for another name. */
export const isCertificateCode = (code: string): boolean => /CERT|^UNABLE_TO_/.test(code);

/** The `code` of an error, when it has one. */
export function errorCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

const BY_LIBRARY_CODE: Readonly<Record<string, UnreachableCode>> = {
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_OVERFLOW: 'too_large',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'too_large',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'broken_answer',
  UND_ERR_DESTROYED: 'closed',
  UND_ERR_CLOSED: 'closed',
  UND_ERR_INVALID_ARG: 'bad_request',
  UND_ERR_NOT_SUPPORTED: 'bad_request',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'bad_request',
};

/** Maps an error of undici or the system to a result; the error itself is dropped. */
export function unreachableFrom(error: unknown, sent: boolean): Unreachable {
  if (error instanceof OutboundFault) return unreachable(error.code, sent, error.reason);
  const code = errorCode(error) ?? '';
  const known = BY_LIBRARY_CODE[code];
  if (known !== undefined) return unreachable(known, sent, code);
  // The parser's errors have no code, or HPE_*.
  const isParser = code.startsWith('HPE_') || (error instanceof Error && error.name === 'HTTPParserError');
  if (isParser) return unreachable('broken_answer', sent, code || 'not_http');
  return unreachable(sent ? 'connection_lost' : 'connect_failed', sent, code);
}
