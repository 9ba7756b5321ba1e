/** Invalid arguments as a tool result, so that the model can correct them (SEP-1303). */
import { type ToolAnswer, toolAnswer } from './answer.ts';

/** `detail`: the place and the problem. */
export const wrongArguments = (detail: string): ToolAnswer =>
  toolAnswer({
    status: 'failed',
    code: 'invalid_arguments',
    detail: `The arguments are wrong: ${detail}`,
    next: 'Correct them, then call again. Nothing was sent.',
  });

/** The same as the JSON-RPC response to `message`, a tools/call that is refused by the transport. */
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

/** Requests since 2026-07-28 have their own version, and their results a `resultType`. */
function saysItsVersion(message: unknown): boolean {
  const { params } = message as { params?: { _meta?: Record<string, unknown> } };
  return params?._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined;
}

/** The id for the response to a message (JSON-RPC 2.0 section 5): null without a valid one, or where a number was read as another one. */
export function idOf(message: unknown): string | number | null {
  const id = typeof message === 'object' && message !== null ? (message as { id?: unknown }).id : undefined;
  if (typeof id === 'string') return id;
  const isExact = typeof id === 'number' && Math.abs(id) <= Number.MAX_SAFE_INTEGER;
  return isExact ? id : null;
}
