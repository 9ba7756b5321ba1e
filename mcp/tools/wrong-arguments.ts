/** Arguments that no tool takes, as an answer: so that the model reads what is wrong with them (SEP-1303). */
import { type ToolAnswer, toolAnswer } from './answer.ts';

/** `detail`: where, and what is wrong there. */
export const wrongArguments = (detail: string): ToolAnswer =>
  toolAnswer({
    status: 'failed',
    code: 'invalid_arguments',
    detail: `The arguments are wrong: ${detail}`,
    next: 'Correct them, then call again. Nothing was sent.',
  });

/** The same as the JSON-RPC result of `message`, a tools/call that gets no further than the transport. */
export const wrongArgumentsResult = (message: unknown, detail: string): object => ({
  ...wrongArguments(detail),
  ...(saysItsVersion(message) && { resultType: 'complete' }),
});

export const FORBIDDEN_ARGUMENT = '__proto__: there is no such argument';

/** Whether the message, as JSON.parse read it, has an argument that the SDK would leave out without an error. */
export function hasForbiddenArgument(message: unknown): boolean {
  const { params } = Object(message) as { params?: { arguments?: unknown } | null };
  return Object.hasOwn(Object(params?.arguments), '__proto__');
}

/** Requests of 2026-07-28 and later say their version themselves, and each result then says of what type it is. */
function saysItsVersion(message: unknown): boolean {
  const { params } = message as { params?: { _meta?: Record<string, unknown> } };
  return params?._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined;
}

/** The id to answer a message under (JSON-RPC 2.0 section 5): null where it has none that names a request. */
export function idOf(message: unknown): string | number | null {
  const id = typeof message === 'object' && message !== null ? (message as { id?: unknown }).id : undefined;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}
